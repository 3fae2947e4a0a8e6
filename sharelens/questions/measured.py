"""What the answers of measures share: histories at a cut without misplaced rows, names, the closing line."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from measures.lives import PLACE
from sharelens.asked import CutAsked
from sharelens.filters import Wanted
from sharelens.output import Answer, Column
from sharelens.questions.completeness import check_cut, cut_of, evidence_line, incomplete_rows, misplaced_warnings
from sharelens.questions.evidence import Cut, Evidence, Keys, kept
from sharelens.questions.misplaced import WHERE, misplaced_places
from sharelens.questions.naming import ensure_known, resolve
from sharelens.questions.shape import constant, topic_column

MARKS = ["completeness", "completeness_reason"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Histories:
    """SHARE_PARTITION_HISTORY and DELIVERY_HISTORY rows of the share partitions asked about, up to the cut."""

    keys: Keys
    cut: Cut
    history: pa.Table
    deliveries: pa.Table
    warnings: tuple[str, ...]


def histories(evidence: Evidence, wanted: Wanted, asked: CutAsked) -> Histories:
    """Reads both histories; rows of a state partition that does not hold the share partition's state are left out.

    Raises:
        UsageError: nothing bears the names that were typed.
        SharelensError: the cut lies before the evidence.
    """
    keys, cut = resolve(evidence, wanted), cut_of(asked)
    history = evidence.history(keys)
    if history.num_rows == 0:
        ensure_known(evidence, wanted, keys)
    misplaced = misplaced_places(evidence, keys, history)
    history = kept(history, cut.expression())
    deliveries = evidence.deliveries(keys, cut)
    warnings = check_cut(evidence, cut)
    if misplaced.num_rows:
        names = evidence.names(misplaced.column("topic_id").unique().to_pylist())
        warnings += misplaced_warnings(misplaced, names)
        history, deliveries = _without(history, misplaced), _without(deliveries, misplaced)
    return Histories(keys=keys, cut=cut, history=history, deliveries=deliveries, warnings=tuple(warnings))


def _without(rows: pa.Table, places: pa.Table) -> pa.Table:
    number = pa.array(range(rows.num_rows), pa.int64())
    left = rows.select(list(WHERE)).append_column("row", number)
    found = left.join(places.select(list(WHERE)), keys=list(WHERE), join_type="left anti")
    return rows.take(found.column("row").sort())


def marked(table: pa.Table, history: pa.Table) -> pa.Table:
    """The rows with the completeness of their share partition's state at the cut."""
    newest = history.sort_by([("log_offset", "ascending")]).group_by(PLACE, use_threads=False)
    marks = newest.aggregate([(name, "last", pc.ScalarAggregateOptions(skip_nulls=False)) for name in MARKS])
    joined = table.append_column("row", pa.array(range(table.num_rows), pa.int64())).join(marks, keys=PLACE)
    joined = joined.sort_by("row").drop_columns(["row"])
    return joined.rename_columns({f"{name}_last": name for name in MARKS})


def described(evidence: Evidence, table: pa.Table) -> pa.Table:
    """The rows with cluster_id in front and, where there is a topic_id, the topic's name behind it."""
    if "topic_id" in table.column_names:
        names = evidence.names(table.column("topic_id").unique().to_pylist())
        index = table.column_names.index("topic_id") + 1
        table = table.add_column(index, pa.field("topic", pa.string()), topic_column(table.column("topic_id"), names))
    return table.add_column(
        0, pa.field("cluster_id", pa.string()), constant(evidence.cluster_id, table.num_rows, pa.string())
    )


def answer(
    evidence: Evidence,
    table: pa.Table,
    columns: Sequence[Column],
    *,
    told: str,
    warnings: Sequence[str] = (),
    none: str,
) -> Answer:
    """The answer of a measure: `table` with names, `told` as its own closing line above that of the evidence."""
    closing = evidence_line(evidence.cover(), incomplete_rows(table.column("completeness")))
    return Answer(
        table=described(evidence, table),
        columns=tuple(columns),
        summary=f"{told}\n{closing}",
        warnings=tuple(warnings),
        none=none,
    )
