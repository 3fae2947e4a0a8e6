"""Histories of groups: groups, members, tasks and share partition initialization, each value with its validity.

Rows are as exact as the log: one operation of the coordinator writes several records, so some rows are valid for no
time at all. "As of T" is the row with valid_from_ms <= T < valid_to_ms (null: no end).

A row is complete only where compaction can have removed no record that it depends on. Of other rows the newest has the
right values, and its begin can be too late.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import pyarrow as pa

from sharelens.groups import schemas
from sharelens.groups.columns import many_histories
from sharelens.groups.intervals import (
    Histories,
    Intervals,
    RecordsSeen,
    Row,
    ShareTables,
    StreamsTables,
    Values,
    table_of,
)
from sharelens.groups.replay import (
    ASSIGNMENT,
    GROUP,
    MEMBER,
    MEMBER_TARGET,
    STATE_PARTITIONS,
    GroupChange,
    Member,
    Partitions,
    ShareGroup,
    changes,
)
from sharelens.groups.streams_histories import StreamsGroupHistories
from state_model.streams.records import STREAMS_TYPES

T = TypeVar("T")
MANY = 1 << 12
"""Records of groups from which on loading the kernel takes less time than replaying them one by one."""


def histories(records: pa.Table) -> Histories:
    """The histories of all share and streams groups in GROUP_RECORD rows, which come in (partition, log offset) order.

    Rows come by group (share groups first), in the order in which they began.
    """
    if records.num_rows >= MANY:
        return many_histories(records)
    return Histories.of(share_histories(records), streams_histories(records))


def share_histories(records: pa.Table) -> ShareTables:
    """The histories of share groups, record by record: the reference of `many_histories`."""
    of_groups: dict[str, ShareGroupHistories] = {}
    for change in changes(records):
        of_groups.setdefault(change.group_id, ShareGroupHistories()).take(change)
    groups = _sorted(of_groups)
    return ShareTables(
        groups=table_of([(of.records_seen, of.groups) for of in groups], schemas.GROUP_HISTORY),
        members=table_of([(of.records_seen, of.members) for of in groups], schemas.MEMBER_HISTORY),
        initialization=table_of(
            [(of.records_seen, of.initialization) for of in groups], schemas.SHARE_INITIALIZATION_HISTORY
        ),
    )


def streams_histories(records: pa.Table) -> StreamsTables:
    """The histories of streams groups, record by record: the reference of `many_histories`."""
    of_groups: dict[str, StreamsGroupHistories] = {}
    for change in changes(records, STREAMS_TYPES):
        of_groups.setdefault(change.group_id, StreamsGroupHistories()).take(change)
    groups = _sorted(of_groups)
    return StreamsTables(
        groups=table_of([(of.records_seen, of.groups) for of in groups], schemas.GROUP_HISTORY),
        members=table_of([(of.records_seen, of.members) for of in groups], schemas.MEMBER_HISTORY),
        tasks=table_of([(of.records_seen, of.tasks) for of in groups], schemas.TASK_HISTORY),
    )


def _sorted(of_groups: Mapping[str, T]) -> list[T]:
    return [of_groups[name] for name in sorted(of_groups)]


@dataclass(slots=True)
class ShareGroupHistories:
    """The rows of a share group after the records so far."""

    group: ShareGroup = field(default_factory=ShareGroup)
    records_seen: RecordsSeen = field(default_factory=RecordsSeen)
    is_known: bool = False
    groups: Intervals = field(default_factory=Intervals)
    members: Intervals = field(default_factory=Intervals)
    initialization: Intervals = field(default_factory=Intervals)
    partition_rows: dict[Partitions, list[Row]] = field(default_factory=dict)

    def take(self, change: GroupChange) -> None:
        """Applies the next record of the group."""
        self.records_seen.take(change)
        self.is_known |= not change.is_tombstone or change.record_type == GROUP
        self.group.apply(change)
        if not self.is_known:
            return
        self.groups.update(change, None, group_values(self.group))
        if self.group.is_deleted:
            self.members.replace_all(change, {})
            self.initialization.replace_all(change, {})
        elif change.record_type in (MEMBER, MEMBER_TARGET, ASSIGNMENT):
            self._update_member(change)
        elif change.record_type == STATE_PARTITIONS:
            self.initialization.replace_all(change, initialization_values(self.group))

    def _update_member(self, change: GroupChange) -> None:
        member = self.group.members.get(str(change.member_id))
        target = self.group.targets.get(str(change.member_id), ())
        values = None
        if member is not None:
            values = _member_values(
                str(change.member_id), member, self._rows_of(member.assigned), self._rows_of(target)
            )
        self.members.update(change, change.member_id, values)

    def _rows_of(self, partitions: Partitions) -> list[Row]:
        """TOPIC_PARTITIONS value; rows of the group with equal partitions share it."""
        if partitions not in self.partition_rows:
            self.partition_rows[partitions] = _partition_rows(partitions)
        return self.partition_rows[partitions]


def group_values(group: ShareGroup) -> Row:
    """The columns GROUP_VALUES."""
    return {
        "group_type": schemas.SHARE,
        "state": group.state,
        "group_epoch": group.group_epoch,
        "metadata_hash": group.metadata_hash,
        "assignment_epoch": group.assignment_epoch,
        "assignment_timestamp_ms": group.assignment_timestamp_ms,
        "member_count": len(group.members),
    }


def member_values(member_id: str, member: Member, target: Partitions) -> Row:
    """The columns member_id and MEMBER_VALUES."""
    return _member_values(member_id, member, _partition_rows(member.assigned), _partition_rows(target))


def _member_values(member_id: str, member: Member, assigned: list[Row], target: list[Row]) -> Row:
    return {
        "member_id": member_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "rack_id": member.rack_id,
        "subscribed_topics": None if member.subscribed_topics is None else list(member.subscribed_topics),
        "member_epoch": member.member_epoch,
        "previous_member_epoch": member.previous_member_epoch,
        "assigned_partitions": assigned,
        "target_partitions": target,
    }


def initialization_values(group: ShareGroup) -> Values:
    """The columns topic_id, partition, status and topic, by share partition and status."""
    return {
        key: {
            "topic_id": key.topic_id,
            "partition": None if key.partition < 0 else key.partition,
            "status": key.status,
            "topic": topic,
        }
        for key, topic in sorted((group.initialization or {}).items())
    }


def _partition_rows(partitions: Partitions) -> list[Row]:
    return [{"topic_id": topic_id, "partitions": list(numbers)} for topic_id, numbers in partitions]
