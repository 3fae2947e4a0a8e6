"""Quality gates by the newest checks: the tables whose gate is closed. Reads gold.quality_result alone.

A gate is about one table. It closes when a blocking expectation fails in the newest check of the table, and stays
closed, whatever is written, until the expectation passes in a later check.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.lake.lake import Lake

RESULTS = "gold.quality_result"
COLUMNS = ["check_id", "run_id", "table_name", "version", "level", "expectation", "success"]
BLOCKING = "blocking"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """The newest check of a table with blocking expectations; `failed`: the failed ones, none for an open gate."""

    table: str
    version: int
    check_id: int
    run_id: int
    failed: tuple[str, ...]


def gates(lake: Lake, *, any_schema: bool = False) -> dict[str, Gate]:
    """The gate of every table that was ever checked, by table; `any_schema`: of a lake of an older version, too."""
    gates_by_table: dict[str, Gate] = {}
    for rows in _newest_first(lake, any_schema=any_schema):
        blocking = rows.filter(pc.field("level") == BLOCKING)
        order = [("check_id", "descending"), ("table_name", "ascending"), ("expectation", "ascending")]
        for row in blocking.sort_by(order).to_pylist():
            gate = gates_by_table.get(row["table_name"])
            if gate is None:
                gate = Gate(
                    table=row["table_name"],
                    version=row["version"],
                    check_id=row["check_id"],
                    run_id=row["run_id"],
                    failed=(),
                )
            if gate.check_id == row["check_id"]:
                failed = (row["expectation"],) if row["success"] is False else ()
                gates_by_table[gate.table] = _with_failed(gate, failed)
    return gates_by_table


def _with_failed(gate: Gate, failed: tuple[str, ...]) -> Gate:
    return Gate(
        table=gate.table,
        version=gate.version,
        check_id=gate.check_id,
        run_id=gate.run_id,
        failed=(*gate.failed, *failed),
    )


def _newest_first(lake: Lake, *, any_schema: bool) -> list[pa.Table]:
    """The results by check, newest first, until every table that the oldest of them names has been seen."""
    if not lake.exists(RESULTS):
        return []
    snapshot = lake.snapshot(RESULTS, any_schema=any_schema)
    if not snapshot.files:
        return []
    results, newest = snapshot.dataset(), snapshot.largest("check_id")
    last = results.to_table(columns=COLUMNS, filter=pc.field("check_id") == newest)
    tables = pc.unique(results.to_table(columns=["table_name"]).column("table_name"))
    checked_tables = last.filter(pc.field("level") == BLOCKING).column("table_name")
    if len(pc.unique(checked_tables)) == len(tables):
        return [last]
    return [results.to_table(columns=COLUMNS)]


def closed(lake: Lake, *, any_schema: bool = False) -> tuple[Gate, ...]:
    """The closed gates, by table; `any_schema` as in `gates`."""
    return tuple(gate for _, gate in sorted(gates(lake, any_schema=any_schema).items()) if gate.failed)


def closed_text(gates_closed: Sequence[Gate]) -> str:
    """One line part: table (expectations), ...; empty when no gate is closed."""
    return ", ".join(f"{gate.table} ({', '.join(gate.failed)})" for gate in gates_closed)
