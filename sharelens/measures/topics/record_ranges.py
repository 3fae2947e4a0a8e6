"""Offsets of a user partition at which its log holds a record for certain, by its batch headers.

    headers   0-9, 10 records | 10-14, 5 records of producer 7 | 15 ABORT of producer 7 | 16-19, 4 records
    ranges    0-9                                                                        16-19

Left out are control records, transactions that were aborted or have no marker, and partitions that a cleaner has
compacted: each replica does that at its own time, so one may hold a record that the leader no longer had.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.ranges.steps import Ints
from state_model.audit.columnar.passed_offsets import NO_RECORD

NO_OFFSETS = np.empty(0, np.int64)
BEHIND_ALL = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class RecordRanges:
    """Ascending, disjoint ranges of offsets, `firsts` to `lasts` (inclusive), that don't touch each other."""

    firsts: Ints
    lasts: Ints

    def first_in(self, firsts: Ints, lasts: Ints) -> Ints:
        """The first offset of each range (inclusive) that has a record; NO_RECORD: none has."""
        rows = np.searchsorted(self.lasts, firsts)  # the first range that ends at `first` or behind it
        begins = np.append(self.firsts, BEHIND_ALL)[rows]
        first_offsets: Ints = np.where(begins > lasts, NO_RECORD, np.maximum(firsts, begins))
        return first_offsets


NO_RECORDS = RecordRanges(NO_OFFSETS, NO_OFFSETS)


def record_ranges(headers: Iterable[pa.RecordBatch], log_start_offset: int) -> RecordRanges:
    """The records of a user partition at or above its log start offset.

    `headers`: TOPIC_BATCH rows of the partition up to its committed end, in offset order.
    """
    parts = [(NO_OFFSETS, NO_OFFSETS)]
    pending: dict[int, list[tuple[int, int]]] = {}
    next_offset: int | None = None
    for batch in headers:
        if not batch.num_rows:
            continue
        bases, lasts = (batch.column(name).to_numpy() for name in ("base_offset", "last_offset"))
        spans, counts = lasts - bases + 1, batch.column("record_count").to_numpy()
        expected = np.append(bases[0] if next_offset is None else next_offset, lasts[:-1] + 1)
        if (bases != expected).any() or (counts != spans).any():
            return NO_RECORDS  # compacted
        next_offset = int(lasts[-1]) + 1
        is_marked = pc.or_(batch.column("transactional"), pc.is_valid(batch.column("control_type")))
        is_plain = ~is_marked.to_numpy(zero_copy_only=False)
        parts.append(_joined(bases[is_plain], lasts[is_plain]))
        parts.append(_committed(batch.filter(is_marked), pending))
    firsts, lasts = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(firsts)
    firsts, lasts = _joined(firsts[order], lasts[order])
    is_above = lasts >= log_start_offset
    return RecordRanges(np.maximum(firsts[is_above], log_start_offset), lasts[is_above])


def _joined(firsts: Ints, lasts: Ints) -> tuple[Ints, Ints]:
    """Ascending, disjoint ranges, those that touch as one."""
    if not len(firsts):
        return NO_OFFSETS, NO_OFFSETS
    cuts = np.flatnonzero(firsts[1:] != lasts[:-1] + 1)
    return firsts[np.append(0, cuts + 1)], lasts[np.append(cuts, len(lasts) - 1)]


def _committed(batches: pa.RecordBatch, pending: dict[int, list[tuple[int, int]]]) -> tuple[Ints, Ints]:
    """The records of transactions that markers commit; `pending`: those of open transactions, by producer."""
    committed: list[tuple[int, int]] = []
    for row in batches.select(["base_offset", "last_offset", "producer_id", "control_type"]).to_pylist():
        if row["control_type"] is None:
            pending.setdefault(row["producer_id"], []).append((row["base_offset"], row["last_offset"]))
            continue
        ranges = pending.pop(row["producer_id"], [])
        if row["control_type"] == "COMMIT":
            committed += ranges
    columns = np.array(committed, np.int64).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]
