"""What Kafka's own ShareCoordinatorShard appended under random operations, with its state after each record.

Our machine, fed its records, must hold its state; our write side, asked for the same, must append its records. An
update of the 4.3.1 shard carries the request as it came. Both versions were given the same operations, so the 4.3.1
log tells the requests of the 4.4.0 one too. What a write snapshot was asked for is lost in part: its batches are
taken for the request's (they contain them, and everything else in them the state holds already), and where its start
offset is the state's, the request may have said -1; then both must be tried.
"""

import functools
import gzip
import itertools
from typing import NamedTuple

import pytest

from state_model import coordinator
from state_model.answers import ErrorCode
from state_model.batches import coalesce
from state_model.coordinator import WriteRequest
from state_model.machine import PartitionState, SharePartitionState, apply
from state_model.rule_sets import KAFKA_4_3, KAFKA_4_4
from state_model.share_records import SharePartitionKey, ShareRecord, ShareSnapshot, ShareUpdate, StateBatch, Tombstone
from tests.datasets import dataset

RECORDS = 78_290
RULES = {"4.3.1": KAFKA_4_3, "4.4.0": KAFKA_4_4}
BOTH_VERSIONS = pytest.mark.parametrize("version", RULES)


class Step(NamedTuple):
    run: int
    update_limit: int
    log_offset: int
    operation: str
    record: ShareRecord
    after: ShareSnapshot | None  # the shard's state, in the fields of a snapshot


@functools.cache
def batch(text):
    """Most batches of a state were there before: each is read once."""
    first, last, state, count = map(int, text.split(":"))
    return StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)


def batches(text):
    return tuple(batch(part) for part in text.split(";") if part)


def snapshot_of(text):
    *scalars, listed = text.split(",")
    epoch, state_epoch, leader_epoch, start, count, created, written = map(int, scalars)
    return ShareSnapshot(
        snapshot_epoch=epoch,
        state_epoch=state_epoch,
        leader_epoch=leader_epoch,
        start_offset=start,
        delivery_complete_count=count,
        create_timestamp_ms=created,
        write_timestamp_ms=written,
        state_batches=batches(listed),
    )


def value(kind, text):
    if kind == "tomb":
        return Tombstone()
    if kind == "snap":
        return snapshot_of(text)
    epoch, _, leader_epoch, start, count, _, _, listed = text.split(",")
    return ShareUpdate(
        snapshot_epoch=int(epoch),
        leader_epoch=int(leader_epoch),
        start_offset=int(start),
        delivery_complete_count=int(count),
        state_batches=batches(listed),
    )


def step(line):
    run, limit, offset, partition, operation, kind, record, after = line.rstrip("\n").split("|")
    key = SharePartitionKey(group_id="g", topic_id="A" * 22, partition=int(partition))
    return Step(
        run=int(run),
        update_limit=int(limit),
        log_offset=int(offset),
        operation=operation,
        record=ShareRecord(key=key, value=value(kind, record)),
        after=snapshot_of(after) if after else None,
    )


@functools.cache
def runs(version):
    """The steps of each run; 300 runs, each from an empty log."""
    with gzip.open(dataset("coordinator") / f"shardlog-{version}.txt.gz", "rt", encoding="ascii") as lines:
        steps = [step(line) for line in lines]
    assert len(steps) == RECORDS
    return [list(run) for _, run in itertools.groupby(steps, key=lambda entry: entry.run)]


def replayed(run, version):
    """The states of a run under the rules of a version: before its first step, then after each."""
    begin = PartitionState(update_limit=run[0].update_limit, rules=RULES[version])
    return list(
        itertools.accumulate(run, lambda state, entry: apply(state, entry.log_offset, 0, entry.record), initial=begin)
    )


@functools.cache
def states(version):
    """The states of each run, by the rules of the version that wrote it."""
    return [replayed(run, version) for run in runs(version)]


def as_snapshot(state: SharePartitionState | None):
    if state is None:
        return None
    return ShareSnapshot(
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
        create_timestamp_ms=state.create_timestamp_ms,
        write_timestamp_ms=state.write_timestamp_ms,
        state_batches=state.state_batches,
    )


@BOTH_VERSIONS
def test_the_state_after_every_record_is_the_shards_own_batch_lists_included(version):
    wrong, checked = [], 0
    for run, moments in zip(runs(version), states(version), strict=True):
        for entry, state in zip(run, moments[1:], strict=True):
            checked += 1
            if as_snapshot(state.share_partitions.get(entry.record.key)) != entry.after:
                wrong.append((entry, state.share_partitions.get(entry.record.key)))
    assert (checked, wrong) == (RECORDS, [])


@BOTH_VERSIONS
def test_the_other_rules_change_the_lists_and_nothing_of_their_content(version):
    other = {"4.3.1": "4.4.0", "4.4.0": "4.3.1"}[version]
    checked = 0
    for run in runs(version)[::10]:
        for entry, state in zip(run, replayed(run, other)[1:], strict=True):
            if entry.after is not None:
                share_partition = state.share_partitions[entry.record.key]
                assert coalesce(share_partition.state_batches) == coalesce(entry.after.state_batches)
                checked += 1
    assert checked > RECORDS // 20


def cold_ends(run):
    """Number of steps that the cold job of each step appended; its records share one write timestamp."""
    ends, start = {}, 0
    while start < len(run):
        end = start + 1
        if run[start].operation == "cold":
            written = run[start].record.value.write_timestamp_ms
            while (
                end < len(run)
                and run[end].operation == "cold"
                and (run[end].record.value.write_timestamp_ms == written)
            ):
                end += 1
            ends[start] = end
        start = end
    return ends


@BOTH_VERSIONS
def test_the_cold_job_appends_the_same_snapshots(version):
    jobs = 0
    for run, moments in zip(runs(version), states(version), strict=True):
        for index, end in cold_ends(run).items():
            now_ms = run[index].record.value.write_timestamp_ms
            due = {record.key: record for record in coordinator.snapshot_cold(moments[index], now_ms=now_ms)}
            assert due == {logged.record.key: logged.record for logged in run[index:end]}
            jobs += 1
    assert jobs > 500


def requested(logged, raw_start):
    """The write that made the 4.3.1 record `told`, with the epochs that pass."""
    return WriteRequest(
        state_epoch=1 << 30,
        leader_epoch=1 << 30,
        start_offset=raw_start,
        delivery_complete_count=logged.delivery_complete_count,
        state_batches=logged.state_batches,
    )


def candidates(logged, older_state, key):
    """Requests that may have made `told`: the start offset of a snapshot may have been the request's or left out."""
    if isinstance(logged, ShareUpdate):
        return [requested(logged, logged.start_offset)]
    starts = [logged.start_offset]
    if older_state.share_partitions[key].start_offset == logged.start_offset:
        starts.append(-1)
    return [requested(logged, start) for start in starts]


def canonical(record):
    """The 4.3.1 shard combined the batches of the request once, we what came of it: equal neighbours may get joined."""
    if isinstance(record.value, Tombstone):
        return record
    joined = record.value._replace(state_batches=coalesce(record.value.state_batches))
    return record._replace(value=joined)


def is_appended(records, logged):
    """Whether the records are the one that was told; most are so as they are."""
    return len(records) == 1 and (records[0] == logged or canonical(records[0]) == canonical(logged))


def requested_of(state, entry, request_from, older_state):
    """Record lists that our write side appends for the operation behind `one`."""
    key, logged = entry.record.key, entry.record.value
    now_ms = getattr(logged, "create_timestamp_ms", 0)
    if entry.operation == "init":
        outcome = coordinator.initialize(
            state, key, state_epoch=logged.state_epoch, start_offset=logged.start_offset, now_ms=now_ms
        )
        return [(outcome.error_code, outcome.records)]
    if entry.operation == "read":
        read = coordinator.read(state, key, leader_epoch=logged.leader_epoch, now_ms=now_ms)
        return [(read.answer.error_code, read.records)]
    if entry.operation == "del":
        outcome = coordinator.delete(state, key)
        return [(outcome.error_code, outcome.records)]
    outcomes = [
        coordinator.write(state, key, request, now_ms=now_ms) for request in candidates(request_from, older_state, key)
    ]
    return [(outcome.error_code, outcome.records) for outcome in outcomes]


@BOTH_VERSIONS
def test_the_write_side_appends_the_same_records(version):
    asked_for = {"init": 0, "read": 0, "write": 0, "del": 0}
    for run, moments, older_run, older_moments in zip(
        runs(version), states(version), runs("4.3.1"), states("4.3.1"), strict=True
    ):
        for entry, state, older, older_state in zip(run, moments[:-1], older_run, older_moments[:-1], strict=True):
            assert (entry.log_offset, entry.operation, entry.record.key) == (
                older.log_offset,
                older.operation,
                older.record.key,
            )
            if entry.operation != "cold":
                ours = requested_of(state, entry, older.record.value, older_state)
                assert any(code == ErrorCode.NONE and is_appended(records, entry.record) for code, records in ours), (
                    entry,
                    ours,
                )
                asked_for[entry.operation] += 1
    assert min(asked_for.values()) > 1000
