"""The times at which the share coordinator's cold snapshot job ran, rounds without a record included.

    cold snapshots     |           |                       |        write timestamps in the log
    rounds         |   |   |   |   |   |   |   |   |   |   |   |    every 300 s (ShareCoordinatorService)

The log shows a round only where it wrote something. Rounds lie an interval apart as long as the coordinator runs, so
the others follow from those that show, unless it was started again in between.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.ranges.steps import Ints

READ = ["timestamp_ms", "create_timestamp_ms", "write_timestamp_ms"]
"""The columns of SHARE_RECORD from which rounds are computed."""
READ_AT = [*READ, "state_partition", "log_offset", "log_time_ms"]
"""The same, with the columns of a cut."""
SLACK = 100
"""Rounds closer than this part of the interval are one; others may be off by it from a whole number of intervals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdRounds:
    """Times of rounds, ascending, over a log up to `last_ms`.

    `is_known`: some rounds show, and all of them lie a whole number of intervals apart.
    """

    times_ms: Ints
    last_ms: int
    is_known: bool


MOST_STEPS = 1 << 22
"""Steps of all replays together, about a second of them; a replay steps through the operations and the rounds."""
FEWEST_BEGINNINGS, MOST_BEGINNINGS = 8, 512
"""Beginnings of the rounds that are tried where no round shows."""


def other_rounds(rounds: ColdRounds, times_ms: Ints, share_partitions: int, interval_ms: int) -> list[ColdRounds]:
    """Rounds for a log in which none shows, with all beginnings that can make a difference; else none.

    A round acts alike at all moments between two operations, so what matters is where in an interval operations lie.
    Of a long log some of these beginnings are tried.

    Args:
        times_ms: those of the operations, in any order.
    """
    if len(rounds.times_ms) or not len(times_ms):
        return []
    first_ms = int(times_ms.min())
    begins = first_ms + np.unique((np.concatenate([times_ms, times_ms + 1]) - first_ms) % interval_ms)
    steps = len(times_ms) + (rounds.last_ms - first_ms) // interval_ms * share_partitions
    count = min(MOST_BEGINNINGS, max(FEWEST_BEGINNINGS, MOST_STEPS // max(1, steps)))
    if len(begins) > count:
        begins = begins[np.linspace(0, len(begins) - 1, count).astype(np.int64)]
    times = (np.arange(begin, rounds.last_ms + 1, interval_ms) for begin in begins.tolist())
    return [ColdRounds(times_ms=round_times, last_ms=rounds.last_ms, is_known=False) for round_times in times]


def cold_rounds(records: Iterable[pa.Table], interval_ms: int) -> ColdRounds:
    """The rounds in all SHARE_RECORD rows (READ), in bounded tables, in any order."""
    observed_times, first, last = np.zeros(0, np.int64), None, None
    for table in records:
        if table.num_rows == 0:
            continue
        again = pc.not_equal(table.column("create_timestamp_ms"), table.column("write_timestamp_ms"))
        cold = table.filter(pc.fill_null(again, False)).column("write_timestamp_ms")
        observed_times = np.union1d(observed_times, cold.to_numpy().astype(np.int64))
        bounds = pc.min_max(table.column("timestamp_ms")).as_py()
        first = bounds["min"] if first is None else min(first, bounds["min"])
        last = bounds["max"] if last is None else max(last, bounds["max"])
    return rounds_between(observed_times, first or 0, last or 0, interval_ms)


def rounds_between(observed_times: Ints, first_ms: int, last_ms: int, interval_ms: int) -> ColdRounds:
    """The rounds from those that show (`observed_times`, ascending) in a log from `first_ms` to `last_ms`."""
    slack = max(1, interval_ms // SLACK)
    observed_times = observed_times[np.append(True, np.diff(observed_times) > slack)[: len(observed_times)]]
    if len(observed_times) == 0:
        return ColdRounds(times_ms=observed_times, last_ms=last_ms, is_known=False)
    gaps = np.diff(observed_times)
    apart = np.maximum(1, np.rint(gaps / interval_ms).astype(np.int64))
    is_regular = bool((np.abs(gaps - apart * interval_ms) <= slack * apart).all())
    times = [np.arange(observed_times[0], first_ms - 1, -interval_ms)[::-1]]
    times += [
        np.linspace(low, high, int(n) + 1)[1:]
        for low, high, n in zip(observed_times, observed_times[1:], apart, strict=False)
    ]
    times.append(np.arange(observed_times[-1] + interval_ms, last_ms + 1, interval_ms))
    filled = np.concatenate(times).astype(np.int64)
    return ColdRounds(times_ms=filled, last_ms=last_ms, is_known=is_regular)
