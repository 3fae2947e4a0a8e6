"""Streams groups replayed from recorded logs against what the broker answered at each checkpoint."""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sharelens.broker.simulator.settings import profile
from sharelens.broker.simulator.simulation import simulate
from sharelens.cli import main
from sharelens.groups.histories import histories
from sharelens.groups.model_rebalances import streams_rebalances
from sharelens.questions.groups.describe import View, describe
from sharelens.source.request import Source
from sharelens.tables.opening import open_evidence
from sharelens.tables.port import GROUP_RECORDS, OFFSET_COMMITS, Tables
from sharelens.tables.reading import read_group_records
from sharelens.tables.where import ALL_ROWS, Order, Where
from state_model.errors import SharelensError, UsageError
from state_model.group_records import GroupRecord, decode_record
from state_model.streams.group import apply
from state_model.streams.records import METADATA, STREAMS_TYPES
from state_model.streams.values import StreamsGroup, StreamsMember, Tasks, TasksByType, Topology
from state_model.topics import OFFSETS_TOPIC
from tests.datasets import STREAMS_SETS, dataset, raw_records_of
from tests.processes.in_process import recorded_lake

NO_SUCH_GROUP = 69


def _records(log_dir: Path) -> list[tuple[int, int, GroupRecord]]:
    decoded = (
        (partition, offset, decode_record(*raw))
        for (partition, offset), raw in sorted(raw_records_of(log_dir, OFFSETS_TOPIC).items())
    )
    return [
        (partition, offset, record)
        for partition, offset, record in decoded
        if isinstance(record, GroupRecord) and record.record_type in STREAMS_TYPES
    ]


def _checkpoints(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "checkpoints.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def _groups_at(records: list[tuple[int, int, GroupRecord]], ends: dict[str, int]) -> dict[str, StreamsGroup | None]:
    groups: dict[str, StreamsGroup | None] = {}
    for partition, offset, record in records:
        if offset < ends[str(partition)]:
            groups[record.group_id] = apply(groups.get(record.group_id), record)
    return groups


def _task_lists(tasks: Tasks) -> list[dict[str, Any]]:
    partitions: dict[str, list[int]] = {}
    for subtopology_id, partition in sorted(tasks):
        partitions.setdefault(subtopology_id, []).append(partition)
    return [
        {"subtopologyId": name, "partitions": subtopology_partitions}
        for name, subtopology_partitions in partitions.items()
    ]


def _tasks(tasks: TasksByType) -> dict[str, Any]:
    return {f"{kind}Tasks": _task_lists(tasks_of_type) for kind, tasks_of_type in tasks._asdict().items()}


def _member(name: str, member: StreamsMember, target: TasksByType) -> dict[str, Any]:
    metadata, assignment = member
    assert metadata is not None
    assert assignment is not None
    return {
        "memberId": name,
        "memberEpoch": assignment.member_epoch,
        "instanceId": metadata.instance_id,
        "rackId": metadata.rack_id,
        "clientId": metadata.client_id,
        "clientHost": metadata.client_host,
        "topologyEpoch": metadata.topology_epoch,
        "processId": metadata.process_id,
        "userEndpoint": None if metadata.user_endpoint is None else metadata.user_endpoint._asdict(),
        "clientTags": [{"key": key, "value": value} for key, value in metadata.client_tags],
        "taskOffsets": [],
        "taskEndOffsets": [],
        "assignment": _tasks(assignment.assigned),
        "targetAssignment": _tasks(target),
        "isClassic": False,
    }


def _topology(topology: Topology | None) -> dict[str, Any] | None:
    """The topology without the partition counts, which the log does not hold."""
    if topology is None:
        return None
    subtopologies = [
        {
            "subtopologyId": subtopology.subtopology_id,
            "sourceTopics": sorted(subtopology.source_topics),
            "repartitionSinkTopics": sorted(subtopology.repartition_sink_topics),
            "stateChangelogTopics": [_topic(topic._asdict()) for topic in sorted(subtopology.state_changelog_topics)],
            "repartitionSourceTopics": [
                _topic(topic._asdict()) for topic in sorted(subtopology.repartition_source_topics)
            ],
        }
        for subtopology in sorted(topology.subtopologies)
    ]
    return {"epoch": topology.epoch, "subtopologies": subtopologies}


def _topic(topic: dict[str, Any]) -> dict[str, Any]:
    configs = [{"key": key, "value": value} for key, value in topic["configs"]]
    return {"name": topic["name"], "replicationFactor": topic["replication_factor"], "topicConfigs": configs}


def _described(name: str, group: StreamsGroup) -> dict[str, Any]:
    return {
        "errorCode": 0,
        "errorMessage": None,
        "groupId": name,
        "groupState": group.state.value,
        "groupEpoch": group.group_epoch,
        "assignmentEpoch": group.target_assignment_epoch,
        "topology": _topology(group.topology),
        "members": {
            member_id: _member(member_id, member, group.targets.get(member_id, TasksByType()))
            for member_id, member in group.members.items()
        },
        "authorizedOperations": -(2**31),
    }


def _comparable(answer: dict[str, Any]) -> dict[str, Any]:
    """The broker's answer without partition counts, and with members by id."""
    for subtopology in answer["topology"]["subtopologies"]:
        for topic in subtopology["stateChangelogTopics"] + subtopology["repartitionSourceTopics"]:
            del topic["partitions"]
    return answer | {"members": {member["memberId"]: member for member in answer["members"]}}


@pytest.mark.parametrize("name", STREAMS_SETS)
def test_the_state_at_every_checkpoint_is_what_the_broker_described(name: str) -> None:
    assert _compared(_records(dataset(name) / "logs"), _checkpoints(dataset(name))) > 20


def test_the_state_of_a_simulated_group_is_what_the_light_broker_described(tmp_path: Path) -> None:
    simulate(profile("streams", records=1_500, state_partitions=3), 7, tmp_path / "log")
    assert _compared(_records(tmp_path / "log"), _checkpoints(tmp_path / "log")) == 20


def _compared(records: list[tuple[int, int, GroupRecord]], checkpoints: list[dict[str, Any]]) -> int:
    """How many groups were compared with the answers."""
    compared = 0
    for checkpoint in checkpoints:
        groups = _groups_at(records, checkpoint["consumerOffsetsEnd"])
        for group_id, answers in checkpoint["groups"].items():
            group, answer = groups.get(group_id), answers["describe"]
            if answer["errorCode"] == NO_SUCH_GROUP:
                assert group is None, (checkpoint["name"], group_id)
                continue
            assert group is not None, (checkpoint["name"], group_id)
            assert _described(group_id, group) == _comparable(answer), (checkpoint["name"], group_id)
            compared += 1
    return compared


def _open(name: str) -> Tables:
    return open_evidence(Source(log_dirs=(str(dataset(name) / "logs"),), needs_state_log=False))


def _valid_at(rows: pa.Table, log_partition: int, log_offset: int) -> list[dict[str, Any]]:
    return [
        row
        for row in rows.to_pylist()
        if row["log_partition"] == log_partition
        and row["valid_from_log_offset"] <= log_offset
        and (row["valid_to_log_offset"] is None or log_offset < row["valid_to_log_offset"])
    ]


def _owners(group: StreamsGroup | None) -> set[tuple[str, str, int, str, str, int | None]]:
    owners = set()
    for name, member in ({} if group is None else group.members).items():
        for status, tasks in (
            ("OWNED", member.assignment and member.assignment.assigned),
            ("PENDING_REVOCATION", member.assignment and member.assignment.pending),
        ):
            for kind, tasks_of_type in (tasks._asdict() if tasks else {}).items():
                for task in tasks_of_type:
                    epochs = member.assignment.active_assignment_epochs if member.assignment else {}
                    epoch = epochs[task] if kind == "active" else None
                    owners.add((kind.upper(), *task, name, status, epoch))
    return owners


@pytest.mark.parametrize("name", STREAMS_SETS)
def test_the_histories_after_every_record_are_the_state_after_it(name: str) -> None:
    with _open(name) as evidence:
        group_histories = histories(read_group_records(evidence))
    groups: dict[str, StreamsGroup | None] = {}
    compared = 0
    for place, (partition, offset, record) in enumerate(_records(dataset(name) / "logs")):
        group = groups[record.group_id] = apply(groups.get(record.group_id), record)
        if place % 7 and record.record_type != METADATA:  # a sample: each comparison reads all rows
            continue
        of_group, of_members, of_tasks = (
            [row for row in _valid_at(rows, partition, offset) if row["group_id"] == record.group_id]
            for rows in (group_histories.groups, group_histories.members, group_histories.tasks)
        )
        state = "DEAD" if group is None else group.state.name
        assert [(row["group_type"], row["state"]) for row in of_group] == [("streams", state)]
        members = {} if group is None else group.members
        assert {row["member_id"]: row["member_epoch"] for row in of_members} == {
            name: None if member.assignment is None else member.assignment.member_epoch
            for name, member in members.items()
        }
        columns = ("task_type", "subtopology_id", "partition", "member_id", "status", "assignment_epoch")
        assert {tuple(row[column] for column in columns) for row in of_tasks} == _owners(group)
        compared += len(of_tasks)
    assert compared > 100


def test_groups_lists_streams_groups_as_the_broker_did(capsys: pytest.CaptureFixture[str]) -> None:
    last = _checkpoints(dataset("streams-basic"))[-1]
    words = ["--log-dir", str(dataset("streams-basic") / "logs"), "--output", "json"]
    assert main(["groups", *words]) == 0
    rows = json.loads(capsys.readouterr().out)
    listed = {(row["groupId"], row["type"], row["state"]) for row in last["listGroups"]}
    assert {(row["group_id"], row["group_type"].title(), row["state"].title()) for row in rows} == listed


def _moments(name: str) -> list[tuple[int, dict[str, Any]]]:
    """Each checkpoint with its time, which is not before the newest record that its answers know."""
    lines = (dataset(name) / "formatter-offsets.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    moments = []
    for checkpoint in _checkpoints(dataset(name)):
        ends = checkpoint["consumerOffsetsEnd"]
        known_times = [row["timestamp"] for row in records if row["offset"] < ends[str(row["partition"])]]
        moments.append((max([checkpoint["wallMs"], *known_times]), checkpoint))
    return moments


def _by_type(rows: list[dict[str, Any]] | None) -> dict[str, Any]:
    tasks: dict[str, list[dict[str, Any]]] = {"activeTasks": [], "standbyTasks": [], "warmupTasks": []}
    for row in rows or ():
        tasks[f"{row['task_type'].lower()}Tasks"].append(
            {"subtopologyId": row["subtopology_id"], "partitions": row["partitions"]}
        )
    return tasks


def _check_views(rows: dict[View, list[dict[str, Any]]], answers: dict[str, Any]) -> None:
    described = answers["describe"]
    (state,) = rows[View.STATE]
    names = {"NOT_READY": "NotReady"}
    assert (
        names.get(state["state"], state["state"].title()),
        state["group_epoch"],
        state["assignment_epoch"],
        state["member_count"],
        state["topology_epoch"],
    ) == (
        described["groupState"],
        described["groupEpoch"],
        described["assignmentEpoch"],
        len(described["members"]),
        described["topology"]["epoch"],
    )
    assert {
        row["member_id"]: (row["member_epoch"], row["process_id"], row["client_id"], row["client_host"])
        for row in rows[View.MEMBERS]
    } == {
        of["memberId"]: (of["memberEpoch"], of["processId"], of["clientId"], of["clientHost"])
        for of in described["members"]
    }
    for kind, answer in (("assigned", "assignment"), ("target", "targetAssignment")):
        assert {row["member_id"]: _by_type(row[f"{kind}_tasks"]) for row in rows[View.MEMBERS]} == {
            of["memberId"]: of[answer] for of in described["members"]
        }
    assert {
        (row["task_type"], row["subtopology_id"], row["partition"], row["member_id"])
        for row in rows[View.TASKS]
        if row["status"] == "OWNED"
    } == {
        (kind.upper(), of_subtopology["subtopologyId"], partition, of["memberId"])
        for of in described["members"]
        for kind in ("active", "standby", "warmup")
        for of_subtopology in of["assignment"][f"{kind}Tasks"]
        for partition in of_subtopology["partitions"]
    }


def _remembered(scan: Callable[..., Iterator[pa.Table]]) -> Callable[..., Iterator[pa.Table]]:
    """The scan, which reads the records of groups and their offset commits once: the logs do not change."""
    tables: dict[tuple[str, frozenset[str] | None], list[pa.Table]] = {}

    def remembering(
        table: str, columns: Sequence[str] | None = None, where: Where = ALL_ROWS, order: Order = Order.ANY
    ) -> Iterator[pa.Table]:
        if table not in (GROUP_RECORDS, OFFSET_COMMITS):
            return scan(table, columns, where, order)
        key = table, where.keys.groups
        if key not in tables:
            tables[key] = list(scan(table, columns, where, order))
        return iter(tables[key])

    return remembering


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", STREAMS_SETS)
def test_describe_prints_at_each_checkpoint_what_the_broker_answered(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = offsets = 0
    with _open(name) as evidence:
        monkeypatch.setattr(evidence, "topic_ids", cache(evidence.topic_ids))
        monkeypatch.setattr(evidence, "scan", _remembered(evidence.scan))
        for at_ms, checkpoint in _moments(name):
            for group_id, answers in checkpoint["groups"].items():
                if answers["describe"]["errorCode"] == NO_SUCH_GROUP:
                    with pytest.raises((SharelensError, UsageError)):
                        describe(evidence, group_id, at_ms, View.STATE)
                    continue
                rows = {view: describe(evidence, group_id, at_ms, view).table.to_pylist() for view in View}
                assert {row["completeness"] for of_view in rows.values() for row in of_view} <= {"complete"}
                _check_views(rows, answers)
                assert {
                    f"{row['topic']}-{row['partition']}": (
                        row["committed_offset"],
                        row["leader_epoch"],
                        row["metadata"],
                    )
                    for row in rows[View.OFFSETS]
                    if row["committed_offset"] is not None
                } == {
                    place: (of["offset"], None if of["leaderEpoch"] < 0 else of["leaderEpoch"], of["metadata"])
                    for place, of in answers["offsets"].items()
                    if of is not None
                }, (checkpoint["name"], group_id)
                compared += 1
                offsets += len(answers["offsets"])
    assert compared > 20
    assert offsets > 50


def test_the_lag_at_a_moment_counts_from_the_committed_offset(capsys: pytest.CaptureFixture[str]) -> None:
    """In the recorded log the application had read everything of topic text; 40 more records came after the moment."""
    words = ["--group", "wc-app", "--as-of", "2026-11-21T03:20:22Z", "--output", "json"]
    assert main(["describe", "--log-dir", str(dataset("streams") / "logs"), *words]) == 0
    straight = json.loads(capsys.readouterr().out)
    lags = {(row["topic"], row["partition"]): (row["committed_offset"], row["lag_inferred"]) for row in straight}
    assert {lags["text", partition] for partition in range(4)} == {(100, 0)}
    assert len(lags) == 8
    assert main(["describe", "--lake", str(recorded_lake("streams")), *words]) == 0
    assert json.loads(capsys.readouterr().out) == straight


def _after_rebalances(rows: list[dict[str, Any]]) -> tuple[set[str], set[tuple[str, str, int, str]]]:
    """Members and targets (type, subtopology, partition, member) after rebalances from the first on."""
    members: set[str] = set()
    targets: set[tuple[str, str, int, str]] = set()
    for row in rows:
        if row["group_epoch"] is None:
            members, targets = set(), set()
            continue
        members = (members | {of["member_id"] for of in row["joined"]}) - {of["member_id"] for of in row["removed"]}
        assert row["member_count"] == len(members)
        for move in row["moved"]:
            task = move["task_type"], move["subtopology_id"], move["partition"]
            targets -= {(*task, member["member_id"]) for member in move["from_members"]}
            targets |= {(*task, member["member_id"]) for member in move["to_members"]}
    return members, targets


@pytest.mark.parametrize("name", STREAMS_SETS)
def test_rebalances_add_up_to_what_the_broker_described(name: str) -> None:
    compared = 0
    with _open(name) as evidence:
        records = read_group_records(evidence)
    for at_ms, checkpoint in _moments(name):
        rows = streams_rebalances(records.filter(pc.field("timestamp_ms") <= at_ms)).to_pylist()
        for group_id, answers in checkpoint["groups"].items():
            group_rows = [row for row in rows if row["group_id"] == group_id]
            if answers["describe"]["errorCode"] == NO_SUCH_GROUP:
                assert not group_rows or group_rows[-1]["group_epoch"] is None
                continue
            members, targets = _after_rebalances(group_rows)
            described = answers["describe"]
            assert group_rows[-1]["group_epoch"] == described["groupEpoch"]
            assert members == {of["memberId"] for of in described["members"]}
            assert targets == {
                (kind.upper(), part["subtopologyId"], partition, of["memberId"])
                for of in described["members"]
                for kind in ("active", "standby")
                for part in of["targetAssignment"][f"{kind}Tasks"]
                for partition in part["partitions"]
            }
            assert (group_rows[-1]["stable_after_ms"] is not None) == (described["groupState"] == "Stable")
            compared += 1
    assert compared > 20


def test_offsets_of_transactions_are_described_without_their_topics(capsys: pytest.CaptureFixture[str]) -> None:
    """Such commits name no topic id, and neither the lake nor the directory has the topics."""

    def described(*source: str) -> Any:
        assert main(["describe", *source, "--group", "app-eos", "--output", "json"]) == 0
        return json.loads(capsys.readouterr().out)

    from_log = described("--log-dir", str(dataset("streams-admin") / "logs"))
    assert any(row["committed_offset"] is not None for row in from_log)
    assert {row["topic_id"] for row in from_log} == {None}
    assert described("--lake", str(recorded_lake("streams-admin"))) == from_log


def test_a_killed_instance_leaves_its_tasks_without_owner_until_the_others_take_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["--log-dir", str(dataset("streams-basic") / "logs"), "--group", "app-wc"]
    assert main(["rebalances", *words, "--output", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    waits = {row["group_epoch"]: row["longest_without_owner_ms"] for row in rows if row["longest_without_owner_ms"]}
    assert waits
    assert all(row["fewest_tasks"] is None or row["most_tasks"] - row["fewest_tasks"] <= 1 for row in rows[-3:])


@pytest.mark.parametrize("question", ["describe", "rebalances"])
def test_an_unknown_name_is_neither_a_share_nor_a_streams_group(
    question: str, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = str(dataset("streams-basic") / "logs")
    assert main([question, "--log-dir", logs, "--group", "nobody"]) == 2
    err = capsys.readouterr().err
    assert f"no consumer, share or streams group nobody in {logs}; groups there: " in err
