"""Record offsets that were delivered more than once, why, and the state-log records that prove it.

    life 1   0-9 ACKNOWLEDGED/1                              10-14 AVAILABLE/1 -> 10-14 ACKNOWLEDGED/2  (retry)
    reset to 5
    life 2   5-9 ACKNOWLEDGED/1  (replayed_by_reset)

The log holds outcomes: a delivery appears when its outcome is written. The log does not show deliveries without an
outcome, whether the consumer processed a record before its redelivery, and reads by consumers outside this group.
"""

import itertools
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from sharelens.measures.histories.delivery_outcomes import NEVER, Outcomes, outcomes_of
from sharelens.measures.histories.given_up import SELECTED, near_selected
from sharelens.measures.histories.lives import DELETED, Lives
from sharelens.measures.histories.numbers import RANGE_COUNT, RANGE_STATE, UNKNOWN, Histories
from sharelens.measures.inputs import Inputs
from sharelens.measures.ranges.range_map import RangeMap
from sharelens.measures.ranges.steps import NO_VALUE, Cells, Flags, Ints, Ranges, together
from sharelens.measures.schemas import REDELIVERED, REDELIVERIES
from state_model.columnar.keys import FULL_PLACE_KEY
from state_model.share_records import DeliveryState

MARKS = ["completeness", "completeness_reason"]
RETRY, AFTER_ACKNOWLEDGED, BY_RESET, BY_RECREATION, WENT_BACK = range(5)


def rows(inputs: Inputs) -> pa.Table:
    """REDELIVERED rows by share partition, first offset and kind."""
    return redelivered(inputs.histories())


def redelivered(histories: Histories) -> pa.Table:
    """REDELIVERED rows by share partition, first offset and kind."""
    lives = histories.lives
    outcomes = outcomes_of(histories, histories.life, _near_second_deliveries(histories))
    deliveries_by_life = _outcomes_by_life(outcomes, lives)
    parts = [_within_lives(deliveries_by_life), *_across_lives(deliveries_by_life, lives)]
    return _table({name: together([part[name] for part in parts]) for name in _FIELDS}, histories)


def _near_second_deliveries(histories: Histories) -> Flags:
    """Whether each range may have a redelivered offset: it overlaps a second delivery, or its place had several lives.

    Offsets of the other ranges were delivered once, so those ranges are not compared with each other.
    """
    lives, life = histories.lives, histories.life
    state, count = histories.ranges[:, RANGE_STATE], histories.ranges[:, RANGE_COUNT]
    several = np.bincount(lives.place, minlength=1)[lives.place] > 1
    several[lives.back_life] = True
    again = (count > 1) | ((count < 1) & (state != DeliveryState.AVAILABLE)) | np.append(several, False)[life]
    near: Flags = near_selected(histories.ranges, again * SELECTED, histories.life_begins) & (life != UNKNOWN)
    return near


_FIELDS = (
    "life", "earlier", "first", "last", "kind", "acknowledged", "count", "first_at", "cause_at", "last_at"
)  # fmt: skip
Rows = Mapping[str, Ints]


def _outcomes_by_life(outcomes: Outcomes, lives: Lives) -> Ranges:
    """Ranges of each life (as group), cut so that the values for REDELIVERED rows are constant in each."""
    outcome_count = len(outcomes.life)
    cells = Cells(
        together([outcomes.life, lives.back_life]),
        together([outcomes.first, lives.back_to]),
        together([outcomes.last, lives.back_from - 1]),
    )
    back = len(lives.back_life)
    outcome = np.arange(outcome_count + back) < outcome_count
    state, count, at = (np.pad(values, (0, back)) for values in (outcomes.state, outcomes.count, outcomes.at))
    acknowledged = outcome & (state == DeliveryState.ACKNOWLEDGED)
    first_at, last_at = cells.lowest(at, outcome), cells.highest(at, outcome)
    least = cells.lowest(count, acknowledged)
    values = {
        "count": cells.highest(count, outcome),
        "acknowledged": cells.total(np.ones(outcome_count + back, np.int64), acknowledged),
        "acknowledged_count": least,
        "first_at": first_at,
        "last_at": last_at,
        "back_at": _went_back(cells, lives, outcome_count, first_at, last_at),
        "delivered": cells.covered(outcome & ((count > 0) | (state != DeliveryState.AVAILABLE))).astype(np.int64),
    }
    return cells.ranges(cells.covered(outcome), values)


def _went_back(cells: Cells, lives: Lives, outcome_count: int, first_at: Ints, last_at: Ints) -> Ints:
    """For each cell the first record that moved the start offset back over it between its outcomes; NEVER: none."""
    went_back_at = np.full(cells.count, NEVER, np.int64)
    for event in range(len(lives.back_life) - 1, -1, -1):
        low, high = cells.low[outcome_count + event], cells.high[outcome_count + event]
        at = lives.back_at[event]
        between = (first_at[low:high] != NO_VALUE) & (first_at[low:high] < at) & (last_at[low:high] >= at)
        went_back_at[low:high][between] = at
    return went_back_at


def _within_lives(outcomes: Ranges) -> Rows:
    """Rows for offsets that one life delivered more than once."""
    value = outcomes.values
    back = value["back_at"] != NEVER
    after = ~back & (value["acknowledged_count"] != NO_VALUE) & (value["count"] > value["acknowledged_count"])
    is_redelivered = back | after | (value["count"] > 1)
    kind = np.select([back, after], [WENT_BACK, AFTER_ACKNOWLEDGED], RETRY)
    redelivered_ranges = outcomes.where(is_redelivered)
    return {
        "life": redelivered_ranges.group,
        "earlier": np.full(len(redelivered_ranges.group), NEVER, np.int64),
        "first": redelivered_ranges.first,
        "last": redelivered_ranges.last,
        "kind": kind[is_redelivered],
        "acknowledged": redelivered_ranges.values["acknowledged"],
        "count": redelivered_ranges.values["count"],
        "first_at": redelivered_ranges.values["first_at"],
        "cause_at": redelivered_ranges.values["back_at"],
        "last_at": redelivered_ranges.values["last_at"],
    }


def _across_lives(outcomes: Ranges, lives: Lives) -> list[Rows]:
    """Rows for offsets that an earlier life had delivered; reads only places with several such lives."""
    outcomes = outcomes.where(outcomes.values["delivered"] > 0)
    of_place = lives.place[outcomes.group]
    bounds = [0, *(np.flatnonzero(np.diff(of_place)) + 1).tolist(), len(of_place)]
    rows: list[tuple[int, ...]] = []
    for first, end in itertools.pairwise(bounds):
        if first < end and outcomes.group[first] != outcomes.group[end - 1]:
            rows += _replays(outcomes.part(first, end), lives)
    columns = np.array(rows, np.int64).reshape(-1, len(_FIELDS)).T
    return [dict(zip(_FIELDS, columns, strict=True))]


def _replays(outcomes: Ranges, lives: Lives) -> list[tuple[int, ...]]:
    """Rows (_FIELDS) of one place; `outcomes` comes life after life."""
    before: RangeMap[tuple[int, int, int, int]] = RangeMap()
    rows: list[tuple[int, ...]] = []
    values = (outcomes.values[name] for name in ("count", "acknowledged", "last_at"))
    columns = [column.tolist() for column in (outcomes.group, outcomes.first, outcomes.last, *values)]
    for life, first, last, count, acknowledged, last_at in zip(*columns, strict=True):
        for piece_first, piece_last, earlier_delivery in before.pieces(first, last):
            earlier, had_count, had_acknowledged, proof = (
                earlier_delivery if earlier_delivery is not None else (NEVER, 0, 0, NEVER)
            )
            sums = (had_acknowledged + acknowledged, max(had_count, count))
            before.put(piece_first, piece_last, (life, sums[1], sums[0], last_at))
            if earlier_delivery is not None:
                kind = BY_RECREATION if (lives.ending[earlier:life] == DELETED).any() else BY_RESET
                begun = int(lives.begun_at[life])
                rows.append((life, earlier, piece_first, piece_last, kind, *sums, proof, begun, last_at))
    return rows


def _table(rows: Rows, histories: Histories) -> pa.Table:
    lives, history = histories.lives, histories.history
    order = np.lexsort((rows["kind"], rows["first"], lives.place[rows["life"]]))
    rows = {name: values[order] for name, values in rows.items()}
    place = lives.place[rows["life"]]
    columns = {name: histories.places.column(name).take(pa.array(place)) for name in FULL_PLACE_KEY}
    columns |= {
        "first_offset": pa.array(rows["first"]),
        "last_offset": pa.array(rows["last"]),
        "kind": pa.array(REDELIVERIES, pa.string()).take(pa.array(rows["kind"])),
        "times_acknowledged": pa.array(rows["acknowledged"].astype(np.int32)),
        "max_delivery_count": pa.array(rows["count"].astype(np.int16)),
        "life_log_offset": pa.array(lives.key[rows["life"]]),
        "earlier_life_log_offset": _or_null(
            lives.key[rows["earlier"]] if lives.count else rows["earlier"], rows["earlier"]
        ),
        "first_log_offset": pa.array(rows["first_at"]),
        "cause_log_offset": _or_null(rows["cause_at"], rows["cause_at"]),
        "last_log_offset": pa.array(rows["last_at"]),
    }
    marks = history.select(["log_time_ms", *MARKS]).take(histories.rows_at(place, rows["last_at"]))
    columns |= {"last_ms": marks.column("log_time_ms")} | {name: marks.column(name) for name in MARKS}
    return pa.table({name: columns[name] for name in REDELIVERED.names}).cast(REDELIVERED)


def _or_null(values: Ints, null_markers: Ints) -> pa.Array:
    return pa.array(values, mask=null_markers == NEVER)
