"""Records delivered more than once: the kind of redelivery, and the state log records that prove it."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.conditions import filter_rows
from sharelens.measures import redelivered as measure
from sharelens.measures.figures import counted, total_of
from sharelens.measures.schemas import REDELIVERED, REDELIVERIES
from sharelens.output import Answer
from sharelens.output.layouts import Layout
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.answers.completeness import check_beginning
from sharelens.questions.answers.digests import as_answer, digest_schema
from sharelens.questions.answers.measured import PLACE_ORDER, Scope, answer, kept_stream, scope, stream_of
from sharelens.questions.answers.shape import answer_schema, in_answer
from sharelens.questions.answers.streaming import Listing, RowChoice, Sums
from sharelens.source.request import CutChoice
from sharelens.tables.port import Tables
from sharelens.tables.where import WHOLE_SPAN, Span
from state_model.columnar.keys import SHARE_PARTITION_KEY

ORDER = [*PLACE_ORDER, *((name, "ascending") for name in ("first_offset", "rank", "life_log_offset"))]
RANKS = {"rank": lambda rows: pc.index_in(rows.column("kind"), value_set=pa.array(REDELIVERIES))}
SUMMED = {"records": "sum", "max_delivery_count": "max", "last_ms": "max"}
LIFE_NAMES = {"life_log_offset": "life", "earlier_life_log_offset": "earlier_life"}
"""Names that the answer keeps for columns of the table."""
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
    is_chosen = pc.field("kind").isin(pa.array(sorted(kinds), pa.string()))
    stream = (rows.filter(is_chosen) for rows in redelivered_stream(scoped, span))
    choice = RowChoice(order=ORDER, row_limit=row_limit, ranks=RANKS)
    return redelivered_answer(scoped, stream, span, choice=choice, kinds=kinds)


def redelivered_answer(
    scoped: Scope, stream: Iterable[pa.Table], span: Span, *, choice: RowChoice, kinds: Collection[str] = REDELIVERIES
) -> Answer:
    """The answer of REDELIVERED rows of some kinds; `sums` by share partition and kind.

    records, the largest max_delivery_count, the newest last_ms.
    """
    listing, sums = Listing(choice), Sums([*SHARE_PARTITION_KEY, "kind"], SUMMED)
    for rows in stream:
        listing.add(rows)
        sums.add(counted("redelivered_records", rows))
    table = sums.table()
    offsets = {kind: total_of(table.filter(pc.field("kind") == kind)) for kind in REDELIVERIES if kind in kinds}
    totals = ", ".join(f"{kind} {count}" for kind, count in offsets.items())
    answered = answer(
        scoped.evidence,
        in_answer(listing.table(), LIFE_NAMES),
        LAYOUT,
        totals=f"record offsets: {totals}\n{UNSEEN}",
        warnings=(*scoped.warnings, *check_beginning(scoped.evidence, span.from_ms)),
        none="no outcome of a second delivery",
        all_rows=listing.row_counts(scoped.evidence),
        sums=table,
    )
    return replace(answered, digest=as_answer(_by_group(table), DIGEST_LAYOUT.columns(), DIGEST_ORDER))


def _by_group(sums: pa.Table) -> pa.Table:
    """The sums by group and kind, with the number of share partitions."""
    by_group = sums.group_by(["group_id", "kind"]).aggregate(
        [("records", "sum"), ([], "count_all"), ("max_delivery_count", "max"), ("last_ms", "max")]
    )
    return by_group.rename_columns(DIGEST_LAYOUT.schema.names)


def redelivered_stream(
    scoped: Scope, span: Span = WHOLE_SPAN, columns: Sequence[str] | None = None
) -> Iterator[pa.Table]:
    """REDELIVERED rows in bounded tables, in any order; at the end of the evidence those of the gold table.

    `columns`: at least these, last_ms among them; None: all.
    """
    in_span = span.expression("last_ms")
    rows = kept_stream(scoped, "redelivered_record", columns, in_span)
    return rows or (filter_rows(table, in_span) for table in stream_of(scoped, measure.rows))


LAYOUT = Layout(
    schema=answer_schema(REDELIVERED, LIFE_NAMES),
    fields="group_id topic partition first_offset last_offset kind times_acknowledged max_delivery_count last_ms "
    "state_partition life first_log_offset cause_log_offset last_log_offset completeness",
    headings={"max_delivery_count": "DELIVERY-COUNT", "last_ms": "LAST-OUTCOME"},
    important="GROUP TOPIC PARTITION FIRST-OFFSET LAST-OFFSET KIND DELIVERY-COUNT TIMES-ACKNOWLEDGED LAST-OUTCOME",
)
DIGEST_LAYOUT = Layout(
    schema=digest_schema(REDELIVERED, ["group_id", "kind"]).insert(4, REDELIVERED.field("max_delivery_count")),
    headings={"max_delivery_count": "DELIVERY-COUNT", "last_ms": "LAST-OUTCOME"},
)
DIGEST_ORDER = [("records", "descending"), ("group_id", "ascending"), ("kind", "ascending")]
