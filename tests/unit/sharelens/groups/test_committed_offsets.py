"""Committed offsets from the records of offset commits and transaction markers."""

import struct

import pyarrow as pa
import pytest

from sharelens.evidence.offset_commit_rows import COMMIT_COLUMNS
from sharelens.groups.committed_offsets import committed_offsets
from sharelens.kafka_log.schemas import LOG_RECORD
from state_model.group_schemas import OFFSET_KEY
from state_model.offset_commits import OFFSET_COMMIT_VALUES, OffsetPlace, key_prefix, read_committed, read_place

PLACE = OffsetPlace("g", "t", 0)
TRANSACTIONAL, CONTROL = 16, 48
COMMIT, ABORT = struct.pack(">hh", 0, 1), struct.pack(">hh", 0, 0)


def key(topic="t", partition=0):
    return b"\0\1" + OFFSET_KEY.write({"group": "g", "topic": topic, "partition": partition})


def value(offset, version=4):
    tree = {"offset": offset, "leader_epoch": 3, "metadata": "m", "commit_timestamp": 9, "expire_timestamp": 8}
    return struct.pack(">h", version) + OFFSET_COMMIT_VALUES[version].write(tree)


def commit(offset, place=0, producer=None):
    raw = None if offset is None else value(offset)
    return {"key": key(partition=place), "value": raw, "attributes": 0 if producer is None else TRANSACTIONAL} | (
        {} if producer is None else {"producer_id": producer}
    )


def marker(kind, producer):
    return {"key": kind, "value": b"", "attributes": CONTROL, "is_control": True, "producer_id": producer}


def log(*records):
    """COMMIT_COLUMNS rows, one offset and one millisecond apart, the first at 100 ms."""
    rows = [
        {"partition": 0, "offset": place, "timestamp_ms": 100 + place, "producer_id": -1, "is_control": False}
        | {"uncommitted": False}
        | record
        for place, record in enumerate(records)
    ]
    return pa.Table.from_pylist(rows, schema=pa.schema([LOG_RECORD.field(name) for name in COMMIT_COLUMNS]))


def offsets(records, as_of_ms=None):
    return {
        place.partition: None if of.committed is None else of.committed.offset
        for place, of in committed_offsets(records, as_of_ms).items()
    }


@pytest.mark.parametrize("version", OFFSET_COMMIT_VALUES)
def test_every_version_of_a_value_is_read(version):
    committed = read_committed(value(7, version))
    assert (committed.offset, committed.metadata, committed.commit_timestamp_ms) == (7, "m", 9)
    assert committed.leader_epoch == (3 if version >= 3 else -1)
    assert read_committed(b"\0\5") is None


def test_the_key_names_group_topic_and_partition():
    assert read_place(key()) == PLACE
    assert key().startswith(key_prefix("g"))
    assert not key().startswith(key_prefix("g2"))


def test_the_newest_commit_counts_and_a_tombstone_ends_it():
    records = log(commit(1), commit(5), commit(2, place=1), commit(None, place=1))
    assert offsets(records) == {0: 5, 1: None}
    assert offsets(records, 102) == {0: 5, 1: 2}


def test_a_commit_in_a_transaction_counts_from_its_marker_on():
    records = log(commit(1), commit(5, producer=7), commit(6, producer=8), marker(ABORT, 8), marker(COMMIT, 7))
    assert [offsets(records, 100 + moment)[0] for moment in range(5)] == [1, 1, 1, 1, 5]


def test_a_later_plain_commit_wins_over_an_earlier_one_in_a_transaction():
    assert offsets(log(commit(5, producer=7), commit(9), marker(COMMIT, 7))) == {0: 9}


def test_an_earlier_moment_is_incomplete_where_compaction_may_have_removed_a_commit():
    (of,) = (committed_offsets(log(commit(2, place=1), commit(3)), 100).values(),)
    assert [(at.committed and at.committed.offset, at.marks["completeness"]) for at in of] == [
        (None, "incomplete"),
        (2, "complete"),
    ]


def test_broken_values_are_quarantined_and_broken_keys_left_out():
    broken = {"key": key(), "value": b"\0\4\0", "attributes": 0}
    (of,) = committed_offsets(log(commit(1), broken, broken | {"key": b"\0\1\0\1"})).values()
    assert (of.committed, of.marks["completeness_reason"]) == (None, "quarantined")
