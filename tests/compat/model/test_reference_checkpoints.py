"""The coordinator machine, fed what Kafka's formatter printed, against what the broker answered at the time.

Every checkpoint whose records are all there is asked: ReadShareGroupState and ReadShareGroupStateSummary, error codes
included. Where the log was pruned while the broker ran, the record of everything ever written (formatter-all) is fed.
"""

import collections
import gzip
import json

import pytest

from state_model import answers
from state_model.answers import ErrorCode, ReadAnswer, SummaryAnswer
from state_model.batches import coalesce
from state_model.machine import NO_EPOCH, PartitionState, apply
from state_model.rule_sets import KAFKA_4_3, KAFKA_4_4
from state_model.share_records import (
    UNKNOWN_COUNT,
    SharePartitionKey,
    ShareRecord,
    ShareSnapshot,
    ShareUpdate,
    StateBatch,
    Tombstone,
)
from tests.datasets import dataset, kinds_first


def lines(path):
    packed = path.with_name(path.name + ".gz")
    text = gzip.decompress(packed.read_bytes()) if packed.is_file() else path.read_bytes()
    return [json.loads(line) for line in text.splitlines()]


def batches(rows):
    return tuple(
        StateBatch(
            first_offset=row["firstOffset"],
            last_offset=row["lastOffset"],
            delivery_state=row["deliveryState"],
            delivery_count=row["deliveryCount"],
        )
        for row in rows
    )


def value(printed):
    if printed["value"] is None:
        return Tombstone()
    data = printed["value"]["data"]
    fields = {
        "snapshot_epoch": data["snapshotEpoch"],
        "leader_epoch": data["leaderEpoch"],
        "start_offset": data["startOffset"],
        "delivery_complete_count": data.get("deliveryCompleteCount", UNKNOWN_COUNT),
        "state_batches": batches(data["stateBatches"]),
    }
    if printed["key"]["type"] == 1:
        return ShareUpdate(**fields)
    return ShareSnapshot(
        **fields,
        state_epoch=data["stateEpoch"],
        create_timestamp_ms=data["createTimestamp"],
        write_timestamp_ms=data["writeTimestamp"],
    )


def records(name):
    """By state partition: (log offset, timestamp, record) in order."""
    folder = dataset(name)
    formatter_file = folder / "formatter-all.jsonl"
    complete = formatter_file.with_name("formatter-all.jsonl.gz").is_file()
    offsets_seen = {}
    for printed in lines(formatter_file if complete else folder / "formatter.jsonl"):
        key = printed["key"]["data"]
        share_partition = SharePartitionKey(
            group_id=key["groupId"], topic_id=key["topicId"], partition=key["partition"]
        )
        record = ShareRecord(key=share_partition, value=value(printed))
        offsets_seen.setdefault(printed["partition"], []).append((printed["offset"], printed["timestamp"], record))
    return {partition: sorted(rows, key=lambda row: row[0]) for partition, rows in offsets_seen.items()}


def advanced(partition_states, waiting, ends):
    """The states as of a checkpoint's log end offsets; takes what they need from the front of `waiting`."""
    for partition, rows in waiting.items():
        while rows and rows[0][0] < ends.get(str(partition), 0):
            partition_states[partition] = apply(partition_states[partition], *rows.popleft())
    return partition_states


def holder(partition_states, key):
    """The state partition that holds a share partition; any other one when none does."""
    holders = [state for state in partition_states.values() if key in state.share_partitions]
    assert len(holders) <= 1
    return holders[0] if holders else next(iter(partition_states.values()))


def expected_read(truth):
    return ReadAnswer(
        error_code=ErrorCode(truth["errorCode"]),
        state_epoch=truth["stateEpoch"],
        start_offset=truth["startOffset"],
        state_batches=coalesce(batches(truth["stateBatches"])),
    )


def expected_summary(truth):
    return SummaryAnswer(
        error_code=ErrorCode(truth["errorCode"]),
        state_epoch=truth["stateEpoch"],
        leader_epoch=truth["leaderEpoch"],
        start_offset=truth["startOffset"],
        delivery_complete_count=truth.get("deliveryCompleteCount", UNKNOWN_COUNT),
    )


def reading_epoch(state, key):
    """A leader epoch that a read passes with and leaves no record: -1, or, where that is refused, the largest seen."""
    if not state.rules.refuses_negative_epochs:
        return NO_EPOCH
    state_of_key = state.share_partitions.get(key)
    return 0 if state_of_key is None else state_of_key.leader_epoch_max


def check(partition_states, truth):
    key = SharePartitionKey(group_id=truth["group"], topic_id=truth["topicId"], partition=truth["partition"])
    exists = truth["summary"]["errorCode"] != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    state = holder(partition_states, key)
    summary = answers.read_summary(state, key, topic_partition_exists=exists)
    expected = expected_summary(truth["summary"])
    if "deliveryCompleteCount" not in truth["summary"]:  # brokers of 4.1 don't know the field
        assert summary.delivery_complete_count == UNKNOWN_COUNT
    assert summary == expected, key
    read = answers.read(state, key, leader_epoch=reading_epoch(state, key), topic_partition_exists=exists)
    coalesced = ReadAnswer(
        error_code=read.error_code,
        state_epoch=read.state_epoch,
        start_offset=read.start_offset,
        state_batches=coalesce(read.state_batches),
    )
    assert coalesced == expected_read(truth["read"]), key


@pytest.mark.parametrize("name", kinds_first())
def test_every_checkpoint_is_what_the_broker_answered(name):
    version = json.loads((dataset(name) / "meta.json").read_text(encoding="utf-8"))["kafkaVersion"]
    rules = KAFKA_4_4 if version.startswith("4.4") else KAFKA_4_3
    waiting = {partition: collections.deque(rows) for partition, rows in records(name).items()}
    partition_states = {partition: PartitionState(rules=rules) for partition in waiting}
    checked = 0
    for checkpoint in lines(dataset(name) / "checkpoints.jsonl"):
        partition_states = advanced(partition_states, waiting, checkpoint["logEndOffsets"])
        for truth in checkpoint["states"]:
            check(partition_states, truth)
            checked += 1
    assert checked > 0
    assert not any(waiting.values())
