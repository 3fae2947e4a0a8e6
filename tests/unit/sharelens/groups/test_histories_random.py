"""Histories and rebalances of random logs: after each record they say what the reference does, record by record."""

from collections.abc import Iterator
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.groups.consumer_values import consumer_group_values, consumer_member_values, partition_cell
from sharelens.groups.histories import group_values, histories, initialization_values, member_values
from sharelens.groups.intervals import marks
from sharelens.groups.model_rebalances import consumer_rebalances, streams_rebalances
from sharelens.groups.model_replay import ConsumerReplay, StreamsReplay
from sharelens.groups.replay import SHARE_TYPES, CompactionBound, GroupChange, ShareGroup, changes, decoded
from sharelens.groups.schemas import GROUP_HISTORY, MEMBER_HISTORY
from sharelens.groups.streams_histories import streams_group_values, streams_member_values
from state_model.consumer.records import CONSUMER_TYPES
from state_model.group_schemas import TABLE_TYPES
from state_model.streams.records import METADATA, STREAMS_TYPES
from state_model.streams.values import NO_TASKS_BY_TYPE
from tests.logs.group_logs import group_log
from tests.logs.random_groups import OF_GROUPS, random_log

Row = dict[str, Any]
SUBJECTS = {
    "groups": ("group_id",),
    "members": ("group_id", "member_id"),
    "initialization": ("group_id", "topic_id", "partition", "status"),
    "tasks": ("group_id", "member_id", "status", "task_type", "subtopology_id", "partition"),
}
"""The columns that say what a row of a history is about."""
NOT_VALUES = {*GROUP_HISTORY.names} & {*MEMBER_HISTORY.names}
"""The columns of all histories: group, validity and completeness."""
seeds = st.integers(0, 1 << 32)


def after_each_record(records: pa.Table) -> Iterator[tuple[GroupChange, ShareGroup | StreamsReplay | ConsumerReplay]]:
    """The records of groups that are known, and their group after each."""
    groups: dict[str, ShareGroup | StreamsReplay | ConsumerReplay] = {}
    share_names = set()
    for change in changes(records, TABLE_TYPES):
        is_share = change.record_type in SHARE_TYPES
        new_group = ShareGroup if is_share else StreamsReplay if change.record_type in STREAMS_TYPES else ConsumerReplay
        group = groups.setdefault(change.group_id, new_group())
        group.apply(change)
        if is_share and (not change.is_tombstone or change.record_type in OF_GROUPS):
            share_names.add(change.group_id)
        if change.group_id in share_names or (isinstance(group, StreamsReplay | ConsumerReplay) and group.is_known):
            yield change, group


def values_of(group: ShareGroup | StreamsReplay | ConsumerReplay) -> dict[str, list[Row]]:
    """The values that are valid in a group, by history."""
    if isinstance(group, ShareGroup):
        of_members = {name: (member, group.targets.get(name, ())) for name, member in group.members.items()}
        return {
            "groups": [group_values(group)],
            "members": [member_values(name, *values) for name, values in of_members.items()],
            "initialization": list(initialization_values(group).values()),
            "tasks": [],
        }
    if isinstance(group, ConsumerReplay):
        members = {} if group.group is None else group.group.members
        targets_of = {} if group.group is None else group.group.targets
        return {
            "groups": [consumer_group_values(group.group)],
            "members": [
                consumer_member_values(name, member, partition_cell(targets_of.get(name, frozenset())))
                for name, member in members.items()
            ],
            "initialization": [],
            "tasks": [],
        }
    streams_group = group.group
    if streams_group is None:
        return {"groups": [streams_group_values(None)], "members": [], "initialization": [], "tasks": []}
    targets = {name: streams_group.targets.get(name, NO_TASKS_BY_TYPE) for name in streams_group.members}
    return {
        "groups": [streams_group_values(streams_group)],
        "members": [
            streams_member_values(name, member, targets[name]) for name, member in streams_group.members.items()
        ],
        "initialization": [],
        "tasks": [
            {
                "task_type": kind.upper(),
                **task._asdict(),
                "member_id": name,
                "process_id": member.metadata and member.metadata.process_id,
                "client_id": member.metadata and member.metadata.client_id,
                "status": status,
                "assignment_epoch": member.assignment.active_assignment_epochs[task] if kind == "active" else None,
            }
            for name, member in streams_group.members.items()
            if member.assignment is not None
            for status, tasks in (
                ("OWNED", member.assignment.assigned),
                ("PENDING_REVOCATION", member.assignment.pending),
            )
            for kind, tasks_of_type in tasks._asdict().items()
            for task in tasks_of_type
        ],
    }


def plain(rows: list[Row], schema: pa.Schema) -> list[Row]:
    """The values as Arrow gives them back, in order."""
    columns = [field for field in schema if field.name not in NOT_VALUES]
    return sorted(pa.Table.from_pylist(rows, schema=pa.schema(columns)).to_pylist(), key=repr)


@pytest.mark.slow
@given(seeds, st.integers(1, 60))
def test_histories_at_a_record_are_the_replay_of_the_records_up_to_it(seed: int, count: int) -> None:
    records = random_log(Random(seed), count)
    group_tables = histories(records)._asdict()
    table_rows = {name: table.to_pylist() for name, table in group_tables.items()}
    for change, group in after_each_record(records):
        for name, values in values_of(group).items():
            rows = [row for row in table_rows[name] if is_valid_after(row, change)]
            schema = group_tables[name].schema
            assert plain(rows, schema) == plain(values, schema)


def is_valid_after(row: Row, change: GroupChange) -> bool:
    is_begun = row["group_id"] == change.group_id and row["valid_from_log_offset"] <= change.log_offset
    return is_begun and (row["valid_to_log_offset"] is None or change.log_offset < row["valid_to_log_offset"])


@pytest.mark.slow
@given(seeds, st.integers(1, 60))
def test_rows_say_when_they_begin_and_end_and_why(seed: int, count: int) -> None:
    records = random_log(Random(seed), count)
    of_offset = {change.log_offset: change for change in changes(records, TABLE_TYPES)}
    bounds = {name: CompactionBound() for name in "cdghst"}
    for change in of_offset.values():
        bounds[change.group_id].take(change)
    undecoded = {change.group_id for change in of_offset.values() if change.is_undecoded}
    for name, table in histories(records)._asdict().items():
        rows = table.to_pylist()
        begins = {(*(row[column] for column in SUBJECTS[name]), row["valid_from_log_offset"]) for row in rows}
        assert len(begins) == len(rows)
        for row in rows:
            first, end_offset = of_offset[row["valid_from_log_offset"]], row["valid_to_log_offset"]
            assert (row["group_id"], row["log_partition"]) == (first.group_id, first.log_partition)
            assert row["valid_from_ms"] == first.log_time_ms
            assert (
                marks(
                    uncommitted=first.uncommitted,
                    undecoded=first.group_id in undecoded,
                    compacted=not bounds[first.group_id].covers(first.log_offset),
                ).items()
                <= row.items()
            )
            has_next = (*(row[column] for column in SUBJECTS[name]), end_offset) in begins
            assert row["end_reason"] == (None if end_offset is None else "changed" if has_next else "removed")
            assert row["valid_to_ms"] == (None if end_offset is None else of_offset[end_offset].log_time_ms)


@pytest.mark.slow
@given(seeds)
def test_rows_of_groups_that_are_computed_apart_are_the_same(seed: int) -> None:
    records = random_log(Random(seed), 20)
    expected = histories(records)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sharelens.groups.replay.PART_BYTES", 8)
        patch.setattr("sharelens.groups.replay.SLICE_ROWS", 2)
        patch.setattr("sharelens.groups.intervals.SLICE_ROWS", 2)
        for rows, expected_rows in zip(histories(records), expected, strict=True):
            assert rows.to_pylist() == expected_rows.to_pylist()
            assert rows.schema.equals(expected_rows.schema, check_metadata=True)


@pytest.mark.slow
@given(seeds, st.integers(1, 200))
def test_moves_of_streams_groups_add_up_to_the_target_assignment(seed: int, count: int) -> None:
    epochs = [group_log((METADATA, None, {"epoch": 1, "metadataHash": 0}), group=name) for name in "st"]
    records = decoded(pa.concat_tables([*epochs, random_log(Random(seed), count)]))
    owners: set[tuple[Any, ...]] = set()
    for row in streams_rebalances(records).to_pylist():
        owners_before = set(owners)
        for move in row["moved"]:
            task = row["group_id"], move["task_type"], move["subtopology_id"], move["partition"]
            lost, gained = ({(*task, of["member_id"]) for of in move[side]} for side in ("from_members", "to_members"))
            assert lost | gained
            assert lost <= owners_before
            assert not gained & owners_before
            owners = (owners - lost) | gained
        active_before, active = ({place[:4] for place in of if is_active(row, place)} for of in (owners_before, owners))
        moved = {place[:4] for place in owners ^ owners_before}
        assert row["kept_tasks"] == len((active_before & active) - moved)
        assert row["lost_tasks"] == len(active_before & active & moved)
    replays: dict[str, StreamsReplay] = {}
    for change in changes(records, STREAMS_TYPES):
        replays.setdefault(change.group_id, StreamsReplay()).apply(change)
    assert owners == {
        (name, kind.upper(), *task, member)
        for name, replay in replays.items()
        for member, target in ({} if replay.group is None else replay.group.targets).items()
        for kind, tasks in target._asdict().items()
        for task in tasks
    }


@pytest.mark.slow
@given(seeds, st.integers(1, 200))
def test_moves_of_consumer_groups_add_up_to_the_target_assignment(seed: int, count: int) -> None:
    epochs = [group_log((3, None, {"epoch": 1}), group=name) for name in "cd"]
    records = decoded(pa.concat_tables([*epochs, random_log(Random(seed), count)]))
    owners: set[tuple[Any, ...]] = set()
    for row in consumer_rebalances(records).to_pylist():
        owners_before = set(owners)
        for move in row["moved"]:
            place = row["group_id"], move["topic_id"], move["partition"]
            lost, gained = ({(*place, of["member_id"]) for of in move[side]} for side in ("from_members", "to_members"))
            assert lost | gained
            assert lost <= owners_before
            assert not gained & owners_before
            owners = (owners - lost) | gained
        before, after = ({place[:3] for place in of if place[0] == row["group_id"]} for of in (owners_before, owners))
        moved = {place[:3] for place in owners ^ owners_before}
        assert row["kept_partitions"] == len((before & after) - moved)
        assert row["lost_partitions"] == len(before & after & moved)
    replays: dict[str, ConsumerReplay] = {}
    for change in changes(records, CONSUMER_TYPES):
        replays.setdefault(change.group_id, ConsumerReplay()).apply(change)
    assert owners == {
        (name, *partition, member)
        for name, replay in replays.items()
        for member, target in ({} if replay.group is None else replay.group.targets).items()
        for partition in target
    }


def is_active(row: Row, place: tuple[Any, ...]) -> bool:
    return place[:2] == (row["group_id"], "ACTIVE")


@pytest.mark.slow
def test_random_logs_have_groups_in_all_states() -> None:
    logs = [histories(random_log(Random(seed), 2000)).groups.to_pylist() for seed in range(20)]
    states = {(row["group_type"], row["state"]) for rows in logs for row in rows}
    of_share = {"EMPTY", "STABLE", "DEAD"}
    of_consumer = of_share | {"ASSIGNING", "RECONCILING"}
    of_kinds = {"share": of_share, "consumer": of_consumer, "streams": of_consumer | {"NOT_READY"}}
    assert states == {(kind, state) for kind, kind_states in of_kinds.items() for state in kind_states}
