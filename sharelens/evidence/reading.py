"""Reading a log partition from its copies in bounded chunks; log times, losses and clock steps of a state partition."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from sharelens.evidence.as_of import WHOLE_LOG, LogPrefix
from sharelens.evidence.clock_steps import late_records
from sharelens.evidence.coverage import ranges_of_offsets
from sharelens.evidence.intervals import Interval, difference, union
from sharelens.evidence.log_time import NO_LOG_TIME, Ints, log_times
from sharelens.evidence.losses import Damage, gap_reason, in_order, losses_of_problems, losses_up_to
from sharelens.kafka_log import reader
from sharelens.kafka_log.reader import Chunk
from sharelens.kafka_log.union import LogPartition
from state_model.columnar.values import Loss

SPLIT_BYTES = 64 << 20
CHUNK_BYTES = 16 << 20


def first_offset(partition: LogPartition) -> int:
    """The lowest base offset of a segment in any copy; 0 without a segment."""
    return min((segment.base_offset for copy in partition.copies for segment in copy.segments), default=0)


def read_chunks(
    partition: LogPartition, from_offset: int, end_offset: int, *, include_uncommitted: bool
) -> Iterator[Chunk]:
    """Records and problems with offsets in [from_offset, end_offset), in offset order, in bounded chunks."""
    for split in reader.splits(partition, from_offset, end_offset, SPLIT_BYTES):
        yield from reader.read_split(split, include_uncommitted=include_uncommitted, batch_bytes=CHUNK_BYTES)


def read_whole(partition: LogPartition, *, include_uncommitted: bool) -> Iterator[Chunk]:
    """All records and problems that can be read now, in offset order, in bounded chunks."""
    end_offset = reader.readable_end(partition, include_uncommitted=include_uncommitted)
    return read_chunks(partition, first_offset(partition), end_offset, include_uncommitted=include_uncommitted)


class Reading:
    """The log times, losses and late records of one state partition, from its chunks in offset order.

    `first_ms`, `last_ms`: log time of the first and the last record; None without a record. `losses` (after `close`):
    ranges without records below the end offset, and records that could not be decoded, ascending. `late`: LATE_RECORD
    tables. `reasons`: how often each reason code of a problem came up; `undecoded`: of records that could not be
    decoded alone, with `details` of the first one and `undecoded_losses`. `prefix_end`: the last log offset of the
    prefix, -1 for no record, None for the whole log.
    """

    def __init__(self, partition: LogPartition, end_offset: int, prefix: LogPrefix = WHOLE_LOG) -> None:
        self.losses: list[Loss] = []
        self.late: list[pa.Table] = []
        self.reasons: Counter[str] = Counter()
        self.undecoded: Counter[str] = Counter()
        self.undecoded_losses: list[Loss] = []
        self.details: dict[str, str] = {}
        self.first_ms: int | None = None
        self.last_ms: int | None = None
        self.prefix_end: int | None = prefix.at_offsets.get(partition.partition)
        if prefix.as_of_ms is not None:
            self.prefix_end = -1
        self._as_of_ms = prefix.as_of_ms
        self._partition = partition
        self._end = end_offset
        self._covered: list[Interval] = []
        self._damages: list[Damage] = []

    @property
    def quarantined(self) -> int:
        """Problem rows, of reading and of decoding."""
        return self.reasons.total()

    def take(self, records: pa.RecordBatch, problems: pa.RecordBatch) -> Ints:
        """Takes a chunk (LOG_RECORD rows that follow the chunk before, PROBLEM rows); the log time of its records."""
        self.reasons.update(problems.column("reason").to_pylist())
        for row in problems.select(["first_offset", "last_offset", "reason"]).to_pylist():
            if row["first_offset"] is not None and row["last_offset"] is not None:
                self._damages.append((row["first_offset"], row["last_offset"] + 1, row["reason"]))
        before_ms = NO_LOG_TIME if self.last_ms is None else self.last_ms
        times = log_times(records.column("timestamp_ms").to_numpy(), before_ms)
        if len(times) == 0:
            return times
        offsets: Ints = records.column("offset").to_numpy()
        self._covered = union([*self._covered, *ranges_of_offsets(offsets, offsets)])
        self.first_ms = int(times[0]) if self.first_ms is None else self.first_ms
        self.last_ms = int(times[-1])
        late = late_records(records, times)
        if late.num_rows:
            self.late.append(late)
        if self._as_of_ms is not None:
            inside = int(np.searchsorted(times, self._as_of_ms, "right"))
            if inside:
                self.prefix_end = int(offsets[inside - 1])
        return times

    def take_undecodable(self, problems: pa.Table) -> None:
        """Takes records that could not be decoded (DECODE_PROBLEM); those that the broker skips as well are no loss."""
        self.reasons.update(problems.column("reason").to_pylist())
        self.undecoded.update(problems.column("reason").to_pylist())
        for reason, detail in zip(*(problems.column(name).to_pylist() for name in ("reason", "detail")), strict=True):
            self.details.setdefault(reason, detail)
        self.undecoded_losses += losses_of_problems(problems)

    def close(self) -> None:
        """Adds the ranges without records to the losses. Call it once, when the last chunk was taken."""
        log = self._partition
        for gap in difference([(0, self._end)], self._covered):
            reason = gap_reason(gap, self._damages, log.copies, log.log_start_offset)
            self.losses.append(Loss(first_offset=gap[0], last_offset=gap[1] - 1, reason=reason))
        self.losses = in_order([*self.losses, *self.undecoded_losses])

    def losses_in_prefix(self) -> list[Loss]:
        """Losses that begin in the prefix."""
        return losses_up_to(self.losses, self.prefix_end)
