"""What a reading of one state partition found: its times, what is missing, how many offsets the wanted cut reaches."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafka_log.union import LogPartition
from sharelens.questions import losses as loss_rules
from state_model.columnar.decode import losses_of
from state_model.columnar.values import Loss

MINUTE_MS = 60_000
EVERYTHING = (1 << 63) - 1
LATE = pa.schema([("log_offset", pa.int64()), ("timestamp_ms", pa.int64()), ("log_time_ms", pa.int64())])
Ints = npt.NDArray[np.int64]


class Account:
    """Kept while the chunks of a state partition pass by in offset order.

    `losses` (after `close`): ranges without records below the end offset, and records that could not be
    decoded, ascending. `cut_end`: the last offset that the cut lets in. `late`: records (LATE) stamped over a minute
    before their log time. `reasons`: how often each reason code of a problem came up.
    """

    def __init__(
        self, partition: LogPartition, end_offset: int, *, at_offset: int | None = None, as_of_ms: int | None = None
    ) -> None:
        self.losses: list[Loss] = []
        self.late: list[pa.Table] = []
        self.reasons: Counter[str] = Counter()
        self.first_ms: int | None = None
        self.last_ms: int | None = None
        self.cut_end = EVERYTHING if as_of_ms is None else -1
        if at_offset is not None:
            self.cut_end = at_offset
        self._as_of_ms = as_of_ms
        self._partition = partition
        self._next = 0
        self._end = end_offset
        self._missing: list[loss_rules.Interval] = []
        self._problems: list[dict[str, Any]] = []

    @property
    def quarantined(self) -> int:
        """Problem rows, of reading and of decoding."""
        return self.reasons.total()

    def take(self, records: pa.RecordBatch, problems: pa.RecordBatch) -> Ints:
        """Notes a chunk (LOG_RECORD and PROBLEM rows); the log time of each of its records."""
        self.reasons.update(problems.column("reason").to_pylist())
        self._problems += problems.select(["offset", "last_offset", "reason"]).to_pylist()
        own: Ints = records.column("timestamp_ms").to_numpy().astype(np.int64)
        if len(own) == 0:
            return own
        offsets: Ints = records.column("offset").to_numpy()
        before = np.concatenate([[self._next - 1], offsets[:-1]])
        for at in np.flatnonzero(offsets - before > 1):
            self._missing.append((int(before[at]) + 1, int(offsets[at])))
        self._next = int(offsets[-1]) + 1
        floor = own[0] if self.last_ms is None else max(own[0], self.last_ms)
        times: Ints = np.maximum(np.maximum.accumulate(own), floor)
        self._note_times(offsets, own, times)
        return times

    def _note_times(self, offsets: Ints, own: Ints, times: Ints) -> None:
        if self.first_ms is None:
            self.first_ms = int(times[0])
        self.last_ms = int(times[-1])
        late = np.flatnonzero(times - MINUTE_MS > own)
        if len(late):
            self.late.append(pa.table([offsets[late], own[late], times[late]], schema=LATE))
        if self._as_of_ms is not None:
            inside = int(np.searchsorted(times, self._as_of_ms, "right"))
            if inside:
                self.cut_end = int(offsets[inside - 1])

    def undecoded(self, problems: pa.RecordBatch) -> None:
        """Notes records that could not be decoded (DECODE_PROBLEM); those that the broker skips as well are no loss."""
        self.reasons.update(problems.column("reason").to_pylist())
        self.losses += losses_of(problems)

    def close(self) -> None:
        """Notes what is missing at the end, and names why each range is."""
        if self._next < self._end:
            self._missing.append((self._next, self._end))
        for missing in self._missing:
            reason = reason_of(missing, self._problems, self._partition)
            self.losses.append(Loss(first_offset=missing[0], last_offset=missing[1] - 1, reason=reason))
        self.losses.sort(key=lambda loss: loss.first_offset)

    def within_cut(self) -> list[Loss]:
        """Losses that begin inside the cut."""
        return [loss for loss in self.losses if loss.first_offset <= self.cut_end]


def reason_of(missing: loss_rules.Interval, problems: Sequence[dict[str, Any]], partition: LogPartition) -> str:
    """Why a range of a log is missing: by the problem that it overlaps, else by where the log and its copies begin."""
    first, end = missing
    for problem in problems:
        if problem["offset"] is None or problem["last_offset"] is None:
            continue
        if problem["offset"] < end and problem["last_offset"] >= first:
            return str(problem["reason"]) if problem["reason"] in ("truncated", "vanished") else loss_rules.QUARANTINED
    bases = [copy.segments[0].base_offset for copy in partition.copies if copy.segments]
    below_all = bool(bases) and end <= min(bases)
    if below_all and any(copy.remote_below for copy in partition.copies):
        return "remote"
    return "pruned" if below_all or end <= partition.log_start_offset else loss_rules.GAP
