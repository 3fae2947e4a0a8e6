"""Another lock duration: attempts that may have timed out, and outcomes that may have been others.

    attempt      |<----- at most 42 s, then ACKNOWLEDGED ----->|      40 s: it may have timed out; 45 s: it did not
    attempt      |<- at most 12 s, then AVAILABLE ->|                 lock duration in force 15 s: not a timeout

The log has outcomes alone: a release, a lock that expired and a member that left look the same, and no acquisition is
in it. What it bounds is the time in which an attempt lies (`sharelens.measures.what_if.attempts`, and the timestamps
of records
before their first delivery). A lock that expires needs the whole lock duration, and one that another duration changes
needs the shorter of both.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.histories.delivery_outcomes import outcomes_of
from sharelens.measures.histories.lives import BLIND
from sharelens.measures.inputs import Inputs
from sharelens.measures.ranges.steps import NO_VALUE, Flags, Ints, Layers, Ranges
from sharelens.measures.ranges.sums import any_by, sums_by, sums_of_stretches
from sharelens.measures.settings.over_time import DELIVERY_COUNT_LIMIT, LOCK_DURATION, bounds_of
from sharelens.measures.what_if import delivery_limit
from sharelens.measures.what_if.attempts import attempts_of, with_ages
from sharelens.measures.what_if.delivery_limit import MARKS, STATES, newest_marks
from sharelens.measures.what_if.schema import certainty_of, figure_rows, together_in_order
from state_model.share_records import DeliveryState

RANGE = (1_000, 3_600_000)
"""The shortest and the longest lock duration that a broker takes (GroupCoordinatorConfig), in milliseconds."""
WRITE_MS = 1_000
"""A record can be acquired again before the outcome of an expired lock is in the log: so much earlier, at most."""
GIVEN_UP = (DeliveryState.ARCHIVED, DeliveryState.ARCHIVING)
TIMED_OUT = "timed_out"
Figure = tuple[pa.Array, Ints, Ints]
"""In the history, at least and at most, one entry a place."""


def rows(inputs: Inputs, duration_ms: int) -> pa.Table:
    """WHAT_IF rows of share partitions under another lock duration, in RANGE; incomplete ones are left out."""
    histories = inputs.histories()
    marks = newest_marks(histories)
    is_blind = pc.is_in(marks.column(MARKS[0]), value_set=pa.array(BLIND))
    changed = LockDuration(inputs, duration_ms)
    tables = []
    for name, (in_history, at_least, at_most) in changed.figures().items():
        rests = changed.timed_out_rests if name == TIMED_OUT else changed.outcomes_rest
        certainty = certainty_of(at_least, at_most, rests)
        table = figure_rows(histories.places, marks, name, in_history, at_least, at_most, certainty)
        tables.append(table.filter(pc.invert(is_blind)))
    return together_in_order(tables)


class LockDuration:
    """The attempts that another lock duration may have changed.

    `timed_out_rests`, `outcomes_rest`: by place, whether figures rest on the clock of producers (CreateTime), which
    alone shows that some attempts were shorter than the lock duration.
    """

    def __init__(self, inputs: Inputs, duration_ms: int) -> None:
        self._histories, self._duration_ms = inputs.histories(), duration_ms
        self._outcomes = outcomes_of(self._histories, self._histories.life, self._histories.life >= 0)
        attempts = with_ages(attempts_of(self._histories, self._outcomes), self._histories, inputs.headers)
        self._attempts, self._place = attempts, self._histories.lives.place[attempts.life]
        groups = self._histories.places.column("group_id").to_pylist()
        self._places = len(groups)
        self._shortest, self._longest = bounds_of(inputs.settings, LOCK_DURATION, groups, RANGE)
        self._least, self._highest_limit = bounds_of(
            inputs.settings, DELIVERY_COUNT_LIMIT, groups, delivery_limit.RANGE
        )
        archived = is_in(attempts.state, GIVEN_UP)
        self._may_expire = (attempts.state == DeliveryState.AVAILABLE) | (attempts.number > 1)
        self._may_expire |= archived & (attempts.count >= self._least[self._place])
        self._settled = (attempts.state == DeliveryState.ACKNOWLEDGED) | archived & (
            attempts.count < self._highest_limit[self._place]
        )
        loose = self._possible(attempts.most_ms)
        self._expired, self._times_out, self._changes = self._possible(np.minimum(attempts.most_ms, attempts.age_ms))
        ruled_out = (
            ~now & before & attempts.is_create_time
            for now, before in ((self._expired | self._times_out, loose[0] | loose[1]), (self._changes, loose[2]))
        )
        self.timed_out_rests, self.outcomes_rest = (self._any(flags) for flags in ruled_out)

    def _possible(self, most_ms: Ints) -> tuple[Flags, Flags, Flags]:
        """Attempts that may have timed out in the history, that may do so, and that may end in another way.

        `most_ms`: how long each may have lasted.
        """
        place, lasted_ms = self._place, most_ms + WRITE_MS
        expired = self._may_expire & (lasted_ms >= self._shortest[place])
        times_out = (self._duration_ms < self._longest[place]) & (lasted_ms >= self._duration_ms)
        changes = (expired & (self._duration_ms > self._shortest[place])) | (times_out & self._settled)
        return expired, times_out, changes

    def _any(self, flags: Flags) -> Flags:
        return any_by(self._place, flags, self._places)

    def figures(self) -> dict[str, Figure]:
        """Figures of the lock duration by name."""
        attempts, none = self._attempts, np.zeros(self._places, np.int64)
        size = attempts.last - attempts.first + 1
        shorter = np.minimum(self._shortest, self._duration_ms)[self._place]
        number = np.minimum(attempts.number, (np.minimum(attempts.most_ms, attempts.age_ms) + WRITE_MS) // shorter)
        at_most = self._sums(size * number, self._expired | self._times_out)
        expired = self._sums(size, self._expired)
        return {TIMED_OUT: (pa.array(none, mask=expired > 0), none, at_most), **self._of_offsets()}

    def _of_offsets(self) -> dict[str, Figure]:
        """Offsets by their last outcome, and their deliveries."""
        ranges = self._final_ranges()
        count, state = ranges.values["final"] // STATES, ranges.values["final"] % STATES
        size, place = ranges.last - ranges.first + 1, self._histories.lives.place[ranges.group]
        begins, ends = (np.searchsorted(place, np.arange(self._places), side) for side in ("left", "right"))
        may = ranges.values["changed"] != NO_VALUE
        figures: dict[str, Figure] = {}
        for name, states in (("acknowledged_offsets", (DeliveryState.ACKNOWLEDGED,)), ("archived_offsets", GIVEN_UP)):
            chosen = is_in(state, states)
            in_history, fewer, possible_gain = (
                sums_of_stretches(size * flags, begins, ends) for flags in (chosen, chosen & may, ~chosen & may)
            )
            figures[name] = (pa.array(in_history), in_history - fewer, in_history + possible_gain)
        deliveries = (
            count,
            np.where(may, ranges.values["changed"], count),
            np.maximum(count, self._highest_limit[place] * may),
        )
        in_history, fewest, most_deliveries = (sums_of_stretches(number * size, begins, ends) for number in deliveries)
        return figures | {"deliveries": (pa.array(in_history), fewest, most_deliveries)}

    def _final_ranges(self) -> Ranges:
        """By life the ranges of offsets with their last outcome, and with the fewest deliveries where it may change."""
        attempts, outcomes, changed_rows = self._attempts, self._outcomes, np.flatnonzero(self._changes)
        outcome, fewest = attempts.outcome[changed_rows], (attempts.count - attempts.number + 1)[changed_rows]
        first, last = attempts.first[changed_rows], attempts.last[changed_rows]
        # Most attempts are whole outcomes, whose boundaries are there already.
        part = (first != outcomes.first[outcome]) | (last != outcomes.last[outcome])
        parts = (outcomes.life[outcome[part]], first[part], last[part])
        cells = Layers({"outcomes": (outcomes.life, outcomes.first, outcomes.last), "parts": parts})
        final = cells.highest_of("outcomes", outcomes.count * STATES + outcomes.state)
        entry = outcome.copy()
        entry[part] = len(outcomes.life) + np.arange(part.sum())
        by_entry, chosen = np.zeros(len(cells.low), np.int64), np.zeros(len(cells.low), np.bool_)
        by_entry[entry], chosen[entry] = fewest, True
        changed = cells.lowest(by_entry, chosen)
        return cells.ranges(final != NO_VALUE, {"final": final, "changed": changed})

    def _sums(self, values: Ints, flags: Flags) -> Ints:
        return sums_by(self._place[flags], values[flags], self._places)


def is_in(states: Ints, chosen_states: Sequence[DeliveryState]) -> Flags:
    """Whether each state is one of a few."""
    flags = np.zeros(len(states), np.bool_)
    for state in chosen_states:
        flags |= states == state
    return flags
