"""Aggregates and first rows of a stream are those of all its rows at once, however the rows are cut into tables."""

import pyarrow as pa
import pytest

from sharelens.questions import streaming
from sharelens.questions.streaming import FirstOfEach, FirstRows, Sums

ROWS = pa.table(
    {
        "group": pa.array([f"g{number % 3}" for number in range(40)]),
        "at_ms": pa.array([None if number % 7 == 0 else number * 11 % 13 for number in range(40)], pa.int64()),
        "offset": pa.array(range(40), pa.int64()),
    }
)
ORDER = [("at_ms", "descending"), ("offset", "ascending")]


def cut(rows: pa.Table, size: int) -> list[pa.Table]:
    return [rows.slice(0, 0), *(rows.slice(begin, size) for begin in range(0, rows.num_rows, size))]


@pytest.mark.parametrize("size", [1, 7, 40])
def test_first_rows_are_the_head_of_the_sorted_rows(size: int) -> None:
    first = FirstRows(ORDER, 9)
    for table in cut(ROWS, size):
        first.add(table)
    assert first.table().to_pylist() == ROWS.sort_by(ORDER).slice(0, 9).to_pylist()


@pytest.mark.parametrize("size", [1, 7, 40])
def test_the_first_row_of_each_key_is_the_first_of_its_sorted_rows(size: int) -> None:
    first = FirstOfEach(["group"], ORDER)
    for table in cut(ROWS, size):
        first.add(table)
    expected: dict[str, object] = {}
    for row in ROWS.sort_by(ORDER).to_pylist():
        expected.setdefault(row["group"], row)
    assert first.table().to_pylist() == [expected[group] for group in sorted(expected)]


@pytest.mark.parametrize("size", [1, 7, 40])
def test_sums_are_those_of_all_rows(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "SUMMED_ROWS", 4)
    sums = Sums(["group"], {"offset": "sum", "at_ms": "max"})
    for table in cut(ROWS, size):
        sums.add(table)
    whole = ROWS.group_by("group").aggregate([("offset", "sum"), ("at_ms", "max")])
    expected = {row["group"]: (row["offset_sum"], row["at_ms_max"]) for row in whole.to_pylist()}
    assert {row["group"]: (row["offset"], row["at_ms"]) for row in sums.table().to_pylist()} == expected
