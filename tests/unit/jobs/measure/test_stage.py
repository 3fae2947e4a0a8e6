"""The stage that measures: what is measured again, and what keeps its row."""

import json
import shutil
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from sharelens.cli import main
from sharelens.lake.lake import Lake
from sharelens.lake.scan import open_lake
from sharelens.lake.tables import TABLES
from sharelens.measures.catalog import STAGED
from tests.lakes import assert_same
from tests.logs.state_logs import (
    START_MS,
    snapshot,
    tombstone,
    update,
    write_log_directory,
    write_state_partition,
)
from tests.logs.user_topics import ORDERS_RECORDS, write_orders
from tests.once import made_once
from tests.processes.in_process import TO_MEASURES, make_lake, run_here, story_lake

pytestmark = pytest.mark.slow

HOUR_MS = 3_600_000

STORY = [
    snapshot("g", start=0),
    snapshot("h", start=10),
    snapshot("gone", start=0),
    update("g", start=0, batches=[(0, 4, 2, 1)], delivery_complete_count=5, at_ms=START_MS + 1),
    tombstone("gone", at_ms=START_MS + 2),
]
LATER_RECORDS = [update("g", start=5, batches=[(5, 9, 2, 1)], delivery_complete_count=5, at_ms=START_MS + 3)]


def logs_of(folder: Path, story: list[dict[str, Any]], *, topic: bool = True) -> Path:
    """A log directory with the story, and with the user topic or without it; takes the place of one that is there."""
    if folder.exists():
        shutil.rmtree(folder)
    logs = write_log_directory(folder, story)
    if topic:
        shutil.rmtree(logs / "orders-0")
        write_orders(logs)
    return logs


def lags(lake: Path) -> dict[str, tuple[int | None, int]]:
    """Lag and run by group."""
    rows = open_lake(lake).scan("gold.lag").to_pylist()
    return {row["group_id"]: (row["lag"], row["run_id"]) for row in rows}


def first_logs() -> Path:
    """The log directory of the story, to be read."""
    return made_once("measure/logs", lambda folder: logs_of(folder, STORY))


@pytest.fixture
def first(tmp_path: Path) -> Path:
    """A lake of one run over it."""
    shared_lake = made_once("measure/lake", lambda lake: make_lake(lake, first_logs()))
    return Path(shutil.copytree(shared_lake, tmp_path / "lake"))


def test_live_share_partitions_have_a_row_and_deleted_ones_have_none(first: Path) -> None:
    assert lags(first) == {"g": (ORDERS_RECORDS - 5, 1), "h": (ORDERS_RECORDS - 10, 1)}


def test_only_what_a_run_touched_is_measured_again(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    make_lake(lake, logs_of(tmp_path / "logs", STORY), stages=TO_MEASURES)
    longer_logs = logs_of(tmp_path / "logs", STORY + LATER_RECORDS)
    assert make_lake(lake, longer_logs, stages=TO_MEASURES).counts["gold.lag"] == 1
    assert lags(lake) == {"g": (ORDERS_RECORDS - 10, 2), "h": (ORDERS_RECORDS - 10, 1)}
    ended = logs_of(tmp_path / "logs", [*STORY, *LATER_RECORDS, tombstone("h", at_ms=START_MS + 4)])
    make_lake(lake, ended, stages=TO_MEASURES)
    assert lags(lake) == {"g": (ORDERS_RECORDS - 10, 2)}, "a share partition that is deleted loses its row"


@pytest.mark.soak
def test_several_runs_hold_what_one_run_holds(first: Path, tmp_path: Path) -> None:
    logs = logs_of(tmp_path / "logs", STORY + LATER_RECORDS)
    make_lake(first, logs)
    make_lake(tmp_path / "at-once", logs)
    assert_same(first, tmp_path / "at-once")


def test_new_records_of_the_user_topic_alone_change_the_lag(tmp_path: Path) -> None:
    make_lake(tmp_path / "lake", logs_of(tmp_path / "first", STORY, topic=False), stages=TO_MEASURES)
    assert lags(tmp_path / "lake")["g"] == (None, 1), "the count is ahead of the end"
    make_lake(tmp_path / "lake", logs_of(tmp_path / "first", STORY), stages=TO_MEASURES)
    assert {group: lag for group, (lag, _) in lags(tmp_path / "lake").items()} == {
        "g": ORDERS_RECORDS - 5,
        "h": ORDERS_RECORDS - 10,
    }


def test_nothing_new_measures_nothing(first: Path) -> None:
    version = open_lake(first).versions["gold.lag"]
    make_lake(first, first_logs())
    assert open_lake(first).versions["gold.lag"] == version


def test_a_rebuild_measures_everything_again(first: Path) -> None:
    assert make_lake(first, rebuild="measure", stages=TO_MEASURES).counts["gold.lag"] == 2
    assert {run for _, run in lags(first).values()} == {2}


def test_the_stage_alone_measures_what_a_run_without_it_left(tmp_path: Path) -> None:
    logs = logs_of(tmp_path / "logs", STORY)
    make_lake(tmp_path / "lake", logs, stages=("ingest", "decode", "replay", "publish"))
    assert lags(tmp_path / "lake") == {}
    make_lake(tmp_path / "lake", stages=("measure", "publish"))
    assert {group: lag for group, (lag, _) in lags(tmp_path / "lake").items()} == {
        "g": ORDERS_RECORDS - 5,
        "h": ORDERS_RECORDS - 10,
    }


@pytest.mark.soak
def test_a_new_record_leaves_the_files_of_final_contributions(tmp_path: Path) -> None:
    acknowledged = [(0, 0, 0), (30, 2, 2), (60, 4, 4), (90, 4, 10), (92, 8, 8)]
    story = [snapshot("g", start=0)] + [
        update("g", start=start, batches=[(offset, offset, 2, 1)], at_ms=START_MS + hour * HOUR_MS)
        for hour, start, offset in acknowledged
    ]
    lake = tmp_path / "lake"
    make_lake(lake, logs_of(tmp_path / "first", story))
    before = final_latency(lake)
    assert before
    settled = update("g", start=8, batches=[(9, 9, 2, 1)], at_ms=START_MS + 92 * HOUR_MS + 1)
    make_lake(lake, logs_of(tmp_path / "first", [*story, settled]))
    assert before <= final_latency(lake)
    make_lake(tmp_path / "at-once", tmp_path / "first")
    assert_same(lake, tmp_path / "at-once")


def final_latency(lake: Path) -> set[str]:
    """The files of gold.latency that hold final rows."""
    files = Lake(lake).snapshot("gold.latency").files
    return {str(file["path"]) for file in files if str(file["path"]).startswith("is_final=true")}


@pytest.mark.soak
def test_a_row_that_was_misplaced_is_measured_once_the_other_one_is_deleted(tmp_path: Path) -> None:
    def logs(ended: list[dict[str, Any]]) -> Path:
        folder = tmp_path / f"logs-{len(ended)}"
        ours, other = [snapshot(partition=1, at_ms=START_MS + 1), *ended], [snapshot(partition=1)]
        for number, story in enumerate(([snapshot("h")], [snapshot("h")], other, ours)):
            write_state_partition(folder, story, number=number)
        return folder

    lake = tmp_path / "lake"
    make_lake(lake, logs([]))
    assert {row["state_partition"] for row in open_lake(lake).scan("gold.lag").to_pylist() if row["partition"]} == {3}
    deleted = logs([tombstone(partition=1, at_ms=START_MS + 2)])
    make_lake(lake, deleted)
    make_lake(tmp_path / "at-once", deleted)
    assert_same(lake, tmp_path / "at-once")


OTHER_STATE_TOPIC_ID = "BBBBBBBBBBBBBBBBBBBBBg"
LATER_MS = START_MS + 99 * HOUR_MS


def earlier() -> Path:
    """The lake of the log of a state topic that is deleted and created again: hours of records, some rows are final."""
    hours = [update("h", start=0, batches=[(n, n, 4, 2)], at_ms=START_MS + n * HOUR_MS) for n in range(1, 9)]
    return story_lake("measure-earlier", [*STORY, *hours])


def created_again(folder: Path, story: list[dict[str, Any]]) -> Path:
    return write_log_directory(folder, story, state_topic_id=OTHER_STATE_TOPIC_ID)


@pytest.mark.soak
def test_share_partitions_of_an_earlier_state_topic_alone_have_no_rows(tmp_path: Path) -> None:
    story = [snapshot(group, at_ms=LATER_MS) for group in ("g", "new")]
    again = created_again(tmp_path / "again", story)
    make_lake(shutil.copytree(earlier(), tmp_path / "lake"), again)
    make_lake(tmp_path / "whole", earlier().parent / "logs", again)
    assert set(lags(tmp_path / "lake")) == {"g", "new"}
    assert_same(tmp_path / "lake", tmp_path / "whole")


@pytest.mark.soak
def test_a_state_topic_that_is_the_newest_from_a_later_run_on_is_measured_whole(tmp_path: Path) -> None:
    story = [snapshot(group, at_ms=START_MS - 9) for group in ("early", "g")]
    make_lake(shutil.copytree(earlier(), tmp_path / "lake"), created_again(tmp_path / "first", story))
    assert set(lags(tmp_path / "lake")) == {"g", "h"}
    longer = created_again(tmp_path / "longer", [*story, update("g", at_ms=LATER_MS)])
    make_lake(tmp_path / "lake", longer)
    make_lake(tmp_path / "whole", earlier().parent / "logs", longer)
    assert set(lags(tmp_path / "lake")) == {"g", "early"}
    assert_same(tmp_path / "lake", tmp_path / "whole")


@pytest.mark.soak
def test_a_lake_without_a_newer_table_opens_and_gets_it_with_the_next_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake, logs = tmp_path / "lake", logs_of(tmp_path / "logs", STORY)
    with mock.patch.dict(STAGED), mock.patch.dict(TABLES):  # which give back the order, too
        del STAGED["lag_over_time"], TABLES["gold.lag_over_time"]
        run_here(lake, logs)  # makes the tables itself
    assert not Lake(lake).exists("gold.lag_over_time")
    assert lags(lake)["g"] == (ORDERS_RECORDS - 5, 1)
    assert main(["sql", "--lake", str(lake), "--query", "lag_over_time", "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    longer_logs = logs_of(tmp_path / "logs", STORY + LATER_RECORDS)
    make_lake(lake, longer_logs)
    make_lake(tmp_path / "at-once", longer_logs)
    assert_same(lake, tmp_path / "at-once")
