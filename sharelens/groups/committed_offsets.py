"""Committed offsets of a group as of a moment, from the records of its offset commits.

A commit inside a transaction counts from the transaction's COMMIT marker on, unless a later record of the same
partition counted before; ABORT drops it. Offsets belong to the name of the group, whatever its type.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from sharelens.evidence.offset_commit_rows import COMMIT_COLUMNS
from sharelens.groups.intervals import Row, marks
from sharelens.groups.replay import CompactionBound
from sharelens.groups.whole_logs import is_log_whole
from state_model.errors import DecodeError
from state_model.offset_commits import CommittedOffset, OffsetPlace, read_committed, read_place
from state_model.uuids import ZERO_UUID

TRANSACTIONAL = 1 << 4
COMMIT_MARKER = 1


class OffsetChange(NamedTuple):
    """An offset commit or tombstone; `committed` None: a tombstone, or a value that could not be decoded."""

    key: OffsetPlace
    committed: CommittedOffset | None
    is_tombstone: bool
    log_offset: int
    uncommitted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The committed offset of a partition at a moment; None where there is none any more."""

    committed: CommittedOffset | None
    marks: Row


@dataclass(slots=True)
class _Offsets:
    bound: CompactionBound
    newest: dict[OffsetPlace, OffsetChange] = field(default_factory=dict)
    pending: dict[int, dict[OffsetPlace, OffsetChange]] = field(default_factory=dict)
    later: set[OffsetPlace] = field(default_factory=set)
    last_offset: int = -1

    def take(self, row: Row) -> None:
        """Applies the next record."""
        if row["is_control"]:
            self._end_transaction(row)
            return
        change = _change(row)
        if change is None:
            return
        self.bound.take(change)
        self.last_offset = change.log_offset
        if row["attributes"] & TRANSACTIONAL:
            self.pending.setdefault(row["producer_id"], {})[change.key] = change
        else:
            self._count(change)

    def _end_transaction(self, row: Row) -> None:
        changes = self.pending.pop(row["producer_id"], {})
        if int.from_bytes((row["key"] or b"")[2:4], "big") == COMMIT_MARKER:
            for change in changes.values():
                self._count(change)

    def _count(self, change: OffsetChange) -> None:
        before = self.newest.get(change.key)
        if before is None or before.log_offset < change.log_offset:
            self.newest[change.key] = change

    def marks(self, place: OffsetPlace) -> Row:
        """Completeness of the offset of a partition."""
        change = self.newest.get(place)
        is_lost = change is not None and change.committed is None and not change.is_tombstone
        return marks(
            uncommitted=change is not None and change.uncommitted,
            undecoded=is_lost,
            compacted=place in self.later and not self.bound.covers(self.last_offset),
        )


def committed_offsets(records: pa.Table, as_of_ms: int | None = None) -> dict[OffsetPlace, Committed]:
    """The committed offsets by partition, from COMMIT_COLUMNS rows of one group, in log order (IS_LOG_WHOLE if known).

    `as_of_ms`: after the records with a log time up to this one. A partition whose first commit came later is there
    without an offset, incomplete where compaction may have removed an earlier one.
    """
    offsets = _Offsets(CompactionBound(is_log_whole=is_log_whole(records)))
    log_time_ms: dict[int, int] = {}
    for row in _rows(records):
        log_partition = row["partition"]
        now_ms = log_time_ms[log_partition] = max(row["timestamp_ms"], log_time_ms.get(log_partition, -(1 << 63)))
        if as_of_ms is None or now_ms <= as_of_ms:
            offsets.take(row)
        elif not row["is_control"]:
            change = _change(row)
            offsets.later |= set() if change is None else {change.key}
    places = sorted({*offsets.newest, *offsets.later})
    return {
        place: Committed(
            committed=offsets.newest[place].committed if place in offsets.newest else None, marks=offsets.marks(place)
        )
        for place in places
    }


def _rows(records: pa.Table) -> Iterator[dict[str, Any]]:
    for batch in records.select(list(COMMIT_COLUMNS)).to_batches():
        yield from batch.to_pylist()


def commit_changes(records: pa.Table) -> Iterator[tuple[Row, OffsetChange]]:
    """The offset commits and tombstones among COMMIT_COLUMNS rows, each with its row; malformed keys are left out."""
    for row in _rows(records):
        change = None if row["is_control"] else _change(row)
        if change is not None:
            yield row, change


def names_in_commits(records: pa.Table) -> dict[str, str]:
    """Names of topics by id, as far as offset commits among COMMIT_COLUMNS rows have ids."""
    return {
        change.committed.topic_id: change.key.topic
        for _, change in commit_changes(records)
        if change.committed is not None and change.committed.topic_id != ZERO_UUID
    }


def _change(row: Row) -> OffsetChange | None:
    """The change of a data record; None for a key that is malformed."""
    value = row["value"]
    try:
        place = read_place(row["key"])
    except DecodeError:
        return None
    try:
        committed = None if value is None else read_committed(value)
    except DecodeError:
        committed = None
    return OffsetChange(place, committed, value is None, row["offset"], row["uncommitted"])
