"""What share state costs its coordinator, by share partition or by state partition."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.conditions import filter_rows
from sharelens.measures import cost as measure
from sharelens.output import Answer, Column, Row, by_importance, name_column, number_column, number_text
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.answers.completeness import check_cut, prefix_of
from sharelens.questions.answers.measured import answer, marked, of_parts, scope
from sharelens.questions.state import COMPLETENESS, TOPIC
from sharelens.source.request import CutChoice
from sharelens.tables.measure_inputs import Part
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
    return answer(evidence, table, COST_COLUMNS, totals=summary, warnings=scoped.warnings, none="no record")


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
        PRUNING_COLUMNS,
        totals=f"state partitions whose pruning stalls: {stalls}",
        warnings=check_cut(evidence, prefix),
        none="no record",
    )


def _ratio(heading: str, field: str) -> Column:
    def cell(row: Row) -> str:
        value = row[field]
        return f"{value:.2f}" if isinstance(value, float) else number_text(None)

    return Column(heading=heading, cell=cell, right=True, fields=(field,))


COST_COLUMNS = by_importance(
    (
        name_column("GROUP", "group_id"),
        TOPIC,
        number_column("PARTITION", "partition"),
        number_column("RECORDS", "records"),
        number_column("SNAPSHOTS", "snapshots"),
        number_column("COLD-SNAPSHOTS", "cold_snapshots"),
        number_column("UPDATES", "updates"),
        number_column("BYTES", "bytes"),
        number_column("ACKNOWLEDGED-OFFSETS", "acknowledged_offsets"),
        _ratio("UPDATES-PER-ACKNOWLEDGED", "updates_per_acknowledged"),
        _ratio("SNAPSHOTS-PER-ACKNOWLEDGED", "snapshots_per_acknowledged"),
        _ratio("BYTES-PER-ACKNOWLEDGED", "bytes_per_acknowledged"),
        _ratio("SPAN-UPDATES-MEAN", "span_updates_mean"),
        number_column("SPAN-UPDATES-MAX", "span_updates_max"),
        number_column("STATE-PARTITION", "state_partition"),
        COMPLETENESS,
    ),
    "GROUP TOPIC PARTITION RECORDS BYTES ACKNOWLEDGED-OFFSETS UPDATES-PER-ACKNOWLEDGED",
)
PRUNING_COLUMNS = by_importance(
    (
        number_column("STATE-PARTITION", "state_partition"),
        number_column("RECORDS", "records"),
        number_column("BYTES", "bytes"),
        number_column("PRUNE-STATE-LOG-OFFSET", "prune_log_offset"),
        number_column("FREEABLE-RECORDS", "freeable_records"),
        number_column("FREEABLE-BYTES", "freeable_bytes"),
        name_column("HELD-UP-BY-GROUP", "held_up_by_group_id"),
        name_column("HELD-UP-BY-TOPIC-ID", "held_up_by_topic_id"),
        number_column("HELD-UP-BY-PARTITION", "held_up_by_partition"),
        number_column("HELD-UP-MS", "held_up_ms"),
        name_column("STALLS", "pruning_stalls"),
        COMPLETENESS,
    ),
    "STATE-PARTITION STALLS FREEABLE-BYTES HELD-UP-MS HELD-UP-BY-GROUP HELD-UP-BY-TOPIC-ID HELD-UP-BY-PARTITION",
)
