"""Members of a streams group of Kafka: each current assignment that it records must follow by our rules."""

import random
from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Consumer, TopicPartition

from state_model.group_records import GroupRecord, decode_record
from state_model.streams.group import apply
from state_model.streams.membership import NEW_ASSIGNMENT
from state_model.streams.reconciliation import reconcile, task_owners
from state_model.streams.records import ASSIGNMENT, STREAMS_TYPES
from state_model.streams.values import NO_TASKS_BY_TYPE, MemberAssignment, StreamsGroup, TasksByType
from state_model.topics import OFFSETS_TOPIC
from tests.broker.streams.streams_script import NO_TASKS, Script
from tests.broker.streams.streams_targets import tasks_of
from tests.datasets import raw_records_of

STEPS = 100
OPERATIONS = ("join", "join", "beat", "own", "own", "own", "own", "own nothing", "leave", "other rack")
Ends = tuple[int, ...]


class Beat(NamedTuple):
    """An accepted heartbeat that reconciled a member: the tasks that it said it owns, and the ends of the log then."""

    member: str
    owned: TasksByType | None
    ends: Ends


def play(script: Script, joined: Mapping[str, Any], bootstrap: str, partitions: int) -> list[Beat | Ends]:
    """Random members of two processes come, go and work; after each request the ends of the group coordinator's log."""
    dice = random.Random(script.group)
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "not-used", "log_level": 0})
    steps: list[Beat | Ends] = []
    for number in range(STEPS):
        operation, member = dice.choice(OPERATIONS), dice.choice("abc")
        if operation != "join" and not script.knows(member):
            continue
        owned, code = _request(script, joined, operation, member, f"rack-{number}")
        places = [TopicPartition(OFFSETS_TOPIC, partition) for partition in range(partitions)]
        ends = tuple(reader.get_watermark_offsets(place, timeout=10)[1] for place in places)
        steps.append(ends if code or operation == "leave" else Beat(member, owned, ends))
    reader.close()
    return steps


def _request(
    script: Script, joined: Mapping[str, Any], operation: str, member: str, rack: str
) -> tuple[TasksByType | None, int]:
    """The tasks that the request says the member owns, and the error of its answer."""
    match operation:
        case "join":
            process = "p1" if member == "a" else "p2"
            return NO_TASKS_BY_TYPE, script.join(member, joined, process)["error_code"].value
        case "own":
            return tasks_of(script.lists(member)), script.beat(member, owned=True)["error_code"].value
        case "own nothing":
            return NO_TASKS_BY_TYPE, script.beat(member, **NO_TASKS)["error_code"].value
        case "leave":
            return None, script.send(member, -1)["error_code"].value
        case "other rack":
            return None, script.beat(member, rack_id=rack)["error_code"].value
    return None, script.beat(member)["error_code"].value


def compared(log_dir: Path, group_id: str, steps: list[Beat | Ends]) -> list[tuple[MemberAssignment, MemberAssignment]]:
    """Of each accepted heartbeat the member's assignment by our rules, and the recorded one."""
    records = {
        place: record
        for place, raw in sorted(raw_records_of(log_dir, OFFSETS_TOPIC).items())
        if isinstance(record := decode_record(*raw), GroupRecord)
        and (record.group_id, record.record_type in STREAMS_TYPES) == (group_id, True)
    }
    group: StreamsGroup | None = None
    before: Ends = (0,) * 100
    pairs = []
    for step in steps:
        ends = step.ends if isinstance(step, Beat) else step
        new = [
            record for (partition, offset), record in records.items() if before[partition] <= offset < ends[partition]
        ]
        after = reduce(apply, new, group)
        if isinstance(step, Beat):
            pairs.append((_expected(group, new, step), _assignment(after, step.member)))
        group, before = after, ends
    return pairs


def _expected(group: StreamsGroup | None, new: list[GroupRecord], beat: Beat) -> MemberAssignment:
    """By our rules: from the group with all new records but that of the assignment."""
    between = reduce(apply, [record for record in new if record.record_type != ASSIGNMENT], group)
    assert between is not None
    metadata = between.members[beat.member].metadata
    assert metadata is not None
    return reconcile(
        _assignment(group, beat.member),
        between.targets.get(beat.member, NO_TASKS_BY_TYPE),
        between.target_assignment_epoch,
        beat.owned,
        task_owners(between, metadata.process_id),
    )


def _assignment(group: StreamsGroup | None, member_id: str) -> MemberAssignment:
    member = None if group is None else group.members.get(member_id)
    return NEW_ASSIGNMENT if member is None or member.assignment is None else member.assignment
