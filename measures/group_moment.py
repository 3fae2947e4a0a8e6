"""Share and streams groups as of a moment, with the completeness of each part."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeAlias, TypeVar

import pyarrow as pa

from measures.group_intervals import Row, marks
from measures.group_replay import (
    ASSIGNMENT,
    MEMBER,
    MEMBER_TARGET,
    SHARE_TYPES,
    STATE_PARTITIONS,
    CompactionBound,
    GroupChange,
    ShareGroup,
    changes,
)
from measures.streams_replay import LateStreamsReplay
from state_model.streams import records as streams

MEMBER_TYPES = (MEMBER, MEMBER_TARGET, ASSIGNMENT, streams.MEMBER, streams.MEMBER_TARGET, streams.ASSIGNMENT)


class Replayed(Protocol):
    """A group that records are applied to."""

    def apply(self, change: GroupChange) -> None: ...


G = TypeVar("G", bound=Replayed)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMoment(Generic[G]):
    """A group after its records with a log time up to the moment."""

    group: G
    newest: GroupChange
    later: frozenset[tuple[int, str | None]]
    """Keys (record type, member) with records after the moment."""
    is_covered: bool
    """Whether compaction can have removed none of the records that count."""
    has_undecoded: bool

    @property
    def group_marks(self) -> Row:
        """Completeness of the group's own values and of the list of members."""
        return self._marks(is_later=bool(self.later))

    @property
    def initialization_marks(self) -> Row:
        """Completeness of the share partitions' initialization."""
        return self._marks(is_later=(STATE_PARTITIONS, None) in self.later)

    def member_marks(self, member_id: str) -> Row:
        """Completeness of a member's values."""
        return self._marks(is_later=any((kind, member_id) in self.later for kind in MEMBER_TYPES))

    def _marks(self, *, is_later: bool) -> Row:
        return marks(
            uncommitted=self.newest.uncommitted,
            undecoded=self.has_undecoded,
            compacted=is_later and not self.is_covered,
        )


@dataclass(slots=True)
class _Reading(Generic[G]):
    """What is known of a group after its records so far."""

    group: G
    bound: CompactionBound = field(default_factory=CompactionBound)
    newest: GroupChange | None = None
    later: set[tuple[int, str | None]] = field(default_factory=set)
    has_undecoded: bool = False

    def take(self, change: GroupChange) -> None:
        """Applies the next record."""
        self.bound.take(change)
        self.group.apply(change)
        self.newest = change
        self.has_undecoded |= change.is_undecoded

    def moment(self) -> GroupMoment[G] | None:
        """The group; None without a record of it."""
        if self.newest is None:
            return None
        return GroupMoment(
            group=self.group,
            newest=self.newest,
            later=frozenset(self.later),
            is_covered=self.bound.covers(self.newest.log_offset),
            has_undecoded=self.has_undecoded,
        )


ShareMoment: TypeAlias = GroupMoment[ShareGroup]
StreamsMoment: TypeAlias = GroupMoment[LateStreamsReplay]


def groups_at(records: pa.Table, as_of_ms: int | None = None) -> dict[str, ShareMoment]:
    """The share groups in GROUP_RECORD rows by id, in order; the rows come in (partition, log offset) order.

    `as_of_ms`: after the records with a log time up to this one; a group without one is absent.
    """
    return _moments(records, SHARE_TYPES, ShareGroup, as_of_ms)


def streams_groups_at(records: pa.Table, as_of_ms: int | None = None) -> dict[str, StreamsMoment]:
    """The streams groups, as `groups_at`."""
    return _moments(records, streams.STREAMS_TYPES, LateStreamsReplay, as_of_ms)


def _moments(
    records: pa.Table, types: Collection[int], new_group: Callable[[], G], as_of_ms: int | None
) -> dict[str, GroupMoment[G]]:
    readings: dict[str, _Reading[G]] = {}
    for change in changes(records, types):
        if change.group_id not in readings:
            readings[change.group_id] = _Reading(new_group())
        reading = readings[change.group_id]
        if as_of_ms is not None and change.log_time_ms > as_of_ms:
            reading.later.add(change.key)
        else:
            reading.take(change)
    moments = ((name, readings[name].moment()) for name in sorted(readings))
    return {name: moment for name, moment in moments if moment is not None}
