"""A deterministic log of the group coordinator: streams and share groups whose members come and go, offset commits.

Every member change is a new group epoch, as the coordinators write it: the member's metadata or its tombstones, the
group epoch, the targets that changed, the target epoch, and the current assignment of each member; a member that loses
tasks has one more while it gives them up. Members have about 50 tasks.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.log_files import LogDirectoryWriter
from sharelens.broker.coordinators import share_group_records
from sharelens.broker.coordinators.share_group import Assignment, ShareMember
from state_model.group_records import GroupRecord, encode_record
from state_model.group_schemas import OFFSET_KEY
from state_model.group_targets import TargetMetadata
from state_model.java import partition_for_group
from state_model.offset_commits import OFFSET_COMMIT, OFFSET_COMMIT_VALUES
from state_model.schema import INT16, Tree
from state_model.streams import records
from state_model.streams.values import (
    NO_TASKS_BY_TYPE,
    GroupMetadata,
    MemberAssignment,
    MemberMetadata,
    MemberState,
    Subtopology,
    TaskId,
    TasksByType,
    TopicInfo,
    Topology,
)
from state_model.topics import OFFSETS_TOPIC
from state_model.uuids import uuid_text

FIRST_TIME_MS = 1_767_225_600_000
EPOCH_MS = 10_000
MEMBERS, LEAST_MEMBERS = 20, 15
TASKS = 500
"""Active tasks of a streams group; as many standby tasks."""
SHARE_TOPICS, SHARE_PARTITIONS = 4, 250
COMMITS_OF_AN_EPOCH = 3
LOG_PARTITIONS = 50
SUBTOPOLOGIES = ("0", "1")


@dataclass(slots=True)
class _Shared:
    """Which member has each of some parts: the fewest move when members come or go."""

    owners: list[str]

    def join(self, member: str, count: int) -> None:
        """Gives a new member its share, from the members with the most."""
        parts = self.by_member()
        for _ in range(len(self.owners) // count):
            largest = max(parts, key=lambda name: len(parts[name]), default=member)
            moved = parts[largest].pop()
            self.owners[moved] = member

    def leave(self, member: str) -> None:
        """Gives the parts of a member to those with the fewest."""
        parts = self.by_member()
        for moved in parts.pop(member, []):
            smallest = min(parts, key=lambda name: len(parts[name]))
            parts[smallest].append(moved)
            self.owners[moved] = smallest

    def by_member(self) -> dict[str, list[int]]:
        """The parts of each member that has some."""
        parts: dict[str, list[int]] = {}
        for part, owner in enumerate(self.owners):
            parts.setdefault(owner, []).append(part)
        return parts


@dataclass(slots=True)
class _Members:
    """The members of a group: which one joins or leaves next."""

    group_id: str
    random: np.random.Generator
    names: list[str] = field(default_factory=list)
    count: int = 0

    def join(self) -> str:
        """A new member."""
        self.count += 1
        self.names.append(uuid_text(self.random.bytes(16)))
        return self.names[-1]

    def next_leaves(self) -> bool:
        """Whether a member leaves, not joins."""
        if len(self.names) <= LEAST_MEMBERS:
            return False
        return len(self.names) >= MEMBERS or bool(self.random.integers(2))

    def leave(self) -> str:
        """A member that leaves."""
        return self.names.pop(int(self.random.integers(len(self.names))))


class _StreamsGroup:
    """A streams group: an active and a standby task of each number."""

    def __init__(self, group_id: str, random: np.random.Generator) -> None:
        self._id = group_id
        self._members = _Members(group_id, random)
        self._active, self._standby = _Shared([""] * TASKS), _Shared([""] * TASKS)
        self._epoch = 0
        self._since: dict[TaskId, int] = {}
        self._parts: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {}
        self._targets: dict[str, TasksByType] = {}
        self._assigned: dict[str, MemberAssignment] = {}

    def epoch(self, now_ms: int) -> Iterator[GroupRecord]:
        """The records of the next group epoch."""
        if not self._epoch:
            yield self._record(records.TOPOLOGY, _topology())
        self._epoch += 1
        if self._members.next_leaves():
            name = self._members.leave()
            self._active.leave(name)
            self._standby.leave(name)
            del self._targets[name], self._assigned[name]
            for kind in (records.ASSIGNMENT, records.MEMBER_TARGET, records.MEMBER):
                yield records.record_of(kind, self._id, None, name)
        else:
            name = self._members.join()
            self._active.join(name, len(self._members.names))
            self._standby.join(name, len(self._members.names))
            yield self._record(records.MEMBER, _metadata(self._id, self._members.count), name)
        configs = (("num.standby.replicas", "1"),)
        yield self._record(records.METADATA, GroupMetadata(self._epoch, 77, 0, configs))
        yield from self._assign(now_ms)

    def _assign(self, now_ms: int) -> Iterator[GroupRecord]:
        active, standby = self._active.by_member(), self._standby.by_member()
        for name in self._members.names:
            parts = tuple(active.get(name, ())), tuple(standby.get(name, ()))
            if self._parts.get(name) != parts:
                before, target = self._targets.get(name, NO_TASKS_BY_TYPE), TasksByType(*map(_tasks, parts))
                self._parts[name], self._targets[name] = parts, target
                yield self._record(records.MEMBER_TARGET, target, name)
                self._since |= dict.fromkeys(target.active - before.active, self._epoch)
        yield self._record(records.TARGET, TargetMetadata(self._epoch, now_ms))
        for name in self._members.names:
            target, old = self._targets[name], self._assigned.get(name)
            epochs = {task: self._since[task] for task in target.active}
            assignment = MemberAssignment(
                MemberState.STABLE, self._epoch, self._epoch - 1 if old else 0, target, epochs
            )
            lost = old.assigned.active - target.active if old else frozenset()
            if old is not None and lost:
                kept_tasks = TasksByType(old.assigned.active & target.active, old.assigned.standby & target.standby)
                unrevoked = old._replace(
                    state=MemberState.UNREVOKED_TASKS, assigned=kept_tasks, pending=TasksByType(lost)
                )
                yield self._record(records.ASSIGNMENT, unrevoked, name)
            self._assigned[name] = assignment
            yield self._record(records.ASSIGNMENT, assignment, name)

    def _record(self, kind: int, value: records.RecordValue, name: str | None = None) -> GroupRecord:
        return records.record_of(kind, self._id, value, name)


class _ShareGroup:
    """A share group: each partition has one member."""

    def __init__(self, group_id: str, random: np.random.Generator) -> None:
        self._id = group_id
        self._members = _Members(group_id, random)
        self._shared = _Shared([""] * (SHARE_TOPICS * SHARE_PARTITIONS))
        self._topics = [uuid_text(random.bytes(16)) for _ in range(SHARE_TOPICS)]
        self._epoch = 0
        self._targets: dict[str, Assignment] = {}

    def epoch(self, now_ms: int) -> Iterator[GroupRecord]:
        """The records of the next group epoch."""
        self._epoch += 1
        if self._members.next_leaves():
            name = self._members.leave()
            self._shared.leave(name)
            del self._targets[name]
            yield from share_group_records.member_tombstones(self._id, name)
        else:
            name = self._members.join()
            self._shared.join(name, len(self._members.names))
            topics = tuple(f"topic-{number}" for number in range(SHARE_TOPICS))
            client_id, host = f"{self._id}-{self._members.count}", f"/10.0.0.{self._members.count % 250}"
            member = ShareMember(member_id=name, client_id=client_id, client_host=host, subscribed_topic_names=topics)
            yield share_group_records.member_subscription(self._id, member)
        yield share_group_records.group_epoch(self._id, self._epoch, 77)
        parts = self._shared.by_member()
        for name in self._members.names:
            target = self._assignment(parts.get(name, []))
            if self._targets.get(name) != target:
                self._targets[name] = target
                yield share_group_records.target_of_member(self._id, name, target)
        yield share_group_records.target_epoch(self._id, self._epoch, now_ms)
        for name in self._members.names:
            assigned = self._targets[name]
            member = ShareMember(member_id=name, epoch=self._epoch, previous_epoch=self._epoch - 1, assigned=assigned)
            yield share_group_records.current_assignment(self._id, member)

    def _assignment(self, parts: list[int]) -> Assignment:
        partitions: dict[str, tuple[int, ...]] = {}
        for topic, number in (divmod(part, SHARE_PARTITIONS) for part in sorted(parts)):
            partitions[self._topics[topic]] = (*partitions.get(self._topics[topic], ()), number)
        return partitions


def _topology() -> Topology:
    return Topology(
        0,
        tuple(
            Subtopology(name, (f"input-{name}",), state_changelog_topics=(TopicInfo(f"changelog-{name}"),))
            for name in SUBTOPOLOGIES
        ),
    )


def _metadata(group_id: str, number: int) -> MemberMetadata:
    client_id, process_id = f"{group_id}-{number}-StreamThread-1", f"{group_id}-process-{number}"
    return MemberMetadata(None, None, client_id, f"/10.0.0.{number % 250}", 300_000, 0, process_id)


def _tasks(parts: tuple[int, ...]) -> frozenset[TaskId]:
    return frozenset(TaskId(SUBTOPOLOGIES[part % 2], part // 2) for part in parts)


def _commits(group_id: str, epoch: int, now_ms: int) -> Iterator[tuple[bytes, bytes]]:
    for partition in range(COMMITS_OF_AN_EPOCH):
        value: Tree = {"offset": 10 * epoch, "leader_epoch": 0, "metadata": "", "commit_timestamp": now_ms}
        key: Tree = {"group": group_id, "topic": "input-0", "partition": partition}
        yield (
            INT16.write(OFFSET_COMMIT) + OFFSET_KEY.write(key),
            INT16.write(3) + OFFSET_COMMIT_VALUES[3].write(value),
        )


def generate(directory: Path, records: int, seed: int = 1, *, streams_groups: int = 16, share_groups: int = 4) -> None:
    """Writes a new log directory with so many records of groups in __consumer_offsets, and offset commits between."""
    directory.mkdir(parents=True)
    groups: dict[str, _StreamsGroup | _ShareGroup] = {}
    for number in range(streams_groups):
        groups[f"application-{number}"] = _StreamsGroup(f"application-{number}", np.random.default_rng([seed, number]))
    for number in range(share_groups):
        groups[f"orders-{number}"] = _ShareGroup(f"orders-{number}", np.random.default_rng([seed, 1000 + number]))
    writer = LogDirectoryWriter(directory, partitions=LOG_PARTITIONS, seed=seed, topic=OFFSETS_TOPIC)
    remaining, epoch = records, 0
    while remaining > 0:
        epoch += 1
        for place, (group_id, group) in enumerate(groups.items()):
            now_ms = FIRST_TIME_MS + epoch * EPOCH_MS + place
            of_group = [encode_record(record) for record in group.epoch(now_ms)][: max(0, remaining)]
            remaining -= len(of_group)
            rows = [*of_group, *_commits(group_id, epoch, now_ms)]
            batch = pa.record_batch([[key for key, _ in rows], [value for _, value in rows]], names=["key", "value"])
            times = np.full(len(rows), now_ms, np.int64)
            writer.append(partition_for_group(group_id, LOG_PARTITIONS), batch, times, times)
    writer.close()
