"""How far share groups are behind: now, as of a time, at offsets of the state log, or over time."""

import time
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.as_of import LogPrefix
from sharelens.measures import lag as measure
from sharelens.measures.inputs import topic_ends
from sharelens.measures.lag_over_time import HISTORY_COLUMNS, Arrivals, HistoryAtMoments
from sharelens.measures.lag_over_time import lag_over_time as over_time
from sharelens.measures.schemas import LAG, LAG_OVER_TIME
from sharelens.measures.topics.extents import BATCH_COLUMNS
from sharelens.measures.topics.file_ends import (
    EndOffsets,
    with_end_offsets,
    with_inferred_ends,
    with_stable_offsets,
)
from sharelens.measures.topics.headers import begins_of
from sharelens.output import Answer, Column, Row, number_text
from sharelens.output.layouts import Layout
from sharelens.parameters.filters import KeyFilter
from sharelens.parameters.times import lasted, time_step, time_text
from sharelens.questions.answers.checked import with_coordinators
from sharelens.questions.answers.completeness import (
    check_cut,
    closing_line,
    incomplete_rows,
    misplaced_warnings,
    prefix_of,
    times,
)
from sharelens.questions.answers.missing import unknown_ends, without_state
from sharelens.questions.answers.naming import ensure_known, resolve
from sharelens.questions.answers.shape import answer_schema, constant, with_names
from sharelens.source.request import CutChoice
from sharelens.tables.measure_inputs import EvidenceInputs
from sharelens.tables.misplaced import misplaced_places
from sharelens.tables.port import HISTORY, RunningCluster, Tables
from sharelens.tables.reading import read, read_states, read_topic_batches
from sharelens.tables.where import Keys, Order, Where
from state_model.columnar.keys import PLACE_KEY, SHARE_PARTITION_KEY, SHARE_PARTITION_ORDER
from state_model.columnar.schemas import SHARE_PARTITION_HISTORY
from state_model.errors import UsageError

MOST_ROWS = 5_000_000
AUTO, AUTO_MOMENTS = 0, 120
"""The step for which a usual one is chosen, and how many moments that has at most."""


def lag(
    evidence: Tables,
    key_filter: KeyFilter,
    cut: CutChoice,
    *,
    end_offsets: EndOffsets | None = None,
    now_ms: int | None = None,
    other_groups: frozenset[str] = frozenset(),
) -> Answer:
    """The answer to `sharelens lag`; `end_offsets` replaces the end offsets of the evidence.

    `now_ms`: the time of the question; with it the summary has the age of the cut. `other_groups`: groups that the
    filter may name although they have no share state.
    """
    keys = resolve(evidence, key_filter)
    prefix = prefix_of(cut)
    placed = read_states(evidence, keys, prefix).sort_by(SHARE_PARTITION_ORDER)
    states = placed.filter(pc.invert(placed.column("misplaced")))
    warnings = check_cut(evidence, prefix)
    if states.num_rows == 0:
        ensure_known(evidence, key_filter, keys, other_groups)
    topic_ids = states.column("topic_id").unique().to_pylist()
    names = evidence.names(topic_ids)
    prefix = _within(evidence, prefix)
    if prefix.is_whole and end_offsets is None and evidence.stored("gold.lag"):
        table = read(evidence, "gold.lag", LAG.names, Where(keys=keys))
    else:
        table = lag_of(evidence, states, prefix, end_offsets)
    table = with_names(table.sort_by(SHARE_PARTITION_ORDER), names)
    table = table.add_column(0, "cluster_id", constant(evidence.cluster_id, table.num_rows, pa.string()))
    warnings += misplaced_warnings(placed.filter(placed.column("misplaced")), names)
    warnings += [*unknown_ends(table), *without_state(evidence.missing, key_filter.groups)]
    closing = closing_line(evidence, incomplete_rows(table.column("completeness")))
    return Answer(
        table=table,
        columns=(LAYOUT if prefix.is_whole else EARLIER_LAYOUT).columns(),
        summary=f"{_cut_line(evidence, prefix, table, now_ms)}\n{closing}",
        warnings=tuple(warnings),
        none="no live share partition",
    )


def lag_of(evidence: Tables, states: pa.Table, cut: LogPrefix, end_offsets: EndOffsets | None = None) -> pa.Table:
    """LAG rows of SHARE_PARTITION_STATE rows at a cut.

    `end_offsets` replaces the end offsets of the evidence; those of the settings only raise them.
    """
    ends = topic_ends(EvidenceInputs(evidence, cut), begins_of(states))
    topic_ids = states.column("topic_id").unique().to_pylist()
    names = evidence.names(topic_ids)
    only_higher = end_offsets is None
    if end_offsets is None:
        end_offsets = evidence.settings.end_offsets if cut.is_whole else {}
    names_of_ids = {topic_id: names[topic_id] for topic_id in topic_ids if topic_id in names}
    ends = with_end_offsets(ends, end_offsets, names_of_ids, only_higher=only_higher)
    if evidence.cluster is not None:
        ends = _with_cluster(ends, evidence.cluster, cut, names_of_ids)
    return measure.lag(states, ends, names, end_of_now=cut.is_whole)


def _with_cluster(ends: pa.Table, cluster: RunningCluster, cut: LogPrefix, names: Mapping[str, str]) -> pa.Table:
    """The ends with what a running cluster says of user partitions whose headers were not fetched."""
    if cut.is_whole and (stable := cluster.stable_offsets()):
        return with_stable_offsets(ends, stable, names)
    if cut.as_of_ms is not None and (then := cluster.ends_at(cut.as_of_ms, names.values())):
        return with_inferred_ends(ends, then, names)
    return ends


def checked_lag(
    evidence: Tables, key_filter: KeyFilter, cut: CutChoice, *, end_offsets: EndOffsets | None = None
) -> Answer:
    """The answer to `sharelens lag`; without end offsets also what the coordinators of a running cluster say."""
    answer = lag(evidence, key_filter, cut, end_offsets=end_offsets, now_ms=time.time_ns() // 1_000_000)
    return answer if end_offsets else with_coordinators(evidence, answer, cut)


def lag_over_time(
    evidence: Tables, key_filter: KeyFilter, every_ms: int, from_ms: int | None = None, to_ms: int | None = None
) -> Answer:
    """The answer to `sharelens lag --every`: the lag at each multiple of `every_ms` in [from, to); the ends of the
    evidence where none is given. AUTO: a usual step.

    Raises:
        UsageError: nothing bears the names that were typed, or the moments are too many.
    """
    keys = resolve(evidence, key_filter)
    moments = _moments(evidence, every_ms, from_ms, to_ms)
    collected, places = _at_moments(evidence, keys, moments)
    if places.num_rows == 0:
        ensure_known(evidence, key_filter, keys)
    misplaced = misplaced_places(evidence, keys, places)
    history = without_places(collected.table(), misplaced)
    names = evidence.names(history.column("topic_id").unique().to_pylist())
    share_partitions = places.group_by(SHARE_PARTITION_KEY).aggregate([]).num_rows
    if len(moments) * share_partitions > MOST_ROWS:
        raise UsageError(
            f"--every: {len(moments)} moments of {share_partitions} share partitions are more than {MOST_ROWS} rows; "
            "give a longer --every, a narrower --from and --to, or --group"
        )
    arrivals = Arrivals(moments)
    for batches in read_topic_batches(evidence, collected.begins):
        arrivals.take(batches.select(BATCH_COLUMNS))
    table = over_time(history, arrivals, moments, names)
    table = table.add_column(0, "cluster_id", constant(evidence.cluster_id, table.num_rows, pa.string()))
    return Answer(
        table=table,
        columns=OVER_TIME_LAYOUT.columns(),
        summary=closing_line(evidence, incomplete_rows(table.column("completeness"))),
        warnings=tuple(misplaced_warnings(misplaced, names)),
        none="no live share partition at any of the moments",
    )


def _at_moments(evidence: Tables, keys: Keys, moments: npt.NDArray[np.int64]) -> tuple[HistoryAtMoments, pa.Table]:
    """The history at the moments, and all its places: PLACE_KEY and the newest log_time_ms."""
    collected = HistoryAtMoments(moments)
    places = [SHARE_PARTITION_HISTORY.empty_table().select([*PLACE_KEY, "log_time_ms"])]
    for history in evidence.scan(HISTORY, HISTORY_COLUMNS, Where(keys=keys), Order.LOG):
        collected.add(history)
        newest = history.group_by(PLACE_KEY).aggregate([("log_time_ms", "max")])
        places.append(newest.rename_columns([*PLACE_KEY, "log_time_ms"]).cast(places[0].schema))
    return collected, pa.concat_tables(places)


def _moments(evidence: Tables, every_ms: int, from_ms: int | None, to_ms: int | None) -> npt.NDArray[np.int64]:
    """Multiples of `every_ms` from --from or the beginning of the evidence up to its end."""
    first, last = times(evidence.cover())
    if first is None or last is None:
        return np.empty(0, np.int64)
    begin = first if from_ms is None else from_ms
    if every_ms == AUTO:
        every_ms = time_step((last if to_ms is None else to_ms) - begin, AUTO_MOMENTS - 1)
    end = last + every_ms if to_ms is None else to_ms
    if (end - begin) // every_ms > MOST_ROWS:
        raise UsageError(f"--every: more than {MOST_ROWS} moments; give a longer one, or a narrower --from and --to")
    return np.arange(-(-begin // every_ms) * every_ms, end, every_ms, dtype=np.int64)


def without_places(rows: pa.Table, places: pa.Table) -> pa.Table:
    """The rows of other places (PLACE_KEY)."""
    if places.num_rows == 0:
        return rows
    gone = {tuple(row.values()) for row in places.select(list(PLACE_KEY)).to_pylist()}
    return rows.filter(
        pa.array([tuple(row.values()) not in gone for row in rows.select(list(PLACE_KEY)).to_pylist()], pa.bool_())
    )


def _within(evidence: Tables, cut: LogPrefix) -> LogPrefix:
    """The cut, or no cut where it lies at or behind the end of the evidence."""
    last = times(evidence.cover())[1]
    return LogPrefix() if cut.as_of_ms is not None and last is not None and cut.as_of_ms >= last else cut


def _cut_line(evidence: Tables, cut: LogPrefix, table: pa.Table, now_ms: int | None) -> str:
    """The moment of the answer, its age, and the sources of the end offsets."""
    at_ms = times(evidence.cover())[1] if cut.as_of_ms is None else cut.as_of_ms
    moment = "offsets of the state log" if cut.at_offsets else time_text(at_ms)
    if now_ms is not None and at_ms is not None and not cut.at_offsets:
        moment += f", {lasted(max(0, now_ms - at_ms))} ago"
    sources = sorted(filter(None, table.column("end_offset_source").unique().to_pylist()))
    return f"cut: {moment}; end offsets: {', '.join(sources) or 'none known'}"


def _why_cell(row: Row) -> str:
    """The reason why the lag is unknown, else why the figures differ."""
    return number_text(row["why"] if row["unknown_reason"] is None else row["unknown_reason"])


LAYOUT = Layout(
    schema=answer_schema(LAG),
    fields="group_id topic partition leader_epoch start_offset lag first_incomplete_offset end_offset lag_stable "
    "lag_recounted lag_naive completeness why",
    cells=(Column(heading="WHY", cell=_why_cell, fields=("why", "unknown_reason")),),
    important="GROUP TOPIC PARTITION LAG START-OFFSET END-OFFSET WHY FIRST-INCOMPLETE",
)
EARLIER_LAYOUT = replace(
    LAYOUT,
    fields="group_id topic partition leader_epoch start_offset lag first_incomplete_offset end_offset "
    "end_offset_inferred lag_inferred lag_stable lag_recounted lag_naive completeness why",
    important="GROUP TOPIC PARTITION LAG-INFERRED START-OFFSET END-OFFSET-INFERRED WHY",
)
OVER_TIME_LAYOUT = Layout(
    schema=answer_schema(LAG_OVER_TIME),
    fields="at_ms group_id topic partition leader_epoch start_offset end_offset_inferred lag_inferred completeness "
    "unknown_reason",
    headings={"unknown_reason": "WHY"},
    important="GROUP TOPIC PARTITION AT LAG-INFERRED WHY START-OFFSET END-OFFSET-INFERRED",
)
