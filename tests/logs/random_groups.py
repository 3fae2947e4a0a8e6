"""Random records of consumer, share and streams groups."""

import json
from random import Random
from typing import Any

import pyarrow as pa

from sharelens.evidence.schemas import GROUP_RECORD

STREAMS_KINDS = [17, 19, 20, 20, 21, 21, 22, 22, 22, 22, 22, 23]
SHARE_KINDS = [10, 11, 12, 12, 13, 13, 14, 14, 14, 14, 15, 15]
CONSUMER_KINDS = [3, 4, 5, 6, 6, 7, 7, 8, 8, 8, 8, 16]
OF_MEMBERS = (5, 7, 8, 10, 13, 14, 19, 21, 22)
OF_GROUPS = (3, 11, 17)
OF_EXPRESSIONS = (16,)
TASK_LISTS = [
    f"{kind}Tasks{status}" for status in ("", "PendingRevocation") for kind in ("active", "standby", "warmup")
]


def tasks(random: Random, *, has_epochs: bool) -> list[dict[str, Any]]:
    """Tasks in any order, perhaps twice; with epochs for all of them, for others, or with none."""
    entries = []
    for _ in range(random.choice([0, 0, 1, 1, 2])):
        partitions = [random.randrange(4) for _ in range(random.randrange(4))]
        entry: dict[str, Any] = {"subtopologyId": random.choice(["0", "1", "10", "é"]), "partitions": partitions}
        count = random.choice([len(partitions)] * 5 + [1])
        epochs = random.choice([[random.randrange(3) for _ in range(count)], None])
        if has_epochs and random.random() < 0.8:
            entry["assignmentEpochs"] = epochs
        entries.append(entry)
    return entries


def topics(random: Random, *, has_names: bool = False) -> list[dict[str, Any]]:
    """Partitions of topics in any order, perhaps twice, perhaps of a topic without partitions."""
    entries = []
    for _ in range(random.choice([0, 1, 1, 2, 3])):
        entry: dict[str, Any] = {"topicId": random.choice(["T", "U", "é"])}
        if has_names:
            entry["topicName"] = random.choice(["t", "t", "u", "<UNKNOWN>"])
        entries.append(entry | {"partitions": [random.randrange(4) for _ in range(random.randrange(4))]})
    return entries


def random_subset(random: Random, values: dict[str, Any]) -> dict[str, Any]:
    """Some of the values."""
    return {name: value for name, value in values.items() if random.random() < 0.8}


def share_value(random: Random, kind: int) -> dict[str, Any]:
    """A value of a record type of share groups; its numbers are few, so that they often agree."""
    epoch = random.choice([-1, 0, 1, 1, 2, 2])
    match kind:
        case 10:
            return {
                "rackId": random.choice([None, "r"]),
                "clientId": random.choice(["a", "b"]),
                "clientHost": "/h",
                "subscribedTopicNames": random.choice([[], ["t"], ["u", "t"], ["t", "u"]]),
            }
        case 11:
            return {"epoch": epoch, "metadataHash": random.choice([0, 7, -(1 << 63)])}
        case 13:
            return {"topicPartitions": topics(random)}
        case 14:
            previous = random.choice([0, 1])
            return {
                "memberEpoch": epoch,
                "previousMemberEpoch": previous,
                "state": 0,
                "assignedPartitions": topics(random),
            }
        case 12:
            return {"assignmentEpoch": epoch, **random_subset(random, {"assignmentTimestamp": random.randrange(3)})}
    return {
        "initializingTopics": topics(random, has_names=True),
        "initializedTopics": topics(random, has_names=True),
        "deletingTopics": [{"topicId": "T", "topicName": "t"}] if random.random() < 0.3 else [],
    }


def streams_value(random: Random, kind: int) -> dict[str, Any]:
    """A value of a record type of streams groups; its numbers are few, so that they often agree."""
    epoch = random.choice([-1, 0, 1, 1, 2, 2])
    match kind:
        case 17:
            standby = random.choice(["1", "2", "x", "99999999999"])
            configs = random.choice([None, [], [{"key": "num.standby.replicas", "value": standby}]])
            validated = random.choice([-1, 0, 0, 0, 1])
            optional = random_subset(random, {"validatedTopologyEpoch": validated, "lastAssignmentConfigs": configs})
            return {"epoch": epoch, "metadataHash": random.choice([0, 7, -(1 << 63)]), **optional}
        case 19:
            return {
                "instanceId": random.choice([None, "i"]),
                "rackId": random.choice([None, "r"]),
                "clientId": random.choice(["a", "b"]),
                "clientHost": "/h",
                "rebalanceTimeoutMs": 300_000,
                "topologyEpoch": random.choice([0, 1]),
                "processId": random.choice(["p", "q"]),
                "userEndpoint": random.choice([None, {"host": "h", "port": 65535}]),
                "clientTags": random.choice([[], [{"key": "k", "value": "v\n"}]]),
            }
        case 20:
            return {"assignmentEpoch": epoch, **random_subset(random, {"assignmentTimestamp": random.randrange(3)})}
        case 21:
            return {name: tasks(random, has_epochs=False) for name in TASK_LISTS[:3]}
        case 22:
            lists = {name: tasks(random, has_epochs=True) for name in TASK_LISTS}
            state = random.choice([1, 1, 1, 1, 1, 2, 3, 127, -5])
            return {"memberEpoch": epoch, "previousMemberEpoch": random.choice([0, 1]), "state": state, **lists}
    return {"epoch": random.choice([0, 0, 1]), "subtopologies": []}


def owned_topics(random: Random) -> list[dict[str, Any]]:
    """Partitions with epochs for all of them, for others, or with none."""
    entries = topics(random)
    for entry in entries:
        count = random.choice([len(entry["partitions"])] * 5 + [1])
        if random.random() < 0.8:
            entry["assignmentEpochs"] = random.choice([[random.randrange(3) for _ in range(count)], None])
    return entries


def consumer_value(random: Random, kind: int) -> dict[str, Any]:
    """A value of a record type of consumer groups; its numbers are few, so that they often agree."""
    epoch = random.choice([-1, 0, 1, 1, 2, 2])
    match kind:
        case 3:
            return {"epoch": epoch, **random_subset(random, {"metadataHash": random.choice([7, -(1 << 63)])})}
        case 4:
            return {"topics": []}
        case 5:
            classic = {"sessionTimeoutMs": 45_000, "supportedProtocols": [{"name": "range", "metadata": "AA=="}]}
            return {
                "instanceId": random.choice([None, None, "i", "j"]),
                "rackId": random.choice([None, "r"]),
                "clientId": random.choice(["a", "b"]),
                "clientHost": "/h",
                "subscribedTopicNames": random.choice([[], ["t"], ["u", "t"], ["t", "u"]]),
                "subscribedTopicRegex": random.choice([None, "", "x.*"]),
                "rebalanceTimeoutMs": 300_000,
                "serverAssignor": random.choice([None, "range"]),
                "classicMemberMetadata": random.choice([None, None, classic]),
            }
        case 6:
            return {"assignmentEpoch": epoch, **random_subset(random, {"assignmentTimestamp": random.randrange(3)})}
        case 7:
            return {"topicPartitions": topics(random)}
        case 8:
            return {
                "memberEpoch": epoch,
                "previousMemberEpoch": random.choice([0, 1]),
                "state": random.choice([0, 0, 0, 0, 0, 1, 2, 127, -5]),
                "assignedPartitions": owned_topics(random),
                "partitionsPendingRevocation": owned_topics(random),
            }
    return {"topics": random.choice([[], ["x1"]]), "version": 1, "timestamp": 1}


def random_log(random: Random, count: int) -> pa.Table:
    """Records of groups; most have a value that is decoded, and repeat the values of others.

    The groups are share groups (g, h), streams groups (s, t), consumer groups (c, d), or all by turns.
    """
    of_kinds = [STREAMS_KINDS, SHARE_KINDS, CONSUMER_KINDS]
    kinds = random.choice([*of_kinds, *of_kinds, [kind for group_kinds in of_kinds for kind in group_kinds]])
    value = dict.fromkeys(STREAMS_KINDS, streams_value) | dict.fromkeys(CONSUMER_KINDS, consumer_value)
    value |= dict.fromkeys(SHARE_KINDS, share_value)
    repeated = {kind: [value[kind](random, kind) for _ in range(6)] for kind in kinds}
    rows = []
    for offset in range(count):
        kind = random.choice(kinds)
        form = random.choice(["value"] * 16 + ["tombstone"] * 2 + (["undecoded"] if count % 2 else []))
        if form == "tombstone" and kind in OF_GROUPS and random.random() < 0.8:
            form = "value"
        data = random.choice([*repeated[kind], value[kind](random, kind)])
        rows.append(
            {
                "log_topic_id": "t",
                "partition": random.choice([0, 0, 0, 1]),
                "log_offset": offset,
                "timestamp_ms": random.randrange(9) + offset,
                "record_type": kind,
                "record_name": "r",
                "group_id": random.choice("gh" if kind in SHARE_KINDS else "st" if kind in STREAMS_KINDS else "cd"),
                "member_id": random.choice("mn") if kind in OF_MEMBERS else None,
                "regular_expression": random.choice("mx") if kind in OF_EXPRESSIONS else None,
                "value_version": None,
                "is_tombstone": form == "tombstone",
                "value_json": json.dumps(data, ensure_ascii=False) if form == "value" else None,
                "below_log_start": False,
                "uncommitted": random.random() < 0.1,
            }
        )
    return pa.Table.from_pylist(rows, schema=GROUP_RECORD)
