"""The log start moves on by itself, minutes behind the last record: the lake hears of it without a new record."""

from pathlib import Path
from typing import Any

from jobs.options import RunOptions
from jobs.run import run
from sharelens.lake.lake import Lake
from sharelens.lake.scan import open_lake
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.state import state
from sharelens.questions.status import lake_status, log_status
from sharelens.source.request import CutChoice, Source
from sharelens.tables.logs.tables import open_log_tables
from sharelens.tables.opening import open_evidence
from tests.logs.state_logs import STATE_TOPIC, snapshot, update, write_log_directory, write_state_partition
from tests.processes.in_process import TO_STATE, make_lake
from tools.log_writer.writer import write_checkpoints

STORY = [snapshot("at-rest"), snapshot("g", epoch=0), update("g", start=1), snapshot("g", epoch=1, start=1)]
NOW = CutChoice()


def no_session() -> Any:
    raise AssertionError("there is nothing for executors to do")


def prune(logs: Path, offset: int) -> None:
    """Moves the log start of the only state partition."""
    write_checkpoints(logs, log_starts={(STATE_TOPIC, 0): offset})


def flags(source: Source) -> dict[str, bool]:
    rows = state(open_evidence(source), KeyFilter(), NOW).table.to_pylist()
    return {row["group_id"]: row["below_log_start"] for row in rows}


def in_the_table(lake: Path) -> dict[str, bool]:
    rows = open_lake(lake).scan("gold.share_partition_state").to_pylist()
    return {row["group_id"]: row["below_log_start"] for row in rows}


def test_a_log_start_that_moved_without_a_new_record_is_heard_of(tmp_path: Path) -> None:
    logs, lake = write_log_directory(tmp_path / "logs", STORY, cluster_id="c"), tmp_path / "lake"
    prune(logs, 0)
    make_lake(lake, logs, stages=TO_STATE)
    assert in_the_table(lake) == {"at-rest": False, "g": False}
    prune(logs, 3)
    summary = run(RunOptions(lake=Lake(lake), log_dirs=(str(logs),), stages=TO_STATE), no_session)
    expected = {"at-rest": True, "g": False}
    assert flags(Source(log_dirs=(str(logs),))) == expected
    assert flags(Source(lake=str(lake))) == in_the_table(lake) == expected
    assert summary.counts["bronze.log_record"] == 0
    ours = log_status(open_log_tables(Source(log_dirs=(str(logs),)))).parts["state_partitions"].table
    assert lake_status(open_lake(lake), None).parts["state_partitions"].table.equals(ours)
    assert run(RunOptions(lake=Lake(lake), log_dirs=(str(logs),), stages=TO_STATE), no_session).run_id is None


def test_a_copy_with_an_older_log_start_takes_nothing_back(tmp_path: Path) -> None:
    logs, lake = write_log_directory(tmp_path / "logs", STORY, cluster_id="c"), tmp_path / "lake"
    prune(logs, 3)
    make_lake(lake, logs, stages=TO_STATE)
    older = write_log_directory(tmp_path / "older", STORY, cluster_id="c")
    prune(older, 0)
    make_lake(lake, older, stages=TO_STATE)
    assert in_the_table(lake) == flags(Source(lake=str(lake))) == {"at-rest": True, "g": False}


def test_without_a_checkpoint_the_lowest_first_offset_counts(tmp_path: Path) -> None:
    late = tmp_path / "late"
    write_state_partition(late, STORY[3:], base_offset=3)
    make_lake(tmp_path / "lake", late, stages=TO_STATE)
    make_lake(tmp_path / "lake", write_log_directory(tmp_path / "logs", STORY), stages=TO_STATE)
    expected = flags(Source(log_dirs=(str(tmp_path / "logs"), str(late))))
    assert in_the_table(tmp_path / "lake") == flags(Source(lake=str(tmp_path / "lake"))) == expected
    assert expected == {"at-rest": False, "g": False}


def test_uncommitted_records_are_no_reason_to_start_over_when_the_log_start_moves(tmp_path: Path) -> None:
    logs, lake = write_log_directory(tmp_path / "logs", STORY, cluster_id="c"), tmp_path / "lake"
    write_checkpoints(logs, log_starts={(STATE_TOPIC, 0): 0}, high_watermarks={(STATE_TOPIC, 0): 2})
    make_lake(lake, logs, include_uncommitted=True, stages=TO_STATE)
    write_checkpoints(logs, log_starts={(STATE_TOPIC, 0): 1}, high_watermarks={(STATE_TOPIC, 0): 2})
    assert run(RunOptions(lake=Lake(lake), log_dirs=(str(logs),), stages=TO_STATE), no_session).run_id == 2
    assert in_the_table(lake) == {"at-rest": True, "g": False}


def test_a_run_that_finds_nothing_but_an_undecodable_record_marks_what_it_touches(tmp_path: Path) -> None:
    make_lake(tmp_path / "lake", write_log_directory(tmp_path / "first", STORY[:2]), stages=TO_STATE)
    unreadable = STORY[2] | {"damage": "value_version"}
    logs = write_log_directory(tmp_path / "logs", [*STORY[:2], unreadable])
    make_lake(tmp_path / "lake", logs, stages=TO_STATE)
    assert open_lake(tmp_path / "lake").scan("silver.share_record").num_rows == 2
    marks = []
    for source in (Source(log_dirs=(str(logs),)), Source(lake=str(tmp_path / "lake"))):
        rows = state(open_evidence(source), KeyFilter(), NOW).table.to_pylist()
        marks.append({row["group_id"]: (row["completeness"], row["completeness_reason"]) for row in rows})
    assert marks[0] == marks[1] == {"at-rest": ("complete", None), "g": ("incomplete", "quarantined")}
