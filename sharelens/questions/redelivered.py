"""What was delivered more than once, why, and the records of the state log that prove it."""

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from evidence.conditions import filter_rows
from measures import redelivered as measure
from measures.schemas import REDELIVERIES
from sharelens.asked import CutAsked
from sharelens.filters import Wanted
from sharelens.output import Answer, Column, name_column, number_column, time_column
from sharelens.questions.evidence import Evidence, Span
from sharelens.questions.measured import PLACE_ORDER, Scope, answer, kept_rows, rows_of, scope
from sharelens.questions.state import completeness_cell, topic_cell

ORDER = [*PLACE_ORDER, ("first_offset", "ascending"), ("rank", "ascending")]
UNSEEN = "not in the log: deliveries without an outcome yet, who had the record, whether it was processed before"


def redelivered(
    evidence: Evidence, wanted: Wanted, asked: CutAsked, span: Span, *, kinds: Collection[str] = REDELIVERIES
) -> Answer:
    """The answer to `sharelens redelivered`; `span` bounds the log time of the later delivery's outcome."""
    scoped = scope(evidence, wanted, asked)
    found = redelivered_rows(scoped)
    found = filter_rows(found.rename_columns({"last_ms": "log_time_ms"}), span.expression())
    found = found.rename_columns({"log_time_ms": "last_ms"})
    found = found.filter(pc.is_in(found.column("kind"), value_set=pa.array(sorted(kinds), pa.string())))
    sizes = pc.add(pc.subtract(found.column("last_offset"), found.column("first_offset")), 1)
    told = ", ".join(
        f"{kind} {pc.sum(sizes.filter(pc.equal(found.column('kind'), kind))).as_py() or 0}" for kind in REDELIVERIES
    )
    return answer(
        evidence,
        found,
        TEXT_COLUMNS,
        told=f"record offsets: {told}\n{UNSEEN}",
        warnings=scoped.warnings,
        none="no outcome of a second delivery",
    )


def redelivered_rows(scoped: Scope) -> pa.Table:
    """REDELIVERED rows; at the end of the evidence those that a run kept."""
    rows = kept_rows(scoped, "redelivered_record")
    if rows is None:
        return rows_of(scoped, measure.rows)
    kind = pc.index_in(rows.column("kind"), value_set=pa.array(REDELIVERIES))
    return rows.append_column("rank", kind).sort_by(ORDER).drop_columns(["rank"])


TEXT_COLUMNS = (
    name_column("GROUP", "group_id"),
    Column(heading="TOPIC", cell=topic_cell),
    number_column("PARTITION", "partition"),
    number_column("FIRST-OFFSET", "first_offset"),
    number_column("LAST-OFFSET", "last_offset"),
    name_column("KIND", "kind"),
    number_column("TIMES-ACKNOWLEDGED", "times_acknowledged"),
    number_column("DELIVERY-COUNT", "max_delivery_count"),
    time_column("LAST-OUTCOME", "last_ms"),
    number_column("STATE-PARTITION", "state_partition"),
    number_column("LIFE", "life"),
    number_column("FIRST-STATE-LOG-OFFSET", "first_log_offset"),
    number_column("CAUSE-STATE-LOG-OFFSET", "cause_log_offset"),
    number_column("LAST-STATE-LOG-OFFSET", "last_log_offset"),
    Column(heading="COMPLETENESS", cell=completeness_cell),
)
