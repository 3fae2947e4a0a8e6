"""What changed between two moments."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.parameters.filters import parse_key_filter
from sharelens.questions.timelines.diff import changed_ranges, diff
from sharelens.questions.traces.vocabulary import ACKNOWLEDGED, PASSED
from sharelens.source.request import Source
from sharelens.tables.logs.tables import open_log_tables
from state_model.errors import UsageError
from tests.logs.state_logs import START_MS, snapshot, tombstone, update, write_log_directory

LAST = 30
FIELDS = ("delivery_state", "delivery_state_name", "delivery_count")


def as_batches(states: list[int]) -> list[dict[str, Any]]:
    """Disjoint ascending batches of a state for each offset; 0 means that no batch covers the offset."""
    batches: list[dict[str, Any]] = []
    for offset, state in enumerate(states):
        if state and batches and batches[-1]["last_offset"] == offset - 1 and batches[-1]["delivery_state"] == state:
            batches[-1]["last_offset"] = offset
        elif state:
            batches.append({"first_offset": offset, "last_offset": offset, **side(state)})  # type: ignore[dict-item]
    return batches


def side(state: int) -> dict[str, Any] | None:
    return dict(zip(FIELDS, (state, f"S{state}", 1), strict=True)) if state else None


per_offset = st.lists(st.integers(0, 2), min_size=LAST, max_size=LAST)


@given(per_offset, per_offset)
def test_changed_ranges_are_exactly_the_offsets_that_differ(before: list[int], after: list[int]) -> None:
    sides = {
        offset: (changed["before"], changed["after"])
        for changed in changed_ranges(as_batches(before), as_batches(after))
        for offset in range(changed["first_offset"], changed["last_offset"] + 1)
    }
    pairs = enumerate(zip(before, after, strict=True))
    assert sides == {offset: (side(was), side(now)) for offset, (was, now) in pairs if was != now}


@given(per_offset, per_offset)
def test_changed_ranges_are_as_few_as_can_be(before: list[int], after: list[int]) -> None:
    ranges = changed_ranges(as_batches(before), as_batches(after))
    for left_range, right in itertools.pairwise(ranges):
        touching = left_range["last_offset"] + 1 == right["first_offset"]
        assert not touching or (left_range["before"], left_range["after"]) != (right["before"], right["after"])


def test_a_range_of_all_offsets_there_are_is_not_enumerated() -> None:
    all_offsets = [{"first_offset": 0, "last_offset": 2**63 - 1, **side(2)}]  # type: ignore[dict-item]
    assert list(changed_ranges([], all_offsets)) == [
        {"first_offset": 0, "last_offset": 2**63 - 1, "before": None, "after": side(2)}
    ]


STORY = [
    snapshot(start=0),
    snapshot("same", start=0),
    snapshot("gone", start=0),
    update(start=0, batches=[(0, 4, 0, 1)], at_ms=START_MS + 1000),
    update(start=2, batches=[(2, 3, 2, 2)], at_ms=START_MS + 2000, delivery_complete_count=2),
    tombstone("gone", at_ms=START_MS + 2000),
    snapshot("new", start=0, at_ms=START_MS + 2000),
]


@pytest.fixture
def logs(tmp_path: Path) -> str:
    return str(write_log_directory(tmp_path / "logs", STORY))


def differences(logs: str, from_ms: int, to_ms: int) -> list[dict[str, Any]]:
    with open_log_tables(Source(log_dirs=(logs,))) as evidence:
        return diff(evidence, parse_key_filter([], [], []), from_ms, to_ms).table.to_pylist()


def meanings_of(row: dict[str, Any]) -> list[tuple[int, int, str]]:
    return [(changed["first_offset"], changed["last_offset"], changed["meaning"]) for changed in row["changed_ranges"]]


@pytest.mark.slow
def test_rows_are_the_share_partitions_that_changed(logs: str) -> None:
    rows = differences(logs, START_MS + 1000, START_MS + 2000)
    assert {row["group_id"]: row["change"] for row in rows} == {"g": "changed", "gone": "deleted", "new": "appeared"}
    grown = next(row for row in rows if row["group_id"] == "g")
    assert (grown["start_offset_before"], grown["start_offset_after"]) == (0, 2)
    assert (grown["delivery_complete_count_before"], grown["delivery_complete_count_after"]) == (0, 2)
    available = {"delivery_state": 0, "delivery_state_name": "AVAILABLE", "delivery_count": 1}
    acknowledged = {"delivery_state": 2, "delivery_state_name": "ACKNOWLEDGED", "delivery_count": 2}
    assert grown["changed_ranges"] == [
        {"first_offset": 0, "last_offset": 1, "before": available, "after": None, "meaning": PASSED},
        {"first_offset": 2, "last_offset": 3, "before": available, "after": acknowledged, "meaning": ACKNOWLEDGED},
    ]


def test_the_same_moment_twice_has_no_difference(logs: str) -> None:
    assert differences(logs, START_MS + 1500, START_MS + 1500) == []


def test_moments_in_the_wrong_order_are_refused(logs: str) -> None:
    with pytest.raises(UsageError, match="--to lies before --from"):
        differences(logs, START_MS + 2000, START_MS)


@pytest.mark.slow
def test_changed_ranges_have_the_words_of_the_vocabulary(tmp_path: Path) -> None:
    story = [
        snapshot(start=0, at_ms=START_MS),
        update(start=0, batches=[(0, 4, 0, 1), (5, 9, 2, 1)], at_ms=START_MS),
        snapshot("reset", start=0, at_ms=START_MS),
        update("reset", start=0, batches=[(0, 4, 2, 1)], at_ms=START_MS),
        snapshot("gone", start=0, batches=[(0, 4, 2, 1)], at_ms=START_MS),
        update(start=3, batches=[(3, 3, 4, 2), (4, 4, 0, 2)], at_ms=START_MS + 10),
        snapshot("reset", start=0, state_epoch=2, epoch=1, batches=[(2, 2, 0, 1)], at_ms=START_MS + 10),
        tombstone("gone", at_ms=START_MS + 10),
    ]
    logs = write_log_directory(tmp_path / "logs", story)
    with open_log_tables(Source(log_dirs=(str(logs),))) as evidence:
        answer = diff(evidence, parse_key_filter([], [], []), START_MS, START_MS + 10)
    meanings = {row["group_id"]: meanings_of(row) for row in answer.table.to_pylist()}
    again = "available again (release, lock timeout or member left: not logged)"
    assert meanings == {
        "g": [(0, 2, "passed by the start offset"), (3, 3, "archived"), (4, 4, again)],
        "gone": [(0, 4, "life ended")],
        "reset": [(0, 1, "offset reset"), (2, 2, f"offset reset, {again}"), (3, 4, "offset reset")],
    }
    counts = (
        "archived 1; available again (release, lock timeout or member left: not logged) 1; life ended 5; offset reset 4"
    )
    assert (answer.summary or "").startswith(f"record offsets: {counts}; offset reset, {again} 1; passed")


LIVES = [
    snapshot(start=0, batches=[(0, 4, 2, 1)], state_epoch=2),
    snapshot("both", start=0, batches=[(0, 4, 2, 1)], state_epoch=2),
    snapshot("reset", start=0, batches=[(0, 4, 2, 1)], state_epoch=2),
    snapshot("empty", start=0, state_epoch=2),
    *(tombstone(group, at_ms=START_MS + 10) for group in ("g", "both", "empty")),
    snapshot(start=0, batches=[(0, 2, 2, 1)], state_epoch=2, at_ms=START_MS + 20),
    snapshot("both", start=0, batches=[(0, 2, 2, 1)], state_epoch=2, at_ms=START_MS + 20),
    snapshot("empty", start=0, state_epoch=2, at_ms=START_MS + 20),
    snapshot("both", start=1, batches=[(1, 1, 2, 1)], state_epoch=3, epoch=1, at_ms=START_MS + 30),
    snapshot("reset", start=1, batches=[(1, 1, 2, 1)], state_epoch=3, epoch=1, at_ms=START_MS + 30),
]


@pytest.mark.slow
def test_a_share_partition_that_was_deleted_and_created_again_says_so(tmp_path: Path) -> None:
    logs = str(write_log_directory(tmp_path / "logs", LIVES))
    rows = {row["group_id"]: row for row in differences(logs, START_MS, START_MS + 40)}
    assert {group: row["change"] for group, row in rows.items()} == {
        "both": "recreated",
        "empty": "recreated",
        "g": "recreated",
        "reset": "changed",
    }
    assert meanings_of(rows["g"]) == [(3, 4, "deleted and created again")]
    assert meanings_of(rows["reset"])[0] == (0, 0, "offset reset, passed by the start offset")
    assert meanings_of(rows["both"])[0] == (
        0,
        0,
        "deleted and created again, offset reset, passed by the start offset",
    )
    assert {group: [entry["event"] for entry in row["entries"]] for group, row in rows.items()} == {
        "both": ["deleted", "recreated", "reset"],
        "empty": ["deleted", "recreated"],
        "g": ["deleted", "recreated"],
        "reset": ["reset"],
    }


@pytest.mark.slow
def test_what_happened_at_the_earlier_moment_is_no_change_and_at_the_later_one_it_is(tmp_path: Path) -> None:
    logs = str(write_log_directory(tmp_path / "logs", LIVES))
    (deleted,) = (row for row in differences(logs, START_MS + 9, START_MS + 10) if row["group_id"] == "g")
    assert (deleted["change"], [entry["event"] for entry in deleted["entries"]]) == ("deleted", ["deleted"])
    (created,) = (row for row in differences(logs, START_MS + 10, START_MS + 20) if row["group_id"] == "g")
    assert (created["change"], [entry["event"] for entry in created["entries"]]) == ("appeared", ["recreated"])
