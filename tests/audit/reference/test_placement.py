"""Placement and decoding in the reference form, and the audit over Arrow says the same."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.evidence.decoding import decode_rows
from sharelens.kafka_log.schemas import LOG_RECORD
from state_model.audit.columnar.partition import PartitionAudit
from state_model.audit.rule import Field
from state_model.codec.primitives import UnknownTag
from state_model.java import partition_for
from state_model.share_records import SharePartitionKey, ShareRecord, ShareUpdate, StateBatch
from tests.audit.histories import START_MS, TOPIC_ID, Entry
from tests.audit.mutations import log_records
from tests.audit.reference import placement
from tests.audit.reference.steps import steps

OFFSETS = st.lists(st.integers(0, 30), min_size=1, max_size=8)
BATCHES = st.lists(
    st.tuples(st.sampled_from([0, 1, 16, 32, 48]), st.sampled_from([-1, 0, 7]), st.integers(0, 2)),
    min_size=1,
    max_size=5,
)
RULES_OF_OFFSETS = {30: placement.goes_back, 31: placement.leaves_hole}


def violations(entries, changes=()):
    """(rule, log offset, field, expected, seen) of each violation, for records that nothing decodes."""
    audit = PartitionAudit(0, first_offset=0, log_start_offset=0, has_newest=True)
    rows = log_records(entries).to_pylist()
    for row, change in zip(rows, changes, strict=False):
        row.update(change)
    violation_rows = []
    for row in rows:
        audit.tally.counted = audit.tally.counted.slice(0, 0)
        take(audit, row)
        names = ("rule", "first_log_offset", "field", "expected", "seen")
        violation_rows += [tuple(counted[name] for name in names) for counted in audit.tally.counted.to_pylist()]
        names = ("rule", "log_offset", "field", "expected", "seen")
        known_holes = sum(violation[0] == 31 for violation in violation_rows)
        violation_rows += [
            tuple(hole[name] for name in names) for hole in audit.missing_offsets().to_pylist()[known_holes:]
        ]
    return [violation for violation in violation_rows if violation[0] in (30, 31, 40)]


def take(audit, row):
    rows = pa.RecordBatch.from_pylist([row], schema=LOG_RECORD)
    times = rows.column("timestamp_ms").to_numpy()
    decoded = decode_rows(pa.Table.from_batches([rows]), times)
    audit.take(rows, times, decoded.records, decoded.problems)


def entry(log_offset):
    return Entry(log_offset, START_MS, b"\0", None)


@pytest.mark.slow
@given(OFFSETS)
def test_offsets(offsets):
    expected = []
    for previous, offset in zip([-1, *offsets], offsets, strict=False):
        for rule, check in RULES_OF_OFFSETS.items():
            difference = check(previous, offset)
            if difference is not None:
                expected.append((rule, offset, int(difference.field), difference.expected, difference.actual))
    assert violations([entry(offset) for offset in offsets]) == expected


@pytest.mark.slow
@given(BATCHES)
def test_batches(batches):
    expected = []
    changes = []
    for offset, (attributes, producer_id, headers) in enumerate(batches):
        difference = placement.odd_batch(attributes, producer_id, headers)
        if difference is not None:
            expected.append((40, offset, int(difference.field), difference.expected, difference.actual))
        listed = [{"key": "k", "value": b""}] * headers
        changes.append({"attributes": attributes, "producer_id": producer_id, "headers": listed})
    assert violations([entry(offset) for offset in range(len(batches))], changes) == expected


def test_a_misplaced_key():
    key = SharePartitionKey(group_id="g", topic_id=TOPIC_ID, partition=3)
    place = partition_for(*key, 50)
    assert placement.misplaced(key, place, 50) is None
    assert placement.misplaced(key, place + 1, 50).expected == place


def test_trailing_bytes_and_unknown_tags():
    tag = UnknownTag(tag=7, data=b"x")
    batch = StateBatch(0, 0, 2, 1, (tag,))
    value = ShareUpdate(snapshot_epoch=0, leader_epoch=0, start_offset=0, state_batches=(batch,), unknown_tags=(tag,))
    key = SharePartitionKey(group_id="g", topic_id=TOPIC_ID, partition=3)
    step = next(placement_steps(ShareRecord(key=key, value=value, trailing_bytes=2)))
    assert placement.trailing_bytes(step).actual == 2
    assert placement.unknown_tags(step)[:3] == (Field.UNKNOWN_TAGS, 0, 2)


def placement_steps(record):
    return steps([(0, 0, record)])
