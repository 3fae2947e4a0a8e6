"""Kernels over step functions: breakpoints (offset, value), each value in force up to the next breakpoint.

A second implementation of delivery states besides columnar/ranges.py, on purpose (rule 46). No two neighbouring
breakpoints have the same value; the first has one; offsets without a state have NO_STATE, the lowest number:

    offsets      10 ... 14   15 ... 19   20 ...
    value           2/1         none      4/3
    breakpoints  (10, 2/1)   (15, none)  (20, 4/3)
"""

from typing import NamedTuple

import numpy as np

from state_model.audit.columnar.kernels.layout import (
    BEGIN,
    SIZE,
    SLOT,
    SLOT_ROOM,
    TERMINAL_OFFSETS,
    StateBatches,
)
from state_model.columnar.kernels import kernel, leaf

MAX_OFFSET = (1 << 63) - 1
MIN_OFFSET = -(1 << 63)
NO_STATE = -(1 << 62)
# Entries of the notes that raise_by leaves: of the first offset of its kind, with the value before and in the update.
LOWER_AT, LOWER_BEFORE, LOWER_WRITTEN, OUTCOME_AT, OUTCOME_BEFORE, OUTCOME_WRITTEN, FIRST_AT, FIRST_VALUE = range(8)
IS_LOWER, IS_AFTER_OUTCOME, IS_REPEATED, HAS_CELLS = range(8, 12)
NOTE_COUNT = 12


class Breakpoints(NamedTuple):
    """Offsets and values, an entry a breakpoint: a step function, the pool of several ones, or the room for one."""

    at: np.ndarray
    values: np.ndarray


@leaf
def state_of(value: int) -> int:
    """The delivery state in a value."""
    return (value + 128) % 256 - 128


@leaf
def count_of(value: int) -> int:
    """The delivery count in a value."""
    return (value - state_of(value)) // 256


@leaf
def is_terminal(value: int) -> bool:
    """Whether the delivery state in a value is ACKNOWLEDGED or ARCHIVED."""
    return value != NO_STATE and (state_of(value) == 2 or state_of(value) == 4)


@leaf
def offsets_from_zero(first: int, last: int) -> int:
    """The number of offsets from 0 on in a range; all 2^63 of them wrap to the lowest number."""
    return 0 if last < 0 or last < first else last - max(first, 0) + 1


@leaf
def last_up_to(at: np.ndarray, low: int, high: int, offset: int) -> int:
    """The last of the breakpoints [low, high) at or below an offset; low - 1 if there is none."""
    # Breakpoints ascend strictly.
    while low < high:
        middle = (low + high) // 2
        if at[middle] <= offset:
            low = middle + 1
        else:
            high = middle
    return low - 1


@leaf
def bound_of(at: np.ndarray, i: int, end: int) -> int:
    """The offset of a breakpoint; the largest offset behind the last one."""
    return int(at[i]) if i < end else MAX_OFFSET


@leaf
def maximum(left_function: Breakpoints, right_function: Breakpoints, out: Breakpoints, n: int) -> int:
    """The pointwise maximum of two functions, from entry n of `out` on; the end of the entries."""
    # Each turn takes the next breakpoint of one function, or of both at the same offset: `out` gets at most as many
    # entries as both have. An entry is written only where the maximum changes, so neighbours differ in the result, too.
    ours = NO_STATE
    theirs = NO_STATE
    previous = NO_STATE
    i = 0
    j = 0
    left_end = left_function.at.shape[0]
    right_end = right_function.at.shape[0]
    while i < left_end or j < right_end:
        at_left = i < left_end and (j >= right_end or left_function.at[i] <= right_function.at[j])
        at_right = j < right_end and (i >= left_end or right_function.at[j] <= left_function.at[i])
        bound = left_function.at[i] if at_left else right_function.at[j]
        if at_left:
            ours = left_function.values[i]
            i += 1
        if at_right:
            theirs = right_function.values[j]
            j += 1
        value = max(ours, theirs)
        if value != previous:
            out.at[n] = bound
            out.values[n] = value
            n += 1
            previous = value
    return n


@leaf
def is_ascending(batches: StateBatches, low: int, high: int) -> bool:
    """Whether the batches [low, high) ascend, are disjoint and cover an offset each."""
    first, last = batches.first, batches.last
    i = low
    while i < high and first[i] <= last[i] and (i == low or first[i] > last[i - 1]):
        i += 1
    return i == high


@leaf
def of_ascending(batches: StateBatches, low: int, high: int, out: Breakpoints) -> int:
    """The step function of ascending, disjoint batches [low, high); its number of breakpoints."""
    # At most two breakpoints a batch: its begin, and its end where no batch follows. None lies behind the largest
    # offset.
    first, last, states, counts = batches
    n = 0
    previous = np.int64(NO_STATE)
    for i in range(low, high):
        value = np.int64(counts[i]) * 256 + np.int64(states[i])
        if value != previous:
            out.at[n] = first[i]
            out.values[n] = value
            n += 1
            previous = value
        if last[i] != MAX_OFFSET and (i + 1 == high or first[i + 1] != last[i] + 1):
            out.at[n] = last[i] + 1
            out.values[n] = NO_STATE
            n += 1
            previous = np.int64(NO_STATE)
    return n


@leaf
def merge_pairs(functions: Breakpoints, ends: np.ndarray, runs: int, out: Breakpoints, out_ends: np.ndarray) -> None:
    """Merges each two neighbours of functions that lie one behind the other.

    Of `runs` functions, k lies at [ends[k], ends[k + 1]); `out_ends` gets the same of the merged ones.
    """
    n = 0
    for run in range(0, runs, 2):
        begin, middle, end = ends[run], ends[run + 1], ends[min(run + 2, runs)]
        left_function = Breakpoints(functions.at[begin:middle], functions.values[begin:middle])
        right_function = Breakpoints(functions.at[middle:end], functions.values[middle:end])
        n = maximum(left_function, right_function, out, n)
        out_ends[run // 2 + 1] = n


@kernel
def of_any(batches: StateBatches, low: int, high: int, out: Breakpoints) -> int:
    """The step function of batches [low, high) in any order, by merging pairs; its number of breakpoints."""
    # First a function for each batch, then neighbours are merged in rounds. The rounds are log2(batches), and no round
    # has more breakpoints than the first: O(n log n) for batches in any order and with any overlaps.
    first, last, states, counts = batches
    at = np.empty(2 * (high - low), np.int64)
    values = np.empty(2 * (high - low), np.int64)
    ends = np.zeros(high - low + 1, np.int64)
    runs = 0
    n = 0
    for i in range(low, high):
        if first[i] > last[i]:
            continue
        at[n] = first[i]
        values[n] = np.int64(counts[i]) * 256 + np.int64(states[i])
        n += 1
        if last[i] != MAX_OFFSET:
            at[n] = last[i] + 1
            values[n] = NO_STATE
            n += 1
        runs += 1
        ends[runs] = n
    while runs > 1:
        merged_at = np.empty(at.shape[0], np.int64)
        merged = np.empty(at.shape[0], np.int64)
        merged_ends = np.zeros((runs + 1) // 2 + 1, np.int64)
        merge_pairs(Breakpoints(at, values), ends, runs, Breakpoints(merged_at, merged), merged_ends)
        at, values, ends = merged_at, merged, merged_ends
        runs = (runs + 1) // 2
    n = ends[runs]
    out.at[:n] = at[:n]
    out.values[:n] = values[:n]
    return int(n)


@leaf
def first_unlike(
    left_function: Breakpoints, right_function: Breakpoints, start: int, only_lower: bool, notes: np.ndarray
) -> bool:
    """Whether the functions differ at an offset from `start` on; `notes`: the first such offset, both values.

    `only_lower`: whether `right_function` is lower than `left_function` there.
    """
    # Both functions are constant between two breakpoints, so it is enough to compare at `start` and at each breakpoint
    # behind it. Each turn consumes one at least; behind the last ones the functions don't change any more.
    ours = NO_STATE
    theirs = NO_STATE
    bound = start
    i = 0
    j = 0
    left_end = left_function.at.shape[0]
    right_end = right_function.at.shape[0]
    while True:
        while i < left_end and left_function.at[i] <= bound:
            ours = left_function.values[i]
            i += 1
        while j < right_end and right_function.at[j] <= bound:
            theirs = right_function.values[j]
            j += 1
        if theirs < ours or (theirs != ours and not only_lower):
            notes[0] = bound
            notes[1] = ours
            notes[2] = theirs
            return True
        if i >= left_end and j >= right_end:
            return False
        bound = min(bound_of(left_function.at, i, left_end), bound_of(right_function.at, j, right_end))


@leaf
def cut_below(state: np.ndarray, pool: Breakpoints, start: int) -> None:
    """Drops the offsets below `start` from the step function of a share partition."""
    at, values = pool
    begin = state[BEGIN]
    end = begin + state[SIZE]
    place = last_up_to(at, begin, end, start)
    if place < begin:
        return
    # TERMINAL_OFFSETS is kept by differences, so only breakpoints that the start offset passes are visited.
    for i in range(begin, place + 1):
        if at[i] < start and is_terminal(values[i]):
            last = min(at[i + 1] - 1, start - 1) if i + 1 < end else start - 1
            state[TERMINAL_OFFSETS] -= offsets_from_zero(at[i], last)
    if values[place] == NO_STATE:
        place += 1
    else:
        at[place] = start
    state[BEGIN] = place
    state[SIZE] = end - place


@leaf
def note_cell(notes: np.ndarray, bound: int, before: int, written: int) -> None:
    """Notes how an update changes the value in force from the offset `bound` on."""
    if notes[HAS_CELLS] == 0:
        notes[HAS_CELLS] = 1
        notes[IS_REPEATED] = 1
        notes[FIRST_AT] = bound
        notes[FIRST_VALUE] = written
    if written != before:
        notes[IS_REPEATED] = 0
    if written < before and notes[IS_LOWER] == 0:
        notes[IS_LOWER] = 1
        notes[LOWER_AT] = bound
        notes[LOWER_BEFORE] = before
        notes[LOWER_WRITTEN] = written
    if notes[IS_AFTER_OUTCOME] == 0 and is_terminal(before) and count_of(written) > count_of(before):
        notes[IS_AFTER_OUTCOME] = 1
        notes[OUTCOME_AT] = bound
        notes[OUTCOME_BEFORE] = before
        notes[OUTCOME_WRITTEN] = written


@leaf
def raise_by(
    state: np.ndarray, pool: Breakpoints, written: Breakpoints, new: Breakpoints, notes: np.ndarray
) -> tuple[int, int, int]:
    """(first, end, n): n breakpoints in `new` replace the state's breakpoints [first, end) after an update."""
    # The walk begins with the value in force at the update's first offset and ends when the update is over: breakpoints
    # outside the window stay as they are. In front of the window the state is `previous`, so no equal neighbours arise.
    at, values = pool
    begin = state[BEGIN]
    end = begin + state[SIZE]
    first = last_up_to(at, begin, end, written.at[0]) + 1
    if first > begin and at[first - 1] == written.at[0]:
        first -= 1
    i = first
    j = 0
    written_end = written.at.shape[0]
    before = values[i - 1] if i > begin else NO_STATE
    update = NO_STATE
    previous = before
    n = 0
    while j < written_end or (i < end and update != NO_STATE):
        at_state = i < end and (j >= written_end or at[i] <= written.at[j])
        at_update = j < written_end and (i >= end or written.at[j] <= at[i])
        bound = at[i] if at_state else written.at[j]
        if at_state:
            before = values[i]
            i += 1
        if at_update:
            update = written.values[j]
            j += 1
        value = max(before, update)
        if value != previous:
            new.at[n] = bound
            new.values[n] = value
            n += 1
            previous = value
        if update != NO_STATE:
            note_cell(notes, bound, before, update)
            if is_terminal(value) != is_terminal(before):
                behind = min(bound_of(at, i, end), bound_of(written.at, j, written_end))
                last = MAX_OFFSET if i >= end and j >= written_end else behind - 1
                count = offsets_from_zero(bound, last)
                state[TERMINAL_OFFSETS] += count if is_terminal(value) else -count
    return first, i, n


@leaf
def move(rows: np.ndarray, source: int, target: int, count: int) -> None:
    """Copies entries inside an array, where source and target may overlap."""
    # The order in which no entry is overwritten before it is copied.
    if source > target:
        for i in range(count):
            rows[target + i] = rows[source + i]
    elif source < target:
        for i in range(count - 1, -1, -1):
            rows[target + i] = rows[source + i]


@leaf
def splice(state: np.ndarray, pool: Breakpoints, used: int, first: int, end: int, new: Breakpoints, n: int) -> int:
    """Replaces the breakpoints [first, end) of a share partition by n of `new`; the length of the pool."""
    begin = state[BEGIN]
    left_count = first - begin
    right_count = begin + state[SIZE] - end
    total = left_count + n + right_count
    target = begin
    # First the room in front of BEGIN is used again (cut_below moves BEGIN), then a larger place at the end of the
    # pool. A leaf can't allocate: audit_records has reserved it.
    if total > state[SLOT] + state[SLOT_ROOM] - begin:
        if total > state[SLOT_ROOM]:
            state[SLOT] = used
            state[SLOT_ROOM] = max(8, 2 * total)
            used += state[SLOT_ROOM]
        target = state[SLOT]
    for rows in pool:
        move(rows, begin, target, left_count)
        move(rows, end, target + left_count + n, right_count)
    for i in range(n):
        pool.at[target + left_count + i] = new.at[i]
        pool.values[target + left_count + i] = new.values[i]
    state[BEGIN] = target
    state[SIZE] = total
    return int(used)
