"""The lives of share partitions: creations, resets, deletions, moved epochs, with before and after."""

from collections.abc import Collection, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.conditions import filter_rows
from sharelens.measures import life as measure
from sharelens.measures.deletions import DELETION, deleted_by
from sharelens.measures.figures import total_of
from sharelens.measures.schemas import DELETED_BY, EVENTS, LIFE
from sharelens.output import Answer, Column, Row, number_text
from sharelens.output.layouts import Layout
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.answers.measured import (
    PLACE_ORDER,
    Scope,
    answer,
    kept_stream,
    scope,
    stream_of,
)
from sharelens.questions.answers.missing import without_group_records
from sharelens.questions.answers.shape import answer_schema, pair_column
from sharelens.questions.answers.streaming import Listing, RowChoice, Sums, with_ones
from sharelens.source.request import CutChoice
from sharelens.tables.limits import TooMuchError
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_group_records
from sharelens.tables.where import Span
from state_model.columnar.keys import SHARE_PARTITION_KEY

ROWS = RowChoice(
    order=[*PLACE_ORDER, ("log_offset", "ascending"), ("rank", "ascending")],
    ranks={"rank": lambda rows: pc.index_in(rows.column("event"), value_set=pa.array(EVENTS))},
)


def life(
    evidence: Tables, key_filter: KeyFilter, cut: CutChoice, span: Span, *, events: Collection[str] = EVENTS
) -> Answer:
    """The answer to `sharelens life`; `span` bounds the log time of the events."""
    scoped = scope(evidence, key_filter, cut)
    life_rows = LifeRows(scoped, cut, span, ROWS, events)
    for rows in event_stream(scoped):
        life_rows.add(rows)
    return life_rows.answer()


class LifeRows:
    """Collects the answer from LIFE rows; `sums` by share partition and event: rows."""

    def __init__(
        self, scoped: Scope, cut: CutChoice, span: Span, choice: RowChoice, events: Collection[str] = EVENTS
    ) -> None:
        """`events`: those that are listed."""
        self._scoped, self._cut, self._span = scoped, cut, span
        self._events = [event for event in EVENTS if event in events]
        self._listing, self._sums = Listing(choice), Sums([*SHARE_PARTITION_KEY, "event"], {"rows": "sum"})
        self.add(LIFE.empty_table())

    def add(self, rows: pa.Table) -> pa.Table:
        """Adds the rows of the span, and returns them."""
        rows = filter_rows(rows, self._span.expression())
        self._sums.add(with_ones(rows))
        self._listing.add(rows.filter(pc.is_in(rows.column("event"), value_set=pa.array(self._events, pa.string()))))
        return rows

    def answer(self) -> Answer:
        """The answer of all rows."""
        evidence, sums = self._scoped.evidence, self._sums.table()
        rows, warnings = with_deletions(evidence, self._listing.table(), self._cut)
        counts = [f"{event} {count}" for event, count in counts_of(sums).items() if event in self._events]
        return answer(
            evidence,
            rows,
            LAYOUT,
            totals=f"events: {', '.join(counts) or 'none'}",
            warnings=(*self._scoped.warnings, *warnings),
            none="no event" if len(self._events) == len(EVENTS) else f"no event {' or '.join(self._events)}",
            all_rows=self._listing.row_counts(evidence),
            sums=sums,
        )


def counts_of(sums: pa.Table) -> dict[str, int]:
    """The number of each event that occurs, in the order of EVENTS, from sums of `rows` by event."""
    counts = {event: total_of(sums.filter(pc.field("event") == event), "rows") for event in EVENTS}
    return {event: count for event, count in counts.items() if count}


def event_rows(scoped: Scope) -> pa.Table:
    """LIFE rows; at the end of the evidence those of the gold table."""
    listing = Listing(ROWS)
    for rows in event_stream(scoped):
        listing.add(rows)
    return listing.table()


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
