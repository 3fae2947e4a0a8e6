"""The record offsets that new records and headers reach, and what the histories say of them: read once for measures.

offsets         100        200        300
new records                ^ 240 reached
rows held       [150 - 260: a redelivered range]
read from       ^ 150, so that no row of a measure lies across it
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from jobs.measure.bases import BY_OFFSET, PLACE
from jobs.measure.inputs import EVERYTHING, HISTORY, NOTHING, Inputs
from lake.tables import TABLES
from measures.grouped import in_order
from measures.lives import BLIND
from measures.places import codes_in
from measures.settled import HOUR_MS
from state_model.share_records import DeliveryState

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
DONE = pa.array([DeliveryState.ACKNOWLEDGED, DeliveryState.ARCHIVED], pa.int8())
MARK = ["completeness", "completeness_reason"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """What measures by record offset and by hour are made of.

    `since`: by table, for each place, the offset from which on its rows are made anew. `deliveries`: those of the
    delivery history that reach the lowest of them; `history`: all records from the first one on that `deliveries` name.
    `since_ms`: for each place the hour from which on rows by hour are made anew (EVERYTHING: all; NOTHING: none);
    `late_history`: all records from the hour before it on.
    """

    since: Mapping[str, Ints]
    deliveries: pa.Table
    history: pa.Table
    since_ms: Ints
    late_history: pa.Table


def reached(inputs: Inputs) -> Reached:
    """What there is news of."""
    return inputs.once("reached", lambda: _reached(inputs))


def _reached(inputs: Inputs) -> Reached:
    since = {table: _row_begins(inputs, table, first) for table, (first, _) in BY_OFFSET.items()}
    deliveries = inputs.deliveries_from(np.minimum.reduce([*since.values()]))
    first = np.full(inputs.places.count, NOTHING, np.int64)
    np.minimum.at(first, inputs.places.of(deliveries), deliveries.column("valid_from_log_offset").to_numpy())
    since_ms = _hours_since(inputs, deliveries)
    is_hour = (since_ms != EVERYTHING) & (since_ms != NOTHING)
    history, late = inputs.history_from(first, np.where(is_hour, since_ms - HOUR_MS, since_ms))
    return Reached(since=since, deliveries=deliveries, history=history, since_ms=since_ms, late_history=late)


def _row_begins(inputs: Inputs, table: str, first: str) -> Ints:
    """From which offset on, for each place, there is news, moved down so that no row of the table lies across it.

    Rows of several lives or kinds overlap: moved down for one of them, it may lie within another one.
    """
    result = inputs.new_offsets
    moved = not inputs.whole.all()
    while moved and (result < NOTHING).any():
        held = inputs.rows_of(table, [*PLACE, first, "last_offset"], ("last_offset", result))
        lower = result.copy()
        np.minimum.at(lower, inputs.places.of(held), held.column(first).to_numpy())
        moved, result = bool((lower < result).any()), lower
    return result


def _hours_since(inputs: Inputs, deliveries: pa.Table) -> Ints:
    """For each place the hour of the oldest outcome of offsets of which there is news; NOTHING for none."""
    result = np.where(inputs.whole | _marked_anew(inputs), EVERYTHING, NOTHING)
    news = np.where(result == EVERYTHING, NOTHING, inputs.new_offsets)
    if (news < NOTHING).any():
        rows = deliveries.filter(pc.is_in(deliveries.column("delivery_state"), value_set=DONE))
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
    differs: Flags = _marks(inputs, newest_records(inputs)) != _marks(inputs, inputs.progress)
    return result | differs


def newest_records(inputs: Inputs) -> pa.Table:
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


def hour_of(time_ms: Ints) -> Ints:
    """The beginning of the hour of each time."""
    time_ms = np.maximum(time_ms, 0)
    return time_ms - time_ms % HOUR_MS
