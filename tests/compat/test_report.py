"""The report's lives and timelines over recorded logs: what the questions `life` and `timeline` answer."""

import json
from collections import Counter
from functools import cache
from typing import Any

import pytest

from sharelens.cli import main
from sharelens.questions.life import counts_of
from sharelens.report.gather import Gathered
from sharelens.report.timelines import ENTRIES_SHOWN, GROUPS_DRAWN, STALLS
from sharelens.source.request import CutChoice, Source
from tests.datasets import FEW, dataset, kinds_first
from tests.processes.in_process import recorded_lake
from tests.report_pages import gathered

pytestmark = pytest.mark.usefixtures("evidence_opened_once")
LEAST_MS = 5000


def log_source(scenario: str) -> Source:
    return Source(log_dirs=(str(dataset(scenario) / "logs"),))


@cache
def of_logs(scenario: str) -> Gathered:
    return gathered(log_source(scenario), min_duration_ms=LEAST_MS)


def answer_of(capsys: pytest.CaptureFixture[str], command: str, scenario: str, *arguments: str) -> Any:
    capsys.readouterr()
    words = [command, "--log-dir", str(dataset(scenario) / "logs"), *arguments, "--output", "json"]
    assert (main(words) or 0) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("scenario", kinds_first(FEW))
def test_a_lake_and_its_log_have_the_same_lives_and_timelines(scenario: str) -> None:
    lake = gathered(Source(lake=str(recorded_lake(scenario))), min_duration_ms=LEAST_MS)
    logs = of_logs(scenario)
    lives = [report.answers["life"] for report in (lake, logs)]
    assert counts_of(lives[0].sums) == counts_of(lives[1].sums)
    assert lives[0].table.drop_columns(["cluster_id"]).equals(lives[1].table.drop_columns(["cluster_id"]))
    for lake_timeline, right in zip(lake.pictures.timelines, logs.pictures.timelines, strict=True):
        assert lake_timeline.group_id == right.group_id
        assert lake_timeline.counts == right.counts
        assert lake_timeline.marks == right.marks
        assert lake_timeline.entries.to_pylist() == right.entries.to_pylist()


@pytest.mark.soak
@pytest.mark.parametrize("scenario", ["admin", "edge", "pruned"])
def test_the_lives_are_those_of_the_question(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    lives = of_logs(scenario).answers["life"]
    rows = answer_of(capsys, "life", scenario)
    assert counts_of(lives.sums) == Counter(row["event"] for row in rows)
    by_record = {(row["state_partition"], row["log_offset"], row["event"]): row for row in rows}
    shown = lives.table.to_pylist()
    assert shown
    for row in shown:
        row_of_event = by_record[row["state_partition"], row["log_offset"], row["event"]]
        assert {name: row[name] for name in row_of_event} == row_of_event


@pytest.mark.soak
@pytest.mark.parametrize("scenario", ["admin", "dlq", "timeouts"])
def test_the_timelines_are_those_of_the_question(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    timelines = of_logs(scenario).pictures.timelines
    assert len(timelines) == GROUPS_DRAWN
    for timeline in timelines:
        words = ["--group", timeline.group_id, "--min-duration", f"{LEAST_MS}ms"]
        rows = answer_of(capsys, "timeline", scenario, *words)
        assert timeline.counts == Counter(row["event"] for row in rows)
        entries = timeline.entries.to_pylist()
        assert len(entries) == min(ENTRIES_SHOWN, len(rows))
        assert [row for row in rows if row in entries] == entries
        assert timeline.left_off == len(rows) - len(entries)
        marks: Counter[str] = Counter()
        for mark in timeline.marks:
            marks[mark.lane] += mark.entries if mark.lane != STALLS else 0
        stalls = {"stall_began", "stall_ended"}
        assert +marks == {event: count for event, count in timeline.counts.items() if event not in stalls}
        records = sum(row["records"] for row in rows if row["event"] == "archived")
        assert records == sum(mark.records for mark in timeline.marks if mark.lane == "archived")


@pytest.mark.soak
def test_an_earlier_cut_has_nothing_that_came_later(capsys: pytest.CaptureFixture[str]) -> None:
    cut_ms = of_logs("admin").signs.first_ms + 15_000
    report = gathered(log_source("admin"), min_duration_ms=LEAST_MS, cut=CutChoice(as_of_ms=cut_ms))
    for timeline in report.pictures.timelines:
        words = ["--group", timeline.group_id, "--min-duration", f"{LEAST_MS}ms", "--as-of", str(cut_ms)]
        rows = answer_of(capsys, "timeline", "admin", *words)
        assert timeline.counts == Counter(row["event"] for row in rows)
        assert max(row["at_ms"] for row in rows) <= cut_ms
    rows = answer_of(capsys, "life", "admin", "--as-of", str(cut_ms))
    assert counts_of(report.answers["life"].sums) == Counter(row["event"] for row in rows)
