"""Comparing lakes: what two lakes say, apart from which run wrote it."""

from collections.abc import Collection
from functools import lru_cache
from pathlib import Path

import pyarrow as pa

from jobs.comparison import BOOKS, CONTENT, OF_THE_AUDIT, content, differing_tables
from tests.once import run_folder

__all__ = ["BOOKS", "CONTENT", "OF_THE_AUDIT", "assert_same", "content", "differences", "shared_content"]


@lru_cache(maxsize=16)
def shared_content(path: Path) -> dict[str, pa.Table]:
    """`content` of a lake that was made once for all tests: none changes it, so it is read once."""
    return content(path)


def _reference(path: Path) -> dict[str, pa.Table]:
    return shared_content(path) if run_folder() in path.parents else content(path)


def differences(left_tables: dict[str, pa.Table], right: dict[str, pa.Table]) -> list[str]:
    """One line for each table that differs: how many rows, and the first rows that only one side has."""
    lines = []
    for name in differing_tables(left_tables, right):
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
