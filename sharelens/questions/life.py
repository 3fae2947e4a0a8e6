"""The lives of share partitions: creations, resets, deletions, moved epochs, with before and after."""

from collections.abc import Collection, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.conditions import filter_rows
from sharelens.measures import life as measure
from sharelens.measures.deletions import DELETION, deleted_by
from sharelens.measures.schemas import DELETED_BY, EVENTS, LIFE
from sharelens.output import Answer, Column, Row, number_text
from sharelens.output.layouts import Layout
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.answers.measured import (
    PLACE_ORDER,
    Scope,
    answer,
    kept_rows,
    kept_stream,
    rows_of,
    scope,
    stream_of,
)
from sharelens.questions.answers.missing import without_group_records
from sharelens.questions.answers.shape import answer_schema, pair_column
from sharelens.source.request import CutChoice
from sharelens.tables.limits import TooMuchError
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_group_records
from sharelens.tables.where import Span


def life(
    evidence: Tables, key_filter: KeyFilter, cut: CutChoice, span: Span, *, events: Collection[str] = EVENTS
) -> Answer:
    """The answer to `sharelens life`; `span` bounds the log time of the events."""
    scoped = scope(evidence, key_filter, cut)
    rows = filter_rows(event_rows(scoped), span.expression())
    rows = rows.filter(pc.is_in(rows.column("event"), value_set=pa.array(sorted(events), pa.string())))
    rows, warnings = with_deletions(evidence, rows, cut)
    counts = {row["values"]: row["counts"] for row in pc.value_counts(rows.column("event")).to_pylist()}
    summary = ", ".join(f"{event} {counts[event]}" for event in EVENTS if event in counts) or "none"
    chosen = [event for event in EVENTS if event in events]
    return answer(
        evidence,
        rows,
        LAYOUT,
        totals=f"events: {summary}",
        warnings=(*scoped.warnings, *warnings),
        none="no event" if len(chosen) == len(EVENTS) else f"no event {' or '.join(chosen)}",
    )


def event_rows(scoped: Scope) -> pa.Table:
    """LIFE rows; at the end of the evidence those of the gold table."""
    rows = kept_rows(scoped, "life_event")
    if rows is None:
        return rows_of(scoped, measure.rows)
    rank = pc.index_in(rows.column("event"), value_set=pa.array(EVENTS))
    order = [*PLACE_ORDER, ("log_offset", "ascending"), ("rank", "ascending")]
    return rows.append_column("rank", rank).sort_by(order).drop_columns(["rank"])


def event_stream(scoped: Scope) -> Iterator[pa.Table]:
    """LIFE rows in bounded tables, in any order; at the end of the evidence those of the gold table."""
    kept_events = kept_stream(scoped, "life_event")
    return stream_of(scoped, measure.rows) if kept_events is None else kept_events


def with_deletions(evidence: Tables, rows: pa.Table, cut: CutChoice) -> tuple[pa.Table, list[str]]:
    """The rows with DELETED_BY before their marks; a warning where the group coordinator's log is too large to read."""
    gone = rows.filter(pc.equal(rows.column("event"), DELETION)).column("group_id").unique().to_pylist()
    by, warnings = pa.nulls(rows.num_rows, pa.string()), []
    if gone:
        try:
            records = read_group_records(evidence, frozenset(gone))
        except TooMuchError as error:
            warnings.append(f"who deleted is unknown: {error}")
        else:
            if records.num_rows == 0:
                warnings.append(without_group_records("who deleted is unknown"))
            if cut.as_of_ms is not None:
                records = records.filter(pc.less_equal(records.column("timestamp_ms"), cut.as_of_ms))
            by = deleted_by(rows, records)
    at = rows.schema.get_field_index("completeness")
    return rows.add_column(at, DELETED_BY, by), warnings


def _span(name: str, heading: str) -> Column:
    def cell(row: Row) -> str:
        first, last = row[f"{name}_first_offset"], row[f"{name}_last_offset"]
        return number_text(None) if first is None else f"{first}-{last}"

    return Column(heading=heading, cell=cell, right=True, fields=(f"{name}_first_offset", f"{name}_last_offset"))


LAYOUT = Layout(
    schema=answer_schema(LIFE.insert(LIFE.get_field_index("completeness"), DELETED_BY)),
    fields="group_id topic partition leader_epoch_after start_offset_after log_time_ms event state_epoch_after "
    "skipped_first_offset replayed_first_offset settled_skipped settled_dropped deleted_by_inferred state_partition "
    "log_offset completeness",
    cells=(
        pair_column("LEADER-EPOCH", "leader_epoch"),
        pair_column("START-OFFSET", "start_offset"),
        pair_column("STATE-EPOCH", "state_epoch"),
        _span("skipped", "SKIPPED-OFFSETS"),
        _span("replayed", "REPLAYED-OFFSETS"),
    ),
    important="GROUP TOPIC PARTITION EVENT LOG-TIME START-OFFSET SKIPPED-OFFSETS REPLAYED-OFFSETS SETTLED-SKIPPED",
)
