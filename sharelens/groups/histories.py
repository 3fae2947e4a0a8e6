"""Histories of groups: groups, members, tasks and share partition initialization, each value with its validity.

Rows are as exact as the log: one operation of the coordinator writes several records, so some rows are valid for no
time at all. "As of T" is the row with valid_from_ms <= T < valid_to_ms (null: no end).

A row is complete only where compaction can have removed no record that it depends on. Of other rows the newest has the
right values, and its begin can be too late.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Protocol

import pyarrow as pa

from sharelens.groups import schemas
from sharelens.groups.intervals import (
    ConsumerTables,
    Histories,
    Intervals,
    Row,
    ShareTables,
    StreamsTables,
    with_marks,
)
from sharelens.groups.model_histories import (
    CONSUMER_GROUP_COLUMNS,
    CONSUMER_MEMBER_COLUMNS,
    ConsumerGroupHistories,
)
from sharelens.groups.replay import (
    ASSIGNMENT,
    GROUP,
    MEMBER,
    MEMBER_TARGET,
    SHARE_TYPES,
    STATE_PARTITIONS,
    GroupChange,
    InitializationKey,
    Member,
    Partitions,
    ShareGroup,
    each_change,
    in_parts,
    with_log_times,
)
from sharelens.groups.streams_histories import GROUP_COLUMNS, TASK_COLUMNS, StreamsGroupHistories
from sharelens.groups.streams_values import MEMBER_COLUMNS
from state_model.collection import paused_collection
from state_model.consumer.records import CONSUMER_TYPES
from state_model.streams.records import STREAMS_TYPES

INITIALIZATION_COLUMNS = ("topic_id", "partition", "status", "topic")


class GroupHistories(Protocol):
    """The histories of one group while its records are applied."""

    def take(self, record: int, change: GroupChange) -> None: ...


@paused_collection()
def histories(records: pa.Table) -> Histories:
    """The histories of all groups in GROUP_RECORD rows, which come in (partition, log offset) order.

    Rows come by group (those of share groups, streams groups, consumer groups), in the order in which they began.
    """
    share = (
        (schemas.GROUP_HISTORY, tuple(group_values(ShareGroup()))),
        (schemas.MEMBER_HISTORY, tuple(member_values("", Member(), ()))),
        (schemas.SHARE_INITIALIZATION_HISTORY, INITIALIZATION_COLUMNS),
    )
    streams = (
        (schemas.GROUP_HISTORY, GROUP_COLUMNS),
        (schemas.MEMBER_HISTORY, MEMBER_COLUMNS),
        (schemas.TASK_HISTORY, TASK_COLUMNS),
    )
    consumer = (
        (schemas.GROUP_HISTORY, CONSUMER_GROUP_COLUMNS),
        (schemas.MEMBER_HISTORY, CONSUMER_MEMBER_COLUMNS),
    )
    return Histories.of(
        ShareTables(*_tables(records, SHARE_TYPES, share, ShareGroupHistories)),
        StreamsTables(*_tables(records, STREAMS_TYPES, streams, StreamsGroupHistories)),
        ConsumerTables(*_tables(records, CONSUMER_TYPES, consumer, ConsumerGroupHistories)),
    )


def _tables(
    records: pa.Table,
    types: Collection[int],
    columns: Sequence[tuple[pa.Schema, Sequence[str]]],
    histories_of_group: Callable[..., GroupHistories],
) -> list[pa.Table]:
    """A table of each history of the groups with records of these types; `columns`: its schema and names of values."""
    tables = [[schema.empty_table()] for schema, _ in columns]
    for part in in_parts(with_log_times(records, types)):
        intervals = [Intervals(schema, names) for schema, names in columns]
        for _, numbered in groupby(enumerate(each_change(part)), key=lambda entry: entry[1].group_id):
            for of_history in intervals:
                of_history.open.clear()
            group = histories_of_group(*intervals)
            for record, change in numbered:
                group.take(record, change)
        marked = with_marks(part)
        for of_history, of_parts in zip(intervals, tables, strict=True):
            of_parts.append(of_history.table(marked))
    return [pa.concat_tables(of_parts) for of_parts in tables]


@dataclass(slots=True)
class ShareGroupHistories:
    """The rows of a share group after the records so far."""

    groups: Intervals
    members: Intervals
    initialization: Intervals
    group: ShareGroup = field(default_factory=ShareGroup)
    is_known: bool = False

    def take(self, record: int, change: GroupChange) -> None:
        """Applies the next record of the group."""
        self.is_known |= not change.is_tombstone or change.record_type == GROUP
        self.group.apply(change)
        if not self.is_known:
            return
        self.groups.update(record, None, tuple(group_values(self.group).values()))
        if self.group.is_deleted:
            self.members.replace_all(record, {})
            self.initialization.replace_all(record, {})
        elif change.record_type in (MEMBER, MEMBER_TARGET, ASSIGNMENT):
            name = str(change.member_id)
            member = self.group.members.get(name)
            target = self.group.targets.get(name, ())
            values = None if member is None else tuple(member_values(name, member, target).values())
            self.members.update(record, name, values)
        elif change.record_type == STATE_PARTITIONS:
            rows = initialization_values(self.group)
            self.initialization.replace_all(record, {key: tuple(row.values()) for key, row in rows.items()})


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
    """The columns member_id and MEMBER_VALUES; partitions are tuples in the order of the fields of TOPIC_PARTITIONS."""
    return {
        "member_id": member_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "rack_id": member.rack_id,
        "subscribed_topics": member.subscribed_topics,
        "member_epoch": member.member_epoch,
        "previous_member_epoch": member.previous_member_epoch,
        "assigned_partitions": member.assigned,
        "target_partitions": target,
    }


def initialization_values(group: ShareGroup) -> dict[InitializationKey, Row]:
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
