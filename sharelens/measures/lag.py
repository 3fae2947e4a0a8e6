"""The lag of share partitions, by Kafka's own count and by the state batches.

    start offset 230                      end offset (high watermark) 238
    | 230-233 aborted | 234-236 acknowledged | 237 archived |
    lag = end - start - delivery complete count = 238 - 230 - 8 = 0              (KIP-1226; ShareGroupListing's figure)
    lag_recounted = end - start - offsets in terminal state batches = 4          aborted records are in no state batch
    lag_naive = end - start = 8

The count is the broker's and goes with the start offset of the same write. It is absent (-1) before 4.2 and in a state
that no leader wrote yet; then Kafka shows no lag, and `lag` is null.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.inputs import StateInputs, topic_ends
from sharelens.measures.ranges.sums import sums_of_stretches
from sharelens.measures.schemas import LAG
from sharelens.measures.topics.extents import TopicPartition, names_of_topics
from sharelens.measures.topics.headers import begins_of
from state_model.columnar.codes import ints

ACKNOWLEDGED, ARCHIVED = 2, 4
NO_START = "start_offset_not_determined"
NO_COUNT = "delivery_complete_count_not_logged"
NO_END = "end_offset_unknown"
NO_END_THEN = "end_offset_of_the_moment_not_logged"
DELETED = "share_partition_deleted"
END_IS_OLDER = "end_offset_older_than_the_state"
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Counts of the state batches of each share partition: arrays of one length, in the states' order.

    `done`: offsets in terminal batches below `end` of the same row; `first_incomplete`: start offset, or the offset
    after the terminal batches that follow it without a hole (-1 without a start offset); `last`: last offset of any
    batch, -1 for none; `done_from_stable`: those of `done` at or above the last stable offset.
    """

    done: Ints
    first_incomplete: Ints
    last: Ints
    done_from_stable: Ints


def rows(inputs: StateInputs) -> pa.Table:
    """LAG rows of the live share partitions."""
    states = inputs.states()
    end_of_now = inputs.as_of_ms is None and not inputs.at_offsets
    return lag(states, topic_ends(inputs, begins_of(states)), inputs.names(), end_of_now=end_of_now)


def lag(states: pa.Table, ends: pa.Table, names: Mapping[str, str], *, end_of_now: bool = True) -> pa.Table:
    """LAG rows of share partitions, in the order of `states`.

    Args:
        states: SHARE_PARTITION_STATE rows; further columns are allowed.
        ends: TOPIC_END rows of their user partitions; the end of a partition without a row is unknown.
        names: topic names by id, as far as known.
        end_of_now: the ends are those of the evidence's end; else of an earlier moment.
    """
    start, count = ints(states, "start_offset"), ints(states, "delivery_complete_count")
    ends_of_rows = _matched(states, ends, start >= 0)  # other groups do not decide what a row shows
    end, stable = ints(ends_of_rows, "end_offset"), ints(ends_of_rows, "last_stable_offset")
    progress = progress_of(states, end, stable)
    inferred = _inferred_end(ends_of_rows, start, progress)
    counted = np.where(count >= 0, count, 0)
    lags = end - start - counted
    is_lag_known = (start >= 0) & (count >= 0) & (end >= 0) & (lags >= 0)
    sane = (start >= 0) & (end >= start)
    stable_lag = np.where(stable > start, stable - start - (counted - progress.done_from_stable), 0)
    open_end = (progress.first_incomplete < end) | (end < 0)
    behind = is_lag_known & (lags == 0)
    columns: dict[str, Any] = {
        "topic": names_of_topics(states.column("topic_id"), names),
        "first_incomplete_offset": _or_null(progress.first_incomplete, (start >= 0) & open_end & ~behind),
        "end_offset_inferred": _or_null(inferred, inferred >= 0),
        "lag": _or_null(lags, is_lag_known),
        "lag_inferred": _or_null(inferred - start - counted, (inferred >= 0) & (start >= 0) & (count >= 0)),
        "lag_stable": _or_null(stable_lag, is_lag_known & (stable >= 0) & (stable_lag >= 0)),
        "lag_recounted": _or_null(end - start - progress.done, sane),
        "lag_naive": _or_null(end - start, sane),
        "unknown_reason": _reasons(start, count, end, lags, end_of_now=end_of_now),
    }
    columns["why"] = _whys(columns, start, count, end, stable, progress)
    for name in ("end_offset", "end_offset_source", "last_stable_offset"):
        columns[name] = ends_of_rows.column(name)
    served = (end < 0) | (start < end)  # else a batch was looked at for another group alone
    columns["newest_batch_ms"] = pc.if_else(pa.array(served), ends_of_rows.column("newest_batch_ms"), None)
    return pa.table([columns[n] if n in columns else states.column(n) for n in LAG.names], names=LAG.names).cast(LAG)


def progress_of(states: pa.Table, end: Ints, stable: Ints) -> Progress:
    """Progress of each row, from its state batches; `end` and `stable` are offsets (exclusive), -1: unknown."""
    rows = states.num_rows
    flat = pc.list_flatten(states.column("state_batches")).combine_chunks()
    owner = np.repeat(np.arange(rows), pc.list_value_length(states.column("state_batches")).to_numpy())
    first, last = (flat.field(name).to_numpy() for name in ("first_offset", "last_offset"))
    state = flat.field("delivery_state").to_numpy()
    terminal = (state == ACKNOWLEDGED) | (state == ARCHIVED)
    start = ints(states, "start_offset")
    begin = np.maximum(first, start[owner])
    capped = np.where(end[owner] >= 0, np.minimum(last, end[owner] - 1), last)
    done = np.where(terminal, np.maximum(capped - begin + 1, 0), 0)
    above = np.where(stable[owner] >= 0, np.maximum(begin, stable[owner]), begin)
    late = np.where(terminal & (stable[owner] >= 0), np.maximum(capped - above + 1, 0), 0)
    heads = np.searchsorted(owner, np.arange(rows), "left")
    ends = np.searchsorted(owner, np.arange(rows), "right")
    before = np.where(np.arange(len(owner)) == heads[owner], start[owner], np.roll(last, 1) + 1) if rows else first
    broken = np.cumsum(~terminal | (begin != before))
    ahead = np.concatenate([[0], broken])
    unbroken = broken == ahead[heads[owner]] if rows else np.zeros(0, np.bool_)
    reach = np.maximum.reduce([start, _largest(np.where(unbroken, last + 1, -1), heads, ends)])
    return Progress(
        done=sums_of_stretches(done, heads, ends),
        first_incomplete=np.where(start >= 0, reach, -1),
        last=_largest(last, heads, ends),
        done_from_stable=sums_of_stretches(late, heads, ends),
    )


def _largest(values: Ints, heads: Ints, ends: Ints) -> Ints:
    """The maximum of values[head:end] for each pair; -1 where there are none."""
    result = np.full(len(heads), -1, np.int64)
    has_values = ends > heads
    if has_values.any():
        result[has_values] = np.maximum.reduceat(values, heads[has_values])
    return result


def _matched(states: pa.Table, ends: pa.Table, has_start: Mask) -> pa.Table:
    """The row of `ends` for each state that has a start offset; null throughout where there is none."""
    places = {place: row for row, place in enumerate(_places(ends))}
    index = pa.array([places.get(place) for place in _places(states)], pa.int64())
    return ends.take(pc.if_else(pa.array(has_start), index, None))


def _places(rows: pa.Table) -> list[TopicPartition]:
    return list(zip(rows.column("topic_id").to_pylist(), rows.column("partition").to_pylist(), strict=True))


def _or_null(values: Ints, is_valid: Mask) -> pa.Array:
    return pa.array(values, pa.int64(), mask=~is_valid)


def _inferred_end(ends: pa.Table, start: Ints, progress: Progress) -> Ints:
    """The end at an earlier moment, at least the offset behind the last delivery by then; -1: not inferred."""
    guess = ints(ends, "end_offset_inferred")
    is_inferred = pc.is_valid(ends.column("end_offset_inferred")).to_numpy()
    least = np.maximum(start, progress.last + 1)
    result: Ints = np.where(is_inferred & (start >= 0), np.maximum(guess, least), guess)
    return result


def _reasons(start: Ints, count: Ints, end: Ints, lags: Ints, *, end_of_now: bool) -> pa.Array:
    codes = np.select(
        [start < 0, count < 0, end < 0, lags < 0],
        [NO_START, NO_COUNT, NO_END if end_of_now else NO_END_THEN, END_IS_OLDER],
        "",
    )
    return pa.array(codes.tolist(), pa.string(), mask=codes == "")


def _whys(
    columns: Mapping[str, Any], start: Ints, count: Ints, end: Ints, stable: Ints, progress: Progress
) -> pa.Array:
    reasons: list[str | None] = []
    for row in range(len(start)):
        words = []
        if start[row] >= 0 and count[row] > 0:
            words.append(f"{_offsets(count[row])} from the start offset on done")
        if start[row] >= 0 and progress.first_incomplete[row] > start[row]:
            words.append("the logged start offset trails the real one by a write")
        words += _count_words(int(count[row]) - int(progress.done[row])) if start[row] >= 0 and count[row] >= 0 else []
        if 0 <= stable[row] < end[row]:
            words.append(f"{_offsets(end[row] - stable[row])} in or behind an open transaction")
        reasons.append("; ".join(words) or None)
    return pa.array(reasons, pa.string())


def _count_words(difference: int) -> list[str]:
    if difference > 0:
        return [f"{difference} of them are in no state batch: aborted records are counted and never logged"]
    if difference < 0:
        return [f"state batches hold {_offsets(-difference)} as done that are not counted"]
    return []


def _offsets(count: np.int64 | int) -> str:
    return f"{count} offset" if count == 1 else f"{count} offsets"
