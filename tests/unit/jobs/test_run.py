"""A run over log directories: incremental, by intervals, rebuilt, counted. Tasks run in this process, without Spark."""

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow.compute as pc
import pytest

from jobs.errors import JobError
from jobs.options import RunOptions
from jobs.publish import current_versions, published_versions
from jobs.run import run
from sharelens.cli import main
from sharelens.lake import crash_points
from sharelens.lake.errors import LakeError, LakeLockedError
from sharelens.lake.lake import Lake
from sharelens.lake.lock import hold
from sharelens.lake.scan import open_lake
from sharelens.source.request import Source
from sharelens.tables.opening import open_evidence
from tests.depths import in_soak
from tests.lakes import assert_same
from tests.logs.batch_files import broken, state_batches, state_directory
from tests.logs.state_logs import (
    ORDERS_ID,
    START_MS,
    STATE_TOPIC,
    snapshot,
    tombstone,
    update,
    write_log_directory,
)
from tests.once import made_once
from tests.processes.in_process import make_lake, no_session, recorded_lake, run_here
from tools.log_writer.writer import write_checkpoints

pytestmark = pytest.mark.slow

HISTORY = "gold.share_partition_history"
STORY = [
    snapshot("g", start=0),
    update("g", batches=[(0, 4, 2, 1)], start=0, at_ms=START_MS + 1000),
    snapshot("h", start=5, at_ms=START_MS + 2000),
    update("g", start=5, at_ms=START_MS + 3000),
    tombstone("h", at_ms=START_MS + 4000),
    update("g", batches=[(7, 9, 4, 2)], at_ms=START_MS + 5000),
]


def story_logs(folder: Path, count: int | None = None) -> Path:
    """A log directory of the story, or of its first records."""
    return write_log_directory(folder, STORY[:count], cluster_id="a-cluster")


@pytest.fixture
def logs() -> Path:
    """The log directory of the story, to be read."""
    return made_once("run-story/logs", story_logs)


@pytest.fixture
def one_run_lake(logs: Path) -> Path:
    """The lake of one run over everything, to be read."""
    return made_once("run-story/whole", lambda lake: make_lake(lake, logs))


@pytest.fixture
def lake_copy(tmp_path: Path, one_run_lake: Path) -> Path:
    """A lake of one run over `logs`, to run on."""
    return Path(shutil.copytree(one_run_lake, tmp_path / "mine"))


@pytest.fixture
def two_runs(logs: Path) -> Path:
    """The lake of two runs over everything; tests copy it."""

    def make(lake: Path) -> None:
        make_lake(lake, logs, until_ms=START_MS + 2500)
        make_lake(lake, logs)

    return made_once("run-story/two-runs", make)


def files(lake: Path, name: str) -> set[str]:
    """The data files of a table as it is now."""
    return {str(file["path"]) for file in Lake(lake).snapshot(name).files}


def test_a_second_run_finds_nothing_starts_no_session_and_writes_nothing(logs: Path, lake_copy: Path) -> None:
    before = current_versions(Lake(lake_copy))
    summary = run(RunOptions(lake=Lake(lake_copy), log_dirs=(str(logs),)), no_session)
    assert (summary.run_id, summary.counts) == (None, {})
    assert current_versions(Lake(lake_copy)) == published_versions(Lake(lake_copy)) == before


def test_nothing_new_fails_only_when_rows_are_required(logs: Path, lake_copy: Path) -> None:
    options = RunOptions(lake=Lake(lake_copy), log_dirs=(str(logs),), require_rows=True)
    with pytest.raises(JobError, match="no new records"):
        run(options, no_session)


def test_a_log_that_grew_in_every_way_it_can_is_taken_from_where_the_last_run_ended(
    tmp_path: Path, one_run_lake: Path
) -> None:
    growing = tmp_path / "growing"
    for count in (1, 5, 6):
        story_logs(tmp_path / str(count), count).rename(tmp_path / "now")
        summary = make_lake(growing, tmp_path / "now")
        (tmp_path / "now").rename(tmp_path / f"was-{count}")
    assert summary.counts["bronze.log_record"] == 1
    assert_same(growing, one_run_lake)


def test_an_interval_ends_before_its_time_and_is_covered_afterwards(tmp_path: Path, logs: Path) -> None:
    lake = tmp_path / "lake"
    make_lake(lake, logs, until_ms=START_MS + 3000)
    assert open_lake(lake).scan("silver.share_record").column("log_offset").to_pylist() == [0, 1, 2]
    options = RunOptions(lake=Lake(lake), log_dirs=(str(logs),), until_ms=START_MS + 3000)
    assert run(options, no_session).counts.get("bronze.log_record", 0) == 0
    assert run(RunOptions(lake=Lake(lake), log_dirs=(str(logs),), until_ms=START_MS), no_session).run_id is None


@pytest.mark.soak
@pytest.mark.parametrize("case", ["decode", *in_soak("replay")])
def test_a_rebuild_gives_the_same_tables_without_the_log(
    case: str, tmp_path: Path, logs: Path, one_run_lake: Path, two_runs: Path
) -> None:
    again = Path(shutil.copytree(two_runs, tmp_path / "again"))
    before = {name: files(again, name) for name in ("bronze.log_record", "silver.share_record", HISTORY)}
    make_lake(again, rebuild=case)
    assert_same(again, one_run_lake)
    assert {name for name in before if files(again, name) != before[name]} == {
        "decode": {"silver.share_record", HISTORY},
        "replay": {HISTORY},
    }[case]
    assert run(RunOptions(lake=Lake(again), log_dirs=(str(logs),)), no_session).counts == {}


@pytest.mark.parametrize("committed", [2, *in_soak(0, 4)])
def test_what_is_not_committed_is_held_back_and_taken_once_it_is(
    committed: int, tmp_path: Path, one_run_lake: Path
) -> None:
    logs = write_log_directory(tmp_path / "held", STORY, cluster_id="a-cluster", committed=committed)
    lake = tmp_path / "lake"
    assert make_lake(lake, logs).held_back == len(STORY) - committed
    assert open_lake(lake).scan("bronze.log_record").num_rows == committed
    write_checkpoints(logs, high_watermarks={(STATE_TOPIC, 0): len(STORY)})
    assert make_lake(lake, logs).held_back == 0
    assert_same(lake, one_run_lake)


def held_back(folder: Path) -> None:
    """A log directory without a committed record, and its lake."""
    make_lake(folder / "lake", write_log_directory(folder / "held", STORY, cluster_id="a-cluster", committed=0))


@pytest.mark.parametrize("question", ["state", "records", "lag"])
def test_an_empty_cut_answers_as_the_log_directory_does(question: str, capsys: pytest.CaptureFixture[str]) -> None:
    shared_folder = made_once("run-story/held-back", held_back)
    answers = []
    for source in (["--lake", str(shared_folder / "lake")], ["--log-dir", str(shared_folder / "held")]):
        assert main([question, *source, "--output", "json"]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    assert answers == [[], []]


def test_what_was_taken_while_uncommitted_is_replaced_once_it_is_committed(tmp_path: Path, one_run_lake: Path) -> None:
    logs = write_log_directory(tmp_path / "dead", STORY, cluster_id="a-cluster", committed=3)
    lake = tmp_path / "lake"
    make_lake(lake, logs, include_uncommitted=True)
    rows = open_lake(lake).scan("bronze.log_record").sort_by("offset")
    assert rows.column("uncommitted").to_pylist() == [False, False, False, True, True, True]
    (state,) = open_lake(lake).scan("gold.share_partition_state").to_pylist()
    assert (state["group_id"], state["completeness"]) == ("g", "uncommitted")
    assert held_offsets(lake) == (0, len(STORY))
    write_checkpoints(logs, high_watermarks={(STATE_TOPIC, 0): len(STORY)})
    make_lake(lake, logs)
    assert_same(lake, one_run_lake)


@pytest.mark.parametrize("committed", [0, 3])
def test_the_evidence_of_a_lake_with_uncommitted_records_ends_where_that_of_the_log_ends(
    committed: int, tmp_path: Path
) -> None:
    logs = write_log_directory(tmp_path / "dead", STORY, cluster_id="a-cluster", committed=committed)
    make_lake(tmp_path / "lake", logs, include_uncommitted=True)
    assert held_offsets(tmp_path / "lake") == (0, len(STORY))
    ends = []
    for source in (Source(lake=str(tmp_path / "lake")), Source(log_dirs=(str(logs),), include_uncommitted=True)):
        with open_evidence(source) as evidence:
            (part,) = evidence.cover()
        ends.append((part.first_offset, part.end_offset_exclusive, part.first_ms, part.last_ms, part.held_back))
    assert ends[0] == ends[1]


def held_offsets(lake: Path) -> tuple[int, int]:
    """First offset and end of the published evidence about the only state partition."""
    (row,) = open_lake(lake).publication["evidence"]
    return row["first_log_offset"], row["end_log_offset_exclusive"]


def test_a_broken_batch_is_quarantined_counted_and_leaves_its_share_partitions_incomplete(tmp_path: Path) -> None:
    batches = state_batches(STORY)
    batches[3] = broken(batches[3])
    logs = state_directory(tmp_path / "logs", batches)
    summary = make_lake(tmp_path / "lake", logs)
    assert (summary.quarantined, summary.gaps) == (1, 1)
    lake = open_lake(tmp_path / "lake")
    (problem,) = lake.scan("bronze.quarantine").to_pylist()
    assert (problem["first_offset"], problem["last_offset"], problem["bytes"]) == (3, 3, batches[3])
    (state,) = lake.scan("gold.share_partition_state").to_pylist()
    assert (state["completeness"], state["completeness_reason"]) == ("incomplete", "quarantined")
    assert run(RunOptions(lake=Lake(tmp_path / "lake"), log_dirs=(str(logs),)), no_session).counts == {}


@pytest.mark.parametrize("stage", ["decode", "replay", "measure", "audit", "check", "publish"])
def test_a_stage_of_a_lake_that_is_not_there_is_refused_and_makes_none(stage: str, tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="is not a directory; give the folder that `sharelens run --lake` wrote"):
        make_lake(tmp_path / "lake", stages=(stage,))
    assert not (tmp_path / "lake").exists()
    (tmp_path / "empty").mkdir()
    with pytest.raises(LakeError, match="holds no lake"):
        make_lake(tmp_path / "empty", stages=(stage,))
    assert not list((tmp_path / "empty").iterdir())


def test_two_runs_at_once_take_turns(tmp_path: Path, logs: Path, lake_copy: Path) -> None:
    versions = current_versions(Lake(lake_copy))
    with hold(Lake(lake_copy), 0), pytest.raises(LakeLockedError, match=f"held by process {os.getpid()}"):
        make_lake(lake_copy, logs, lock_timeout_s=0.1)
    assert current_versions(Lake(lake_copy)) == versions
    runs = [threading.Thread(target=run_here, args=(tmp_path / "lake", logs)) for _ in range(3)]
    for process in runs:
        process.start()
    for process in runs:
        process.join()
    assert_same(tmp_path / "lake", lake_copy)


@pytest.mark.soak
def test_two_schedulers_that_start_at_once_wait_for_each_other(tmp_path: Path, logs: Path, lake_copy: Path) -> None:
    lake = tmp_path / "lake"
    command = [sys.executable, "-m", "sharelens", "run", "--lake", str(lake), "--log-dir", str(logs)]
    several = [subprocess.Popen([*command, "--lock-timeout", "120"], stdout=subprocess.PIPE) for _ in range(2)]
    summaries = [json.loads(process.communicate()[0]) for process in several]
    assert [process.returncode for process in several] == [0, 0]
    records = sorted(summary["rows"].get("bronze.log_record", 0) for summary in summaries)
    assert records == [0, open_lake(lake_copy).scan("bronze.log_record").num_rows]
    assert_same(lake, lake_copy)


def test_names_come_from_the_folders(one_run_lake: Path) -> None:
    rows = open_lake(one_run_lake).scan("silver.name").to_pylist()
    assert (ORDERS_ID, "orders", "partition.metadata") in {(r["topic_id"], r["topic"], r["source"]) for r in rows}


def test_batch_headers_are_read_of_topics_that_share_state_speaks_of_and_of_no_other() -> None:
    lake = open_lake(recorded_lake("basic"))
    spoken_of = set(lake.scan("gold.share_partition_state").column("topic_id").to_pylist())
    headers = lake.scan("bronze.topic_batch")
    assert headers.num_rows > 0
    assert set(headers.column("topic_id").to_pylist()) <= spoken_of
    assert not pc.any(pc.starts_with(headers.column("topic"), "__")).as_py()


def test_every_row_of_a_run_carries_its_number_and_its_cluster(one_run_lake: Path) -> None:
    lake = open_lake(one_run_lake)
    for name in ("bronze.log_record", "silver.share_record", "gold.share_partition_history", "gold.delivery_history"):
        rows = lake.scan(name)
        assert rows.num_rows > 0
        assert set(rows.column("cluster_id").to_pylist()) == {"a-cluster"}
        assert set(rows.column("run_id").to_pylist()) == {1}


@pytest.mark.soak
def test_a_directory_that_went_away_after_a_kill_stops_nobody_and_may_come_back(
    tmp_path: Path, one_run_lake: Path
) -> None:
    lake, logs = tmp_path / "lake", story_logs(tmp_path / "logs")
    point = "commit:bronze.ingest_extent:ingest-plan:after"
    with crash_points.arm(point), pytest.raises(crash_points.CrashPointReached):
        make_lake(lake, logs)
    logs.rename(tmp_path / "gone")
    short = story_logs(tmp_path / "short", 2)
    assert make_lake(lake, short).counts["silver.share_record"] == 2
    assert make_lake(lake, short).run_id is None
    (tmp_path / "gone").rename(logs)
    make_lake(lake, logs)
    assert_same(lake, one_run_lake)
