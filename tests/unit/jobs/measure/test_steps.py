"""In which steps long share partitions are measured."""

from pathlib import Path

import pyarrow as pa
import pytest

from jobs.measure import steps as measure_steps
from jobs.measure.touched import touched_since
from sharelens.lake.lake import Lake
from state_model.columnar.codes import ABOVE_ALL
from tests.logs.state_logs import START_MS, snapshot, update, write_log_directory
from tests.processes.in_process import make_lake

pytestmark = pytest.mark.slow

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
MIDNIGHT_MS = START_MS - START_MS % (24 * HOUR_MS)


def lake_of(folder: Path, minutes: list[int]) -> Path:
    """A lake of a share partition with a record at each of these minutes of a day, and of one with a single record."""
    records = [snapshot("long", start=0, at_ms=MIDNIGHT_MS), snapshot("short", start=0, at_ms=MIDNIGHT_MS)]
    records += [
        update("long", batches=[(number, number, 2, 1)], at_ms=MIDNIGHT_MS + minute * MINUTE_MS)
        for number, minute in enumerate(minutes)
    ]
    make_lake(folder / "lake", write_log_directory(folder / "logs", records), stages=("ingest", "decode", "replay"))
    return folder / "lake"


def steps_of(lake: Path, rows: int, monkeypatch: pytest.MonkeyPatch) -> list[pa.Table]:
    monkeypatch.setattr(measure_steps, "STEP_ROWS", rows)
    return list(measure_steps.steps(Lake(lake), 1, 0, touched_since(Lake(lake), 0)))


def ends_of(steps: list[pa.Table], group: str) -> list[int]:
    """The last log offset of each step that the group has part in."""
    rows = [row for step in steps for row in step.to_pylist() if row["group_id"] == group]
    return [row["upto"] for row in rows]


def test_a_step_ends_after_so_many_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = steps_of(lake_of(tmp_path, list(range(9))), 4, monkeypatch)
    # Log offset 1 is the other share partition's.
    assert ends_of(steps, "long") == [4, 8, ABOVE_ALL]


def test_a_step_ends_with_an_hour_where_that_leaves_it_half_its_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = steps_of(lake_of(tmp_path, [1, 2, 61, 62, 63, 121, 122, 123]), 4, monkeypatch)
    assert ends_of(steps, "long") == [3, 6, ABOVE_ALL]


def test_the_last_step_has_all_share_partitions_and_the_first_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = steps_of(lake_of(tmp_path, list(range(9))), 4, monkeypatch)
    assert [step.column("group_id").to_pylist() for step in steps[:-1]] == [["long"], ["long"]]
    assert sorted(steps[-1].column("group_id").to_pylist()) == ["long", "short"]
    tables = {
        (row["group_id"], at): (row["whole"], row["before"]) for at, s in enumerate(steps) for row in s.to_pylist()
    }
    assert tables == {("long", 0): (True, 0), ("long", 1): (False, 1), ("long", 2): (False, 1), ("short", 2): (True, 0)}


def test_nothing_long_is_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = steps_of(lake_of(tmp_path, [1, 2]), 100, monkeypatch)
    assert [sorted(set(step.column("upto").to_pylist())) for step in steps] == [[ABOVE_ALL]]


def test_nothing_to_measure_is_one_step_too(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, [1])
    no_rows = touched_since(Lake(lake), 0).slice(0, 0)
    assert [step.num_rows for step in measure_steps.steps(Lake(lake), 1, 0, no_rows)] == [0], (
        "it marks the stage as done"
    )
