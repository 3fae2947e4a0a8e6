"""The lives of share partitions: creations, resets, deletions, moved epochs, with before and after."""

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from measures import life as measure
from measures.schemas import EVENTS
from sharelens.asked import CutAsked
from sharelens.filters import Wanted
from sharelens.output import Answer, Column, Row, known, name_column, number_column, time_column
from sharelens.questions.evidence import Evidence, Span, kept
from sharelens.questions.measured import answer, of_parts, scope
from sharelens.questions.state import completeness_cell, topic_cell


def life(
    evidence: Evidence, wanted: Wanted, asked: CutAsked, span: Span, *, events: Collection[str] = EVENTS
) -> Answer:
    """The answer to `sharelens life`; `span` bounds the log time of the events."""
    told = scope(evidence, wanted, asked)
    found = kept(of_parts(told, lambda part: measure.life(part.history, part.deliveries)), span.expression())
    found = found.filter(pc.is_in(found.column("event"), value_set=pa.array(sorted(events), pa.string())))
    counts = {row["values"]: row["counts"] for row in pc.value_counts(found.column("event")).to_pylist()}
    summary = ", ".join(f"{event} {counts[event]}" for event in EVENTS if event in counts) or "none"
    return answer(
        evidence,
        found,
        TEXT_COLUMNS,
        told=f"events: {summary}",
        warnings=told.warnings,
        none="no event",
    )


def _pair(name: str, heading: str) -> Column:
    def cell(row: Row) -> str:
        was, now = known(row[f"{name}_before"]), known(row[f"{name}_after"])
        return now if was == now else f"{was}>{now}"

    return Column(heading=heading, cell=cell, right=True)


def _span(name: str, heading: str) -> Column:
    def cell(row: Row) -> str:
        first, last = row[f"{name}_first_offset"], row[f"{name}_last_offset"]
        return known(None) if first is None else f"{first}-{last}"

    return Column(heading=heading, cell=cell, right=True)


TEXT_COLUMNS = (
    name_column("GROUP", "group_id"),
    Column(heading="TOPIC", cell=topic_cell),
    number_column("PARTITION", "partition"),
    _pair("leader_epoch", "LEADER-EPOCH"),
    _pair("start_offset", "START-OFFSET"),
    time_column("LOG-TIME", "log_time_ms"),
    name_column("EVENT", "event"),
    _pair("state_epoch", "STATE-EPOCH"),
    _span("skipped", "SKIPPED-OFFSETS"),
    _span("replayed", "REPLAYED-OFFSETS"),
    number_column("SETTLED-SKIPPED", "settled_skipped"),
    number_column("SETTLED-DROPPED", "settled_dropped"),
    number_column("STATE-PARTITION", "state_partition"),
    number_column("STATE-LOG-OFFSET", "log_offset"),
    Column(heading="COMPLETENESS", cell=completeness_cell),
)
