"""Records delivered more than once: the kind of redelivery, and the state log records that prove it."""

from collections.abc import Collection, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.conditions import filter_rows
from sharelens.measures import redelivered as measure
from sharelens.measures.figures import total
from sharelens.measures.schemas import REDELIVERIES
from sharelens.output import Answer, by_importance, name_column, number_column, time_column
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.answers.completeness import check_beginning
from sharelens.questions.answers.measured import PLACE_ORDER, Scope, answer, kept_stream, scope, stream_of
from sharelens.questions.answers.streaming import Listing, rows_of_stream
from sharelens.questions.state import COMPLETENESS, TOPIC
from sharelens.source.request import CutChoice
from sharelens.tables.port import Tables
from sharelens.tables.where import Span

EVER = Span()
ORDER = [*PLACE_ORDER, *((name, "ascending") for name in ("first_offset", "rank", "life"))]
UNSEEN = "not in the log: deliveries without an outcome yet, who had the record, whether it was processed before"


def redelivered(
    evidence: Tables,
    key_filter: KeyFilter,
    cut: CutChoice,
    span: Span,
    *,
    kinds: Collection[str] = REDELIVERIES,
    row_limit: int | None = None,
) -> Answer:
    """The answer to `sharelens redelivered`; `span` bounds the log time of the later delivery's outcome.

    `row_limit`: only the first rows are kept; None: all.
    """
    scoped = scope(evidence, key_filter, cut)
    listing, offsets = Listing(ORDER, row_limit), dict.fromkeys((kind for kind in REDELIVERIES if kind in kinds), 0)
    for table in redelivered_stream(scoped, span):
        rows = table.filter(pc.is_in(table.column("kind"), value_set=pa.array(sorted(kinds), pa.string())))
        listing.add(_ranked(rows))
        for kind in offsets:
            offsets[kind] += total("redelivered_records", rows.filter(pc.equal(rows.column("kind"), kind)))
    totals = ", ".join(f"{kind} {count}" for kind, count in offsets.items())
    return answer(
        evidence,
        listing.table().drop_columns(["rank"]),
        TEXT_COLUMNS,
        totals=f"record offsets: {totals}\n{UNSEEN}",
        warnings=(*scoped.warnings, *check_beginning(evidence, span.from_ms)),
        none="no outcome of a second delivery",
        all_rows=listing.row_counts(evidence),
    )


def redelivered_stream(scoped: Scope, span: Span = EVER, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """REDELIVERED rows in bounded tables, in any order; at the end of the evidence those of the gold table.

    `columns`: at least these, last_ms among them; None: all.
    """
    rows = kept_stream(scoped, "redelivered_record", columns)
    if rows is None:
        rows = stream_of(scoped, measure.rows)
    return (_in_span(table, span) for table in rows)


def redelivered_rows(scoped: Scope) -> pa.Table:
    """REDELIVERED rows; at the end of the evidence those of the gold table."""
    return rows_of_stream(map(_ranked, redelivered_stream(scoped)), ORDER).drop_columns(["rank"])


def _in_span(rows: pa.Table, span: Span) -> pa.Table:
    rows = filter_rows(rows.rename_columns({"last_ms": "log_time_ms"}), span.expression())
    return rows.rename_columns({"log_time_ms": "last_ms"})


def _ranked(rows: pa.Table) -> pa.Table:
    """The rows with `rank`, the place of their kind in REDELIVERIES."""
    return rows.append_column("rank", pc.index_in(rows.column("kind"), value_set=pa.array(REDELIVERIES)))


TEXT_COLUMNS = by_importance(
    (
        name_column("GROUP", "group_id"),
        TOPIC,
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
        COMPLETENESS,
    ),
    "GROUP TOPIC PARTITION FIRST-OFFSET LAST-OFFSET KIND DELIVERY-COUNT TIMES-ACKNOWLEDGED LAST-OUTCOME",
)
