"""Rows of gold.latency and gold.attempts: what was settled, how old it was, how many deliveries it took.

    hour        10:00        11:00        12:00
    settled     0-499        500-899      900-950 | new records touch 880-1000
                             ^ rows from 11:00 on are made anew, from all that is known of offsets from 500 on

A row sums up the offsets of an hour by their first outcome. Of offsets that new records and headers don't reach
nothing changes, so the rows of hours in which none of the reached ones was settled are kept.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from jobs.measure.bases import PLACE
from jobs.measure.inputs import DELIVERY, EVERYTHING, NOTHING, Inputs
from jobs.measure.reached import DONE, hour_of, newest_records, reached
from lake import user_topics
from measures.ages import HEADER_COLUMNS, Ages, taken
from measures.grouped import in_order
from measures.latency import attempts, latency
from measures.latency_schemas import OPEN
from measures.places import codes_in
from measures.settled import NUMBERS, Settled, settled
from measures.tallies import By

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hours:
    """What was settled from an hour on, given for each place (`since`: its beginning; EVERYTHING: all of it).

    `newest`: the newest history row of each place. `final_below`, `final_before`: the hour of the newest record now and
    at the run before.
    """

    settled: Settled
    ages: Ages
    newest: pa.Table
    since: Ints
    final_below: Ints
    final_before: Ints


def hours(inputs: Inputs) -> Hours:
    """What latency and attempts are made of."""
    return inputs.once("hours", lambda: _hours(inputs))


def latency_rows(found: Hours) -> pa.Table:
    """LATENCY rows."""
    return latency(found.settled, found.ages, found.newest, By())


def attempts_rows(found: Hours) -> pa.Table:
    """ATTEMPTS rows."""
    return attempts(found.settled, found.ages.gaps(), found.newest, By())


def is_open(rows: pa.Table) -> Flags:
    """Which ATTEMPTS rows are about the end of the log."""
    return codes_in(rows.column("outcome"), pa.array([OPEN])) >= 0


def _hours(inputs: Inputs) -> Hours:
    since, history = reached(inputs).since_ms, reached(inputs).late_history
    since = np.where(_hides_its_time(inputs, history, since), EVERYTHING, since)
    done = _settled(inputs, since, history)
    before = pc.fill_null(inputs.progress.column("log_time_ms"), 0)
    final_before = np.full(inputs.places.count, EVERYTHING, np.int64)
    final_before[inputs.places.of(inputs.progress)] = hour_of(before.to_numpy())
    final_below = np.full(inputs.places.count, EVERYTHING, np.int64)
    final_below[inputs.places.of(inputs.new_progress)] = hour_of(inputs.new_progress.column("log_time_ms").to_numpy())
    return Hours(
        settled=done,
        ages=taken(
            done,
            lambda begins: user_topics.batches(inputs.scan, inputs.topic_books, begins, HEADER_COLUMNS),
            lambda: inputs.lowest_offsets,
        ),
        newest=_of_log(newest_records(inputs), inputs),
        since=since,
        final_below=final_below,
        final_before=final_before,
    )


def _hides_its_time(inputs: Inputs, history: pa.Table, since: Ints) -> Flags:
    """Places that may have outcomes of an unknown time at the first snapshot of what is read on, so that all is read.

    Only then has the place rows without an hour.
    """
    result = np.zeros(inputs.places.count, np.bool_)
    if (since == EVERYTHING).all():
        return result
    at = inputs.places.of(history)
    order, bounds = in_order(at, inputs.places.count, history.column("log_offset").to_numpy())
    first = order[bounds[:-1][np.diff(bounds) > 0]]
    snapshot = codes_in(history.column("record_type"), pa.array(["snapshot"])) >= 0
    late = history.column("log_time_ms").to_numpy() >= since[at]
    result[at[first][(snapshot & late)[first]]] = True
    asked = np.where(result & (since != EVERYTHING), NOTHING, NOTHING + 1)
    if (asked == NOTHING).any():
        held = inputs.rows_of("gold.latency", [*PLACE, "hour_ms"], ("hour_ms", asked))
        result[:] = False
        result[inputs.places.of(held)] = True
    result &= since != EVERYTHING
    return result


def _settled(inputs: Inputs, since: Ints, history: pa.Table) -> Settled:
    """What was settled from `since` on, and what is open at the end."""
    floors = _floors(inputs, since)
    deliveries = inputs.deliveries_from(floors, [*PLACE, *NUMBERS, "is_open"])
    if not (since == EVERYTHING).all():
        still = inputs.open_deliveries.select(deliveries.column_names)
        below = still.column("last_offset").to_numpy() < floors[inputs.places.of(still)]
        deliveries = pa.concat_tables([deliveries, still.filter(pa.array(below))])
    done = settled(_of_log(history, inputs), _of_log(deliveries, inputs))
    at = inputs.places.of(done.places)
    least, from_ms = floors[at][done.place], since[at][done.place]
    return done.where((done.first >= least) & ((from_ms == EVERYTHING) | (done.at_ms >= from_ms)))


def _floors(inputs: Inputs, since: Ints) -> Ints:
    """For each place the lowest offset that was settled from `since` on; NOTHING for none."""
    floors = np.where(since == EVERYTHING, EVERYTHING, NOTHING)
    asked = np.where(since == EVERYTHING, NOTHING, since)
    if (asked < NOTHING).any():
        names = [*PLACE, "delivery_state", "first_offset", "valid_from_ms"]
        rows = inputs.rows_of(DELIVERY, names, ("valid_from_ms", asked))
        rows = rows.filter(pc.is_in(rows.column("delivery_state"), value_set=DONE))
        np.minimum.at(floors, inputs.places.of(rows), rows.column("first_offset").to_numpy())
    return floors


def _of_log(rows: pa.Table, inputs: Inputs) -> pa.Table:
    if "log_topic_id" in rows.column_names:
        return rows
    return rows.append_column(
        "log_topic_id", pa.repeat(pa.scalar(inputs.task.log_topic_id, pa.string()), rows.num_rows)
    )
