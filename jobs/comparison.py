"""What two lakes say, apart from which run wrote it."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.lake.scan import open_lake
from sharelens.lake.tables import TABLES

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


def differing_tables(tables: Mapping[str, pa.Table], other_tables: Mapping[str, pa.Table]) -> list[str]:
    """Names of the tables, of `content`, whose rows differ."""
    return [name for name in sorted(tables) if not tables[name].equals(other_tables[name])]
