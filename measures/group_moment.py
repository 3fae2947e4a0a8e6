"""A share group as of a moment, with the completeness of each part."""

from dataclasses import dataclass

import pyarrow as pa

from measures.group_histories import Row, marks
from measures.group_replay import CompactionBound, GroupChange, ShareGroup, changes
from measures.groups import ASSIGNMENT, MEMBER, MEMBER_TARGET, STATE_PARTITIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMoment:
    """A share group after its records with a log time up to the moment."""

    group: ShareGroup
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
        return self._marks(
            is_later=any((kind, member_id) in self.later for kind in (MEMBER, MEMBER_TARGET, ASSIGNMENT))
        )

    def _marks(self, *, is_later: bool) -> Row:
        return marks(
            uncommitted=self.newest.uncommitted,
            undecoded=self.has_undecoded,
            compacted=is_later and not self.is_covered,
        )


def group_at(records: pa.Table, as_of_ms: int | None = None) -> GroupMoment | None:
    """The share group in GROUP_RECORD rows of one group, in (partition, log offset) order; None without a record of it.

    `as_of_ms`: after the records with a log time up to this one.
    """
    group, bound = ShareGroup(), CompactionBound()
    newest: GroupChange | None = None
    later: set[tuple[int, str | None]] = set()
    has_undecoded = False
    for change in changes(records):
        if as_of_ms is not None and change.log_time_ms > as_of_ms:
            later.add(change.key)
            continue
        bound.take(change)
        group.apply(change)
        newest = change
        has_undecoded |= change.is_undecoded
    if newest is None:
        return None
    return GroupMoment(
        group=group,
        newest=newest,
        later=frozenset(later),
        is_covered=bound.covers(newest.log_offset),
        has_undecoded=has_undecoded,
    )
