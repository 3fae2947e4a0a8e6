"""What a check found, as an answer: one line a gate, then every expectation that was not met."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.lake.gates import Gate, closed_text
from sharelens.output import Answer, Column, Report, by_importance, name_column, number_column

GATE = pa.schema(
    [
        pa.field("table_name", pa.string()),
        pa.field("level", pa.string()),
        pa.field("gate", pa.string()),
        pa.field("met", pa.int64()),
        pa.field("not_met", pa.int64()),
        pa.field("not_judged", pa.int64()),
        pa.field("slice_rows", pa.int64()),
        pa.field("version", pa.int64()),
    ]
)
FINDING = ("table_name", "level", "kind", "expectation", "column_name", "unexpected_count", "observed", "details")


def answer(results: pa.Table, looked_at: str, closed: Sequence[Gate]) -> Report:
    """The results of one check (rows of gold.quality_result)."""
    rows = results.to_pylist()
    return Report(
        parts={"gates": _gates(rows), "not_met": _findings(results)},
        summary=_summary(rows, looked_at, closed),
    )


def _gates(rows: Sequence[dict[str, Any]]) -> Answer:
    """One row a table and level."""
    grouped: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        grouped.setdefault((row["table_name"], row["level"]), []).append(row)
    lines = []
    for (table, level), level_rows in grouped.items():
        count = {outcome: sum(row["success"] is outcome for row in level_rows) for outcome in (True, False, None)}
        lines.append(
            {
                "table_name": table,
                "level": level,
                "gate": _word(level, count[False]),
                "met": count[True],
                "not_met": count[False],
                "not_judged": count[None],
                "slice_rows": level_rows[0]["slice_rows"],
                "version": level_rows[0]["version"],
            }
        )
    columns = (
        name_column("TABLE", "table_name"),
        name_column("LEVEL", "level"),
        name_column("GATE", "gate"),
        number_column("MET", "met"),
        number_column("NOT-MET", "not_met"),
        number_column("NOT-JUDGED", "not_judged"),
        number_column("ROWS", "slice_rows"),
        number_column("VERSION", "version"),
    )
    return Answer(table=pa.Table.from_pylist(lines, schema=GATE), columns=columns, none="nothing was checked")


def _word(level: str, not_met: int) -> str:
    if not_met == 0:
        return "open"
    return "closed" if level == "blocking" else "warned"


def _findings(results: pa.Table) -> Answer:
    findings = results.filter(pc.field("success") == pa.scalar(False)).select(list(FINDING))
    columns = (
        name_column("TABLE", "table_name"),
        name_column("LEVEL", "level"),
        name_column("EXPECTATION", "expectation"),
        Column(heading="OBSERVED", cell=lambda row: _details(row), fields=("observed", "details"), folds=True),
        Column(
            heading="RUNBOOK",
            cell=lambda row: runbook(str(row["kind"]), str(row["table_name"])),
            fields=("kind", "table_name"),
        ),
    )
    ranked = by_importance(columns, "TABLE EXPECTATION OBSERVED LEVEL RUNBOOK")
    return Answer(table=findings, columns=ranked, none="none")


def _details(row: Any) -> str:
    from sharelens.output.terminal import visible

    return visible("; ".join(part for part in (row["observed"], row["details"]) if part))


def runbook(kind: str, table: str) -> str:
    """Where the runbook of an expectation stands: a page a kind, a heading a table."""
    return f"docs/runbooks/gates/{kind}.md#{anchor(table)}"


def anchor(table: str) -> str:
    """The anchor of a table's heading on such a page: as GitHub and MkDocs make it, without the full stop."""
    return table.replace(".", "")


def _summary(rows: Sequence[dict[str, Any]], looked_at: str, closed: Sequence[Gate]) -> str:
    if not rows:
        return "no check"
    warned = sum(row["success"] is False and row["level"] == "warning" for row in rows)
    skipped = sum(row["success"] is None for row in rows)
    gates = f"closed gates: {closed_text(closed)}" if closed else "all gates open"
    return (
        f"check {rows[0]['check_id']} of {looked_at}: {len(rows)} expectations, {warned} warnings, "
        f"{skipped} not judged; {gates}"
    )
