"""The events of a metadata log from its records, its gaps and its snapshots (metadata-log §1).

A log that starts at 0 is read from there. Where it starts later, or where records are missing, the oldest complete
snapshot that covers them comes in: the state becomes that of the snapshot.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from sharelens.evidence.losses import GAP
from state_model.metadata.events import Event, Gap, Snapshot
from state_model.metadata.history import Validity
from state_model.metadata.records import MetadataRecord


class Undecoded(NamedTuple):
    """A record that can't be decoded, and why."""

    offset: int
    reason: str


class Stretch(NamedTuple):
    """Offsets of the log without a gap, and their records in order; those of type NO_OP may be left out."""

    first_offset: int
    end_offset: int
    records: Iterable[MetadataRecord | Undecoded]


class Snapshots(Protocol):
    """The complete snapshots of a metadata log."""

    def newest(self) -> Snapshot | None:
        """The snapshot with the highest end offset; None without a snapshot."""
        ...

    def first_covering(self, end_offset: int) -> Snapshot | None:
        """The oldest snapshot that covers all offsets below an end; None without such a snapshot."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataHistory:
    """The cluster's metadata over time, of one cluster.

    `first_ms`: the time from which on it is known; None where the log begins with its first record. `has_beginning`:
    false without a record, or where the log begins later and no snapshot says what was in force then. `end_offset`,
    `committed_end`: where log or snapshots end, and below which offset every record is surely committed. `problems`:
    how often each reason code of a problem came up.
    """

    validities: Sequence[Validity]
    first_ms: int | None
    has_beginning: bool
    end_offset: int
    committed_end: int
    problems: Sequence[tuple[str, int]]

    def is_uncommitted(self, row: Validity) -> bool:
        """Whether a value began or ended with a record that may be uncommitted."""
        last = row.begin.offset if row.end is None else row.end.offset
        return last >= self.committed_end

    def completeness(self, row: Validity) -> tuple[str, str | None]:
        """The completeness of a value, and its reason."""
        if not row.is_certain:
            return "incomplete", GAP
        return ("uncommitted", "uncommitted") if self.is_uncommitted(row) else ("complete", None)

    def at(self, offset: int) -> list[Validity]:
        """The values in force after all records below an offset."""
        return [row for row in self.validities if row.is_in_force(offset)]


@dataclass(slots=True)
class EventReader:
    """Reads the stretches of a metadata log once, from its begin to its end."""

    snapshots: Snapshots
    reasons: Counter[str]
    first_ms: int | None = None
    has_beginning: bool = True
    next_offset: int = 0
    _due: Snapshot | None = field(default=None)
    _starts_at: int = 0

    def events(self, stretches: Iterable[Stretch]) -> Iterator[Event]:
        """The records in order, with gaps, and snapshots where they are needed."""
        for stretch in stretches:
            if stretch.first_offset > self.next_offset:
                yield from self._gap(stretch.first_offset)
            self.next_offset = max(self.next_offset, stretch.end_offset)
            yield from self._records(stretch.records)
        newest = self.snapshots.newest()
        if newest is not None and newest.end_offset > self.next_offset:
            yield from self._gap(newest.end_offset)
        if self._due is not None:
            yield from self._snapshot()
        self.has_beginning = self.has_beginning and self.next_offset > 0

    def _records(self, records: Iterable[MetadataRecord | Undecoded]) -> Iterator[Event]:
        for record in records:
            if record.offset < self._starts_at:
                continue
            if self._due is not None and record.offset >= self._due.end_offset:
                yield from self._snapshot()
            if isinstance(record, Undecoded):
                self.reasons[record.reason] += 1
                yield from self._gap(record.offset + 1, record.offset)
            else:
                yield record

    def _gap(self, end_offset: int, begin_offset: int | None = None) -> Iterator[Event]:
        """A gap before `end_offset`, and the snapshot that closes it, as soon as the log comes to its end."""
        begin = self.next_offset if begin_offset is None else begin_offset
        is_start = begin == 0 and begin_offset is None
        closing = self.snapshots.first_covering(end_offset)
        if is_start and closing is None:
            self.has_beginning = False
        if not is_start or closing is None:
            if begin_offset is None:
                self.reasons[GAP] += 1
            yield Gap(first_offset=begin, last_offset=end_offset - 1)
        if closing is not None:
            self._due = closing
            if is_start:
                self.first_ms, self._starts_at = closing.timestamp_ms, closing.end_offset
                yield from self._snapshot()

    def _snapshot(self) -> Iterator[Event]:
        if self._due is not None:
            self.next_offset = max(self.next_offset, self._due.end_offset)
            yield self._due
        self._due = None
