"""The life of one record."""

from pathlib import Path
from typing import Any

import pytest

from sharelens.asked import Source
from sharelens.filters import parse_wanted
from sharelens.questions.log_evidence import open_log_evidence
from sharelens.questions.trace import trace
from state_model.errors import UsageError
from tests.state_logs import snapshot, tombstone, update, write_log_directory

AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4


def traced(tmp_path: Path, story: list[dict[str, Any]], offset: int) -> tuple[list[tuple[Any, ...]], str]:
    logs = write_log_directory(tmp_path / "logs", story)
    with open_log_evidence(Source(log_dirs=(str(logs),))) as evidence:
        answer = trace(evidence, parse_wanted(["g"], ["orders"], [0]), offset)
    rows = answer.table.to_pylist()
    told = [
        (row["log_offset"], row["event"])
        if row["event"] != "delivery_state"
        else (
            row["log_offset"],
            row["delivery_state_name"],
            row["delivery_count"],
            row["end_reason"],
            row["until_log_offset"],
        )
        for row in rows
    ]
    return told, (answer.summary or "").splitlines()[0]


def test_a_record_that_was_released_and_then_acknowledged(tmp_path: Path) -> None:
    story = [
        snapshot(start=-1),
        update(start=0, batches=[(0, 9, AVAILABLE, 1)]),
        update(start=0, batches=[(3, 3, AVAILABLE, 2)]),
        update(start=0, batches=[(5, 9, ACKNOWLEDGED, 2)]),
        update(start=0, batches=[(2, 3, ACKNOWLEDGED, 3)]),
        update(start=8),
    ]
    told, verdict = traced(tmp_path, story, 3)
    assert told == [
        (0, "created"),
        (1, "start_offset_set"),
        (1, "AVAILABLE", 1, "changed", 2),
        (2, "AVAILABLE", 2, "changed", 4),
        (4, "ACKNOWLEDGED", 3, "start_offset_passed", 5),
        (5, "start_offset_passed"),
    ]
    assert verdict == "record 3: passed by the start offset; last held as ACKNOWLEDGED/3"


def test_ranges_that_only_split_around_the_record_are_one_state(tmp_path: Path) -> None:
    story = [
        snapshot(start=0),
        update(start=0, batches=[(0, 9, AVAILABLE, 1)]),
        update(start=0, batches=[(7, 9, ACKNOWLEDGED, 2)]),
        update(start=0, batches=[(0, 0, ARCHIVED, 2)]),
    ]
    told, verdict = traced(tmp_path, story, 3)
    assert told[-1] == (1, "AVAILABLE", 1, None, None)
    assert verdict == "record 3: AVAILABLE, delivery count 1"


def test_a_record_below_the_first_start_offset_was_never_in_reach(tmp_path: Path) -> None:
    told, verdict = traced(tmp_path, [snapshot(start=-1), update(start=50)], 3)
    assert told == [(0, "created"), (1, "below_start_offset")]
    assert "below the first start offset" in verdict


def test_a_record_that_was_never_delivered_has_no_state(tmp_path: Path) -> None:
    told, verdict = traced(tmp_path, [snapshot(start=0), update(start=0, batches=[(0, 0, 2, 1)])], 77)
    assert told == [(0, "created"), (0, "start_offset_set")]
    assert verdict == "record 77: no delivery state was ever written for it"


def test_a_record_passed_without_any_state(tmp_path: Path) -> None:
    _, verdict = traced(tmp_path, [snapshot(start=0), update(start=100)], 77)
    assert verdict == "record 77: passed by the start offset; no delivery state was ever written for it"


def test_deletion_and_a_new_life_stand_in_the_story(tmp_path: Path) -> None:
    story = [
        snapshot(start=0),
        update(start=0, batches=[(3, 3, AVAILABLE, 1)]),
        tombstone(),
        snapshot(start=0, state_epoch=2),
        snapshot(start=2, state_epoch=3, epoch=1),
    ]
    told, verdict = traced(tmp_path, story, 3)
    assert told == [
        (0, "created"),
        (0, "start_offset_set"),
        (1, "AVAILABLE", 1, "deleted", 2),
        (2, "deleted"),
        (3, "created"),
        (3, "start_offset_set"),
        (4, "reset"),
        (4, "start_offset_set"),
    ]
    assert verdict == "record 3: no delivery state was ever written for it"


def test_a_deleted_share_partition_ends_the_story(tmp_path: Path) -> None:
    assert traced(tmp_path, [snapshot(), tombstone()], 3)[1] == "record 3: the share partition is deleted"


def test_a_start_offset_that_goes_back_is_told(tmp_path: Path) -> None:
    told, _ = traced(tmp_path, [snapshot(start=0), update(start=9), update(start=1)], 3)
    assert told == [(0, "created"), (0, "start_offset_set"), (1, "start_offset_passed"), (2, "start_offset_returned")]


def test_what_came_before_the_evidence_is_not_invented(tmp_path: Path) -> None:
    told, _ = traced(tmp_path, [update(start=0, batches=[(3, 3, AVAILABLE, 4)], epoch=7)], 3)
    assert told == [(0, "first_seen"), (0, "start_offset_set"), (0, "AVAILABLE", 4, None, None)]


def test_an_unknown_share_partition_is_refused(tmp_path: Path) -> None:
    logs = write_log_directory(tmp_path / "logs", [snapshot()])
    with (
        open_log_evidence(Source(log_dirs=(str(logs),))) as evidence,
        pytest.raises(UsageError, match="share partitions there: orders:0"),
    ):
        trace(evidence, parse_wanted(["g"], ["orders"], [5]), 0)
