"""Runs and upkeeps of one process, one after the other, with one `Lake`: what its open handles know grows old."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from jobs.summary import Summary
from jobs.upkeep.maintain import MaintainOptions, maintain
from jobs.writing import writing
from sharelens.lake.lake import Lake
from sharelens.lake.tables import TABLES
from tests.lakes import content, differences
from tests.logs.state_logs import START_MS, snapshot, update, write_log_directory
from tests.processes.in_process import make_lake, run_here

pytestmark = pytest.mark.slow

MINUTE = 60_000
DAY = 1440 * MINUTE


class Process:
    """A lake that one process keeps: its log has a further record at each run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lake = Lake(folder / "lake")
        self.runs = 0

    def story(self) -> list[dict[str, Any]]:
        later = (update("g", start=5 * n, at_ms=START_MS + n * MINUTE) for n in range(1, self.runs))
        return [snapshot("g", start=0), *later]

    def run(self) -> Summary:
        self.runs += 1
        logs = write_log_directory(self.folder / f"logs-{self.runs}", self.story())
        return run_here(self.lake, logs)

    def equals_one_run(self) -> bool:
        one_run_lake = self.folder / "whole"
        make_lake(one_run_lake, self.folder / f"logs-{self.runs}")
        return differences(content(self.lake.uri), content(one_run_lake)) == []


@pytest.fixture
def process(tmp_path: Path) -> Process:
    return Process(tmp_path)


def in_days(days: int) -> int:
    return time.time_ns() // 1_000_000 + days * DAY


@pytest.mark.soak
def test_upkeep_between_runs_again_and_again(process: Process) -> None:
    for number in range(1, 6):
        process.run()
        maintain(MaintainOptions(lake=process.lake, dry_run=False, window_ms=1, now_ms=in_days(number)))
    assert process.equals_one_run()


@pytest.mark.soak
def test_upkeep_behind_upkeep_reads_tables_whose_logs_the_first_one_cut(process: Process) -> None:
    process.run()
    process.run()
    for number in range(1, 4):
        maintain(MaintainOptions(lake=process.lake, dry_run=False, window_ms=1, now_ms=in_days(number)))
    assert process.equals_one_run()


@pytest.mark.soak
def test_a_run_goes_on_after_another_process_cut_the_logs(process: Process) -> None:
    for _ in range(3):
        process.run()
    source = "import sys; from jobs.upkeep.maintain import *; from sharelens.lake.lake import Lake; "
    source += "maintain(MaintainOptions(lake=Lake(sys.argv[1]), dry_run=False, window_ms=1, now_ms=int(sys.argv[2])))"
    subprocess.run([sys.executable, "-c", source, str(process.lake), str(in_days(1))], check=True)
    maintain(MaintainOptions(lake=process.lake, dry_run=False, window_ms=1, now_ms=in_days(2)))
    process.run()
    assert process.equals_one_run()


def test_handles_stay_open_between_runs_of_one_process(process: Process) -> None:
    process.run()
    before = process.lake.handle("bronze.log_record")
    process.run()
    assert process.lake.handle("bronze.log_record") is before


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The tables that delta-rs opens from here on."""
    tables: list[object] = []
    real = DeltaTable.__init__

    def noted(table: DeltaTable, *args: Any, **options: Any) -> None:
        tables.append(args)
        real(table, *args, **options)

    monkeypatch.setattr(DeltaTable, "__init__", noted)
    return tables


def test_a_run_without_news_opens_no_table_but_those_that_it_reads(process: Process, opened: list[object]) -> None:
    process.run()
    opened.clear()
    assert run_here(process.lake.uri, process.folder / "logs-1").run_id is None
    assert 0 < len(opened) < len(TABLES) / 3


def test_a_named_version_is_opened_once_while_the_lock_is_held(process: Process, opened: list[object]) -> None:
    process.run()
    lake = Lake(process.lake.uri)
    opened.clear()
    with writing(lake, 1.0):
        before = len(opened)
        for _ in range(3):
            assert lake.snapshot("gold.lag", 0).version == 0
        assert len(opened) == before + 1
    assert lake.snapshot("gold.lag", 0).version == 0
    assert len(opened) == before + 2, "others may have replaced a version that nobody published"


@pytest.mark.soak
def test_a_process_knows_of_each_table_what_delta_rs_reads(process: Process) -> None:
    for _ in range(3):
        process.run()
    maintain(MaintainOptions(lake=process.lake, dry_run=False))
    process.run()
    read = Lake(process.lake.uri)
    for name in TABLES:
        process_snapshot, theirs = process.lake.snapshot(name), read.snapshot(name)
        assert (process_snapshot.version, process_snapshot.paths) == (theirs.version, theirs.paths)
        assert Lake(process.lake.uri).version(name) == theirs.version
        for process_file, file in zip(process_snapshot.files, theirs.files, strict=True):
            assert {key: process_file.get(key) for key in process_file.keys() | file.keys()} == {
                key: file.get(key) for key in process_file.keys() | file.keys()
            }


@pytest.mark.soak
def test_a_lake_that_another_object_wrote_is_opened_again(process: Process) -> None:
    process.run()
    before = process.lake.handle("bronze.log_record")
    other, process.lake = process.lake, Lake(process.lake.uri)
    process.run()
    process.lake = other
    process.run()
    assert process.lake.handle("bronze.log_record") is not before
