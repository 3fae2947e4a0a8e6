"""Joined rows of the books say of a log what the rows of all runs said."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jobs.upkeep.book_rows import joined
from sharelens.evidence.coverage import coverage
from sharelens.evidence.losses import losses_of_extents
from sharelens.kafka_log.bounds import highest_committed_end, log_start

Row = dict[str, Any]


def row(run: int, first: int, end: int, **changed_fields: Any) -> Row:
    """A taken row of the books of one log partition."""
    return {
        "cluster_id": "c", "topic_id": "t", "partition": 0, "run_id": run, "status": "taken", "source_id": "one",
        "content": "log_record", "from_offset": first, "end_offset_exclusive": end, "log_start_offset": 0,
        "log_start_known": True, "committed_end": end, "held_back": 0, "gaps": [], "rebuild": False,
        "superseded_from": None, "leader_epochs": [], "record_count": end - first, "size_bytes": 10 * (end - first),
        "sha256": f"{run:064x}", "log_time_ms": 1000 + run, "until_ms": None, "read_until_ms": 2000 + run,
    } | changed_fields  # fmt: skip


@st.composite
def books(draw: st.DrawFn) -> list[Row]:
    """Rows of some runs, mostly of one that goes on where the last one ended."""
    rows, end = [], 0
    for run in range(1, draw(st.integers(2, 9))):
        first = end if draw(st.integers(0, 4)) else draw(st.integers(0, 12))
        end = first + draw(st.integers(0, 3))
        fields: Row = {"source_id": draw(st.sampled_from(["one", "one", "two"]))}
        fields["log_start_offset"] = draw(st.integers(0, first))
        fields["leader_epochs"] = draw(st.sampled_from([[], [{"leader_epoch": run // 3, "start_offset": first}]]))
        odd = draw(st.integers(0, 12))
        if odd == 0 and end > first:
            fields["gaps"] = [{"first_offset": first, "last_offset": first, "reason": "gap"}]
        elif odd == 1:
            fields |= {"superseded_from": draw(st.integers(0, first))}
        elif odd == 2:
            fields["committed_end"] = first
        elif odd == 3:
            fields |= {"rebuild": True}
        rows.append(row(run, first, end, **fields))
    return rows


@given(books(), st.integers(0, 9))
@example([row(1, 0, 0), row(2, 0, 0, source_id="two"), row(3, 0, 0)], 3)
def test_a_log_is_covered_as_before_and_later_runs_see_no_difference(rows: list[Row], up_to_run: int) -> None:
    few = joined(rows, up_to_run)
    assert coverage(few) == coverage(rows)
    assert losses_of_extents(few) == losses_of_extents(rows)
    assert joined(few, up_to_run) == few
    assert coverage(joined(few, 9)) == coverage(rows)
    for name in ("record_count", "size_bytes"):
        assert sum(each[name] for each in few) == sum(each[name] for each in rows)
    starts, ends = ([(each["log_start_offset"], True) for each in row_list] for row_list in (few, rows))
    assert log_start(starts) == log_start(ends)
    assert highest_committed_end(each["committed_end"] for each in few) == highest_committed_end(
        each["committed_end"] for each in rows
    )
    newest, newest_before = (max(row_list, key=lambda each: int(each["run_id"])) for row_list in (few, rows))
    assert {name: newest[name] for name in ("run_id", "end_offset_exclusive", "held_back", "read_until_ms")} == {
        name: newest_before[name] for name in ("run_id", "end_offset_exclusive", "held_back", "read_until_ms")
    }


def test_a_thousand_runs_over_one_log_are_one_row() -> None:
    (only,) = joined([row(run, 2 * run, 2 * run + 2) for run in range(1, 1001)], up_to_run=1000)
    assert (only["run_id"], only["from_offset"], only["end_offset_exclusive"]) == (1000, 2, 2002)
    assert (only["record_count"], only["log_time_ms"], only["committed_end"]) == (2000, 2000, 2002)


@pytest.mark.parametrize(
    "odd",
    [
        {"gaps": [{"first_offset": 2, "last_offset": 2, "reason": "gap"}]},
        {"rebuild": True},
        {"superseded_from": 2},
        {"committed_end": 3},
        {"status": "planned"},
        {"status": "dropped", "sha256": None},
    ],
)
def test_rows_that_say_more_stay_and_no_others_are_joined_across_them(odd: Row) -> None:
    rows = [row(1, 0, 2), row(2, 2, 4, **odd), row(3, 4, 6)]
    assert joined(rows, up_to_run=3) == rows


def test_runs_that_a_stage_has_still_to_look_at_stay() -> None:
    rows = [row(run, run, run + 1) for run in range(1, 6)]
    assert [(each["run_id"], each["from_offset"]) for each in joined(rows, up_to_run=3)] == [(3, 1), (4, 4), (5, 5)]
