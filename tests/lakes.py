"""Comparing lakes: what two lakes say, apart from which run wrote it."""

from collections.abc import Collection, Iterable
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.lake.scan import open_lake
from sharelens.lake.tables import TABLES
from tests.once import run_folder

BOOKKEEPING = {"run_id", "is_final", "first_run_id", "withdrawn_run_id"}
"""Columns that say which run wrote a row, and whether later runs still look at it; they depend on when runs were."""
BOOKS = {"bronze.ingest_extent", "gold.publication", "bronze.quarantine"}
"""Tables that say how the lake came to be; two ways to the same lake differ there."""
OF_THE_AUDIT = ("gold.audit_state", "gold.audit_counter")
"""The audit's own: they number share partitions as runs came upon them."""
CONTENT = tuple(name for name in TABLES if name not in BOOKS and name not in OF_THE_AUDIT)


def content(path: Path | str, names: Iterable[str] = CONTENT) -> dict[str, pa.Table]:
    """Tables (all but the books) at the published cut, sorted by key, without the columns of bookkeeping."""
    lake = open_lake(path)
    result = {}
    for name in names:
        table, rows = TABLES[name], lake.scan(name)
        if "withdrawn_run_id" in rows.column_names:  # a lake that was made at once has none that were refuted
            rows = rows.filter(pc.field("withdrawn_run_id").is_null())
        order = [(column, "ascending") for column in table.key]
        result[name] = rows.sort_by(order).drop_columns([n for n in rows.column_names if n in BOOKKEEPING])
    return result


@lru_cache(maxsize=16)
def shared_content(path: Path) -> dict[str, pa.Table]:
    """`content` of a lake that was made once for all tests: none changes it, so it is read once."""
    return content(path)


def _reference(path: Path) -> dict[str, pa.Table]:
    return shared_content(path) if run_folder() in path.parents else content(path)


def differences(left_tables: dict[str, pa.Table], right: dict[str, pa.Table]) -> list[str]:
    """One line for each table that differs: how many rows, and the first rows that only one side has."""
    lines = []
    for name in sorted(left_tables):
        if left_tables[name].equals(right[name]):
            continue
        ours = {repr(row) for row in left_tables[name].to_pylist()}
        theirs = {repr(row) for row in right[name].to_pylist()}
        lines.append(
            f"{name}: {left_tables[name].num_rows} rows against {right[name].num_rows}; only left: "
            f"{sorted(ours - theirs)[:2]}; only right: {sorted(theirs - ours)[:2]}"
        )
    return lines


def assert_same(left_lake: Path, right: Path, but: Collection[str] = ()) -> None:
    """Fails with the differing tables; `but`: tables that may differ."""
    left_tables = {name: rows for name, rows in content(left_lake).items() if name not in but}
    lines = differences(left_tables, _reference(right))
    assert not lines, "\n".join(lines)
