"""The metadata log of log directories as a timeline: its snapshots and the log behind them (metadata-log §1 and §5).

No byte of a record that can't be read is kept: it could be a secret.
"""

import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.metadata_commit import VoterCopy, committed_end
from sharelens.evidence.metadata_events import EventReader, MetadataHistory, Stretch, Undecoded
from sharelens.evidence.reading import first_offset, read_chunks, read_whole
from sharelens.kafka_log import reader
from sharelens.kafka_log.layout import LogDirectory
from sharelens.kafka_log.metadata_files import MetadataFiles, SnapshotFile, metadata_files
from sharelens.kafka_log.reader import Chunk
from sharelens.kafka_log.union import LogPartition
from state_model.errors import DecodeError, SharelensError
from state_model.metadata import schemas
from state_model.metadata.events import Snapshot
from state_model.metadata.history import timeline
from state_model.metadata.records import NO_OP_VALUE, MetadataRecord, UnknownRecordError, decode_control, decode_record

READ_COLUMNS = ("offset", "timestamp_ms", "is_control", "key", "value")
INCOMPLETE_SNAPSHOT = "incomplete_snapshot"


class TooLargeError(SharelensError):
    """Raised when a metadata log is larger than the caller allows."""


@dataclass(slots=True)
class SnapshotFiles:
    """The snapshots of a metadata log, each read at its first use."""

    files: Sequence[SnapshotFile]
    digest_key: bytes
    reasons: Counter[str] = field(default_factory=Counter)
    _complete: dict[tuple[int, int], Snapshot | None] = field(default_factory=dict)

    def newest(self) -> Snapshot | None:
        """The complete snapshot with the highest end offset; None when there is none."""
        snapshots = (self.read(file) for file in reversed(self.files))
        return next((snapshot for snapshot in snapshots if snapshot is not None), None)

    def first_covering(self, end_offset: int) -> Snapshot | None:
        """The oldest complete snapshot that covers all offsets below an end; None when there is none."""
        covering = (self.read(file) for file in self.files if file.end_offset >= max(end_offset, 1))
        return next((snapshot for snapshot in covering if snapshot is not None), None)

    def read(self, file: SnapshotFile) -> Snapshot | None:
        """The content of a snapshot; None when it is not complete: header, records without damage, footer."""
        key = file.end_offset, file.epoch
        if key not in self._complete:
            self._complete[key] = _read_snapshot(file, self.digest_key, self.reasons)
            if self._complete[key] is None:
                self.reasons[INCOMPLETE_SNAPSHOT] += 1
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
    digest_key, reasons = secrets.token_bytes(32), Counter[str]()
    snapshots = SnapshotFiles(files=files.snapshots, digest_key=digest_key, reasons=reasons)
    events = EventReader(snapshots=snapshots, reasons=reasons)
    result = timeline(events.events(_stretches(files, digest_key, reasons)))
    newest = snapshots.newest()
    snapshot_end = 0 if newest is None else newest.end_offset
    return MetadataHistory(
        validities=result.validities,
        first_ms=events.first_ms,
        has_beginning=events.has_beginning,
        end_offset=events.next_offset,
        committed_end=committed_end(snapshot_end, events.next_offset, result.voters, voter_copies(files.log)),
        problems=sorted(reasons.items()),
    )


def _stretches(files: MetadataFiles, digest_key: bytes, reasons: Counter[str]) -> Iterator[Stretch]:
    end_offset = reader.readable_end(files.log, include_uncommitted=True)
    for chunk in read_chunks(files.log, first_offset(files.log), end_offset, include_uncommitted=True):
        reasons.update(chunk.problems.column("reason").to_pylist())
        yield from stretches_of(chunk, digest_key)


def stretches_of(chunk: Chunk, digest_key: bytes) -> Iterator[Stretch]:
    """The records of a chunk of the log, decoded; idle ones are left out before they cost an object each."""
    rows = pa.Table.from_batches([chunk.records]).select(READ_COLUMNS)
    offsets = rows.column("offset").to_numpy()
    if not len(offsets):
        return
    breaks = (np.flatnonzero(np.diff(offsets) != 1) + 1).tolist()
    for first, last in zip([0, *breaks], [*breaks, len(offsets)], strict=True):
        records = _decoded(rows.slice(first, last - first), digest_key)
        yield Stretch(int(offsets[first]), int(offsets[last - 1]) + 1, records)


def _decoded(rows: pa.Table, digest_key: bytes) -> Iterator[MetadataRecord | Undecoded]:
    is_idle = pc.fill_null(pc.equal(rows.column("value"), pa.scalar(NO_OP_VALUE)), False)
    for row in rows.filter(pc.or_(pc.invert(is_idle), rows.column("is_control"))).to_pylist():
        try:
            yield _record(row, digest_key)
        except DecodeError as error:
            yield Undecoded(row["offset"], error.reason)


def voter_copies(log: LogPartition) -> list[VoterCopy]:
    """The copies of the log whose node is known."""
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
