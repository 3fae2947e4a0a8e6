"""Small tables keep, for each key, the row with the least value."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs import books
from jobs.decode.merged import merged
from sharelens.evidence.schemas import NAME
from sharelens.lake.commit import create
from sharelens.lake.lake import Lake
from sharelens.lake.tables import TABLES
from tests.depths import examples

NAMES = "silver.name"
SCHEMA = pa.schema([*NAME, pa.field("cluster_id", pa.string())])


def row(topic: str, at_ms: int | None, source: str = "group_record") -> dict[str, Any]:
    return {"topic_id": "t", "topic": topic, "source": source, "valid_from_ms": at_ms, "cluster_id": "c"}


def put(lake: Path, rows: list[dict[str, Any]], run: int, drop: pc.Expression | None = None) -> bool:
    """Merges rows and commits; whether there was anything to change."""
    create(Lake(lake), TABLES[NAMES])
    adds, removes = merged(Lake(lake), NAMES, pa.Table.from_pylist(rows, schema=SCHEMA), run, drop)
    books.commit(Lake(lake), NAMES, "decode", run, adds, removes)
    return bool(adds or removes)


def rows_of(lake: Path) -> list[tuple[str, str, int | None, int]]:
    rows = Lake(lake).snapshot(NAMES).dataset().to_table().to_pylist()
    return sorted(((r["topic"], r["source"], r["valid_from_ms"], r["run_id"]) for r in rows), key=repr)


def test_the_least_value_wins_whichever_run_brought_it(tmp_path: Path) -> None:
    assert put(tmp_path, [row("a", 7), row("b", 5), row("a", 6)], 1)
    assert put(tmp_path, [row("a", 4), row("b", 9)], 2)
    assert rows_of(tmp_path) == [("a", "group_record", 4, 2), ("b", "group_record", 5, 1)]


def test_what_is_known_already_changes_nothing(tmp_path: Path) -> None:
    put(tmp_path, [row("a", 7)], 1)
    assert not put(tmp_path, [row("a", 7), row("a", 8), row("a", None)], 2)
    assert not put(tmp_path, [], 3)
    assert rows_of(tmp_path) == [("a", "group_record", 7, 1)]


def test_null_is_the_greatest_and_other_keys_stand_beside(tmp_path: Path) -> None:
    put(tmp_path, [row("a", None), row("a", 3, "topic_names")], 1)
    put(tmp_path, [row("a", 9)], 2)
    assert rows_of(tmp_path) == [("a", "group_record", 9, 2), ("a", "topic_names", 3, 1)]


def test_what_is_to_be_left_out_counts_no_more(tmp_path: Path) -> None:
    put(tmp_path, [row("a", 1), row("b", 1)], 1)
    assert put(tmp_path, [row("a", 5)], 2, drop=pc.field("topic") == "a")
    assert rows_of(tmp_path) == [("a", "group_record", 5, 2), ("b", "group_record", 1, 1)]
    assert put(tmp_path, [], 3, drop=pc.field("topic") == "b")
    assert rows_of(tmp_path) == [("a", "group_record", 5, 2)]


@pytest.mark.slow
@examples("table")
@given(
    rows=st.lists(st.builds(row, st.sampled_from("abc"), st.none() | st.integers(0, 9)), max_size=12),
    cut=st.integers(0, 12),
)
def test_two_runs_in_either_order_are_one(
    rows: list[dict[str, Any]], cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    passes = []
    for parts in ([rows], [rows[:cut], rows[cut:]], [rows[cut:], rows[:cut]]):
        lake = tmp_path_factory.mktemp("lake")
        for run, part in enumerate(parts, 1):
            put(lake, part, run)
        passes.append([entry[:3] for entry in rows_of(lake)])
    assert passes[0] == passes[1] == passes[2]
