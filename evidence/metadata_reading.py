"""The metadata log of log directories as a timeline: its snapshots and the log behind them (metadata-log §1 and §5).

A log that starts at 0 is read from there. Where it starts later, or where records are missing, the oldest complete
snapshot that covers them comes in: the state becomes that of the snapshot. No byte of a record that can't be read is
kept: it could be a secret.
"""

import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evidence.losses import GAP
from evidence.metadata_commit import VoterCopy, committed_end
from evidence.reading import first_offset, read_chunks, read_whole
from kafka_log import reader
from kafka_log.layout import LogDirectory
from kafka_log.metadata_files import MetadataFiles, SnapshotFile, metadata_files
from kafka_log.union import LogPartition
from state_model.errors import DecodeError, SharelensError
from state_model.metadata import schemas
from state_model.metadata.events import Event, Gap, Snapshot
from state_model.metadata.history import Validity, timeline
from state_model.metadata.records import NO_OP_VALUE, MetadataRecord, UnknownRecordError, decode_control, decode_record

READ_COLUMNS = ("offset", "timestamp_ms", "is_control", "key", "value")


class TooLargeError(SharelensError):
    """Raised when a metadata log is larger than the caller allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataHistory:
    """The cluster's metadata over time, of one cluster.

    `first_ms`: the time from which on it is known; None where the log begins with its first record. `last_ms`: the
    newest time of a record. `has_beginning`: false without a record, or where the log begins later and no snapshot says
    what was in force then. `end_offset`,
    `committed_end`: where log or snapshots end, and below which offset every record is surely committed. `problems`:
    how often each reason code of a problem came up.
    """

    validities: Sequence[Validity]
    first_ms: int | None
    last_ms: int
    has_beginning: bool
    end_offset: int
    committed_end: int
    problems: Sequence[tuple[str, int]]

    def is_uncommitted(self, row: Validity) -> bool:
        """Whether a value began or ended with a record that may be uncommitted."""
        last = row.begin.offset if row.end is None else row.end.offset
        return last >= self.committed_end

    def at(self, offset: int) -> list[Validity]:
        """The values in force after all records below an offset."""
        return [row for row in self.validities if row.is_in_force(offset)]


@dataclass(slots=True)
class _Log:
    """Reads a metadata log once, from its begin to its end."""

    files: MetadataFiles
    digest_key: bytes
    first_ms: int | None = None
    last_ms: int = 0
    has_beginning: bool = True
    next_offset: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    _complete: dict[tuple[int, int], Snapshot | None] = field(default_factory=dict)
    _due: Snapshot | None = None
    _starts_at: int = 0

    def events(self) -> Iterator[Event]:
        """The records in order, with gaps, and snapshots where they are needed."""
        end_offset = reader.readable_end(self.files.log, include_uncommitted=True)
        for chunk in read_chunks(self.files.log, first_offset(self.files.log), end_offset, include_uncommitted=True):
            self.reasons.update(chunk.problems.column("reason").to_pylist())
            yield from self._records(pa.Table.from_batches([chunk.records]).select(READ_COLUMNS))
        newest = self.newest_snapshot()
        if newest is not None and newest.end_offset > self.next_offset:
            yield from self._gap(newest.end_offset)
        if self._due is not None:
            yield from self._snapshot()
        self.has_beginning = self.has_beginning and self.next_offset > 0

    def newest_snapshot(self) -> Snapshot | None:
        """The complete snapshot with the highest end offset; None when there is none."""
        snapshots = (self._read(file) for file in reversed(self.files.snapshots))
        return next((snapshot for snapshot in snapshots if snapshot is not None), None)

    def _records(self, rows: pa.Table) -> Iterator[Event]:
        offsets = rows.column("offset").to_numpy()
        self.last_ms = max(self.last_ms, pc.max(rows.column("timestamp_ms")).as_py() or 0)
        starts = np.flatnonzero(np.diff(offsets, prepend=self.next_offset - 1) != 1).tolist() if len(offsets) else []
        for first, last in zip([0, *starts], [*starts, len(offsets)], strict=True):
            if last == first:
                continue
            if int(offsets[first]) > self.next_offset:
                yield from self._gap(int(offsets[first]))
            self.next_offset = max(self.next_offset, int(offsets[last - 1]) + 1)
            covered = int(np.searchsorted(offsets[first:last], self._starts_at))
            yield from self._decoded(rows.slice(first + covered, last - first - covered))

    def _decoded(self, rows: pa.Table) -> Iterator[Event]:
        """The records; idle ones are left out before they cost an object each."""
        is_idle = pc.fill_null(pc.equal(rows.column("value"), pa.scalar(NO_OP_VALUE)), False)
        for row in rows.filter(pc.or_(pc.invert(is_idle), rows.column("is_control"))).to_pylist():
            if self._due is not None and row["offset"] >= self._due.end_offset:
                yield from self._snapshot()
            try:
                yield _record(row, self.digest_key)
            except DecodeError as error:
                self.reasons[error.reason] += 1
                yield from self._gap(row["offset"] + 1, row["offset"])

    def _gap(self, end_offset: int, begin_offset: int | None = None) -> Iterator[Event]:
        """A gap before `end_offset`, and the snapshot that closes it, as soon as the log comes to its end."""
        begin = self.next_offset if begin_offset is None else begin_offset
        is_start = begin == 0 and begin_offset is None
        closing = self._first_snapshot(end_offset)
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
            self.last_ms = max(self.last_ms, self._due.timestamp_ms)
            yield self._due
        self._due = None

    def _first_snapshot(self, end_offset: int) -> Snapshot | None:
        """The oldest complete snapshot that covers all offsets below an end."""
        covering = (self._read(file) for file in self.files.snapshots if file.end_offset >= max(end_offset, 1))
        return next((snapshot for snapshot in covering if snapshot is not None), None)

    def _read(self, file: SnapshotFile) -> Snapshot | None:
        """The content of a snapshot; None when it is not complete: header, records without damage, footer."""
        key = file.end_offset, file.epoch
        if key not in self._complete:
            self._complete[key] = _read_snapshot(file, self.digest_key, self.reasons)
            if self._complete[key] is None:
                self.reasons["incomplete_snapshot"] += 1
        return self._complete[key]


def read_metadata(directories: Sequence[LogDirectory], *, max_bytes: int) -> MetadataHistory | None:
    """The metadata over time; None when no directory has a metadata log.

    Raises:
        TooLargeError: log and snapshots are larger than `max_bytes`.
        CopyConflictError: copies contradict each other.
        MixedClustersError: the directories are of different clusters.
    """
    files = metadata_files(directories)
    if files is None:
        return None
    if files.size_bytes > max_bytes:
        raise TooLargeError(
            f"{files.size_bytes:,} bytes of {files.log.topic} would have to be read, --max-bytes allows {max_bytes:,}; "
            "raise it"
        )
    log = _Log(files=files, digest_key=secrets.token_bytes(32))
    result = timeline(log.events())
    newest = log.newest_snapshot()
    snapshot_end = 0 if newest is None else newest.end_offset
    return MetadataHistory(
        validities=result.validities,
        first_ms=log.first_ms,
        last_ms=log.last_ms,
        has_beginning=log.has_beginning,
        end_offset=log.next_offset,
        committed_end=committed_end(snapshot_end, log.next_offset, result.voters, _voter_copies(files.log)),
        problems=sorted(log.reasons.items()),
    )


def _voter_copies(log: LogPartition) -> list[VoterCopy]:
    copies = []
    for copy in log.copies:
        if copy.node_id is not None:
            alone = LogPartition(
                topic=log.topic,
                topic_id=log.topic_id,
                partition=log.partition,
                copies=(copy,),
                log_start_offset=copy.log_start_offset,
                committed_end=None,
            )
            end = reader.readable_end(alone, include_uncommitted=True)
            copies.append(VoterCopy(node_id=copy.node_id, end_offset=end, epochs=copy.leader_epochs))
    return copies


def _record(row: dict[str, object], digest_key: bytes) -> MetadataRecord:
    offset, timestamp_ms, key, value = row["offset"], row["timestamp_ms"], row["key"], row["value"]
    assert isinstance(offset, int)
    assert isinstance(timestamp_ms, int)
    assert key is None or isinstance(key, bytes)
    assert value is None or isinstance(value, bytes)
    if row["is_control"]:
        return decode_control(key, value, offset=offset, timestamp_ms=timestamp_ms)
    return decode_record(value, offset=offset, timestamp_ms=timestamp_ms, digest_key=digest_key)


def _read_snapshot(file: SnapshotFile, digest_key: bytes, reasons: Counter[str]) -> Snapshot | None:
    """The content of a snapshot, None when it is not complete; records of unknown types are counted and left out."""
    records: list[MetadataRecord] = []
    for chunk in read_whole(file.partition, include_uncommitted=True):
        if chunk.problems.num_rows:
            return None
        for row in chunk.records.select(list(READ_COLUMNS)).to_pylist():
            try:
                records.append(_record(row, digest_key))
            except UnknownRecordError as error:
                reasons[error.reason] += 1
            except DecodeError:
                return None
    ends = [record.record_type for record in (*records[:1], *records[-1:]) if record.is_control]
    if ends != [schemas.SNAPSHOT_HEADER, schemas.SNAPSHOT_FOOTER] or records[0].value is None:
        return None
    last_ms = records[0].value["last_contained_log_timestamp"]
    assert isinstance(last_ms, int)
    return Snapshot(end_offset=file.end_offset, timestamp_ms=last_ms, records=tuple(records))
