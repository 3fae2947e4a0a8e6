"""The audit of several state partitions at once is the audit of each of them alone, in any runs."""

import itertools

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.evidence.auditing import audited_batches
from sharelens.kafka_log.schemas import LOG_RECORD
from state_model.audit.columnar.continuation import AUDIT_STATE
from state_model.audit.columnar.findings import findings
from state_model.audit.columnar.kernels import layout
from state_model.audit.columnar.kernels.step_kernels import MAX_OFFSET
from state_model.audit.columnar.partitions import LogFacts, PartitionsAudit
from state_model.audit.table import RULES
from state_model.share_records import ShareRecord, ShareSnapshot, ShareUpdate, StateBatch, encode_record
from tests.audit.histories import START_MS, Entry
from tests.audit.mutations import log_records
from tests.depths import examples
from tests.logs.replay_logs import HOSTILE_LOGS, KEYS, LOGS
from tests.unit.state_model.audit.columnar.test_partition import without_tags

pytestmark = pytest.mark.slow

SEVERITIES = {rule.id: rule.severity for rule in RULES if rule.severity}
NUMBERS = (2, 5, 11)
UNTIMELY = 400_000
"""Milliseconds between records, so that some are archiving for too long."""


@st.composite
def logs(draw):
    """Entries of a log, some lost or not decodable, and what is known of it."""
    entries = []
    first = draw(st.sampled_from([0, 0, 4]))
    for offset, (key, value, is_lost) in enumerate(draw(LOGS | HOSTILE_LOGS), first):
        key_bytes, value_bytes = encode_record(ShareRecord(key=key, value=without_tags(value)))
        if draw(st.sampled_from([False] * 7 + [True])):
            value_bytes = b"\0\7"
        if not is_lost:
            entries.append(Entry(offset, START_MS + UNTIMELY * offset, key_bytes, value_bytes))
    facts = {"first_offset": first, "log_start_offset": draw(st.integers(0, 6)), "has_newest": draw(st.booleans())}
    return entries, facts


def rows_of(entries, state_partition):
    rows = pa.Table.from_batches([log_records(entries)]) if entries else LOG_RECORD.empty_table()
    index = rows.schema.get_field_index("partition")
    return rows.set_column(index, rows.schema.field(index), pa.array([state_partition] * rows.num_rows, pa.int32()))


def audited(logs_by_number, parts):
    """The audit of some state partitions in runs over parts of their logs (by number), and its last state."""
    facts = [LogFacts(state_partition=number, **facts) for number, (_, facts) in logs_by_number.items()]
    state = None
    for part in parts:
        audit = PartitionsAudit(facts, states=state)
        rows = pa.concat_tables([rows_of(part[number], number) for number in logs_by_number]).combine_chunks()
        if rows.num_rows:
            for _ in audited_batches(audit, rows):
                pass
        state = pa.Table.from_pylist(audit.state().to_pylist(), schema=AUDIT_STATE)
    return audit, state


def comparable(states):
    """The states as values; their violations are in no order."""
    return [{**row, "violations": sorted(map(str, row["violations"]))} for row in states.to_pylist()]


def closed_findings(audit):
    audit.close()
    return findings([audit], SEVERITIES).sort_by("state_partition").to_pylist()


@pytest.mark.soak
@examples("table")
@given(st.tuples(*(logs() for _ in NUMBERS)), st.lists(st.integers(0, 9), max_size=2))
def test_state_partitions_together_are_each_of_them_alone(partition_logs, cuts):
    by_number = dict(zip(NUMBERS, partition_logs, strict=True))
    longest = max(len(entries) for entries, _ in partition_logs)
    bounds = [0, *sorted(min(cut, longest) for cut in cuts), longest]
    parts = [
        {number: entries[begin:end] for number, (entries, _) in by_number.items()}
        for begin, end in itertools.pairwise(bounds)
    ]
    together, states = audited(by_number, parts)
    alone = [audited({number: log}, [{number: part[number]} for part in parts]) for number, log in by_number.items()]
    assert comparable(states) == [row for _, state in alone for row in comparable(state)]
    assert closed_findings(together) == [row for audit, _ in alone for row in closed_findings(audit)]


def in_format_1(row):
    """A row of AUDIT_STATE without the columns that came later."""
    numbers = enumerate(row["states"])
    return {
        **row,
        "format": 1,
        "states": [number for place, number in numbers if place % layout.STATE_COLUMNS < layout.LARGEST_START],
    }


@pytest.mark.parametrize("old_rows", [(), (0,), (2,), (0, 1, 2)])
def test_an_audit_goes_on_with_states_of_the_format_before(old_rows):
    created = ShareSnapshot(
        snapshot_epoch=0, state_epoch=1, leader_epoch=0, start_offset=0, create_timestamp_ms=START_MS,
        write_timestamp_ms=START_MS, state_batches=(), delivery_complete_count=0,
    )  # fmt: skip
    update = ShareUpdate(0, 0, 5, (StateBatch(5, 9, 2, 1),), 5)
    records = [ShareRecord(key=key, value=value) for value in (created, update) for key in KEYS]
    entries = [Entry(row, START_MS, *encode_record(record)) for row, record in enumerate(records)]
    facts = {"first_offset": 0, "log_start_offset": 0, "has_newest": True}
    logs_by_number = dict.fromkeys(NUMBERS, (entries, facts))
    first, second = (dict.fromkeys(NUMBERS, part) for part in (entries[:4], entries[4:]))
    expected, _ = audited(logs_by_number, [first, second])
    _, between = audited(logs_by_number, [first])
    rows = [in_format_1(row) if number in old_rows else row for number, row in enumerate(between.to_pylist())]
    log_facts = [LogFacts(state_partition=number, **facts) for number in NUMBERS]
    resumed = PartitionsAudit(log_facts, states=pa.Table.from_pylist(rows, schema=AUDIT_STATE))
    largest = resumed.auditor.matrix[:, layout.LARGEST_START].reshape(len(NUMBERS), len(KEYS))
    assert [set(part) == {MAX_OFFSET} for part in largest.tolist()] == [number in old_rows for number in range(3)]
    part = pa.concat_tables([rows_of(second[number], number) for number in NUMBERS]).combine_chunks()
    for _ in audited_batches(resumed, part):
        pass
    assert closed_findings(resumed) == closed_findings(expected)
