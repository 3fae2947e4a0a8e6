"""Another delivery count limit: record offsets that would have been given up earlier, or been delivered again.

    history, limit 5    1 AVAILABLE   2 AVAILABLE   3 ACKNOWLEDGED
    limit 2             1 AVAILABLE   2 ARCHIVED                      given up earlier; later acknowledged

A released record is archived when it was delivered as often as the limit (SharePartition). Under a lower limit that is
exact: every later delivery shows in the count. Under a higher one the log does not have the outcomes of the deliveries
that did not happen.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.histories.delivery_outcomes import outcomes_of
from sharelens.measures.histories.lives import BLIND
from sharelens.measures.histories.numbers import Histories
from sharelens.measures.ranges.steps import NO_VALUE, Cells, Flags, Ints, Ranges
from sharelens.measures.ranges.sums import sums_by
from sharelens.measures.settings.over_time import (
    DELIVERY_COUNT_LIMIT,
    LOWEST_DELIVERY_COUNT_LIMIT,
    GroupSettings,
)
from sharelens.measures.what_if.schema import BOUND, CERTAINTIES, EXACT, certainty_of, figure_rows, together_in_order
from state_model.columnar.keys import FULL_PLACE_KEY
from state_model.columnar.schemas import COMPLETENESS, LOG_POSITION, SHARE_PARTITION, column
from state_model.share_records import DeliveryState

RANGE = (2, 25)
"""The smallest and the largest limit that a broker takes (GroupCoordinatorConfig, with the largest maximum)."""
STATES = 256
"""A state and a count as one number: count * STATES + state, ordered as the combiner orders them."""
EARLIER, AGAIN = "given_up_earlier", "delivered_again"
MARKS = [field.name for field in COMPLETENESS]
COUNTED = ["group_id", "state", "delivery_count", "offsets"]
OUTCOMES = ("available", "acquired", "acknowledged", "archiving", "archived", "none")
"""Names of the delivery states, and of no outcome."""

OTHER_OUTCOME = pa.schema(
    [
        *LOG_POSITION[:2],
        *SHARE_PARTITION,
        column("life_log_offset", pa.int64(), "life: log offset of its first record", nullable=False),
        column("first_offset", pa.int64(), "first record offset of the range", nullable=False),
        column("last_offset", pa.int64(), "last record offset of the range (inclusive)", nullable=False),
        column(
            "change",
            pa.string(),
            "given_up_earlier, delivered_again, not_delivered_aborted, not_delivered_open or delivered_aborted",
            nullable=False,
        ),
        column("delivery_count", pa.int64(), "deliveries in the history", nullable=False),
        column(
            "outcome",
            pa.string(),
            "acknowledged, archived, archiving, available or none in the history",
            nullable=False,
        ),
        column("certainty", pa.string(), "exact, or bound: perhaps nothing changes; inferred"),
        *COMPLETENESS,
    ]
)
"""One row a range of record offsets whose deliveries the other limit changes."""


class DeliveryLimit:
    """The outcomes of some share partitions under another delivery count limit; incomplete ones are left out.

    Args:
        histories: of the share partitions.
        settings: of the groups; without a known limit every archived offset may have been given up at its limit.
        limit: the other limit, in RANGE.
    """

    def __init__(self, histories: Histories, settings: GroupSettings, limit: int) -> None:
        self._histories, self._limit = histories, limit
        self._marks = newest_marks(histories)
        blind = pc.is_in(self._marks.column(MARKS[0]), value_set=pa.array(BLIND)).to_numpy(zero_copy_only=False)
        self._is_blind = np.asarray(blind, np.bool_)
        self._ranges = _final_ranges(histories)
        values = self._ranges.values
        self._place = histories.lives.place[self._ranges.group]
        self._count, self._state = values["final"] // STATES, values["final"] % STATES
        self._is_archived = np.isin(self._state, (DeliveryState.ARCHIVED, DeliveryState.ARCHIVING))
        self._is_earlier = (self._count > limit) | (values["available"] >= limit)
        self._is_again = self._is_archived & (self._count < limit) & self._may_be_limit(settings)

    def figures(self) -> pa.Table:
        """WHAT_IF rows, every share partition with all figures."""
        sizes = self._ranges.last - self._ranges.first + 1
        deliveries, fewer = self._count * sizes, np.minimum(self._count, self._limit) * sizes
        stays = self._is_archived & ~self._is_again
        archived = self._sums(sizes, self._is_earlier | stays)
        again = self._sums(sizes, self._is_again)
        extra_deliveries = self._sums((self._limit - self._count) * sizes, self._is_again)
        limited_deliveries = self._sums(fewer)
        none = np.zeros(len(again), np.int64)
        tables = [
            self._rows("archived_offsets", self._sums(sizes, self._is_archived), archived, archived + again),
            self._rows("deliveries", self._sums(deliveries), limited_deliveries, limited_deliveries + extra_deliveries),
            self._rows(EARLIER, none, *2 * (self._sums(sizes, self._is_earlier),)),
        ]
        for state in (DeliveryState.ACKNOWLEDGED, DeliveryState.ARCHIVED, DeliveryState.AVAILABLE):
            chosen = self._is_earlier & (self._state == state)
            name = f"{EARLIER}_then_{OUTCOMES[state]}"
            tables.append(self._rows(name, none, *2 * (self._sums(sizes, chosen),)))
        tables.append(self._rows(AGAIN, none, none, again))
        return together_in_order(tables)

    def ranges(self) -> pa.Table:
        """OTHER_OUTCOME rows by share partition, life and offset."""
        at = (self._is_earlier | self._is_again) & ~self._is_blind[self._place]
        is_earlier = self._is_earlier[at].astype(np.int64)
        change = pa.array([AGAIN, EARLIER], pa.string()).take(pa.array(is_earlier))
        return other_outcomes(self._histories, self._ranges.where(at), change, np.where(is_earlier == 1, EXACT, BOUND))

    def outcome_counts(self) -> pa.Table:
        """Rows of COUNTED: record offsets by group, delivery state and largest delivery count."""
        chosen = ~self._is_blind[self._place]
        groups = self._histories.places.column("group_id").take(pa.array(self._place[chosen]))
        sizes = (self._ranges.last - self._ranges.first + 1)[chosen]
        columns = (groups, self._state[chosen], self._count[chosen], sizes)
        rows = pa.table([pa.array(column) if isinstance(column, np.ndarray) else column for column in columns], COUNTED)
        sums = rows.group_by(COUNTED[:3], use_threads=False).aggregate([("offsets", "sum")])
        return sums.rename_columns(COUNTED)

    def _rows(self, figure: str, in_history: Ints, at_least: Ints, at_most: Ints) -> pa.Table:
        certainty = certainty_of(at_least, at_most, np.zeros(len(at_least), np.bool_))
        places = self._histories.places
        rows = figure_rows(places, self._marks, figure, in_history, at_least, at_most, certainty)
        return rows.filter(pa.array(~self._is_blind))

    def _sums(self, values: Ints, chosen: Flags | None = None) -> Ints:
        """The sum of the values of chosen ranges, by place."""
        rows = slice(None) if chosen is None else chosen
        return sums_by(self._place[rows], values[rows], self._histories.places.num_rows)

    def _may_be_limit(self, settings: GroupSettings) -> Flags:
        """Whether the limit in force, not a rejection, may have archived each range."""
        groups = self._histories.places.column("group_id").to_pylist()
        group_limits = [
            settings.of(group, DELIVERY_COUNT_LIMIT).number or LOWEST_DELIVERY_COUNT_LIMIT for group in groups
        ]
        in_force = np.array(group_limits, np.int64)
        return np.asarray(self._count >= in_force[self._place], np.bool_)


def other_outcomes(histories: Histories, ranges: Ranges, change: pa.Array, certainty: Ints) -> pa.Table:
    """OTHER_OUTCOME rows of ranges by life; their value `final`: count * STATES + state, NO_VALUE for no outcome."""
    lives, marks, final = histories.lives, newest_marks(histories), ranges.values["final"]
    place, has_outcome = lives.place[ranges.group], final != NO_VALUE
    state = np.where(has_outcome, np.minimum(final % STATES, len(OUTCOMES) - 2), len(OUTCOMES) - 1)
    columns = {name: histories.places.column(name).take(pa.array(place)) for name in FULL_PLACE_KEY}
    columns |= {name: marks.column(name).take(pa.array(place)) for name in MARKS}
    columns |= {
        "life_log_offset": pa.array(lives.key[ranges.group]),
        "first_offset": pa.array(ranges.first),
        "last_offset": pa.array(ranges.last),
        "change": change,
        "delivery_count": pa.array(np.where(has_outcome, final // STATES, 0)),
        "outcome": pa.array(OUTCOMES, pa.string()).take(pa.array(state)),
        "certainty": pa.array(CERTAINTIES).take(pa.array(certainty)),
    }
    return pa.table({name: columns[name] for name in OTHER_OUTCOME.names}).cast(OTHER_OUTCOME)


def _final_ranges(histories: Histories) -> Ranges:
    """By life the ranges of offsets with the largest count and state, and the largest count of AVAILABLE."""
    outcomes = outcomes_of(histories, histories.life, histories.life >= 0)
    cells = Cells(outcomes.life, outcomes.first, outcomes.last)
    final = cells.highest(outcomes.count * STATES + outcomes.state)
    available = cells.highest(outcomes.count, outcomes.state == DeliveryState.AVAILABLE)
    return cells.ranges(final != NO_VALUE, {"final": final, "available": available})


def newest_marks(histories: Histories) -> pa.Table:
    """The completeness of the newest record of each place."""
    newest = np.maximum(histories.begins[1:] - 1, 0)
    return histories.history.select(MARKS).take(pa.array(newest))
