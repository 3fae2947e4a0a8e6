"""Freshness: the ages of the records that a cut shows first."""

from pathlib import Path

import pytest

from jobs.freshness import Freshness, freshness
from jobs.publish import published_run
from sharelens.lake.lake import Lake
from tests.logs.state_logs import START_MS, snapshot, update, write_log_directory
from tests.processes.in_process import TO_SILVER, make_lake

pytestmark = pytest.mark.slow

RECORDS = [snapshot("g", start=0), *(update("g", start=n, at_ms=START_MS + n * 1000) for n in (2, 5, 9))]


def lake_of(folder: Path, *ends: int) -> Lake:
    for end in ends:
        make_lake(folder / "lake", write_log_directory(folder / f"logs-{end}", RECORDS[:end]), stages=TO_SILVER)
    return Lake(folder / "lake")


def test_ages_are_those_of_the_oldest_and_the_newest_record_of_the_runs_behind_a_cut(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, 2, 4)
    at_ms = START_MS + 10_000
    assert freshness(lake, 0, at_ms) == Freshness(oldest_ms=10_000, newest_ms=1000, log_time_ms=START_MS + 9000)
    assert freshness(lake, 1, at_ms) == Freshness(oldest_ms=5000, newest_ms=1000, log_time_ms=START_MS + 9000)
    assert freshness(lake, published_run(lake), at_ms) is None


def test_the_age_of_a_record_that_a_clock_ahead_of_ours_stamped_is_nought(tmp_path: Path) -> None:
    ages = freshness(lake_of(tmp_path, 4), 0, START_MS + 6000)
    assert ages == Freshness(oldest_ms=6000, newest_ms=0, log_time_ms=START_MS + 9000)


def test_a_run_says_how_fresh_its_news_is_and_one_without_news_says_nothing(tmp_path: Path) -> None:
    logs = write_log_directory(tmp_path / "logs", RECORDS)
    first, second = (make_lake(tmp_path / "lake", logs).as_dict()["freshness_ms"] for _ in range(2))
    assert first["oldest"] - first["newest"] == 9000
    assert second is None
