"""Consumer, share and streams groups as of a moment, with the completeness of each part."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.groups.intervals import Row, marks
from sharelens.groups.model_replay import CONSUMER_MODEL, STREAMS_MODEL, ConsumerReplay, LateStreamsReplay
from sharelens.groups.replaced_records import first_replacements, is_needed, keys_of
from sharelens.groups.replay import (
    ASSIGNMENT,
    MEMBER,
    MEMBER_TARGET,
    SHARE_TYPES,
    STATE_PARTITIONS,
    GroupChange,
    ShareGroup,
    each_change,
    is_undecoded,
    with_log_times,
)
from sharelens.groups.whole_logs import whole_groups

MEMBER_TYPES = (
    *(MEMBER, MEMBER_TARGET, ASSIGNMENT),
    *(kind for of in (CONSUMER_MODEL, STREAMS_MODEL) for kind in (of.member, of.member_target, of.assignment)),
)


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


ShareMoment: TypeAlias = GroupMoment[ShareGroup]
StreamsMoment: TypeAlias = GroupMoment[LateStreamsReplay]
ConsumerMoment: TypeAlias = GroupMoment[ConsumerReplay]


def groups_at(records: pa.Table, as_of_ms: int | None = None) -> dict[str, ShareMoment]:
    """The share groups in GROUP_RECORD rows by id, in order; the rows come in (partition, log offset) order.

    `as_of_ms`: after the records with a log time up to this one; a group without one is absent.
    """
    return _moments(records, SHARE_TYPES, ShareGroup, as_of_ms)


def streams_groups_at(records: pa.Table, as_of_ms: int | None = None) -> dict[str, StreamsMoment]:
    """The streams groups, as `groups_at`."""
    return _moments(records, STREAMS_MODEL.types, LateStreamsReplay, as_of_ms)


def consumer_groups_at(records: pa.Table, as_of_ms: int | None = None) -> dict[str, ConsumerMoment]:
    """The consumer groups, as `groups_at`."""
    return _moments(records, CONSUMER_MODEL.types, ConsumerReplay, as_of_ms)


def _moments(
    records: pa.Table, types: Collection[int], new_group: Callable[[], G], as_of_ms: int | None
) -> dict[str, GroupMoment[G]]:
    """The groups after the records up to the moment; values that others replace are not read."""
    rows = with_log_times(records, types)
    later: dict[str, set[tuple[int, str | None]]] = {}
    if as_of_ms is not None:
        is_later = pc.greater(rows.column("log_time_ms"), as_of_ms)
        for name, *key in _distinct(rows.filter(is_later), ["group_id", "record_type", "member_id"]):
            later.setdefault(name, set()).add((key[0], key[1]))
        rows = rows.filter(pc.invert(is_later))
    keys = keys_of(rows)
    newest = np.zeros(len(keys.names), np.int64)
    newest[keys.groups] = np.arange(rows.num_rows)
    first_replaced = first_replacements(keys, whole_groups(rows))
    undecoded = {name for name, *_ in _distinct(rows.filter(is_undecoded(rows)), ["group_id"])}
    needed = is_needed(rows, keys)
    needed[newest] = True
    groups: dict[str, tuple[G, GroupChange]] = {}
    for change in each_change(rows.filter(pa.array(needed))):
        group = groups[change.group_id][0] if change.group_id in groups else new_group()
        group.apply(change)
        groups[change.group_id] = group, change
    return {
        name: GroupMoment(
            group=groups[name][0],
            newest=groups[name][1],
            later=frozenset(later.get(name, ())),
            is_covered=bool(first_replaced[number] <= newest[number]),
            has_undecoded=name in undecoded,
        )
        for number, name in sorted(enumerate(keys.names), key=itemgetter(1))
    }


def _distinct(rows: pa.Table, columns: list[str]) -> Iterator[tuple[Any, ...]]:
    """The different rows of some columns."""
    distinct = rows.select(columns).group_by(columns).aggregate([])
    return zip(*(column.to_pylist() for column in distinct.columns), strict=True)
