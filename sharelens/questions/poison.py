"""Which records a group gave up, how often they were delivered, and why, as far as log and configuration tell."""

import pyarrow as pa
import pyarrow.compute as pc

from evidence.conditions import filter_rows
from measures import poison as measure
from measures.settings import GroupSettings
from sharelens.filters import KeyFilter
from sharelens.output import Answer, Column, name_column, number_column, time_column
from sharelens.questions.dlq import told_by_letters
from sharelens.questions.evidence import Evidence, Span
from sharelens.questions.given_up import given_up
from sharelens.questions.measured import answer, scope
from sharelens.questions.missing import unseen
from sharelens.questions.state import completeness_cell, topic_cell
from sharelens.request import CutChoice

CAUSES = (measure.REJECTED, measure.DELIVERY_LIMIT, measure.UNKNOWN, measure.GAP)
NO_LIMIT = (
    "the delivery count limit of some groups is not told, so rejected and given up can't be told apart there: give "
    "--group-configs FILE (kafka-configs --describe --entity-type groups) or --broker-config FILE (server.properties)"
)
UNSEEN = (
    "there an archived offset may be a gap (a control record, or none at "
    "all), which is no poison; copy their folders too"
)


def poison(
    evidence: Evidence,
    wanted: KeyFilter,
    asked: CutChoice,
    span: Span,
    settings: GroupSettings,
    *,
    near_limit: bool = False,
    gaps: bool = False,
) -> Answer:
    """The answer to `sharelens poison`; `span` bounds the log time of the last outcome."""
    read = scope(evidence, wanted, asked)
    found = given_up(read, settings, near_limit=near_limit)
    found = told_by_letters(read, found, settings, asked.as_of_ms)
    found = filter_rows(found.rename_columns({"last_outcome_ms": "log_time_ms"}), span.expression())
    found = found.rename_columns({"log_time_ms": "last_outcome_ms"})
    told = _told(found)
    warnings = [*read.warnings, *([NO_LIMIT] if found.column("delivery_count_limit").null_count else [])]
    warnings += unseen(evidence, read.user_partitions, UNSEEN)
    if not gaps:
        found = found.filter(pc.fill_null(pc.not_equal(found.column("cause"), measure.GAP), True))
    return answer(evidence, found, TEXT_COLUMNS, told=told, warnings=warnings, none="no record was given up")


def _told(found: pa.Table) -> str:
    """Record offsets by cause."""
    sizes = pc.add(pc.subtract(found.column("last_offset"), found.column("offset")), 1)
    causes = found.column("cause")
    counts = {cause: pc.sum(sizes.filter(pc.equal(causes, cause))).as_py() or 0 for cause in CAUSES}
    near = pc.sum(sizes.filter(pc.is_null(causes))).as_py() or 0
    told = ", ".join(f"{cause} {count}" for cause, count in counts.items())
    return f"record offsets: {told} (no records; --gaps lists them)" + (f"; near the limit {near}" if near else "")


TEXT_COLUMNS = (
    name_column("GROUP", "group_id"),
    Column(heading="TOPIC", cell=topic_cell),
    number_column("PARTITION", "partition"),
    number_column("OFFSET", "offset"),
    number_column("LAST-OFFSET", "last_offset"),
    name_column("STATE", "delivery_state_name"),
    number_column("DELIVERY-COUNT", "delivery_count"),
    name_column("CAUSE", "cause"),
    name_column("CAUSE-FROM", "cause_source"),
    number_column("LIMIT", "delivery_count_limit"),
    name_column("LIMIT-FROM", "delivery_count_limit_source"),
    time_column("FIRST-OUTCOME", "first_outcome_ms"),
    time_column("LAST-OUTCOME", "last_outcome_ms"),
    number_column("STATE-PARTITION", "state_partition"),
    number_column("STATE-LOG-OFFSET", "log_offset"),
    Column(heading="COMPLETENESS", cell=completeness_cell),
)
