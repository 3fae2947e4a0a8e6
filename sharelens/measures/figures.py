"""The counts that several surfaces show: each is a sum over rows of one measure, with a unit and a population.

A surface never counts for itself: it takes the rows of a figure (`counted`), sums `records` over its keys, and prints.
The same name means the same figure everywhere; what counts something else has another name in the text.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.dlq.schemas import MISSING, NO_TOPIC_KNOWN, TOPIC_NOT_HELD
from sharelens.measures.latency.schemas import OPEN
from sharelens.measures.ranges.offset_counts import offset_counts

COUNT = "records"
"""The column that `counted` adds."""
GAP = "gap"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A count: rows of a measure (an entry of the catalogue) that meet `where`, and what each adds.

    `adds`: the column to sum, or the first offset of a range up to last_offset. `unit`, `population`: of the count, as
    the reference page has them. `shown`: the surfaces that show it.
    """

    measure: str
    population: str
    unit: str
    adds: str
    where: pc.Expression | None = None
    is_range: bool = True
    shown: tuple[str, ...] = ()


FIGURES: Mapping[str, Figure] = {
    "archived_records": Figure(
        measure="poison_record",
        population="records that groups archived or are archiving, once a life; no markers of transactions, no absent "
        "offsets, no records near the limit",
        unit="record offsets",
        adds="first_offset",
        where=pc.field("cause").is_valid() & (pc.field("cause") != GAP),
        shown=("`poison`", "`overview` (of the last hour)", "report", "`sql --query poison_by_topic`", "metrics"),
    ),
    "redelivered_records": Figure(
        measure="redelivered_record",
        population="records with the outcome of a second delivery, settled or not, once a life and kind",
        unit="record offsets",
        adds="first_offset",
        shown=("`redelivered`", "report", "metrics"),
    ),
    "settled_records": Figure(
        measure="attempts",
        population="records by their first outcome in a life, once a life; open records and gaps are left out",
        unit="record offsets",
        adds="offsets",
        where=pc.field("outcome") != OPEN,
        is_range=False,
        shown=("`attempts`", "`latency`", "report (delivery counts)", "`sql --query deliveries_histogram`"),
    ),
    "deliveries": Figure(
        measure="attempts",
        population="deliveries of settled records up to the first outcome",
        unit="deliveries",
        adds="deliveries",
        where=pc.field("outcome") != OPEN,
        is_range=False,
        shown=("`attempts`", "`latency`", "`overview` (of records settled in the last hour)"),
    ),
    "repeated_deliveries": Figure(
        measure="attempts",
        population="deliveries of settled records after the first one of each",
        unit="deliveries",
        adds="extra_deliveries",
        where=pc.field("outcome") != OPEN,
        is_range=False,
        shown=("`attempts`", "`latency`", "`overview` (of records settled in the last hour)"),
    ),
    "open_records": Figure(
        measure="attempts",
        population="records that were delivered and have no outcome yet",
        unit="record offsets",
        adds="offsets",
        where=pc.field("outcome") == OPEN,
        is_range=False,
        shown=("`attempts`",),
    ),
    "dead_letters_missing": Figure(
        measure="dlq_reconciliation",
        population="archived records whose dead letter is due and missing",
        unit="record offsets",
        adds="first_offset",
        where=pc.field("status") == MISSING,
        shown=("`dlq`", "`overview`", "report", "metrics"),
    ),
    "dead_letters_unjudged": Figure(
        measure="dlq_reconciliation",
        population="archived records whose dead letter is due, by the group's settings or as the record was ARCHIVING, "
        "in a topic that is not in the evidence",
        unit="record offsets",
        adds="first_offset",
        where=(pc.field("reason") == TOPIC_NOT_HELD)
        | ((pc.field("reason") == NO_TOPIC_KNOWN) & pc.field("archiving_ms").is_valid()),
        shown=("`overview`", "report"),
    ),
    "lag": Figure(
        measure="lag",
        population="known lags of live share partitions; those with unknown lag are counted apart",
        unit="records",
        adds="lag",
        where=pc.field("lag").is_valid(),
        is_range=False,
        shown=("`lag`", "`overview`", "report", "`sql --query lag_now`", "metrics"),
    ),
}


def counted(name: str, rows: pa.Table) -> pa.Table:
    """The rows of the measure that the figure counts, with what each adds to it in the column `records` (int64)."""
    figure = FIGURES[name]
    if figure.where is not None:
        rows = rows.filter(figure.where)
    return rows.append_column(COUNT, offset_counts(rows, figure.adds) if figure.is_range else rows.column(figure.adds))


def of_sums(name: str, sums: pa.Table) -> pa.Table:
    """The rows of sums of `records` that the figure counts; `sums` has the columns of its `where`."""
    where = FIGURES[name].where
    return sums if where is None else sums.filter(where)


def total(name: str, rows: pa.Table) -> int:
    """The figure over rows of its measure."""
    return total_of(counted(name, rows))


def total_of(rows: pa.Table, column: str = COUNT) -> int:
    """The sum of a column; 0 where there is no row."""
    return int(pc.sum(rows.column(column)).as_py() or 0)
