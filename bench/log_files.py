"""A log directory that grows: batches appended to the segments of one topic, and the files a broker keeps beside."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sharelens.kafka_log import record_batch as rb
from sharelens.kafka_log.text_files import (
    HIGH_WATERMARK_CHECKPOINT,
    META_PROPERTIES,
    PARTITION_METADATA,
    parse_partition_offsets,
)
from state_model.topics import STATE_TOPIC
from state_model.uuids import uuid_text
from tools.log_writer.encoding import encode, plan
from tools.log_writer.writer import build_indexes, write_checkpoints, write_meta

SEGMENT_BYTES = 4 << 20

Ints = npt.NDArray[np.int64]


@dataclass(slots=True, kw_only=True)
class _Segment:
    """The segment that a partition is written to: where it began, its bytes so far, its batch headers."""

    base_offset: int
    size: int
    headers: list[Ints]


class LogDirectoryWriter:
    """Appends to the partitions of one log directory; `close` leaves it as a broker does after a clean stop.

    Each writer begins new segments, at the offsets that the directory's checkpoint names.
    """

    def __init__(
        self,
        directory: Path,
        *,
        partitions: int,
        seed: int,
        topic: str = STATE_TOPIC,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        self._directory = directory
        self._topic = topic
        self._segment_bytes = segment_bytes
        self._seed = seed
        self._written = 0
        self._open: dict[int, _Segment] = {}
        self._next = dict.fromkeys(range(partitions), 0) | _high_watermarks(directory, topic)

    def append(self, partition: int, records: pa.RecordBatch, times: Ints, batches: Ints) -> None:
        """Append records (key, value) with their timestamps; neighbours with the same number in `batches` share one."""
        base_offset = self._next[partition]
        counts = np.diff(np.concatenate([[0], np.flatnonzero(np.diff(batches)) + 1, [len(batches)]]))
        timed = records.append_column("timestamp_ms", pa.array(times))
        table = plan(timed, counts.tolist(), base_offset=base_offset)
        encoded = encode(timed, table, base_offset=base_offset)
        segment = self._segment(partition)
        headers = encoded.headers.copy()
        headers[:, rb.POSITION] += segment.size
        segment.headers.append(headers)
        segment.size += len(encoded.data)
        with self._path(partition, segment.base_offset).open("ab") as file:
            file.write(encoded.data.data)
        self._next[partition] += records.num_rows
        self._written += len(encoded.data)

    def append_to_partitions(self, partitions: Ints, records: pa.RecordBatch, times: Ints, linger_ms: int) -> None:
        """Append records to the partition of each, in the order of time; those within `linger_ms` share a batch."""
        order = np.lexsort([times, partitions])  # stable: records of a key stay in their order
        records, times, partitions = records.take(pa.array(order)), times[order], partitions[order]
        begins = np.flatnonzero(np.diff(partitions, prepend=-1))
        for first, end in zip(begins.tolist(), [*begins[1:].tolist(), len(order)], strict=True):
            at = times[first:end]
            self.append(int(partitions[first]), records.slice(first, end - first), at, at // linger_ms)

    def close(self) -> int:
        """Write indexes, checkpoints and meta.properties; the bytes of batches that this writer has appended."""
        for partition in list(self._open):
            self._roll(partition)
        for partition in self._next:
            folder = self._folder(partition)
            if not any(folder.glob("*.log")):
                self._path(partition, 0).touch()
            (folder / PARTITION_METADATA).write_text(
                f"version: 0\ntopic_id: {_id(self._seed, 'topic')}", encoding="ascii"
            )
            (folder / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n", encoding="ascii")
        ends = {(self._topic, partition): end for partition, end in sorted(self._next.items())}
        write_checkpoints(self._directory, high_watermarks=ends, log_starts={})
        _write_recovery_points(self._directory, ends)
        if not (self._directory / META_PROPERTIES).exists():
            write_meta(self._directory, cluster_id=_id(self._seed, "cluster"), node_id=1)
        return self._written

    def _segment(self, partition: int) -> _Segment:
        """The open segment, a new one when it is full."""
        segment = self._open.get(partition)
        if segment is not None and segment.size >= self._segment_bytes:
            self._roll(partition)
            segment = None
        if segment is None:
            segment = _Segment(base_offset=self._next[partition], size=0, headers=[])
            self._open[partition] = segment
        return segment

    def _roll(self, partition: int) -> None:
        segment = self._open.pop(partition)
        indexes = build_indexes(np.concatenate(segment.headers), segment.base_offset)
        path = self._path(partition, segment.base_offset)
        path.with_suffix(".index").write_bytes(indexes.offset_index)
        path.with_suffix(".timeindex").write_bytes(indexes.time_index)

    def _folder(self, partition: int) -> Path:
        folder = self._directory / f"{self._topic}-{partition}"
        folder.mkdir(exist_ok=True)
        return folder

    def _path(self, partition: int, base_offset: int) -> Path:
        return self._folder(partition) / f"{base_offset:020d}.log"


def _high_watermarks(directory: Path, topic: str) -> dict[int, int]:
    """End offset by partition of a topic, of a directory that was closed before; empty for a new one."""
    path = directory / HIGH_WATERMARK_CHECKPOINT
    if not path.exists():
        return {}
    offsets = parse_partition_offsets(path.read_text(encoding="utf-8"), str(path))
    return {partition: end for (name, partition), end in offsets.items() if name == topic}


def _write_recovery_points(directory: Path, ends: Mapping[tuple[str, int], int]) -> None:
    lines = [f"{topic} {partition} {end}\n" for (topic, partition), end in ends.items()]
    text = f"0\n{len(lines)}\n{''.join(lines)}"
    (directory / "recovery-point-offset-checkpoint").write_text(text, encoding="utf-8")


def _id(seed: int, name: str) -> str:
    """An id that belongs to the seed; not the zero uuid."""
    return uuid_text(hashlib.sha256(f"{name} {seed}".encode()).digest()[:16])
