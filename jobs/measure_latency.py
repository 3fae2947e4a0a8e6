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

from jobs.measure_base import PLACE
from jobs.measure_inputs import DELIVERY, EVERYTHING, HISTORY, NOTHING, Inputs
from jobs.measure_reached import reached
from lake import user_topics
from lake.tables import TABLES
from measures.ages import HEADER_COLUMNS, Ages, taken
from measures.grouped import in_order
from measures.latency import attempts, latency
from measures.latency_schemas import OPEN
from measures.lives import BLIND
from measures.places import codes_in
from measures.settled import HOUR_MS, NUMBERS, Settled, settled
from measures.tallies import By
from state_model.share_records import DeliveryState

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
DONE = pa.array([DeliveryState.ACKNOWLEDGED, DeliveryState.ARCHIVED], pa.int8())
MARK = ["completeness", "completeness_reason"]


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
    since = _since(inputs)
    history = _history(inputs, since)
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
        newest=_of_log(_newest(inputs), inputs),
        since=since,
        final_below=final_below,
        final_before=final_before,
    )


def hour_of(time_ms: Ints) -> Ints:
    """The beginning of the hour of each time."""
    time_ms = np.maximum(time_ms, 0)
    return time_ms - time_ms % HOUR_MS


def _since(inputs: Inputs) -> Ints:
    """For each place the hour of the oldest outcome of offsets of which there is news; NOTHING for none."""
    result = np.where(inputs.whole | _marked_anew(inputs), EVERYTHING, NOTHING)
    news = np.where(result == EVERYTHING, NOTHING, inputs.new_offsets)
    if (news < NOTHING).any():
        rows = reached(inputs).deliveries
        rows = rows.filter(pc.is_in(rows.column("delivery_state"), value_set=DONE))
        at = inputs.places.of(rows)
        there = rows.column("last_offset").to_numpy() >= news[at]
        oldest = np.full(inputs.places.count, NOTHING, np.int64)
        np.minimum.at(oldest, at[there], hour_of(rows.column("valid_from_ms").to_numpy()[there]))
        result = np.minimum(result, np.where(oldest == 0, EVERYTHING, oldest))
    return result


def _marked_anew(inputs: Inputs) -> Flags:
    """Places that begin anew because the completeness of their newest record, which every row tells, is another one.

    Also those of which a new snapshot shows what came before it and is not held: its time is not known.
    """
    result = np.zeros(inputs.places.count, np.bool_)
    if inputs.whole.all():
        return result
    rows = inputs.recent_history
    offset = rows.column("log_offset").to_numpy()
    order, bounds = in_order(inputs.places.of(rows), inputs.places.count, offset)
    blind = (codes_in(rows.column("completeness"), pa.array(BLIND)) >= 0)[order]
    snapshot = (codes_in(rows.column("record_type"), pa.array(["snapshot"])) >= 0)[order]
    shows = np.append(False, blind[:-1])[: len(order)]
    shows[bounds[:-1][bounds[:-1] < len(order)]] = True
    at = inputs.places.of(rows)[order]
    result[at[shows & snapshot & (offset[order] > inputs.measured_to[at])]] = True
    differs: Flags = _marks(inputs, _newest(inputs)) != _marks(inputs, inputs.progress)
    return result | differs


def _newest(inputs: Inputs) -> pa.Table:
    """The newest history row of each place that has one, with what tells how complete it is; text is not coded."""
    rows = inputs.recent_history
    order, bounds = in_order(inputs.places.of(rows), inputs.places.count, rows.column("log_offset").to_numpy())
    last = order[bounds[1:][np.diff(bounds) > 0] - 1]
    rows = rows.select([*PLACE, "log_offset", *MARK]).take(pa.array(last))
    return rows.cast(pa.schema([TABLES[HISTORY].schema.field(name) for name in rows.column_names]))


def _marks(inputs: Inputs, rows: pa.Table) -> npt.NDArray[np.object_]:
    """The completeness and its reason, one entry a place."""
    result = np.full(inputs.places.count, "", np.object_)
    parts = [pc.fill_null(rows.column(name).cast(pa.string()), "") for name in MARK]
    result[inputs.places.of(rows)] = pc.binary_join_element_wise(*parts, " ").to_numpy(zero_copy_only=False)
    return result


def _history(inputs: Inputs, since: Ints) -> pa.Table:
    """History rows from an hour before `since` on, with what tells whether a snapshot shows what is not held."""
    if (since == EVERYTHING).all():
        return inputs.recent_history if inputs.whole.all() else inputs.history
    names = [*PLACE, "log_offset", "log_time_ms", "record_type", "completeness", "completeness_reason"]
    from_ms = np.where((since == EVERYTHING) | (since == NOTHING), since, since - HOUR_MS)
    return inputs.rows_of(HISTORY, names, ("log_time_ms", from_ms))


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
