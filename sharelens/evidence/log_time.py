"""Log time: the running maximum of record timestamps in a log partition.

It never goes back, so "as of T" (log time at most T) is a prefix of the log although writers' clocks differ and step.
"""

import itertools

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
NO_LOG_TIME = -(1 << 63)
"""Log time before the first record of a log."""


def log_times(timestamps_ms: npt.ArrayLike, before_ms: int = NO_LOG_TIME) -> Ints:
    """The log time of each record, epoch milliseconds (int64), in the order of the records.

    Args:
        timestamps_ms: record timestamps of one log partition in ascending offset order, without nulls.
        before_ms: log time after the records that precede them; NO_LOG_TIME at the beginning of the log.
    """
    times: Ints = np.maximum.accumulate(np.maximum(np.asarray(timestamps_ms, np.int64), np.int64(before_ms)))
    return times


def log_times_of_logs(timestamps_ms: Ints, logs: Ints, before_ms: Ints) -> Ints:
    """The log time of each record of several logs. `logs`: of each record, ascending; `before_ms`: as above, by log."""
    times = np.empty(len(logs), np.int64)
    bounds = np.searchsorted(logs, np.arange(len(before_ms) + 1)).tolist()
    for log, (begin, end) in enumerate(itertools.pairwise(bounds)):
        times[begin:end] = log_times(timestamps_ms[begin:end], int(before_ms[log]))
    return times


def log_time_after(times: Ints, before_ms: int = NO_LOG_TIME) -> int:
    """Log time after records with the log times `times` (as of `log_times`); `before_ms` when there are none."""
    return int(times[-1]) if len(times) else before_ms
