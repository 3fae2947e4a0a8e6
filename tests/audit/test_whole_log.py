"""The rules on whole logs and configurations: the audit over Arrow finds what the reference form finds."""

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.evidence.decoding import decode_rows
from state_model.audit.columnar.configured import ConfiguredAudit
from state_model.audit.columnar.partition import PartitionAudit
from state_model.audit.coordinator_config import CoordinatorConfig
from state_model.audit.rule import Field
from state_model.share_records import ShareRecord, ShareSnapshot, ShareUpdate, StateBatch, Tombstone, encode_record
from tests.audit.histories import Entry
from tests.audit.mutations import log_records
from tests.audit.reference.steps import steps
from tests.audit.whole_log import archiving_too_long, begins_inside, configured, pruned_snapshots
from tests.logs.replay_logs import KEYS, LOGS

ENDS, CONFIGURED = {60, 170, 500}, {121, 130, 140, 570}
MINUTE_MS = 60_000
CONFIGS = st.builds(
    CoordinatorConfig, st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.sampled_from([0, 0, 3 * MINUTE_MS])
).map(lambda config: config._replace(least_updates=min(config[:2]), most_updates=max(config[:2])))


def archiving(value):
    """The value with ARCHIVING in place of ACKNOWLEDGED, and without tagged fields."""
    if isinstance(value, Tombstone):
        return value
    batches = (
        batch._replace(delivery_state=3 if batch.delivery_state == 2 else 4, unknown_tags=())
        for batch in value.state_batches
    )
    return value._replace(state_batches=tuple(batches), unknown_tags=())


def entries_of(log, first_offset=0):
    """(log offset, time, record) a minute apart."""
    return [
        (first_offset + row, MINUTE_MS * row, ShareRecord(key=key, value=archiving(value)))
        for row, (key, value, _) in enumerate(log)
    ]


def audited(entries, log_start_offset=0, config=None):
    """(rule, share partition, log offset, field, at, expected, seen, number of violations) of the audit over Arrow."""
    rows = log_records([Entry(at, time_ms, *encode_record(record)) for at, time_ms, record in entries])
    audit = PartitionAudit(0, first_offset=entries[0][0], log_start_offset=log_start_offset, has_newest=True)
    times = rows.column("timestamp_ms").to_numpy()
    decoded = decode_rows(pa.Table.from_batches([rows]), times)
    audit.take(rows, times, decoded.records, decoded.problems)
    if config is not None:
        ConfiguredAudit(config, audit).take(decoded.records)
    audit.close()
    keys = audit.auditor.keys.to_pylist()
    names = ("first_log_offset", "field", "at", "expected", "seen", "violations")
    return sorted(
        (row["rule"], tuple(keys[row["share_partition"]].values()), *(row[name] for name in names))
        for row in audit.tally.counted.to_pylist()
        if row["rule"] in (ENDS if config is None else CONFIGURED)
    )


def counted(violations):
    """The same of violations in the reference form."""
    violations = list(violations)
    counts = Counter((violation.rule_id, violation.key) for violation in violations)
    first = {}
    for violation in violations:
        first.setdefault((violation.rule_id, violation.key), violation)
    return sorted(
        (rule, tuple(key), violation.log_offset, int(violation.difference.field), violation.difference.at,
         violation.difference.expected, violation.difference.actual, counts[rule, key])
        for (rule, key), violation in first.items()
    )  # fmt: skip


@pytest.mark.slow
@given(LOGS, st.integers(0, 2), st.integers(0, 6))
def test_the_ends_of_a_log(log, first_offset, above):
    entries, start = entries_of(log, first_offset), first_offset + above
    walked = list(steps(entries, is_from_zero=first_offset == 0))
    violations = [*begins_inside(walked, start), *pruned_snapshots(walked, start), *archiving_too_long(walked)]
    assert audited(entries, start) == counted(violations)


@pytest.mark.slow
@given(LOGS, CONFIGS, st.booleans())
def test_configurations(log, config, is_from_zero):
    entries = entries_of(log, 0 if is_from_zero else 1)
    violations = configured(steps(entries, is_from_zero=is_from_zero), config, is_from_zero=is_from_zero)
    assert audited(entries, config=config) == counted(violations)


@pytest.mark.parametrize(
    ("min_updates", "max_updates", "is_from_zero", "rules"),
    [(1, 1, True, {121, 130}), (1, 2, True, {121}), (1, 1, False, {121}), (3, 3, True, set())],
)
def test_the_limit_of_updates_is_tested_where_it_was_one_and_the_counter_is_known(
    min_updates, max_updates, is_from_zero, rules
):
    snapshot = ShareSnapshot(
        snapshot_epoch=0, state_epoch=1, leader_epoch=0, start_offset=0, create_timestamp_ms=0, write_timestamp_ms=0,
        state_batches=(), delivery_complete_count=0,
    )  # fmt: skip
    update = ShareUpdate(
        snapshot_epoch=0, leader_epoch=0, start_offset=0, state_batches=(StateBatch(0, 0, 2, 1),),
        delivery_complete_count=0,
    )  # fmt: skip
    log = entries_of([(KEYS[0], snapshot, False), *3 * [(KEYS[0], update, False)]])
    config = CoordinatorConfig(min_updates, max_updates, 1, 0)
    violations = configured(steps(log, is_from_zero=is_from_zero), config, is_from_zero=is_from_zero)
    assert {violation.rule_id for violation in violations} == rules


def test_what_the_rules_name():
    value = ShareSnapshot(
        snapshot_epoch=0, state_epoch=1, leader_epoch=0, start_offset=0, create_timestamp_ms=0, write_timestamp_ms=0,
        state_batches=(StateBatch(4, 6, 2, 1),), delivery_complete_count=0,
    )  # fmt: skip
    log = entries_of([(KEYS[0], value, False)] + 7 * [(KEYS[1], Tombstone(), False)])
    assert audited(log, 1) == [
        (170, tuple(KEYS[0]), 0, int(Field.LOG_OFFSET), -1, 1, 0, 1),
        (500, tuple(KEYS[0]), 0, int(Field.OFFSET_STATE), 4, 260, 259, 1),
    ]
