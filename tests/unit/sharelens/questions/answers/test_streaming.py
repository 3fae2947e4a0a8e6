"""Aggregates and first rows of a stream are those of all its rows at once, however the rows are cut into tables."""

import pyarrow as pa
import pytest

from sharelens.cli import main
from sharelens.questions.answers import streaming
from sharelens.questions.answers.streaming import FirstOfEach, FirstRows, Sums
from tests.depths import in_soak
from tests.processes.in_process import recorded_lake

ROWS = pa.table(
    {
        "group": pa.array([f"g{number % 3}" for number in range(40)]),
        "at_ms": pa.array([None if number % 7 == 0 else number * 11 % 13 for number in range(40)], pa.int64()),
        "offset": pa.array(range(40), pa.int64()),
    }
)
ORDER = [("at_ms", "descending"), ("offset", "ascending")]
BY_NAME = [("group", "ascending"), *ORDER]


def cut(rows: pa.Table, size: int) -> list[pa.Table]:
    return [rows.slice(0, 0), *(rows.slice(begin, size) for begin in range(0, rows.num_rows, size))]


@pytest.mark.parametrize("size", [1, 7, 40])
@pytest.mark.parametrize("order", [ORDER, BY_NAME], ids=["numbers", "names"])
def test_first_rows_are_the_head_of_the_sorted_rows(size: int, order: list[tuple[str, str]]) -> None:
    first = FirstRows(order, 9)
    for table in cut(ROWS, size):
        first.add(table)
        assert first.table().num_rows <= 9
    assert first.table().to_pylist() == ROWS.sort_by(order).slice(0, 9).to_pylist()


@pytest.mark.one_in(3)
@pytest.mark.slow
@pytest.mark.parametrize("words", [["poison"], ["poison", "--gaps"], ["redelivered"], ["dlq"], ["dlq", "--fail-on"]])
@pytest.mark.parametrize("name", ["dlq", *in_soak("edge")])
def test_a_limited_answer_is_the_head_of_the_whole_one_with_the_same_lines(
    name: str, words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    most_kept: list[int] = []
    plain = FirstRows.table

    def table(self: FirstRows) -> pa.Table:
        most_kept.append(plain(self).num_rows)
        return plain(self)

    monkeypatch.setattr(FirstRows, "table", table)
    lake = ["--lake", str(recorded_lake(name)), "--output", "jsonl"]
    whole_code = main([*words, *lake])
    whole_output = capsys.readouterr()
    assert not most_kept
    assert main([*words, *lake, "--limit", "3"]) == whole_code
    limited = capsys.readouterr()
    rows = whole_output.out.splitlines()
    assert limited.out.splitlines() == rows[:3]
    messages = limited.err.splitlines()
    if len(rows) > 3:
        assert f"... {len(rows) - 3} more rows; --limit {len(rows)} shows them all" in messages
        messages.remove(f"... {len(rows) - 3} more rows; --limit {len(rows)} shows them all")
    assert messages == whole_output.err.splitlines()
    assert all(kept_count <= 3 for kept_count in most_kept)
    assert most_kept or "--fail-on" in words


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
    whole_sums = ROWS.group_by("group").aggregate([("offset", "sum"), ("at_ms", "max")])
    expected = {row["group"]: (row["offset_sum"], row["at_ms_max"]) for row in whole_sums.to_pylist()}
    assert {row["group"]: (row["offset"], row["at_ms"]) for row in sums.table().to_pylist()} == expected
