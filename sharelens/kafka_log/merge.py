"""Merges the copies of a partition into one log: each offset once; what one copy lost comes from another.

Copies of one log may differ in four ways, and each has its rule:
- the same batch in several copies (equal offsets, checksum and size): read once;
- a copy that a new leader made truncate later, but that was taken before: its batches lie at or after the start of a
  higher leader epoch. The higher epoch wins, the others are `superseded` (KIP-101, LeaderEpochFileCache);
- a copy that was compacted, another one that was not: batches differ, records at the same offset don't: their union;
- other bytes at one offset under one leader epoch: two clusters share an id. Neither copy can be
  trusted: CopyConflictError.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.kafka_log import record_batch as rb
from sharelens.kafka_log.arrow import booleans, integers
from sharelens.kafka_log.blocks import KEPT_BYTES, Block, Damage
from sharelens.kafka_log.errors import CopyConflictError
from sharelens.kafka_log.layout import PartitionDirectory
from sharelens.kafka_log.records import RecordParser, empty_records
from sharelens.kafka_log.segment_file import Mask, Table
from sharelens.kafka_log.segments import CopyReader
from sharelens.kafka_log.union import LogPartition

_UNBOUNDED = (1 << 63) - 1
_COMPARED = ("timestamp_ms", "key", "value", "headers")
_MAXIMUM_WAITING_BYTES = 256 << 20

# A waiting batch: its header row, then which block it lies in, which copy, and the leader epoch it counts under.
BLOCK, COPY, EPOCH = rb.COLUMNS, rb.COLUMNS + 1, rb.COLUMNS + 2


@dataclass(slots=True)
class _CopyState:
    """How far one copy has been read."""

    copy: PartitionDirectory
    blocks: Iterator[Block]
    start: int
    frontier: int
    finished: bool = False
    damages: list[Damage] = field(default_factory=list)


class Merge:
    """Merges the copies of a partition over [from_offset, to_offset)."""

    def __init__(
        self,
        partition: LogPartition,
        readers: list[tuple[PartitionDirectory, CopyReader]],
        parser: RecordParser,
        from_offset: int,
    ) -> None:
        self._partition = partition
        self._parser = parser
        self._copies = [
            _CopyState(
                copy=copy, blocks=reader.blocks(), start=max(from_offset, _first_offset(copy)), frontier=from_offset
            )
            for copy, reader in readers
        ]
        self._blocks: dict[int, Block] = {}
        self._block_number = 0
        self._waiting: Table = np.zeros((0, rb.COLUMNS + 3), dtype=np.int64)
        self._unsettled: list[tuple[int, Damage]] = []
        self._epoch_starts = known_epochs([copy for copy, _ in readers])
        self._emitted = from_offset

    def chunks(self) -> Iterator[tuple[pa.RecordBatch, list[tuple[str, Damage]]]]:
        """Record batches in offset order, each with the (source id, damage) that are settled by then."""
        while not all(state.finished for state in self._copies) or len(self._waiting) or self._unsettled:
            boundary = self._advance()
            below = self._waiting[:, rb.LAST_OFFSET] < boundary
            rows, self._waiting = self._waiting[below], self._waiting[~below]
            rows, losses = self._without_superseded(rows)
            yield from self._read(_without_duplicates(rows), losses)
            self._emitted = max(self._emitted, boundary)
            self._drop_blocks()
            settled = self._settle(boundary)
            if settled:
                yield empty_records(), settled

    def _advance(self) -> int:
        """Load blocks until some batches are complete; the offset below which everything is here (exclusive)."""
        while True:
            lagging = [number for number, state in enumerate(self._copies) if not state.finished]
            if not lagging:
                return _UNBOUNDED
            frontier = min(self._copies[number].frontier for number in lagging)
            boundary = self._without_straddling(frontier)
            if boundary > self._emitted and (self._waiting[:, rb.LAST_OFFSET] < boundary).any():
                return boundary
            if (
                sum(block.data.nbytes for block in self._blocks.values()) > _MAXIMUM_WAITING_BYTES
                and frontier > self._emitted
            ):
                return frontier
            for number in lagging:
                if self._copies[number].frontier == frontier:
                    self._load(number)

    def _without_straddling(self, boundary: int) -> int:
        """The boundary moved down until no waiting batch lies across it."""
        while True:
            across = (self._waiting[:, rb.BASE_OFFSET] < boundary) & (self._waiting[:, rb.LAST_OFFSET] >= boundary)
            if not across.any():
                return boundary
            boundary = int(self._waiting[across, rb.BASE_OFFSET].min())

    def _load(self, number: int) -> None:
        """Read the next block of a copy: its batches wait, the starts of its leader epochs are recorded."""
        state = self._copies[number]
        block = next(state.blocks, None)
        if block is None:
            state.finished = True
            return
        state.frontier = max(state.frontier, block.walked_to)
        state.damages.extend(block.damages)
        self._unsettled.extend((number, damage) for damage in block.damages)
        if len(block.headers) == 0:
            return
        self._block_number += 1
        self._blocks[self._block_number] = block
        epochs = trusted_epochs(state.copy, block.headers)
        for epoch in np.unique(epochs).tolist():
            first = int(block.headers[epochs == epoch, rb.BASE_OFFSET].min())
            self._epoch_starts[epoch] = min(first, self._epoch_starts.get(epoch, first))
        extra = np.empty((len(block.headers), 3), dtype=np.int64)
        extra[:, 0], extra[:, 1], extra[:, 2] = self._block_number, number, epochs
        self._waiting = np.concatenate([self._waiting, np.concatenate([block.headers, extra], axis=1)])

    def _without_superseded(self, rows: Table) -> tuple[Table, list[tuple[str, Damage]]]:
        """Drop the batches that a higher leader epoch replaced."""
        limit = superseded_from(self._epoch_starts, rows[:, EPOCH])
        lost = rows[:, rb.LAST_OFFSET] >= limit
        losses = [
            (self._copies[int(row[COPY])].copy.source_id, self._superseded(row, int(start)))
            for row, start in zip(rows[lost], limit[lost], strict=True)
        ]
        return rows[~lost], losses

    def _superseded(self, row: npt.NDArray[np.int64], start: int) -> Damage:
        block = self._blocks[int(row[BLOCK])]
        position, size = int(row[rb.POSITION]), int(row[rb.SIZE])
        return Damage(
            file=block.file,
            position=block.data_position + position,
            end_position=block.data_position + position + size,
            first_offset=int(row[rb.BASE_OFFSET]),
            last_offset=int(row[rb.LAST_OFFSET]),
            reason="superseded",
            detail=f"written under leader epoch {row[rb.LEADER_EPOCH]}; a later epoch begins at {start}",
            raw=block.data[position : position + min(size, KEPT_BYTES)].tobytes(),
        )

    def _read(
        self, rows: Table, losses: list[tuple[str, Damage]]
    ) -> Iterator[tuple[pa.RecordBatch, list[tuple[str, Damage]]]]:
        """The records of the chosen batches in offset order."""
        pieces: list[pa.RecordBatch] = []
        files: list[str] = []
        overlapping = bool((rows[1:, rb.BASE_OFFSET] <= np.maximum.accumulate(rows[:, rb.LAST_OFFSET])[:-1]).any())
        for run in np.split(rows, np.flatnonzero(np.diff(rows[:, BLOCK])) + 1) if len(rows) else []:
            block = self._blocks[int(run[0, BLOCK])]
            source = self._copies[int(run[0, COPY])].copy.source_id
            headers = np.ascontiguousarray(run[:, : rb.COLUMNS])
            for records, damages in self._parser.parse(replace(block, headers=headers, damages=())):
                losses = losses + [(source, damage) for damage in damages]
                if overlapping:
                    pieces.append(records)
                    files += [block.file] * records.num_rows
                else:
                    yield self._from_emitted(records), losses
                    losses = []
        if overlapping:
            yield self._from_emitted(_joined(self._partition, pieces, files)), losses
        elif losses:
            yield empty_records(), losses

    def _from_emitted(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """Records that were not emitted before; only a boundary forced through overlapping batches repeats any."""
        if records.num_rows == 0 or records["offset"][0].as_py() >= self._emitted:
            return records
        return records.filter(pc.greater_equal(records["offset"], self._emitted))

    def _drop_blocks(self) -> None:
        alive = set(np.unique(self._waiting[:, BLOCK]).tolist())
        self._blocks = {number: block for number, block in self._blocks.items() if number in alive}

    def _settle(self, boundary: int) -> list[tuple[str, Damage]]:
        """The damages below the boundary whose offsets no other copy has."""
        settled: list[tuple[str, Damage]] = []
        waiting: list[tuple[int, Damage]] = []
        for number, damage in self._unsettled:
            if max(damage.first_offset, damage.last_offset) >= boundary:
                waiting.append((number, damage))
                continue
            lost = self._not_elsewhere(number, damage)
            if lost:
                first, last = lost[0][0], lost[-1][1]
                detail = f"{damage.detail}; no other copy has {first} to {last}"
                settled.append(
                    (
                        self._copies[number].copy.source_id,
                        replace(damage, first_offset=first, last_offset=last, detail=detail),
                    )
                )
        self._unsettled = waiting
        return settled

    def _not_elsewhere(self, number: int, damage: Damage) -> list[tuple[int, int]]:
        """The parts of a damage's range (inclusive) that no other copy has undamaged."""
        lost = [(damage.first_offset, damage.last_offset)] if damage.loses_offsets else []
        for other, state in enumerate(self._copies):
            if other != number:
                holes = [(d.first_offset, d.last_offset) for d in state.damages if d.loses_offsets]
                holes += [(-1, state.start - 1), (state.frontier, _UNBOUNDED)]
                lost = [part for piece in lost for part in _intersections(piece, holes)]
        return lost


def _first_offset(copy: PartitionDirectory) -> int:
    return copy.segments[0].base_offset if copy.segments else _UNBOUNDED


def known_epochs(copies: Sequence[PartitionDirectory]) -> dict[int, int]:
    """Leader epoch → its first offset, the lowest that a copy's leader-epoch-checkpoint names.

    Kafka cuts the oldest entry to the log start, so a first entry is only an upper bound; that is harmless here,
    because only batches of lower epochs at or after it are set aside.
    """
    starts: dict[int, int] = {}
    for copy in copies:
        for epoch, first in copy.leader_epochs:
            starts[epoch] = min(first, starts.get(epoch, first))
    return starts


def superseded_from(starts: dict[int, int], of: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """For each leader epoch the offset from which a higher one took over; the largest int64 where none did."""
    epochs = sorted(starts)
    takeover = np.full(len(epochs) + 1, _UNBOUNDED, dtype=np.int64)
    for index in range(len(epochs) - 1, -1, -1):
        takeover[index] = min(takeover[index + 1], starts[epochs[index]])
    return takeover[np.searchsorted(np.array(epochs, dtype=np.int64), of, side="right")]


def trusted_epochs(copy: PartitionDirectory, headers: Table) -> npt.NDArray[np.int64]:
    """The leader epochs that batches count under: the field lies outside the checksum, so an odd one is not believed.

    Epochs only ascend, so a single outlier is smoothed away; one that the copy's own leader-epoch-checkpoint does not
    know becomes the one which that file gives to the offset.
    """
    epochs = headers[:, rb.LEADER_EPOCH].copy()
    if len(epochs) >= 3:
        triples = np.stack([epochs[:-2], epochs[1:-1], epochs[2:]])
        epochs[1:-1] = np.median(triples, axis=0).astype(np.int64)
    checkpoint_epochs = np.array(copy.leader_epochs, dtype=np.int64).reshape(-1, 2)
    unknown = ~np.isin(epochs, checkpoint_epochs[:, 0])
    if len(checkpoint_epochs) and unknown.any():
        place = np.searchsorted(checkpoint_epochs[:, 1], headers[unknown, rb.BASE_OFFSET], side="right") - 1
        epochs[unknown] = checkpoint_epochs[np.maximum(place, 0), 0]
    return epochs


def _without_duplicates(rows: Table) -> Table:
    """Batches sorted by offset, each once: from the copy with the highest epoch, then from the first copy."""
    rows = rows[
        np.lexsort((rows[:, COPY], -rows[:, EPOCH], rows[:, rb.CRC], rows[:, rb.LAST_OFFSET], rows[:, rb.BASE_OFFSET]))
    ]
    if len(rows) < 2:
        return rows
    identity = rows[:, [rb.BASE_OFFSET, rb.LAST_OFFSET, rb.CRC, rb.SIZE]]
    fresh: Mask = np.concatenate([[True], (identity[1:] != identity[:-1]).any(axis=1)])
    return rows[fresh]


def _intersections(piece: tuple[int, int], holes: list[tuple[int, int]]) -> list[tuple[int, int]]:
    parts = [(max(piece[0], first), min(piece[1], last)) for first, last in sorted(holes)]
    return [(first, last) for first, last in parts if first <= last]


def _joined(partition: LogPartition, pieces: list[pa.RecordBatch], files: list[str]) -> pa.RecordBatch:
    """Overlapping batches record by record, each offset once. Raises CopyConflictError when they differ."""
    table = pa.Table.from_batches(pieces).combine_chunks()
    order = pc.sort_indices(table, sort_keys=[("offset", "ascending"), ("leader_epoch", "descending")])
    table = table.take(order)
    offsets = table["offset"].to_numpy()
    duplicates = np.flatnonzero(offsets[1:] == offsets[:-1])
    if len(duplicates) == 0:
        return table.to_batches()[0]
    left_rows, right = table.take(integers(duplicates)), table.take(integers(duplicates + 1))
    for name in _COMPARED:
        if left_rows[name].combine_chunks().equals(right[name].combine_chunks()):
            continue
        _refuse(partition, left_rows, right, duplicates, [files[index] for index in order.to_pylist()])
    fresh = np.concatenate([[True], offsets[1:] != offsets[:-1]])
    return table.filter(booleans(fresh)).combine_chunks().to_batches()[0]


def _refuse(
    partition: LogPartition, left_rows: pa.Table, right: pa.Table, duplicates: npt.NDArray[np.int64], files: list[str]
) -> None:
    """Raise CopyConflictError for the first pair that differs."""
    for row, place in enumerate(duplicates.tolist()):
        if any(left_rows[name][row].as_py() != right[name][row].as_py() for name in _COMPARED):
            offset = left_rows["offset"][row].as_py()
            epoch = left_rows["leader_epoch"][row].as_py()
            raise CopyConflictError(
                f"{partition.topic}-{partition.partition} @ {offset}: {files[place]} and {files[place + 1]} hold "
                f"different records under leader epoch {epoch}: two clusters share an id; read them into separate lakes"
            )
