"""Stalls: how long a share partition's first incomplete offset stood while there was work, and the likely kind.

An acquired record and one that was never delivered look alike in the log, so a kind names evidence and no cause:

    dead_letter_pending   the offset is ARCHIVING: the broker writes its dead letter (4.4)
    window_full           as many offsets from it on are in flight or done as the group may have: fetches wait
    blocked_by_record     others behind it are finished, or state is still written, but it is not done
    silent_with_backlog   there are records, and no state was written for the least duration of a stall
    idle                  all records are done; no stall
"""

import itertools
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.histories.numbers import Histories
from sharelens.measures.inputs import Inputs, known_ends, offset_times
from sharelens.measures.ranges.places import coded, codes_in
from sharelens.measures.schemas import STALL
from sharelens.measures.settings.over_time import (
    DELIVERY_COUNT_LIMIT,
    ISOLATION_LEVEL,
    MAX_RECORD_LOCKS,
    READ_COMMITTED,
    GroupSettings,
    in_force_at,
)
from sharelens.measures.stalls import incomplete
from sharelens.measures.stalls import incomplete_kernels as kernels
from sharelens.measures.stalls.incomplete import Intervals
from sharelens.measures.topics.extents import TopicPartition
from sharelens.measures.topics.headers import LOG_APPEND_TIME, OFFSET_TIME, with_sampled

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
DEAD_LETTER_PENDING, WINDOW_FULL, BLOCKED = "dead_letter_pending", "window_full", "blocked_by_record"
SILENT, IDLE = "silent_with_backlog", "idle"
KINDS = (DEAD_LETTER_PENDING, WINDOW_FULL, BLOCKED, SILENT, IDLE)
STATE_LOG, RECORD_APPEND_TIME, RECORD_CREATE_TIME = "state_log", "log_append_time", "create_time"
MOVED, RESET, DELETED = "moved", "reset", "deleted"
ARCHIVING_STATE = 3
MIN_DURATION_MS = 60_000
WORST_FIRST = [
    ("duration_ms", "descending"),
    ("finished_behind", "descending"),
    *((name, "ascending") for name in ("group_id", "topic_id", "partition", "state_partition", "since_ms")),
]
MOST_SAMPLES = 16
"""Batches without a record for a group that are looked behind, where a cluster is asked for single batches."""
FOREVER = 1 << 62
"""Later than every log time: an interval without end lasts until a record ends it."""


def rows(inputs: Inputs, *, now_ms: int | None = None, min_duration_ms: int = MIN_DURATION_MS) -> pa.Table:
    """STALL rows, the longest first, idle share partitions among them; `now_ms` as in `stalls`."""
    return _rows_of(long_enough(intervals_of(inputs), now_ms, min_duration_ms), inputs, now_ms, min_duration_ms)


def standing_rows(inputs: Inputs, *, now_ms: int, min_duration_ms: int = MIN_DURATION_MS) -> pa.Table:
    """The rows of `rows` that no record ended, without a walk through the records of the others."""
    standing = inputs.once("standing intervals", lambda: _intervals_of(inputs, only_last=True))
    return _rows_of(standing, inputs, now_ms, min_duration_ms)


def _rows_of(lasting: Intervals, inputs: Inputs, now_ms: int | None, min_duration_ms: int) -> pa.Table:
    standing = offsets_of(unended(lasting))
    times = offset_times(inputs, offsets_of(lasting), standing)
    lowest = inputs.lowest_offsets()
    ends = known_ends(inputs, {place: lowest.get(place, int(firsts[0])) for place, firsts in standing.items()})
    settings = inputs.settings.in_force(inputs.as_of_ms)
    return stalls(lasting, times, ends, settings, now_ms=now_ms, min_duration_ms=min_duration_ms)


def lasting_rows(inputs: Inputs) -> pa.Table:
    """STALL rows that depend on no moment, as if the log had no further records; without idle rows."""
    stalling = rows(inputs)
    return stalling.filter(pc.not_equal(stalling.column("kind"), IDLE))


def intervals_of(inputs: Inputs) -> Intervals:
    """The intervals of the first incomplete offset; resumes at the last interval of the run before."""
    return inputs.once("intervals", lambda: _intervals_of(inputs))


def _intervals_of(inputs: Inputs, *, only_last: bool = False) -> Intervals:
    earlier = inputs.earlier()
    ranges = inputs.no_records().ranges()
    settings = inputs.settings.in_force(inputs.as_of_ms)
    lasting = intervals(inputs.histories(), ranges, settings, earlier=earlier, only_last=only_last)
    for _ in range(MOST_SAMPLES):
        extended_ranges = with_sampled(ranges, inputs.sampled(offsets_of(unended(lasting))).no_records)
        if extended_ranges.num_rows == ranges.num_rows:
            break
        ranges = extended_ranges
        lasting = intervals(inputs.histories(), ranges, settings, earlier=earlier, only_last=only_last)
    if earlier is None or earlier.num_rows == 0:
        return lasting
    places = lasting.histories.lookup
    since = np.full(places.count + 1, -1, np.int64)  # the last one: of share partitions without rows
    last = pc.add(earlier.column("log_offset"), 1)
    since[places.of(earlier)] = pc.coalesce(earlier.column("since_log_offset"), last).to_numpy()
    is_kept = lasting.rows[:, kernels.SINCE] >= since[lasting.histories.place[lasting.rows[:, kernels.BEGIN]]]
    return replace(lasting, rows=lasting.rows[is_kept])


def intervals(
    histories: Histories,
    no_records: pa.Table,
    settings: GroupSettings,
    *,
    earlier: pa.Table | None = None,
    only_last: bool = False,
) -> Intervals:
    """How long each first incomplete offset stood, by the groups' settings at each record
    (sharelens.measures.stalls.incomplete)."""
    groups, group_of = coded(histories.history.column("group_id"))
    at_record, in_force = in_force_at(settings, group_of, histories.history.column("log_time_ms").to_numpy())
    levels = [period.of(groups[number], ISOLATION_LEVEL).value for number, period in in_force]
    limits = [period.of(groups[number], DELIVERY_COUNT_LIMIT).number for number, period in in_force]
    return incomplete.first_incomplete(
        histories,
        no_records,
        reads_committed=np.array([level == READ_COMMITTED for level in levels], np.bool_)[at_record],
        slowed_from=np.array([_slowed_from(limit) for limit in limits], np.int64)[at_record],
        earlier=earlier,
        only_last=only_last,
    )


def _slowed_from(limit: int | None) -> int:
    """The delivery count from which the broker suspects a record (share-partition §4.7); 0: unknown."""
    return 0 if limit is None else max(2, (limit + 1) // 2)


def long_enough(candidates: Intervals, now_ms: int | None, min_duration_ms: int) -> Intervals:
    """The intervals that lasted `min_duration_ms` by the state log's times, and those without end; see `stalls`."""
    since, until = _log_times(candidates, now_ms)
    chosen = (until - since >= min_duration_ms) | (candidates.rows[:, kernels.END] < 0)
    return replace(candidates, rows=candidates.rows[chosen])


def unended(candidates: Intervals) -> Intervals:
    """The intervals without end."""
    return replace(candidates, rows=candidates.rows[candidates.rows[:, kernels.END] < 0])


def offsets_of(candidates: Intervals) -> dict[TopicPartition, Ints]:
    """The first incomplete offsets, ascending without repetition, by user partition."""
    rows = candidates.history.select(["topic_id", "partition"]).take(pa.array(candidates.rows[:, kernels.BEGIN]))
    topics, places = _user_partitions(rows)
    order = np.lexsort((candidates.rows[:, kernels.FIRST], places))
    firsts, of = candidates.rows[order, kernels.FIRST], places[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (np.diff(of) != 0) | (np.diff(firsts) != 0)
    firsts, of = firsts[new], of[new]
    begins = [*(np.flatnonzero(np.diff(of, prepend=-1)) if len(of) else ()), len(of)]
    return {
        (topics[int(of[begin]) >> 32], int(of[begin]) & 0xFFFFFFFF): firsts[begin:end]
        for begin, end in itertools.pairwise(begins)
    }


def _user_partitions(rows: pa.Table) -> tuple[list[str], Ints]:
    """The topics, and for each row its user partition as a number: the topic's place and the partition."""
    topics, codes = coded(rows.column("topic_id"))
    places: Ints = (codes << 32) | rows.column("partition").to_numpy()
    return topics, places


def _log_times(candidates: Intervals, now_ms: int | None) -> tuple[Ints, Ints]:
    times: Ints = candidates.history.column("log_time_ms").to_numpy()
    ended = candidates.rows[:, kernels.END]
    moment = FOREVER if now_ms is None else now_ms
    until = np.where(ended < 0, max(moment, int(times.max(initial=0))), times[ended])
    return candidates.rows[:, kernels.SINCE_MS], until


def stalls(
    candidates: Intervals,
    offset_times: pa.Table,
    end_offsets: Mapping[TopicPartition, tuple[int, str]],
    settings: GroupSettings,
    *,
    now_ms: int | None,
    min_duration_ms: int = MIN_DURATION_MS,
) -> pa.Table:
    """STALL rows, the longest first; idle share partitions are among them.

    Args:
        candidates: the intervals to judge.
        offset_times: OFFSET_TIME rows of their offsets, as far as known.
        end_offsets: the user partitions' ends at the cut, as far as known, with the source of each.
        settings: of the groups; the limit in force at the end of an interval counts, for one without end the newest.
        now_ms: the moment up to which an interval without end lasts; the last log time if that is later. None: every
            such interval counts, without a duration, as if the log had no further records.
        min_duration_ms: the shortest stall that is over; one without end has a row whatever its duration.

    An interval has no row if neither a state record names its offset or a later one nor the header of a batch up to
    `now_ms` covers it: then silence and idleness look alike.
    """
    if len(candidates.rows) == 0:
        return STALL.empty_table()
    begun, until = _log_times(candidates, now_ms)
    history = candidates.history
    rows = history.take(pa.array(candidates.rows[:, kernels.LATEST]))
    partitions = _user_partitions(rows)
    appended, by_broker = _appended(offset_times, partitions, candidates.rows[:, kernels.FIRST])
    since, clock = _since(candidates, begun, until, appended, by_broker)
    ends, end_sources = _ends(end_offsets, partitions)
    still = candidates.rows[:, kernels.END] < 0
    groups, group_of = coded(rows.column("group_id"))
    at_end, in_force = in_force_at(settings, group_of, np.where(still, FOREVER, until))
    limits = [period.of(groups[number], MAX_RECORD_LOCKS) for number, period in in_force]
    window = np.maximum(0, candidates.rows[:, kernels.TOP] - candidates.rows[:, kernels.FIRST] + 1)
    numbers = pa.array([limit.number for limit in limits], pa.int64()).take(pa.array(at_end))
    full = window >= pc.fill_null(numbers, np.iinfo(np.int64).max).to_numpy()
    idle = still & (ends >= 0) & (candidates.rows[:, kernels.FIRST] >= ends)
    since, clock = np.where(idle, begun, since), np.where(idle, 0, clock).astype(np.int8)
    kinds = _kinds(candidates, until, full, idle, min_duration_ms)
    lasting = (clock >= 0) & (still | (until - since >= min_duration_ms))
    table = _table(candidates, rows, {
        "since_ms": since,
        "since_clock": _words(clock, (STATE_LOG, RECORD_APPEND_TIME, RECORD_CREATE_TIME)),
        "until_ms": _or_null(until, ~still),
        "duration_ms": _or_null(until - since, ~still | (now_ms is not None)),
        "kind": _words(kinds, KINDS),
        "ended_by": _ended_by(candidates),
        "window_used": window,
        "window_limit": numbers,
        "window_limit_source": pa.array([limit.origin for limit in limits], pa.string()).take(pa.array(at_end)),
        "end_offset": _or_null(ends, still & (ends >= 0)),
        "end_offset_source": pc.if_else(pa.array(still), end_sources, pa.scalar(None, pa.string())),
    })  # fmt: skip
    return table.filter(pa.array(lasting)).sort_by(WORST_FIRST)


def _ends(
    end_offsets: Mapping[TopicPartition, tuple[int, str]], partitions: tuple[list[str], Ints]
) -> tuple[Ints, pa.Array]:
    """The end of each row's user partition (-1: unknown), and its source."""
    topics, places = partitions
    distinct_places, of_row = np.unique(places, return_inverse=True)
    ends_of_partitions = [
        end_offsets.get((topics[place >> 32], place & 0xFFFFFFFF), (-1, None)) for place in distinct_places.tolist()
    ]
    ends = np.array([offset for offset, _ in ends_of_partitions], np.int64)
    return ends[of_row], pa.array([source for _, source in ends_of_partitions], pa.string()).take(pa.array(of_row))


def _appended(offset_times: pa.Table, partitions: tuple[list[str], Ints], firsts: Ints) -> tuple[Ints, Flags]:
    """When the batch of each first incomplete offset was stamped (-1: unknown), and whether by a broker."""
    topics, places = partitions
    times = offset_times.select(OFFSET_TIME.names).combine_chunks()
    topic_of_time = codes_in(times.column("topic_id"), pa.array(topics, pa.string()))
    place_of_time = (topic_of_time << 32) | times.column("partition").to_numpy()
    place_codes = (
        pa.array(np.concatenate([place_of_time, places])).dictionary_encode().indices.to_numpy().astype(np.int64)
    )
    offsets = np.concatenate([times.column("offset").to_numpy(), firsts])
    offset_codes = pa.array(offsets).dictionary_encode().indices.to_numpy()
    keys = pa.array((place_codes << 32) | offset_codes)
    at = pc.index_in(keys[times.num_rows :], value_set=keys[: times.num_rows])
    stamps = times.column("max_timestamp_ms").take(at)
    has_stamp = pc.is_valid(stamps).to_numpy()
    by_broker = codes_in(times.column("timestamp_type").take(at), pa.array([LOG_APPEND_TIME])) == 0
    return np.where(has_stamp, np.maximum(pc.fill_null(stamps, 0).to_numpy(), 0), -1), by_broker


def _since(
    candidates: Intervals, begun: Ints, until: Ints, appended: Ints, by_broker: Flags
) -> tuple[Ints, npt.NDArray[np.int8]]:
    """The time from which each offset could be consumed, and its clock (-1: unknown).

    The record may be younger than the interval: the group had caught up. A stamp of a producer's clock that lies after
    the first word of the state log about the record is wrong, and the log's time is taken.
    """
    shown = candidates.rows[:, kernels.SHOWN]
    latest = np.where(shown < 0, until, shown)
    younger = (appended > begun) & (appended <= latest)
    since = np.where(younger, appended, np.where((appended >= 0) & (appended <= begun), begun, latest))
    clock = np.where(younger, np.where(by_broker, 1, 2), 0)
    without_evidence = (shown < 0) & ((appended < 0) | (appended > until))
    return since, np.where(without_evidence, -1, clock).astype(np.int8)


def _kinds(candidates: Intervals, until: Ints, full: Flags, idle: Flags, min_duration_ms: int) -> npt.NDArray[np.int8]:
    """Places in KINDS; the first that applies, `idle` before all."""
    quiet = until - candidates.rows[:, kernels.WRITTEN] >= min_duration_ms
    rules = [
        (idle, IDLE),
        (candidates.rows[:, kernels.STATE] == ARCHIVING_STATE, DEAD_LETTER_PENDING),
        (full, WINDOW_FULL),
        ((candidates.rows[:, kernels.BEHIND] > 0) | ~quiet, BLOCKED),
    ]
    conditions, names = zip(*rules, strict=True)
    chosen = np.select(conditions, [KINDS.index(name) for name in names], KINDS.index(SILENT))
    return chosen.astype(np.int8)


def _ended_by(candidates: Intervals) -> pa.Array:
    """The effect of the record that ended each interval, as a word."""
    ended = candidates.rows[:, kernels.END]
    at = np.maximum(ended, 0)
    types = candidates.history.column("record_type").take(pa.array(at))
    gone = pc.equal(types, "tombstone").to_numpy(zero_copy_only=False)
    lives = pc.fill_null(candidates.history.column("life_log_offset"), -1).to_numpy()
    other = lives[at] != lives[candidates.rows[:, kernels.LATEST]]
    codes = np.select([ended < 0, gone, other], [-1, 2, 1], 0).astype(np.int8)
    return _words(codes, (MOVED, RESET, DELETED))


def _table(candidates: Intervals, rows: pa.Table, columns: dict[str, object]) -> pa.Table:
    """STALL rows in the order of the intervals."""
    interval_columns = {
        "first_incomplete_offset": candidates.rows[:, kernels.FIRST],
        "last_incomplete_offset": _or_null(candidates.rows[:, kernels.LAST]),
        "delivery_state": _or_null(candidates.rows[:, kernels.STATE]),
        "delivery_count": _or_null(candidates.rows[:, kernels.COUNT]),
        "finished_behind": candidates.rows[:, kernels.BEHIND],
        "throttled_offsets_inferred": _or_null(candidates.rows[:, kernels.THROTTLED]),
        "last_state_write_ms": _or_null(candidates.rows[:, kernels.WRITTEN]),
    }
    columns = {name: rows.column(name) for name in rows.column_names} | interval_columns | columns
    return pa.table({name: columns[name] for name in STALL.names}).cast(STALL)


def _or_null(values: Ints, valid: Flags | None = None) -> pa.Array:
    """The values, null where they are not valid (by default: below 0)."""
    return pa.array(values, pa.int64(), mask=values < 0 if valid is None else ~valid)


def _words(codes: npt.NDArray[np.int8], words: tuple[str, ...]) -> pa.Array:
    """The word of each code; null for -1."""
    return pa.array(words, pa.string()).take(pa.array(codes, pa.int8(), mask=codes < 0))
