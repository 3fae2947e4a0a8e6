"""Consumer groups of recorded logs as `describe`, `groups` and the histories have them, against Kafka's own answers."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from sharelens.groups.histories import histories
from sharelens.questions.groups.describe import View, describe
from sharelens.questions.groups.groups import groups
from sharelens.source.request import Source
from sharelens.tables.opening import open_evidence
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_group_records
from state_model.errors import SharelensError
from state_model.group_schemas import RECORD_TYPES, GroupKind
from tests.datasets import dataset, packed_names

Json = dict[str, Any]
NAMES = [name for name in packed_names() if name.startswith("consumer")]
GROUP_ID_NOT_FOUND = 69
MEMBER_TYPES = ["classic", "consumer"]


@cache
def checkpoints(name: str) -> list[Json]:
    lines = (dataset(name) / "checkpoints.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    """A data set of consumer groups."""
    return str(request.param)


@pytest.fixture
def evidence(name: str) -> Iterator[Tables]:
    """Its logs."""
    folder: Path = dataset(name) / "logs"
    with open_evidence(Source(log_dirs=(str(folder),), include_uncommitted=True, needs_state_log=False)) as tables:
        yield tables


def moments(evidence: Tables, name: str) -> Iterator[tuple[int, Json]]:
    """Each checkpoint with the time that takes in the records which the broker had."""
    places = ("partition", "log_offset", "timestamp_ms")
    columns = (read_group_records(evidence).column(column).to_pylist() for column in places)
    records = list(zip(*columns, strict=True))
    for checkpoint in checkpoints(name):
        ends = checkpoint["consumerOffsetsEnd"]
        newest = [time_ms for partition, offset, time_ms in records if offset < ends[str(partition)]]
        yield max([checkpoint["wallMs"], *newest]), checkpoint


def described(evidence: Tables, group: str, at_ms: int, view: View) -> list[Json]:
    answer = describe(evidence, group, at_ms, view)
    rows: list[Json] = answer.table.to_pylist()
    assert {row["completeness"] for row in rows} <= {"complete"}, "the logs were never compacted"
    return rows


def named(partitions: Any, topics: Json) -> list[tuple[str, int]]:
    """Name and number of each partition; Kafka leaves out those of topics that are gone."""
    names = {topic["id"]: name for name, topic in topics.items()}
    return sorted((names[of["topic_id"]], n) for of in partitions if of["topic_id"] in names for n in of["partitions"])


def answered(assignment: Json) -> list[tuple[str, int]]:
    return sorted(
        (topic["topicName"], number) for topic in assignment["topicPartitions"] for number in topic["partitions"]
    )


def test_each_checkpoint_is_described_as_kafka_did(evidence: Tables, name: str) -> None:
    counts = {"described": 0, "members": 0, "offsets": 0, "lags": 0}
    for at_ms, checkpoint in moments(evidence, name):
        topics = checkpoint["topics"]
        for group, answers in checkpoint["groups"].items():
            answer = answers["describe"]
            if answer["errorCode"] == GROUP_ID_NOT_FOUND:
                with pytest.raises(SharelensError):
                    described(evidence, group, at_ms, View.STATE)
                continue
            (row,) = described(evidence, group, at_ms, View.STATE)
            assert row["state"].title() == answer["groupState"], (checkpoint["name"], group)
            assert (row["group_epoch"], row["assignment_epoch"] or 1) == (
                answer["groupEpoch"],
                answer["assignmentEpoch"],
            )
            assert row["server_assignor"] in (None, answer["assignorName"])
            assert row["member_count"] == len(answer["members"])
            counts["described"] += 1
            counts["members"] += compare_members(described(evidence, group, at_ms, View.MEMBERS), answer, topics)
            compared = compare_offsets(evidence, group, at_ms, checkpoint)
            counts = {key: count + compared.get(key, 0) for key, count in counts.items()}
    assert min(counts.values()) > 20, counts


def compare_members(rows: list[Json], answer: Json, topics: Json) -> int:
    expected = {member["memberId"]: member for member in answer["members"]}
    assert [row["member_id"] for row in rows] == sorted(expected)
    for row in rows:
        member = expected[row["member_id"]]
        pairs = {
            "memberEpoch": row["member_epoch"] or 0,
            "instanceId": row["instance_id"],
            "rackId": row["rack_id"],
            "clientId": row["client_id"],
            "clientHost": row["client_host"],
            "memberType": MEMBER_TYPES.index(row["member_type"]),
        }
        assert pairs == {key: member[key] for key in pairs}
        assert row["subscribed_topics"] == sorted(member["subscribedTopicNames"])
        assert (row["subscribed_topic_regex"] or "") == (member["subscribedTopicRegex"] or "")
        assert named([*row["assigned_partitions"], *row["pending_partitions"]], topics) == answered(
            member["assignment"]
        )
        assert named(row["target_partitions"], topics) == answered(member["targetAssignment"])
    return len(rows)


def compare_offsets(evidence: Tables, group: str, at_ms: int, checkpoint: Json) -> Json:
    """The committed offsets, and the lags by the ends that the broker said."""
    topics = checkpoint["topics"]
    ends = {(name, int(number)): end for name, topic in topics.items() for number, end in topic["end"].items()}
    rows = describe(evidence, group, at_ms, View.OFFSETS, end_offsets=ends).table.to_pylist()
    committed = {
        f"{row['topic']}-{row['partition']}": {
            "offset": row["committed_offset"],
            "leaderEpoch": row["leader_epoch"],
            "metadata": row["metadata"],
        }
        for row in rows
        if row["committed_offset"] is not None
    }
    assert committed == checkpoint["groups"][group]["offsets"], (checkpoint["name"], group)
    lags = [row for row in rows if row["lag"] is not None]
    for row in lags:
        assert row["lag"] == ends[row["topic"], row["partition"]] - row["committed_offset"]
    has_ends = [row for row in rows if (row["topic"], row["partition"]) in ends and row["committed_offset"] is not None]
    assert len(lags) == len(has_ends)
    owners = {(row["topic"], row["partition"]): row["member_id"] for row in rows if row["member_id"] is not None}
    members = checkpoint["groups"][group]["describe"]["members"]
    expected = {place: each["memberId"] for each in members for place in answered(each["assignment"])}
    assert {place: member for place, member in owners.items() if place[0] in topics} == expected
    return {"offsets": len(committed), "lags": len(lags)}


def test_groups_are_listed_as_kafka_did(evidence: Tables, name: str) -> None:
    listed = 0
    for at_ms, checkpoint in moments(evidence, name):
        rows = groups(evidence, frozenset(), at_ms).table.to_pylist()
        alive = {row["group_id"]: row["state"].title() for row in rows if row["state"] != "DEAD"}
        expected = {row["groupId"]: row["state"] for row in checkpoint["listGroups"] if row["type"] == "Consumer"}
        assert alive == expected, checkpoint["name"]
        listed += len(alive)
    assert listed > 20


def test_histories_have_the_state_of_each_checkpoint(evidence: Tables, name: str) -> None:
    rows = histories(read_group_records(evidence)).groups.to_pylist()
    for at_ms, checkpoint in moments(evidence, name):
        states = {
            row["group_id"]: row["state"].title()
            for row in rows
            if row["valid_from_ms"] <= at_ms and (row["valid_to_ms"] is None or at_ms < row["valid_to_ms"])
        }
        for group, answers in checkpoint["groups"].items():
            described_state = answers["describe"]["groupState"] or "Dead"
            assert states.get(group, "Dead") == described_state, (checkpoint["name"], group)


def test_records_are_all_types_of_consumer_groups_but_the_one_of_older_versions() -> None:
    if not NAMES:
        pytest.skip("no data set of consumer groups")
    types = set()
    for name in NAMES:
        folder = dataset(name) / "logs"
        with open_evidence(Source(log_dirs=(str(folder),), include_uncommitted=True, needs_state_log=False)) as tables:
            records = read_group_records(tables)
        types |= set(records.column("record_type").to_pylist())
    of_consumer = {number for number, of in RECORD_TYPES.items() if of.group_kind is GroupKind.CONSUMER}
    assert types >= of_consumer - {4}
