"""What share state costs its coordinator, by share partition or by state partition."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.conditions import filter_rows
from sharelens.measures import cost as measure
from sharelens.measures.schemas import COST, PRUNING
from sharelens.output import Answer
from sharelens.output.layouts import Layout
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.answers.completeness import check_cut, prefix_of
from sharelens.questions.answers.measured import answer, marked, of_parts, scope
from sharelens.questions.answers.shape import answer_schema
from sharelens.source.request import CutChoice
from sharelens.tables.parts import Part
from sharelens.tables.port import RECORDS, Tables
from sharelens.tables.where import Span


def cost(evidence: Tables, key_filter: KeyFilter, cut: CutChoice, span: Span) -> Answer:
    """The answer to `sharelens cost`: one row a share partition; `span` bounds the log time of the records."""
    scoped = scope(evidence, key_filter, cut)

    def of_part(part: Part) -> pa.Table:
        rows = measure.rows(scoped.inputs(part, window=span), of_window=span != Span())
        return marked(rows, part.history)

    table = of_parts(scoped, of_part)
    sums = {name: pc.sum(table.column(name)).as_py() or 0 for name in ("records", "bytes", "acknowledged_offsets")}
    summary = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in sums.items())
    return answer(evidence, table, LAYOUT, totals=summary, warnings=scoped.warnings, none="no record")


def pruning(evidence: Tables, cut: CutChoice) -> Answer:
    """The answer to `sharelens cost --state-partitions`: one row a state partition."""
    prefix = prefix_of(cut)

    def records() -> Iterator[pa.Table]:
        return (filter_rows(table, prefix.condition()) for table in evidence.scan(RECORDS, measure.PRUNING_READ))

    rows = measure.pruning(records)
    lost = {part.state_partition: part.losses[0].reason for part in evidence.cover() if part.losses}
    reasons = [lost.get(number) for number in rows.column("state_partition").to_pylist()]
    marks = ["complete" if reason is None else "incomplete" for reason in reasons]
    rows = rows.append_column("completeness", pa.array(marks, pa.string()))
    rows = rows.append_column("completeness_reason", pa.array(reasons, pa.string()))
    stalls = pc.sum(pc.cast(rows.column("pruning_stalls"), pa.int64())).as_py() or 0
    return answer(
        evidence,
        rows,
        PRUNING_LAYOUT,
        totals=f"state partitions whose pruning stalls: {stalls}",
        warnings=check_cut(evidence, prefix),
        none="no record",
    )


LAYOUT = Layout(
    schema=answer_schema(COST),
    fields="group_id topic partition records snapshots cold_snapshots updates bytes acknowledged_offsets "
    "updates_per_acknowledged snapshots_per_acknowledged bytes_per_acknowledged span_updates_mean span_updates_max "
    "state_partition completeness",
    important="GROUP TOPIC PARTITION RECORDS BYTES ACKNOWLEDGED-OFFSETS UPDATES-PER-ACKNOWLEDGED",
)
PRUNING_LAYOUT = Layout(
    schema=answer_schema(PRUNING),
    headings={"held_up_by_group_id": "HELD-UP-BY-GROUP", "pruning_stalls": "STALLS"},
    important="STATE-PARTITION STALLS FREEABLE-BYTES HELD-UP-MS HELD-UP-BY-GROUP HELD-UP-BY-TOPIC-ID "
    "HELD-UP-BY-PARTITION",
)
