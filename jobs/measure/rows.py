"""The measures as gold tables: one entry a table, which the stage goes through (`MEASURES`).

An entry names its table and a function that makes the rows of a task's share partitions, without cluster_id and
run_id, from `Inputs`. The simplest one returns `Changes(rows=...)`: everything that the table held of these share
partitions is replaced.

Where that is too much work after a small run, the table is partitioned by `is_final`, the entry names the column that
orders its rows (`order`), and the function says from which value on it made them anew (`since`) and below which one
nothing changes any more (`final_below`). Rows below `since` are kept; files of final rows are not even opened, unless
`since` lies below what was final before (`final_before`). All three have one entry a place.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from jobs.measure.bases import BY_OFFSET
from jobs.measure.inputs import DELIVERY, EVERYTHING, NO_SETTINGS, NOTHING, Inputs
from jobs.measure.latency import attempts_rows, hours, is_open, latency_rows
from jobs.measure.reached import reached
from lake import user_topics
from lake.tables import TOPIC
from measures import lag, life, poison, redelivered, stalls
from measures.headers import OffsetTimes
from measures.places import coded
from measures.topics import EndsFromHeaders, topic_partitions
from state_model.columnar.keys import KEY

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Rows of a table, and which of the ones it held they replace: see the module."""

    rows: pa.Table
    since: Ints | None = None
    final_below: Ints | None = None
    final_before: Ints | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A gold table, and what makes its rows.

    `order`: column whose values `Changes.since` is about; a null is below all. `about_end`: which rows tell of the end
    of the log and are always made anew.
    """

    table: str
    changes: Callable[[Inputs], Changes]
    order: str | None = None
    about_end: Callable[[pa.Table], Flags] | None = None

    def values(self, rows: pa.Table) -> Ints:
        """What `Changes.since` is about, of each row."""
        values: Ints = pc.fill_null(rows.column(self.order), -1).to_numpy()
        return values if self.about_end is None else np.where(self.about_end(rows), NOTHING, values)


def lag_changes(inputs: Inputs) -> Changes:
    """LAG rows of the live share partitions."""
    states = inputs.states
    begins = lag.begins_of(states)
    folded = EndsFromHeaders()
    for batches in inputs.headers(begins):
        folded.take(batches)
    ends = folded.ends(user_topics.extents(inputs.topic_books, topic_partitions(states)))
    return Changes(rows=lag.lag(states, ends, inputs.names))


def stall_changes(inputs: Inputs) -> Changes:
    """STALL rows with the topic's name: what lasted a minute, and what stands still, as if nothing came any more.

    So no row depends on the moment of the run, and what is not touched needs no new one.
    """
    found = stalls.long_enough(inputs.intervals, None, stalls.MIN_DURATION_MS)
    wanted = stalls.offsets_of(found)
    times = OffsetTimes(wanted)
    for batches in inputs.headers({place: int(offsets[0]) for place, offsets in wanted.items()}):
        times.take(batches)
    ends = {
        (row["topic_id"], row["partition"]): (row["end_offset"], row["end_offset_source"])
        for row in user_topics.extents(inputs.topic_books, wanted).to_pylist()
        if row["end_offset"] is not None
    }
    rows = stalls.stalls(found, times.table(), ends, NO_SETTINGS, now_ms=None)
    rows = rows.filter(pc.not_equal(rows.column("kind"), stalls.IDLE))
    now = inputs.new_progress
    final = np.full(inputs.places.count, NOTHING, np.int64)
    started = pc.is_valid(now.column("since_log_offset")).to_numpy()
    since = pc.fill_null(now.column("since_log_offset"), 0).to_numpy()
    final[inputs.places.of(now)[started]] = since[started]
    return Changes(rows=_with_topic(rows, inputs), since=inputs.since, final_below=final, final_before=inputs.since)


def poison_changes(inputs: Inputs) -> Changes:
    """POISON_RECORD rows with the topic's name; a run knows no settings of groups, so fewer causes are told."""
    news, headers = reached(inputs), inputs.no_records
    rows = poison.poison(news.history, news.deliveries, headers.ranges(), headers.held(), NO_SETTINGS)
    return _changes_from(rows, "gold.poison_record", inputs)


def redelivered_changes(inputs: Inputs) -> Changes:
    """REDELIVERED rows with the topic's name. What is told of an offset rests on the outcomes of that offset alone."""
    news = reached(inputs)
    rows = redelivered.redelivered(_of_log(news.history, inputs), _of_log(news.deliveries, inputs))
    return _changes_from(rows, "gold.redelivered_record", inputs)


def life_changes(inputs: Inputs) -> Changes:
    """LIFE rows with the topic's name. What is settled is looked up only where a life ended."""
    history = _of_log(inputs.recent_history, inputs)
    columns = [
        "state_partition",
        *KEY,
        "life_log_offset",
        "first_offset",
        "last_offset",
        "delivery_state",
        "end_reason",
    ]
    ended = np.where(_several_lives(history, inputs), inputs.read_from + 1, NOTHING)
    settled = inputs.rows_of(DELIVERY, columns, ("valid_to_log_offset", ended))
    rows = life.life(history, _of_log(settled, inputs))
    since = np.where(inputs.whole, EVERYTHING, inputs.read_from + 1)
    fresh = rows.column("log_offset").to_numpy() >= since[inputs.places.of(rows)]
    final = np.full(inputs.places.count, EVERYTHING, np.int64)
    read_from = pc.fill_null(inputs.new_progress.column("read_from_log_offset"), -1).to_numpy()
    final[inputs.places.of(inputs.new_progress)] = read_from + 1
    rows = _with_topic(rows.filter(pa.array(fresh)), inputs)
    return Changes(rows=rows, since=since, final_below=final, final_before=since)


def _of_log(rows: pa.Table, inputs: Inputs) -> pa.Table:
    return rows.append_column("log_topic_id", pa.repeat(inputs.task.log_topic_id, rows.num_rows))


def _several_lives(history: pa.Table, inputs: Inputs) -> npt.NDArray[np.bool_]:
    """Of which places the rows belong to more than one life."""
    at = inputs.places.of(history)
    life_of = pc.fill_null(history.column("life_log_offset"), -1).to_numpy()
    known = np.flatnonzero(life_of >= 0)
    low, high = np.full(inputs.places.count, NOTHING, np.int64), np.full(inputs.places.count, -1, np.int64)
    np.minimum.at(low, at[known], life_of[known])
    np.maximum.at(high, at[known], life_of[known])
    several: npt.NDArray[np.bool_] = high > low
    return several


def progress_changes(inputs: Inputs) -> Changes:
    """PROGRESS rows."""
    rows = inputs.new_progress
    return Changes(rows=rows.append_column("log_topic_id", pa.repeat(inputs.task.log_topic_id, rows.num_rows)))


def latency_changes(inputs: Inputs) -> Changes:
    """LATENCY rows with the topic's name."""
    return _of_hours(latency_rows(hours(inputs)), inputs)


def attempts_changes(inputs: Inputs) -> Changes:
    """ATTEMPTS rows with the topic's name."""
    return _of_hours(attempts_rows(hours(inputs)), inputs)


def _of_hours(rows: pa.Table, inputs: Inputs) -> Changes:
    found = hours(inputs)
    return Changes(
        rows=_with_topic(rows, inputs),
        since=found.since,
        final_below=found.final_below,
        final_before=found.final_before,
    )


def _changes_from(rows: pa.Table, table: str, inputs: Inputs) -> Changes:
    """What takes the place of a table's rows from the offset of each place on that news reach."""
    since = reached(inputs).since[table]
    return Changes(
        rows=_with_topic(_clipped(rows, BY_OFFSET[table][0], inputs, since), inputs),
        since=since,
        final_below=_start_offsets(inputs, inputs.new_progress),
        final_before=_start_offsets(inputs, inputs.progress),
    )


def _clipped(rows: pa.Table, first: str, inputs: Inputs, since: Ints) -> pa.Table:
    """The rows from an offset on, given for each place; `first`: the column of their first offsets."""
    least = since[inputs.places.of(rows)]
    at = rows.schema.get_field_index(first)
    begins = pa.array(np.maximum(rows.column(first).to_numpy(), least))
    return rows.set_column(at, rows.schema.field(at), begins).filter(
        pa.array(rows.column("last_offset").to_numpy() >= least)
    )


def _start_offsets(inputs: Inputs, progress: pa.Table) -> Ints:
    """The start offset of each place; all offsets lie below that of a deleted one, none below an unknown one."""
    result = np.full(inputs.places.count, EVERYTHING, np.int64)
    result[inputs.places.of(progress)] = pc.fill_null(progress.column("start_offset"), NOTHING).to_numpy()
    return result


def _with_topic(rows: pa.Table, inputs: Inputs) -> pa.Table:
    topics, codes = coded(rows.column("topic_id"))
    names = pa.array([inputs.names.get(topic_id) for topic_id in topics], pa.string()).take(pa.array(codes))
    return rows.add_column(rows.schema.get_field_index("topic_id") + 1, TOPIC, names)


MEASURES = {
    "stall": Measure(table="gold.stall", changes=stall_changes, order="log_offset"),
    "poison_record": Measure(table="gold.poison_record", changes=poison_changes, order="last_offset"),
    "redelivered_record": Measure(table="gold.redelivered_record", changes=redelivered_changes, order="last_offset"),
    "latency": Measure(table="gold.latency", changes=latency_changes, order="hour_ms"),
    "attempts": Measure(table="gold.attempts", changes=attempts_changes, order="hour_ms", about_end=is_open),
    "life_event": Measure(table="gold.life_event", changes=life_changes, order="log_offset"),
    "progress": Measure(table="gold.progress", changes=progress_changes),
    "lag": Measure(table="gold.lag", changes=lag_changes),
}
"""By name, in the order of their commits. `progress` comes after what reads it."""
