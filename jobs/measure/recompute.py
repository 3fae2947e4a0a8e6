"""The rows of one measure that a run writes for a task's share partitions, by its rule (`jobs.measure.reach`)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from jobs.measure.bases import from_offsets
from jobs.measure.reach import Reach, are_among, groups_of
from jobs.measure.reading import Flags, Ints
from sharelens.lake.parquet import conform
from sharelens.lake.tables import TABLES, TOPIC
from sharelens.measures.catalog import Measure, Rule
from sharelens.measures.lag_over_time import without_repeats
from sharelens.measures.ranges.places import coded
from state_model.columnar.codes import ABOVE_ALL, BELOW_ALL, ints
from state_model.columnar.ordering import order_by


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Rows of a measure's table for the files of open rows and of final ones, and the final rows to delete.

    `since`: by place, from which value of `Measure.order` on final rows are deleted; ABOVE_ALL: none is.
    `replaces_open`: places whose open rows are deleted.
    """

    open_rows: pa.Table
    final_rows: pa.Table
    since: Ints
    replaces_open: Flags


def changes(reach: Reach, measure: Measure) -> Changes:
    """The rows of a measure that a run writes, and those that they replace."""
    inputs, view = reach.inputs, reach.view(measure)
    if measure.rule is Rule.BY_BLOCK:
        settled = reach.settled
        view.once("settled in blocks", lambda: settled)
    rows = measure.rows(view)
    constants = {"run_id": inputs.task.run, "cluster_id": inputs.topic.cluster_id}
    if measure.rule is Rule.WHOLE_LOG:
        no_since = np.full(inputs.places.count, ABOVE_ALL, np.int64)
        rows = conform_open(rows, measure, constants)
        every = reach.replaces_open(measure)
        return Changes(open_rows=rows, final_rows=rows.slice(0, 0), since=no_since, replaces_open=every)
    since = reach.since(measure)
    rows = _with_topic(_from(rows, measure, reach, since), reach)
    rows = inputs.base.clipped(measure, conform_open(rows, measure, constants))
    replaces_open = reach.replaces_open(measure)
    replaces_open[inputs.places.of(rows)] = True
    rows = _with_kept(rows, measure, reach, since, replaces_open)
    if measure.rule is Rule.BY_MOMENT:
        rows = without_repeats(rows)
        final = _has_final_successor(rows, measure, reach)
    elif measure.rule is Rule.BY_BLOCK:
        final = reach.is_final(rows)
    else:
        final = order_of(rows, measure) < reach.final_below(measure)[inputs.places.of(rows)]
    return Changes(
        open_rows=rows.filter(pa.array(~final)),
        final_rows=rows.filter(pa.array(final)),
        since=np.where(reach.reaches_final(measure), since, ABOVE_ALL),
        replaces_open=replaces_open,
    )


def conform_open(rows: pa.Table, measure: Measure, constants: dict[str, Any]) -> pa.Table:
    """The rows with all columns of the table's files."""
    fields = TABLES[measure.table].schema
    return conform(rows, pa.schema([field for field in fields if field.name != "is_final"]), constants)


def order_of(rows: pa.Table, measure: Measure) -> Ints:
    """The column that the rule compares; a null is below all."""
    return ints(rows, str(measure.order), -1)


def _has_final_successor(rows: pa.Table, measure: Measure, reach: Reach) -> Flags:
    """Whether the next row of the same place is final: it then is, too. The newest such row stays open, because the
    first row of a later run is compared with it.
    """
    at, order = reach.inputs.places.of(rows), order_of(rows, measure)
    result = np.zeros(rows.num_rows, np.bool_)
    result[:-1] = (at[1:] == at[:-1]) & (order[1:] < reach.final_below(measure)[at[1:]])
    return result


def _from(rows: pa.Table, measure: Measure, reach: Reach, since: Ints) -> pa.Table:
    """The rows that are recomputed; of ranges of record offsets the part from `since` on."""
    if measure.rule in (Rule.BY_BLOCK, Rule.BY_INTERVAL):
        return rows
    least = since[reach.inputs.places.of(rows)]
    if measure.rule is Rule.BY_RECORD_OFFSET:
        return from_offsets(rows, least)
    return rows.filter(pa.array(order_of(rows, measure) >= least))


def _with_kept(rows: pa.Table, measure: Measure, reach: Reach, since: Ints, replaced: Flags) -> pa.Table:
    """The rows with the kept ones of replaced open rows, by share partition and `Measure.order`."""
    inputs = reach.inputs
    if replaced.any() and (inputs.base.layers or not inputs.is_whole.all()):
        names = rows.column_names
        open_rows = inputs.lake.rows(measure.table, names, coded=False, final=False).cast(rows.schema)
        at = inputs.places.of(open_rows)
        if measure.rule is Rule.BY_BLOCK:
            stays = ~are_among(groups_of(inputs, open_rows), reach.contributions.groups) & (since[at] != BELOW_ALL)
        else:
            stays = order_of(open_rows, measure) < since[at]
        stays |= inputs.base.stays(measure, open_rows)
        stays &= replaced[at]
        if stays.any():
            rows = pa.concat_tables([rows, open_rows.filter(pa.array(stays))])
    order = order_by(inputs.places.of(rows), order_of(rows, measure))
    return rows.take(pa.array(order))


def _with_topic(rows: pa.Table, reach: Reach) -> pa.Table:
    if "topic" in rows.column_names:
        return rows
    topics, codes = coded(rows.column("topic_id"))
    names = pa.array([reach.inputs.names.get(topic_id) for topic_id in topics], pa.string()).take(pa.array(codes))
    return rows.add_column(rows.schema.get_field_index("topic_id") + 1, TOPIC, names)
