"""Which offsets of a log partition are covered, by the rows of bronze.ingest_extent."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.evidence.coverage import coverage, is_whole, newest_log_time, ranges_of_offsets
from sharelens.evidence.intervals import union


def extent(run: int, first: int, end: int, *, source: str = "one", **extra_fields: Any) -> dict[str, Any]:
    """A taken row of bronze.ingest_extent, as far as coverage looks at it."""
    plain = {"committed_end": None, "superseded_from": None, "leader_epochs": None, "gaps": [], "log_time_ms": None}
    described = {"run_id": run, "from_offset": first, "end_offset_exclusive": end, "source_id": source}
    return {**plain, **described, **extra_fields}


def taken_row(first: int, end: int, *, records: int | None = None, content: str = "log_record") -> dict[str, Any]:
    """A row as far as `is_whole` looks at it."""
    count = end - first if records is None else records
    return extent(1, first, end, status="taken", content=content, record_count=count)


def dropped_row(end: int, group: str) -> dict[str, Any]:
    """The row of a cut of retention."""
    return extent(2, 0, end, status="dropped", content=group, record_count=0)


def gap(first: int, last: int, reason: str = "quarantined") -> dict[str, Any]:
    return {"first_offset": first, "last_offset": last, "reason": reason}


@pytest.mark.parametrize(
    ("rows", "covered", "end"),
    [
        pytest.param([], [], 0, id="nothing taken"),
        pytest.param([extent(1, 0, 5), extent(2, 5, 9)], [(0, 9)], 9, id="runs that go on"),
        pytest.param([extent(1, 4, 9), extent(2, 0, 4, source="two")], [(0, 9)], 9, id="a first part that came last"),
        pytest.param([extent(1, 0, 9, gaps=[gap(2, 3)])], [(0, 2), (4, 9)], 9, id="a gap is not covered"),
        pytest.param(
            [extent(1, 0, 9, gaps=[gap(2, 3)]), extent(2, 2, 4, source="two")], [(0, 9)], 9, id="a gap that was filled"
        ),
        pytest.param([extent(1, 0, 9, committed_end=6)], [(0, 6)], 6, id="uncommitted rows are read again"),
        pytest.param(
            [extent(1, 0, 9), extent(2, 5, 7, source="two", superseded_from=5)], [(0, 7)], 7, id="another end won"
        ),
    ],
)
def test_coverage(rows: list[dict[str, Any]], covered: list[tuple[int, int]], end: int) -> None:
    log_coverage = coverage(rows)
    assert (log_coverage.covered, log_coverage.end) == (covered, end)
    assert coverage(rows[::-1]) == log_coverage


@pytest.mark.parametrize(
    ("rows", "stored_ranges"),
    [
        pytest.param([extent(1, 0, 9)], [(0, 9)], id="all committed"),
        pytest.param([extent(1, 0, 9, committed_end=6)], [(0, 9)], id="uncommitted rows are held"),
        pytest.param([extent(1, 0, 9, committed_end=0)], [(0, 9)], id="none is committed"),
        pytest.param([extent(1, 0, 9, committed_end=6, gaps=[gap(7, 8)])], [(0, 7)], id="a gap is not held"),
        pytest.param(
            [extent(1, 0, 9, committed_end=6), extent(2, 6, 7, committed_end=7)], [(0, 7)], id="the end was truncated"
        ),
        pytest.param(
            [extent(1, 0, 9, committed_end=6), extent(2, 9, 9, committed_end=6)], [(0, 9)], id="nothing was read again"
        ),
        pytest.param(
            [extent(1, 0, 9, committed_end=6), extent(2, 4, 5, source="two", superseded_from=4)],
            [(0, 5)],
            id="another end won",
        ),
    ],
)
def test_a_lake_holds_what_is_covered_and_what_was_taken_while_uncommitted(
    rows: list[dict[str, Any]], stored_ranges: list[tuple[int, int]]
) -> None:
    assert coverage(rows).stored_ranges == stored_ranges


def epochs(*entries: tuple[int, int]) -> list[dict[str, int]]:
    return [{"leader_epoch": epoch, "start_offset": start} for epoch, start in entries]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param([extent(1, 0, 9)], (), id="rows of an older version"),
        pytest.param(
            [extent(1, 0, 9, leader_epochs=epochs((0, 0))), extent(2, 9, 12, leader_epochs=epochs((3, 9)))],
            ((0, 0), (3, 9)),
            id="epochs go on",
        ),
        pytest.param(
            [
                extent(1, 0, 9, leader_epochs=epochs((0, 0), (2, 6))),
                extent(2, 5, 8, superseded_from=5, leader_epochs=epochs((4, 5))),
            ],
            ((0, 0), (4, 5)),
            id="epochs of superseded rows are forgotten",
        ),
        pytest.param(
            [extent(1, 4, 9, leader_epochs=epochs((1, 4))), extent(2, 0, 4, leader_epochs=epochs((0, 0), (1, 2)))],
            ((0, 0), (1, 2)),
            id="an earlier part has the earlier start",
        ),
    ],
)
def test_leader_epochs(rows: list[dict[str, Any]], expected: tuple[tuple[int, int], ...]) -> None:
    assert coverage(rows).leader_epochs == coverage(rows[::-1]).leader_epochs == expected


def test_a_source_is_asked_once_for_what_it_does_not_have_and_another_one_may_have_it() -> None:
    log_coverage = coverage([extent(1, 0, 9, gaps=[gap(2, 3)])])
    assert log_coverage.missing_from("one", (0, 12)) == [(9, 12)]
    assert log_coverage.missing_from("two", (0, 12)) == [(2, 4), (9, 12)]
    assert log_coverage.below(3).missing_from("one", (0, 12)) == [(3, 12)]


def test_a_source_that_had_vanished_is_asked_again() -> None:
    log_coverage = coverage([extent(1, 0, 9, gaps=[gap(2, 8, "vanished")])])
    assert log_coverage.missing_from("one", (0, 12)) == [(2, 12)]


def test_log_time_never_goes_back() -> None:
    rows = [extent(1, 0, 5, log_time_ms=70), extent(2, 5, 9, log_time_ms=50), extent(3, 9, 9)]
    assert coverage(rows).log_time_ms == newest_log_time(rows) == 70
    assert coverage(rows[2:]).log_time_ms is None


@given(st.sets(st.integers(0, 40)))
def test_ranges_of_single_offsets_are_their_union(offsets: set[int]) -> None:
    numbers = np.array(sorted(offsets), np.int64)
    assert ranges_of_offsets(numbers, numbers) == union((offset, offset + 1) for offset in offsets)


def test_rows_that_cover_several_offsets_join_where_they_touch() -> None:
    first, last = np.array([0, 4, 8], np.int64), np.array([3, 5, 9], np.int64)
    assert ranges_of_offsets(first, last) == [(0, 6), (8, 10)]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param([taken_row(0, 5), taken_row(5, 9)], True, id="a record at every offset"),
        pytest.param([taken_row(5, 9), taken_row(0, 5)], True, id="in any order"),
        pytest.param([taken_row(0, 5), taken_row(3, 9)], True, id="some offsets were read again"),
        pytest.param([], False, id="nothing"),
        pytest.param([taken_row(1, 5)], False, id="offset 0 is missing"),
        pytest.param([taken_row(0, 5), taken_row(6, 9)], False, id="an offset between two runs is missing"),
        pytest.param([taken_row(0, 5), taken_row(5, 9, records=3)], False, id="a run found less records"),
        pytest.param(
            [taken_row(0, 5), taken_row(0, 5, content="replay", records=0)], True, id="a stage that started over"
        ),
        pytest.param([taken_row(0, 5), dropped_row(2, "silver")], False, id="retention cut the table"),
        pytest.param([taken_row(0, 5), dropped_row(2, "bronze")], True, id="retention cut another table"),
    ],
)
def test_a_table_is_whole_with_a_row_for_every_offset(rows: list[dict[str, Any]], expected: bool) -> None:
    assert is_whole(rows, "silver.group_record") is expected
