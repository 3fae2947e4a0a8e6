"""What a run reads of the metadata log: the offsets that the lake lacks, and the snapshots that its gaps need.

Offsets that were not surely committed are read again until they are.
"""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.coverage import coverage
from sharelens.evidence.intervals import Interval, difference, union
from sharelens.evidence.log_time import NO_LOG_TIME
from sharelens.evidence.losses import Damage
from sharelens.evidence.metadata_reading import INCOMPLETE_SNAPSHOT, SnapshotFiles, stretches_of
from sharelens.evidence.metadata_rows import row_of
from sharelens.evidence.metadata_schemas import METADATA_RECORD
from sharelens.evidence.reading import first_offset, read_chunks
from sharelens.kafka_log import reader
from sharelens.kafka_log.metadata_files import SnapshotFile
from sharelens.kafka_log.reasons import REASONS
from sharelens.kafka_log.schemas import PROBLEM
from sharelens.kafka_log.union import LogPartition
from sharelens.lake.metadata_log import RECORDS, books_of

Row = dict[str, Any]


def missing(log: LogPartition, extents: Sequence[Mapping[str, Any]]) -> list[Interval]:
    """The offsets to read: those that were not read, and those from the committed end on when the log changed there."""
    extent_coverage, books = coverage(extents), books_of(extents)
    available = first_offset(log), reader.readable_end(log, include_uncommitted=True)
    offsets = union(
        interval for copy in log.copies for interval in extent_coverage.missing_from(copy.source_id, available)
    )
    is_new = any(copy.source_id not in books.sources for copy in log.copies)
    is_same_end = available[1] == books.end and not is_new
    if is_same_end or (available[1] < books.end and is_new):
        offsets = difference(offsets, [(books.committed_end, books.end)])
    return offsets


@dataclass(slots=True, kw_only=True)
class Reading:
    """What was read: METADATA_RECORD tables without `uncommitted`, offsets, PROBLEM rows, and damage by offsets."""

    log: LogPartition
    digest_key: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    tables: list[pa.Table] = field(default_factory=list)
    read: list[Interval] = field(default_factory=list)
    undecoded: list[int] = field(default_factory=list)
    problems: list[Row] = field(default_factory=list)
    damage: list[Damage] = field(default_factory=list)
    log_time_ms: int | None = None
    newest_ms: int = NO_LOG_TIME
    """The log time of the records before the first range, and then of those that were read; idle ones left out."""

    def take(self, ranges: Sequence[Interval]) -> None:
        """Reads offset ranges of the log."""
        for first, end in ranges:
            for chunk in read_chunks(self.log, first, end, include_uncommitted=True):
                self._note_problems(chunk.problems)
                newest = pc.max(chunk.records.column("timestamp_ms")).as_py()
                self.log_time_ms = max((ms for ms in (self.log_time_ms, newest) if ms is not None), default=None)
                for stretch in stretches_of(chunk, self.digest_key):
                    self.read = union([*self.read, (stretch.first_offset, stretch.end_offset)])
                    self._append([self._timed(row_of(record)) for record in stretch.records])

    def take_snapshot(self, snapshots: SnapshotFiles, file: SnapshotFile) -> bool:
        """Takes the records of a snapshot; false when it is not complete."""
        content = snapshots.read(file)
        if content is None:
            self.problems.append(self._problem(INCOMPLETE_SNAPSHOT, file.partition.copies[0].segments[0].uri, -1))
            return False
        rows = [row_of(record, snapshot_end=file.end_offset) for record in content.records]
        self._append([row | {"log_time_ms": row["timestamp_ms"]} for row in rows])
        return True

    def _timed(self, row: Row) -> Row:
        """The row of the next record of the log with its log time."""
        if row["undecoded_reason"] is not None:
            return row
        self.newest_ms = max(self.newest_ms, row["timestamp_ms"])
        return row | {"log_time_ms": self.newest_ms}

    def rows(self) -> pa.Table:
        """The METADATA_RECORD rows, none of them marked as uncommitted."""
        return pa.concat_tables([METADATA_RECORD.empty_table(), *self.tables])

    def _append(self, rows: list[Row]) -> None:
        if not rows:
            return
        self.tables.append(pa.Table.from_pylist([{"uncommitted": False} | row for row in rows], schema=METADATA_RECORD))
        for row in rows:
            if row["undecoded_reason"] is not None:
                offset = row["log_offset"]
                self.undecoded.append(offset)
                about = {"first_offset": offset, "last_offset": offset}
                self.problems.append(self._problem(row["undecoded_reason"], RECORDS, offset) | about)

    def _note_problems(self, problems: pa.RecordBatch) -> None:
        """Keeps where and why; neither bytes nor details, which could repeat some."""
        for row in problems.to_pylist():
            about = {name: row[name] for name in ("source_id", "first_offset", "last_offset")}
            self.problems.append(self._problem(row["reason"], row["file"], row["position"]) | about)
            if row["first_offset"] is not None and row["last_offset"] is not None:
                self.damage.append((row["first_offset"], row["last_offset"] + 1, row["reason"]))

    def _problem(self, reason: str, file: str, position: int) -> Row:
        return {
            "source_id": self.log.copies[0].source_id,
            "topic": self.log.topic,
            "topic_id": self.log.topic_id,
            "partition": self.log.partition,
            "file": file,
            "position": position,
            "reason": reason,
            "detail": REASONS.get(reason, "a record that can't be decoded; its bytes are not kept"),
        }

    def problem_rows(self) -> pa.Table:
        """The PROBLEM rows."""
        return pa.Table.from_pylist(self.problems, schema=PROBLEM)


def take_snapshots(
    reading: Reading, snapshots: SnapshotFiles, holes: Sequence[Interval], log_end: int, stored: AbstractSet[int]
) -> set[int]:
    """Takes the oldest complete snapshot behind each hole that no stored one closes, and the newest beyond the log.

    The end offsets of the stored and the taken ones.
    """
    by_end = {file.end_offset: file for file in snapshots.files}
    known_ends = set(stored)
    for end in sorted({*(end for _, end in holes), log_end + 1}):
        candidates = sorted(number for number in known_ends | by_end.keys() if number >= max(end, 1))
        for number in reversed(candidates) if end > log_end else candidates:
            if number in known_ends or reading.take_snapshot(snapshots, by_end[number]):
                known_ends.add(number)
                break
    return known_ends


def holes_of(read: Sequence[Interval], undecoded: Iterable[int], end: int) -> list[Interval]:
    """The offsets below an end that were not read or can't be decoded."""
    return sorted([*difference([(0, end)], read), *((offset, offset + 1) for offset in undecoded)])
