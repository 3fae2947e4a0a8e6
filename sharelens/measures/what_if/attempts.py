"""Attempts to deliver record offsets: the outcome of each, and the time in which it must have happened, as a kernel.

    offset 7   1 AVAILABLE at 100   2 AVAILABLE at 160   3 ACKNOWLEDGED at 165
    attempts   1: until 100         2: 100 to 160        3: 160 to 165

The log has no acquisition. A record can be acquired again only when its last outcome has been decided, so an attempt
lies between two outcomes of its offset; the first one lies behind the creation of the share partition.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from sharelens.measures.histories.delivery_outcomes import Outcomes
from sharelens.measures.histories.numbers import Histories
from sharelens.measures.histories.settled import Settled
from sharelens.measures.latency.ages import CLOCKS, Ages, Headers, Pieces
from sharelens.measures.latency.schemas import CREATE_TIME
from sharelens.measures.ranges.searching import position
from sharelens.measures.ranges.steps import NO_VALUE, Flags, Ints, Layers, together
from state_model.columnar.kernels import kernel, leaf
from state_model.columnar.ranges import grown

NO_COUNT = 0
LONG_MS = 1 << 61
"""The time of an attempt whose beginning the log lacks."""
# Columns of a piece of an outcome and of a known interval; COUNT, MS: of the outcome before (NO_COUNT: none).
(FIRST, LAST, COUNT, MS, ROW) = range(5)
WIDTH = 5


@leaf
def _cut(
    newest_outcomes: np.ndarray, size: int, low: int, outcome: np.ndarray, out: np.ndarray, piece_count: int
) -> int:
    """Adds the pieces of an outcome with deliveries of its own to `out` from `piece_count` on; the position behind.

    Pieces without an outcome before have NO_COUNT.
    """
    # Intervals ascend and don't overlap. Each one gives two pieces at most, the gap before it and what it covers, and
    # the rest behind the last one: for these the caller makes room.
    at, high = outcome[FIRST], low
    while high < size and newest_outcomes[high, FIRST] <= outcome[LAST]:
        begin, end = max(at, newest_outcomes[high, FIRST]), min(outcome[LAST], newest_outcomes[high, LAST])
        if begin > at and outcome[COUNT] > NO_COUNT:
            out[piece_count, FIRST], out[piece_count, LAST], out[piece_count, COUNT] = at, begin - 1, NO_COUNT
            piece_count += 1
        if outcome[COUNT] > newest_outcomes[high, COUNT]:
            out[piece_count, FIRST], out[piece_count, LAST] = begin, end
            out[piece_count, COUNT], out[piece_count, MS] = newest_outcomes[high, COUNT], newest_outcomes[high, MS]
            piece_count += 1
        at, high = end + 1, high + 1
    if at <= outcome[LAST] and outcome[COUNT] > NO_COUNT:
        out[piece_count, FIRST], out[piece_count, LAST], out[piece_count, COUNT] = at, outcome[LAST], NO_COUNT
        piece_count += 1
    return int(piece_count)


@leaf
def _copy(newest_outcomes: np.ndarray, source: int, to: int) -> None:
    for column in range(WIDTH):
        newest_outcomes[to, column] = newest_outcomes[source, column]


@leaf
def _move(newest_outcomes: np.ndarray, begin: int, end: int, steps: int) -> None:
    """Moves rows `begin` to `end` (exclusive) by so many steps, which may be negative."""
    # From the side to which the rows move, so that none is overwritten before it is copied.
    for i in range(end - begin):
        row = begin + i if steps < 0 else end - 1 - i
        _copy(newest_outcomes, row, row + steps)


@leaf
def _replace(newest_outcomes: np.ndarray, size: int, low: int, high: int, outcome: np.ndarray) -> int:
    """Puts an outcome in the place of what it covers of intervals `low` to `high` (exclusive); their number."""
    # The outcome takes one row, and what it leaves of the first and of the last interval one each: two rows more than
    # before at most. The last row of the array is scratch for the right part, whose own row may be overwritten.
    has_left_part = high > low and newest_outcomes[low, FIRST] < outcome[FIRST]
    right = high > low and newest_outcomes[high - 1, LAST] > outcome[LAST]
    row_shift, free = 1 + int(has_left_part) + int(right) - (high - low), newest_outcomes.shape[0] - 1
    _copy(newest_outcomes, max(low, high - 1), free)
    if row_shift != 0:
        _move(newest_outcomes, high, size, row_shift)
    if has_left_part:
        newest_outcomes[low, LAST] = outcome[FIRST] - 1
    at = low + int(has_left_part)
    if right:
        _copy(newest_outcomes, free, at + 1)
        newest_outcomes[at + 1, FIRST] = outcome[LAST] + 1
    for column in range(WIDTH):
        newest_outcomes[at, column] = outcome[column]
    return int(size + row_shift)


@kernel
def _with_previous(
    life: np.ndarray, first: np.ndarray, last: np.ndarray, count: np.ndarray, at_ms: np.ndarray
) -> np.ndarray:
    """Pieces (FIRST to ROW) of outcomes by life and record, by the outcome before of their offsets.

    Pieces of outcomes that needed no further delivery are left out. `newest_outcomes` holds the newest outcome of
    ranges of offsets in ascending order; new outcomes lie near its end, so that little moves.
    """
    # Within a life each offset has one newest outcome, so the intervals never overlap; another life begins without any.
    # `_replace` needs two rows more and one of scratch.
    out, piece_count = np.empty((2 * life.shape[0] + 1, WIDTH), np.int64), 0
    newest_outcomes, size = np.empty((64, WIDTH), np.int64), 0
    outcome = np.empty(WIDTH, np.int64)
    for row in range(life.shape[0]):
        if row == 0 or life[row] != life[row - 1]:
            size = 0
        outcome[FIRST], outcome[LAST], outcome[COUNT] = first[row], last[row], count[row]
        outcome[MS], outcome[ROW] = at_ms[row], row
        newest_outcomes = grown(newest_outcomes, size + 4)
        low = position(newest_outcomes[:size, LAST], first[row], size)
        high = low
        while high < size and newest_outcomes[high, FIRST] <= last[row]:
            high += 1
        out = grown(out, piece_count + 2 * (high - low) + 1)
        end = _cut(newest_outcomes, size, low, outcome, out, piece_count)
        out[piece_count:end, ROW] = row
        piece_count, size = end, _replace(newest_outcomes, size, low, high, outcome)
    return out[:piece_count]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """Ranges of offsets with an outcome that a delivery gave them, by life and record.

    `outcome`: the entry of the outcome, of which an attempt may be a part. `count`: deliveries at the outcome;
    `number`: those since the outcome before, 1 but for lost outcomes. `most_ms`: the time in which they lie by the
    state log, LONG_MS where it does not have the beginning; `age_ms`: that since the record's own timestamp, where it
    is shorter, else the same; `is_create_time`: that is the clock of a producer.
    """

    outcome: Ints
    life: Ints
    first: Ints
    last: Ints
    state: Ints
    count: Ints
    number: Ints
    at_ms: Ints
    is_first: Flags
    most_ms: Ints
    age_ms: Ints
    is_create_time: Flags


def attempts_of(histories: Histories, outcomes: Outcomes) -> Attempts:
    """The attempts in the histories of some share partitions; `outcomes`: all of them."""
    count = outcomes.count.astype(np.int64)
    pieces = _with_previous(outcomes.life, outcomes.first, outcomes.last, count, outcomes.at_ms)
    row = pieces[:, ROW]
    number = count[row] - pieces[:, COUNT]
    life, is_first = outcomes.life[row], pieces[:, COUNT] == NO_COUNT
    lives, times = histories.lives, histories.history.column("log_time_ms").to_numpy()
    begun_ms = times[lives.first_row[life]]
    since_ms = np.where(is_first, begun_ms, pieces[:, MS])
    is_cut = ~lives.from_creation[life] & (since_ms <= begun_ms)
    most_ms = np.where(is_cut, LONG_MS, outcomes.at_ms[row] - since_ms)
    return Attempts(
        outcome=row,
        life=life,
        first=pieces[:, FIRST],
        last=pieces[:, LAST],
        state=outcomes.state[row],
        count=outcomes.count[row],
        number=number,
        at_ms=outcomes.at_ms[row],
        is_first=is_first,
        most_ms=most_ms,
        age_ms=most_ms,
        is_create_time=np.zeros(len(life), np.bool_),
    )


def with_ages(attempts: Attempts, histories: Histories, headers: Headers) -> Attempts:
    """The attempts with the ages of records at their first outcome, cut where batches of records meet."""
    entry = np.flatnonzero(attempts.is_first & (attempts.most_ms < LONG_MS))
    pieces = list(_pieces(attempts, entry, histories, headers))
    if not pieces:
        return attempts
    names = ("entry", "first", "last", "age_max", "clock")
    parts = {name: together([getattr(piece, name) for piece in pieces]) for name in names}
    aged = (parts["entry"], parts["first"], parts["last"])
    cells = Layers({"all": (np.arange(len(entry)), attempts.first[entry], attempts.last[entry]), "aged": aged})
    covered = cells.total_of("all", np.ones(len(entry), np.int64)) > 0
    values = {"age": cells.lowest_of("aged", parts["age_max"]), "clock": cells.highest_of("aged", parts["clock"])}
    ranges = cells.ranges(covered, values)
    other_rows = np.setdiff1d(np.arange(len(attempts.life)), entry)
    row = np.concatenate([other_rows, entry[ranges.group]])
    columns = {field.name: getattr(attempts, field.name)[row] for field in fields(Attempts)}
    columns["first"][len(other_rows) :], columns["last"][len(other_rows) :] = ranges.first, ranges.last
    age_ms = columns["age_ms"][len(other_rows) :]
    is_less = (ranges.values["age"] != NO_VALUE) & (ranges.values["age"] < age_ms)
    columns["age_ms"][len(other_rows) :] = np.where(is_less, ranges.values["age"], age_ms)
    columns["is_create_time"][len(other_rows) :] = is_less & (ranges.values["clock"] == CLOCKS.index(CREATE_TIME))
    return Attempts(**columns)


def _pieces(attempts: Attempts, entry: Ints, histories: Histories, headers: Headers) -> Iterator[Pieces]:
    none = np.zeros(0, np.int64)
    settled = Settled(
        places=histories.places,
        newest=histories.places,
        place=histories.lives.place[attempts.life[entry]],
        first=attempts.first[entry],
        last=attempts.last[entry],
        outcome=np.zeros(len(entry), np.int64),
        count=attempts.count[entry],
        at=none,
        at_ms=attempts.at_ms[entry],
        open_place=none,
        open_first=none,
        open_last=none,
        open_count=none,
    )
    ages = Ages(settled)
    for batches in headers(ages.begins()):
        yield from ages.pieces(batches)
