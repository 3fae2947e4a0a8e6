"""Records of share groups as the group coordinator writes them, for tests."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from sharelens.evidence.schemas import GROUP_RECORD

Entry = tuple[int, str | None, Mapping[str, Any] | None]
"""Record type, member and value (None: a tombstone)."""


def group_log(
    *entries: Entry,
    group: str = "g",
    timestamps_ms: Sequence[int] | None = None,
    undecoded: Collection[int] = (),
) -> pa.Table:
    """GROUP_RECORD rows of one group, one log offset and one millisecond apart, the first at 100 ms.

    `undecoded`: offsets of records with a value of an unknown version.
    """
    rows = [
        {
            "log_topic_id": "t",
            "partition": 0,
            "log_offset": offset,
            "timestamp_ms": 100 + offset if timestamps_ms is None else timestamps_ms[offset],
            "record_type": kind,
            "record_name": "r",
            "group_id": group,
            "member_id": member,
            "value_version": None if value is None else 9 if offset in undecoded else 0,
            "is_tombstone": value is None,
            "value_json": None if value is None or offset in undecoded else json.dumps(value),
            "below_log_start": False,
            "uncommitted": False,
        }
        for offset, (kind, member, value) in enumerate(entries)
    ]
    return pa.Table.from_pylist(rows, schema=GROUP_RECORD)


def subscribed(member: str, *names: str) -> Entry:
    """A member's subscription."""
    value = {"rackId": None, "clientId": f"c-{member}", "clientHost": "/127.0.0.1", "subscribedTopicNames": list(names)}
    return 10, member, value


def joined(member: str) -> Entry:
    """A member that subscribes to the topic orders."""
    return subscribed(member, "orders")


def topics(
    initialized: Sequence[int] = (),
    initializing: Sequence[int] = (),
    deleting: bool = False,
    name: str = "orders",
) -> dict[str, Any]:
    """The value of ShareGroupStatePartitionMetadata with partitions of one topic."""

    def of(partitions: Sequence[int]) -> list[dict[str, Any]]:
        return [{"topicId": "T", "topicName": name, "partitions": list(partitions)}] if partitions else []

    return {
        "initializingTopics": of(initializing),
        "initializedTopics": of(initialized),
        "deletingTopics": [{"topicId": "T", "topicName": name}] if deleting else [],
    }


def initialized(*partitions: int, initializing: Sequence[int] = (), deleting: bool = False) -> Entry:
    """ShareGroupStatePartitionMetadata of the topic orders."""
    return 15, None, topics(partitions, initializing, deleting)


def target(member: str, *partitions: int) -> Entry:
    """A member's target assignment of partitions of orders."""
    return 13, member, {"topicPartitions": topics(partitions)["initializedTopics"]}


def assigned(member: str, epoch: int, *partitions: int) -> Entry:
    """A member's current assignment of partitions of orders."""
    value = {
        "memberEpoch": epoch,
        "previousMemberEpoch": epoch - 1,
        "state": 0,
        "assignedPartitions": topics(partitions)["initializedTopics"],
    }
    return 14, member, value


def epoch(number: int) -> Entry:
    """The group epoch."""
    return 11, None, {"epoch": number, "metadataHash": 1}


def assignment_epoch(number: int) -> Entry:
    """The epoch of the target assignment."""
    return 12, None, {"assignmentEpoch": number, "assignmentTimestamp": 5}


CREATED = (joined("m"), epoch(2), target("m", 0, 1), assignment_epoch(2), assigned("m", 2, 0, 1))
LEAVE_ENTRIES = ((14, "m", None), (13, "m", None), (10, "m", None), epoch(3))
DELETED = ((12, None, None), (15, None, None), (11, None, None))


def operated(operations: Iterable[tuple[str, str, int]]) -> list[list[Entry]]:
    """The records of operations (join, leave, heartbeat or initialize; member; a number), each as Kafka writes it."""
    batches: list[list[Entry]] = [[joined("first"), epoch(1)]]
    number, members, assignments = 1, ["first"], dict[str, tuple[int, int]]()
    for name, member, seed in operations:
        if name == "initialize":
            batches.append([initialized(*range(seed + 1))])
        elif name == "join" and member not in members:
            number, members = number + 1, [*members, member]
            assignments = {other: (number, (seed + place) % 4) for place, other in enumerate(members)}
            targets = [target(other, place) for other, (_, place) in assignments.items()]
            after = [*targets, assignment_epoch(number), assigned(member, *assignments[member])]
            batches.append([joined(member), epoch(number), *after])
        elif name == "leave" and member in members:
            number = number + 1
            members.remove(member)
            batches.append([(14, member, None), (13, member, None), (10, member, None), epoch(number)])
        elif name == "heartbeat" and member in assignments and member in members:
            batches.append([assigned(member, *assignments[member])])
    return batches


def compacted(records: pa.Table, end_offset: int, *, keep_tombstones: bool) -> pa.Table:
    """The log after a round of the log cleaner up to an offset (exclusive); removed tombstones are old ones."""
    rows = records.to_pylist()
    newest = {
        (row["record_type"], row["member_id"]): row["log_offset"] for row in rows if row["log_offset"] < end_offset
    }
    kept_rows = [
        row
        for row in rows
        if row["log_offset"] >= end_offset
        or (
            row["log_offset"] == newest[row["record_type"], row["member_id"]]
            and (keep_tombstones or not row["is_tombstone"])
        )
    ]
    return pa.Table.from_pylist(kept_rows, schema=records.schema)
