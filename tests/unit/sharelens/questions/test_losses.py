"""Which offsets are missing, by the books of a lake."""

import itertools
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lake.tables import TABLES
from sharelens.questions.losses import joined, of_extents, without

SCHEMA = TABLES["bronze.ingest_extent"].schema
intervals = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 30)).map(lambda pair: (min(pair), max(pair))), max_size=6
)


def covered(parts: list[tuple[int, int]]) -> set[int]:
    return {offset for first, end in parts for offset in range(first, end)}


@given(intervals)
def test_joined_intervals_cover_the_same_and_never_touch(parts: list[tuple[int, int]]) -> None:
    together = joined(parts)
    assert covered(together) == covered(parts)
    assert all(one[1] < other[0] for one, other in itertools.pairwise(together))


@given(intervals, intervals)
def test_taking_away_leaves_what_lies_in_no_part(whole: list[tuple[int, int]], parts: list[tuple[int, int]]) -> None:
    assert covered(without(whole, parts)) == covered(whole) - covered(parts)


def extents(*rows: dict[str, Any]) -> pa.Table:
    filled = {field.name: ("" if field.type == pa.string() else 0) for field in SCHEMA if not field.nullable}
    usual = {"status": "taken", "content": "log_record", "committed_end": None, "gaps": [], "rebuild": False}
    usual["log_start_known"] = False
    return pa.Table.from_pylist([filled | usual | row for row in rows], schema=SCHEMA)


def told(table: pa.Table) -> list[tuple[int, int, str]]:
    return [(loss.first_offset, loss.last_offset, loss.reason) for loss in of_extents(table)]


def gap(first: int, last: int, reason: str = "gap") -> dict[str, Any]:
    return {"first_offset": first, "last_offset": last, "reason": reason}


def test_a_gap_is_a_loss_with_its_reason() -> None:
    one = {"from_offset": 0, "end_offset_exclusive": 10, "gaps": [gap(0, 2, "pruned"), gap(5, 5)]}
    assert told(extents(one)) == [(0, 2, "pruned"), (5, 5, "gap")]


def test_a_gap_that_another_copy_filled_is_none() -> None:
    first = {"from_offset": 0, "end_offset_exclusive": 10, "gaps": [gap(3, 6)]}
    later = {"from_offset": 3, "end_offset_exclusive": 6, "gaps": []}
    assert told(extents(first, later)) == [(6, 6, "gap")]


def test_offsets_taken_above_the_high_watermark_fill_nothing() -> None:
    first = {"from_offset": 0, "end_offset_exclusive": 10, "gaps": [gap(5, 7)]}
    uncommitted = {"from_offset": 5, "end_offset_exclusive": 8, "committed_end": 5}
    assert told(extents(first, uncommitted)) == [(5, 7, "gap")]


def test_a_planned_extent_and_batch_headers_count_for_nothing() -> None:
    planned = {"from_offset": 0, "end_offset_exclusive": 9, "gaps": [gap(0, 8)], "status": "planned"}
    headers = {"from_offset": 0, "end_offset_exclusive": 9, "gaps": [gap(0, 8)], "content": "topic_batch"}
    assert told(extents(planned, headers)) == []
