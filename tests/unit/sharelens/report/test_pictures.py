"""Pictures of answers: what they are drawn from equals what a report's streams give, and each is drawn."""

import itertools
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from sharelens.cli import main
from sharelens.measures.latency.tallies import By
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.answers.completeness import times
from sharelens.questions.lag import AUTO, AUTO_MOMENTS, lag_over_time
from sharelens.questions.latency import attempts
from sharelens.questions.timelines.entries import TIMELINE
from sharelens.questions.timelines.timeline import timeline
from sharelens.report.drawing import figure
from sharelens.report.lag_lines import LagPicture
from sharelens.report.pictures import CountsPicture, TimelinePicture, picture_of
from sharelens.report.timelines import STALLS
from sharelens.source.request import CutChoice, Source
from sharelens.tables.opening import open_evidence
from sharelens.tables.where import Span
from tests.datasets import dataset
from tests.report_pages import gathered

pytestmark = pytest.mark.slow
SOURCE = Source(log_dirs=(str(dataset("timeouts") / "logs"),), takes_group_log=True)
EVERY = KeyFilter()


def answers(group: str | None = None) -> dict[str, pa.Table]:
    chosen = EVERY if group is None else KeyFilter(groups=frozenset([group]))
    with open_evidence(SOURCE) as evidence:
        settings = evidence.settings.groups
        return {
            "lag": lag_over_time(evidence, chosen, AUTO).table,
            "timeline": timeline(evidence, chosen, CutChoice(), Span(), settings, 5000).table,
            "attempts": attempts(evidence, chosen, CutChoice(), Span(), By()).table,
        }


def test_attempts_and_timelines_are_those_of_the_report() -> None:
    report = gathered(SOURCE, min_duration_ms=5000)
    counts = picture_of("attempts", answers()["attempts"])
    assert isinstance(counts, CountsPicture)
    assert counts.records == report.pictures.outcomes
    for right in report.pictures.timelines:
        drawn = picture_of("timeline", answers(right.group_id)["timeline"])
        assert isinstance(drawn, TimelinePicture)
        assert drawn.timeline.counts == right.counts
        for marks in (drawn.timeline.marks, right.marks):
            assert any(mark.lane == STALLS for mark in marks) == ("stall_began" in right.counts)
        entries: list[Counter[str]] = [
            sum((Counter({mark.lane: mark.entries}) for mark in marks if mark.lane != STALLS), Counter())
            for marks in (drawn.timeline.marks, right.marks)
        ]
        assert entries[0] == entries[1]


def test_lag_has_a_line_a_group_and_of_one_group_a_line_a_share_partition() -> None:
    rows = answers()["lag"]
    of_all = picture_of("lag", rows)
    assert isinstance(of_all, LagPicture)
    sums: dict[str, dict[int, int]] = {}
    for row in rows.to_pylist():
        if row["lag_inferred"] is not None:
            of_group = sums.setdefault(row["group_id"], {})
            of_group[row["at_ms"]] = of_group.get(row["at_ms"], 0) + row["lag_inferred"]
    lines = {
        name: {point.at_ms: point.lag for point in points if point.lag is not None} for name, points in of_all.lines
    }
    assert lines == sums
    of_one = picture_of("lag", answers("g-slow")["lag"])
    assert isinstance(of_one, LagPicture)
    assert {name for name, _ in of_one.lines} == {"g-slow · slow-0", "g-slow · slow-1"}


def test_an_automatic_step_has_at_most_so_many_moments_and_covers_the_evidence() -> None:
    with open_evidence(SOURCE) as evidence:
        first_ms, last_ms = times(evidence.cover())
        assert first_ms is not None
        assert last_ms is not None
        for span_ms in (1, 40, 5000, last_ms - first_ms):
            rows = lag_over_time(evidence, EVERY, AUTO, last_ms - span_ms, last_ms).table
            moments = sorted(rows.column("at_ms").unique().to_pylist())
            assert len(moments) <= AUTO_MOMENTS
            assert len({after - before for before, after in itertools.pairwise(moments)}) <= 1
            assert not moments or last_ms - span_ms <= moments[0] <= moments[-1] < last_ms
    assert len(moments) > AUTO_MOMENTS / 3


def test_each_picture_is_drawn() -> None:
    for question, rows in answers("g-slow").items():
        picture = picture_of(question, rows)
        assert picture is not None
        drawn = figure(f"{question}-chart", picture)
        assert drawn is not None
        assert drawn.drawing.wide.startswith("<svg")
        assert drawn.drawing.wide.count("<path") > 4


def entry(event: str, at_ms: int, partition: int = 0) -> dict[str, Any]:
    return {"at_ms": at_ms, "event": event, "group_id": "g", "topic_id": "t", "partition": partition, "text": ""}


def test_stalls_are_joined_from_their_entries() -> None:
    """One that ended before it began in the rows has lasted from the first row on, one that did not end to the last."""
    rows = [
        entry("created", 0),
        entry("stall_ended", 100, 1),
        entry("stall_began", 200),
        entry("stall_ended", 300),
        entry("stall_began", 350),
        entry("a_later_event", 720),
    ]
    drawn = picture_of("timeline", pa.Table.from_pylist(rows, TIMELINE))
    assert isinstance(drawn, TimelinePicture)
    standing = [mark.column for mark in drawn.timeline.marks if mark.lane == STALLS]
    assert standing == [*range(11), *range(20, 31), *range(35, 72)]
    assert figure("timeline-chart", drawn) is not None


def test_other_answers_have_no_picture(capsys: pytest.CaptureFixture[str]) -> None:
    assert picture_of("timeline", TIMELINE.empty_table()) is None
    assert picture_of("lag", pa.table({"group_id": ["g"], "lag": [1]})) is None
    assert picture_of("state", pa.table({"group_id": ["g"]})) is None
    assert main(["lag", "--log-dir", SOURCE.log_dirs[0], "--every", "automatic"]) == 2
    assert "--every: 'automatic' is no duration" in capsys.readouterr().err
