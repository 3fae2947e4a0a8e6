"""Another isolation level: record offsets that would have been delivered or not, by the headers of user topics.

    user topic         0-9 data | 10-19 data of producer 7 | 20 ABORT of 7 | 21-29 data of 8, no marker | end 30
    read_committed     0-9 delivered | 10-19 archived in memory, never in the state | 20 gap | 21-29 not yet delivered
    read_uncommitted   all of them delivered, control records as gaps

A leader that reads committed records archives those of aborted transactions in memory, without a state batch, and does
not read beyond the last stable offset (SharePartition, DelayedShareFetch). So what another group did with such offsets
shows in its log; what it would have done with offsets that it never got does not.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.histories.delivery_outcomes import outcomes_of
from sharelens.measures.histories.lives import BLIND, UNDETERMINED
from sharelens.measures.inputs import Inputs
from sharelens.measures.ranges.steps import LAST_OFFSET, NO_VALUE, Flags, Ints, Layers, together
from sharelens.measures.ranges.sums import any_by, sums_by
from sharelens.measures.settings.over_time import (
    DELIVERY_COUNT_LIMIT,
    ISOLATION_LEVEL,
    READ_COMMITTED,
    bounds_of,
)
from sharelens.measures.topics.extents import TopicPartition, topic_partitions
from sharelens.measures.topics.headers import ABORTED
from sharelens.measures.what_if import delivery_limit
from sharelens.measures.what_if.delivery_limit import MARKS, STATES, newest_marks, other_outcomes
from sharelens.measures.what_if.schema import BOUND, EXACT, INFERRED, figure_rows, together_in_order
from state_model.share_records import DeliveryState

READ_UNCOMMITTED = "read_uncommitted"
LEVELS = (READ_UNCOMMITTED, READ_COMMITTED)
NOT_DELIVERED_ABORTED, NOT_DELIVERED_OPEN = "not_delivered_aborted", "not_delivered_open"
DELIVERED_ABORTED = "delivered_aborted"
CHANGES = (NOT_DELIVERED_ABORTED, NOT_DELIVERED_OPEN, DELIVERED_ABORTED)
STATE_FIGURES = {
    "acknowledged_offsets": (DeliveryState.ACKNOWLEDGED,),
    "archived_offsets": (DeliveryState.ARCHIVED, DeliveryState.ARCHIVING),
    "available_offsets": (DeliveryState.AVAILABLE,),
}
Layer = tuple[Ints, Ints, Ints]


def rows(inputs: Inputs, level: str) -> pa.Table:
    """WHAT_IF rows under another level; none of share partitions that are incomplete, or without batch headers."""
    return Isolation(inputs, level).figures()


def ranges(inputs: Inputs, level: str) -> pa.Table:
    """OTHER_OUTCOME rows of the offsets that the level changes."""
    return Isolation(inputs, level).ranges()


class Isolation:
    """The offsets of some share partitions by what the headers of their user topics say."""

    def __init__(self, inputs: Inputs, level: str) -> None:
        self._histories = inputs.histories()
        lives, places = self._histories.lives, self._histories.places
        self._marks = newest_marks(self._histories)
        self._outcomes = outcomes_of(self._histories, self._histories.life, self._histories.life >= 0)
        groups = places.column("group_id").to_pylist()
        self._limit = bounds_of(inputs.settings, DELIVERY_COUNT_LIMIT, groups, delivery_limit.RANGE)[1]
        self._begin, self._reached = self._extent_of_lives()
        layers = self._layers(inputs)
        self._cells = cells = Layers(layers)
        final = self._outcomes.count * STATES + self._outcomes.state
        self._final = cells.highest_of("outcomes", final)
        has_outcome = self._final != NO_VALUE
        is_in = {name: cells.total_of(name, np.ones(len(layer[0]), np.int64)) > 0 for name, layer in layers.items()}
        self._aborted, self._unstable, self._covered = (
            is_in["aborted"],
            is_in["unstable"] & ~is_in["aborted"],
            is_in["covered"],
        )
        self._passed, self._place = is_in["passed"], lives.place[cells.group]
        shows = self._any(has_outcome & (self._aborted | self._unstable))
        hides = self._any(~has_outcome & self._aborted & self._passed) & ~shows
        in_force = [{p.of(g, ISOLATION_LEVEL, p.from_ms).value for p in inputs.settings.periods()} for g in groups]
        is_level = np.array([levels == {level} for levels in in_force], np.bool_)
        is_unknown = np.array([None in levels for levels in in_force], np.bool_)
        guessed = shows if level == READ_UNCOMMITTED else hides
        self._is_same = is_level | (is_unknown & (guessed | ~(shows | hides)))
        self._is_inferred = is_unknown & ~is_level & (level == READ_UNCOMMITTED)
        differs = ~self._is_same[self._place]
        self._is_committed = level == READ_COMMITTED
        self._lost = (self._aborted | self._unstable) & has_outcome & differs & self._is_committed
        self._gained = self._aborted & ~has_outcome & differs & (not self._is_committed)
        self._maybe = ~self._covered & differs & (has_outcome if self._is_committed else self._passed & ~has_outcome)
        self._maybe |= self._unstable & ~has_outcome & differs & (not self._is_committed)
        blind = pc.is_in(self._marks.column(MARKS[0]), value_set=pa.array(BLIND)).to_numpy(zero_copy_only=False)
        self._has_figures = ~blind.astype(np.bool_) & (self._any(self._covered) | ~self._any(has_outcome))

    def figures(self) -> pa.Table:
        """WHAT_IF rows, every share partition with all figures."""
        size, sums = self._sizes(), self._sums
        has_outcome = self._final != NO_VALUE
        count = np.where(has_outcome, self._final // STATES, 0) * size
        state = np.where(has_outcome, self._final % STATES, -1)
        aborted = sums(size, self._aborted & self._passed)
        tables = [self._rows("aborted_offsets", aborted, aborted, aborted, is_fact=True)]
        undelivered = sums(size, self._lost)
        none, at_most = np.zeros(len(aborted), np.int64), undelivered + sums(size, self._maybe & self._is_committed)
        tables.append(self._rows("not_delivered_offsets", none, undelivered, at_most))
        at_most = sums(size, self._gained | (self._maybe & (not self._is_committed)))
        tables.append(self._rows("newly_delivered_offsets", none, sums(size, self._gained & self._passed), at_most))
        for name, states in STATE_FIGURES.items():
            has_state = np.isin(state, states)
            in_history, lost = sums(size, has_state), sums(size, has_state & self._lost)
            least = in_history - lost - sums(size, has_state & self._maybe)
            newly_delivered = sums(size, self._gained | (self._maybe & ~has_outcome))
            tables.append(self._rows(name, in_history, least, in_history - lost + newly_delivered))
        in_history, lost = sums(count), sums(count, self._lost)
        least = in_history - lost - sums(count, self._maybe) + sums(size, self._gained & self._passed)
        newly_delivered = sums(size * self._limit[self._place], self._gained | (self._maybe & ~has_outcome))
        tables.append(self._rows("deliveries", in_history, least, in_history - lost + newly_delivered))
        return together_in_order(tables)

    def ranges(self) -> pa.Table:
        """OTHER_OUTCOME rows by share partition, life and offset."""
        change = np.where(self._lost & self._aborted, 0, np.where(self._lost, 1, 2))
        chosen = (self._lost | (self._gained & self._passed)) & self._has_figures[self._place]
        ranges = self._cells.ranges(chosen, {"final": self._final, "change": change})
        place = self._histories.lives.place[ranges.group]
        change = ranges.values["change"]
        certainty = np.where(change == len(CHANGES) - 1, np.where(self._is_inferred[place], INFERRED, BOUND), EXACT)
        names = pa.array(CHANGES, pa.string()).take(pa.array(change))
        return other_outcomes(self._histories, ranges, names, certainty)

    def _extent_of_lives(self) -> tuple[Ints, Ints]:
        """By life its lowest start offset, and the highest offset with an outcome or below the last start offset."""
        lives = self._histories.lives
        reached = np.where(lives.last_start == UNDETERMINED, -1, lives.last_start - 1)
        np.maximum.at(reached, self._outcomes.life, np.minimum(self._outcomes.last, LAST_OFFSET))
        return np.where(lives.lowest_start == UNDETERMINED, LAST_OFFSET, lives.lowest_start), reached

    def _layers(self, inputs: Inputs) -> dict[str, Layer]:
        """Layers by life: outcomes, offsets of aborted transactions, behind the last stable one, with headers."""
        no_records, outcomes = inputs.no_records(), self._outcomes
        of_life = topic_partitions(self._histories.places.take(pa.array(self._histories.lives.place)))
        no_record_ranges = no_records.ranges()
        aborted = no_record_ranges.filter(pc.equal(no_record_ranges.column("reason"), ABORTED))
        covered = no_records.header_ranges()
        ends = dict(zip(topic_partitions(covered), covered.column("last_offset").to_pylist(), strict=True))
        unstable = {place: (first, ends[place]) for place, first in no_records.open_transactions().items()}
        begin, end = self._begin, np.maximum(self._reached, [ends.get(place, -1) for place in of_life])
        return {
            "outcomes": (outcomes.life, outcomes.first, outcomes.last),
            "aborted": _by_life(of_life, _spans(aborted), begin, end),
            "covered": _by_life(of_life, _spans(covered), begin, end),
            "unstable": _by_life(of_life, {place: [span] for place, span in unstable.items()}, begin, end),
            "passed": (np.arange(len(of_life)), begin, np.maximum(self._reached, begin - 1)),
        }

    def _sizes(self) -> Ints:
        """Offsets of each cell; 0 behind the last boundary of a life."""
        following = np.append(self._cells.begin[1:], 0)[: self._cells.count]
        inside = np.append(self._cells.group[1:] == self._cells.group[:-1], False)[: self._cells.count]
        return np.where(inside, following - self._cells.begin, 0)

    def _any(self, flags: Flags) -> Flags:
        return any_by(self._place, flags, self._histories.places.num_rows)

    def _sums(self, values: Ints, chosen: Flags | None = None) -> Ints:
        rows = slice(None) if chosen is None else chosen
        return sums_by(self._place[rows], values[rows], self._histories.places.num_rows)

    def _rows(self, figure: str, in_history: Ints, at_least: Ints, at_most: Ints, *, is_fact: bool = False) -> pa.Table:
        certainty = np.where(at_least == at_most, EXACT, BOUND)
        if not is_fact:
            certainty = np.where(self._is_inferred & self._any(self._aborted | self._maybe), INFERRED, certainty)
        rows = figure_rows(self._histories.places, self._marks, figure, in_history, at_least, at_most, certainty)
        return rows.filter(pa.array(self._has_figures))


def _spans(rows: pa.Table) -> dict[TopicPartition, list[tuple[int, int]]]:
    """The ranges of each user partition."""
    spans: dict[TopicPartition, list[tuple[int, int]]] = {}
    ends = zip(*(rows.column(name).to_pylist() for name in ("first_offset", "last_offset")), strict=True)
    for place, span in zip(topic_partitions(rows), ends, strict=True):
        spans.setdefault(place, []).append(span)
    return spans


def _by_life(
    of_life: list[TopicPartition], spans: dict[TopicPartition, list[tuple[int, int]]], begin: Ints, end: Ints
) -> Layer:
    """The ranges of the user partition of each life, cut to what the life can concern."""
    arrays = {place: np.array(partition_spans, np.int64).reshape(-1, 2) for place, partition_spans in spans.items()}
    none = np.zeros((0, 2), np.int64)
    parts = [arrays.get(place, none) for place in of_life]
    life = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    first, last = (together([part[:, side] for part in parts]) for side in (0, 1))
    first, last = np.maximum(first, begin[life]), np.minimum(last, end[life])
    chosen = first <= last
    return life[chosen], first[chosen], last[chosen]
