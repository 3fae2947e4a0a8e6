"""The overview about streams groups, at moments of recorded logs, and of a simulated application that falls behind."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from sharelens.broker.simulator.settings import profile
from sharelens.broker.simulator.simulation import simulate
from sharelens.cli import main
from sharelens.findings.finding import Finding
from sharelens.findings.signs import Signs
from sharelens.findings.thresholds import GROWTH_MS, Thresholds
from sharelens.findings.verdict import judge
from sharelens.groups.schemas import EMPTY, STREAMS
from sharelens.output import Report
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.findings.overview import overview
from sharelens.questions.findings.signs import signs
from sharelens.source.request import CutChoice, Source
from sharelens.tables.opening import open_evidence
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_group_records
from state_model.streams.values import TaskId
from tests.datasets import dataset
from tests.once import made_once
from tests.processes.in_process import make_lake

TOPOLOGY = Source(log_dirs=(str(dataset("streams-topology") / "logs"),), takes_group_log=True)
MINUTE_MS = 60_000


@pytest.fixture(scope="module")
def topology() -> Iterator[Tables]:
    with open_evidence(TOPOLOGY) as evidence:
        read_group_records(evidence, None)  # read once, and kept
        yield evidence


@cache
def _wall_ms(checkpoint: str) -> int:
    lines = (dataset("streams-topology") / "checkpoints.jsonl").read_text(encoding="utf-8").splitlines()
    return next(int(row["wallMs"]) for row in map(json.loads, lines) if row["name"] == checkpoint)


def _at(evidence: Tables, checkpoint: str, min_duration_ms: int = 0) -> Report:
    cut = CutChoice(as_of_ms=_wall_ms(checkpoint))
    settings = evidence.settings.groups
    return overview(evidence, TOPOLOGY, KeyFilter(), cut, settings, min_duration_ms=min_duration_ms)


def _found_rows(answered: Report) -> list[dict[str, Any]]:
    return [row for row in answered.parts["findings"].table.to_pylist() if row["result"] == "found"]


@pytest.mark.parametrize(
    ("checkpoint", "expected"),
    [
        ("source-deleted", [("error", "not_ready", "app-miss", "describe --group=app-miss --state")]),
        (
            "changelog-deleted",
            [
                ("error", "tasks_without_owner", "app-wc", "describe --group=app-wc --tasks"),
                ("warning", "rebalancing", "app-wc", "rebalances --group=app-wc"),
            ],
        ),
        ("raw-after-rebalance-timeout", [("warning", "rebalancing", "raw-g", "rebalances --group=raw-g")]),
        ("same-topology-again", []),
    ],
)
def test_trouble_of_an_application_is_a_finding_with_the_command_that_explains_it(
    topology: Tables, checkpoint: str, expected: list[tuple[str, str, str, str]]
) -> None:
    rows = _found_rows(_at(topology, checkpoint))
    place = f" --log-dir {TOPOLOGY.log_dirs[0]}"
    commands = [row["command"].removeprefix("sharelens ").replace(place, "").partition(" --as-of")[0] for row in rows]
    about = [(row["severity"], row["kind"], row["group_id"]) for row in rows]
    assert [(*row, command) for row, command in zip(about, commands, strict=True)] == expected


def test_the_texts_name_the_reason_and_the_tasks(topology: Tables) -> None:
    (row,) = _found_rows(_at(topology, "source-deleted"))
    reason = "topics of the topology are missing or have other partition counts"
    assert row["text"] == f"not ready since 21:29:41 (0.7 s): {reason}; 1 member"
    row, _ = _found_rows(_at(topology, "changelog-deleted"))
    tasks = "0_0, 0_1, 0_2, 0_3, 1_0 and 3 more"
    assert row["text"] == f"8 active tasks without an owner since 21:29:11 (0.8 s): {tasks}"


def test_what_lasts_no_minute_is_no_finding_and_healthy_groups_say_so(topology: Tables) -> None:
    answered = _at(topology, "source-deleted", MINUTE_MS)
    assert _found_rows(answered) == []
    (unjudged,) = answered.parts["findings"].table.to_pylist()
    assert unjudged["text"] == "no members since 21:29:37, and the lag of 4 partitions is unknown"
    assert answered.headline is not None
    assert re.match("no error found by [0-9]+ of [0-9]+ rules; app-w", answered.headline)
    rows = {row["group_id"]: row for row in answered.parts["groups"].table.to_pylist()}
    assert {name: (row["state"], row["members"], row["tasks"]) for name, row in rows.items()} == {
        "app-join": ("STABLE", 1, 4),
        "app-miss": ("NOT_READY", 1, 2),
        "app-table": ("STABLE", 2, 9),
        "app-wc": ("EMPTY", 0, 0),
        "app-wrong": ("EMPTY", 0, 0),
    }
    assert {row["group_type"] for row in rows.values()} == {STREAMS}
    assert "the lag of 24 partitions of streams groups is unknown" in answered.warnings[0]


def test_only_the_groups_that_were_asked_for_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    place = TOPOLOGY.log_dirs[0]
    assert main(["overview", "--log-dir", place, "--group", "app-wc", "--output", "json"]) == 0
    assert [row["group_id"] for row in json.loads(capsys.readouterr().out)["groups"]] == ["app-wc"]
    with pytest.raises(SystemExit):
        raise SystemExit(main(["overview", "--log-dir", place, "--group", "nobody"]))
    assert "no share group nobody" in capsys.readouterr().err


def _simulated_log() -> Path:
    """A log in which two applications read less than is written."""
    settings = profile("streams", records=1_500, state_partitions=3)
    return made_once("overview-streams", lambda into: simulate(settings, 7, into / "log")) / "log"


@pytest.fixture(scope="module")
def simulated() -> Signs:
    """Signs of that log."""
    with open_evidence(Source(log_dirs=(str(_simulated_log()),))) as evidence:
        return signs(evidence, KeyFilter(), CutChoice(), evidence.settings.groups, MINUTE_MS)


def _about_streams(read: Signs, min_duration_ms: int = MINUTE_MS) -> list[Finding]:
    """What is found of streams groups, as if the window of growth were long enough."""
    streams = [replace(sign, window_ms=min(sign.window_ms, sign.now_ms - GROWTH_MS)) for sign in read.streams]
    verdict = judge(replace(read, streams=streams), Thresholds(min_duration_ms=min_duration_ms))
    return [row for row in verdict.findings if row.group_type == STREAMS and row.remedy is None]


def test_a_lag_that_grows_is_a_finding_and_counts_what_describe_prints(
    simulated: Signs, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = _about_streams(simulated)
    assert {row.kind for row in rows} == {"lag_growing"}
    place = ["--log-dir", str(_simulated_log())]
    for row in rows:
        assert main(["describe", *place, f"--group={row.group_id}", "--output", "json"]) == 0
        assert row.size == sum(of["lag"] for of in json.loads(capsys.readouterr().out))


@pytest.mark.soak
def test_a_lake_says_the_same_of_lags_too(simulated: Signs, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_lake(tmp_path / "lake", _simulated_log())
    assert main(["overview", "--lake", str(tmp_path / "lake"), "--output", "json"]) == 0
    answered = json.loads(capsys.readouterr().out)
    growing = {row["group_id"]: row["text"] for row in answered["findings"] if row["kind"] == "lag_growing"}
    texts = {row.group_id: row.text for row in _about_streams(simulated)}
    assert {group: growing[group] for group in texts if group in growing} == texts
    lags = {row["group_id"]: row["lag"] for row in answered["groups"] if row["group_type"] == STREAMS}
    assert lags == {sign.group_id: sign.lag.records for sign in simulated.streams}


def test_a_group_without_members_has_a_finding_only_where_it_has_records_to_do(simulated: Signs) -> None:
    gone = [
        replace(sign, state=EMPTY, members=0, since_ms=sign.now_ms - GROWTH_MS, lag=replace(sign.lag, growth=None))
        for sign in simulated.streams
    ]
    (row, other) = _about_streams(replace(simulated, streams=gone))
    assert (row.kind, other.kind) == ("no_members", "no_members")
    assert (row.size or 0) >= (other.size or 0) > 0
    done = [replace(sign, lag=replace(sign.lag, records=0)) for sign in gone]
    assert _about_streams(replace(simulated, streams=done)) == []


def test_a_group_that_is_never_at_rest_is_a_finding_though_it_is_stable_at_times(simulated: Signs) -> None:
    calm = [replace(sign, lag=replace(sign.lag, growth=0)) for sign in simulated.streams]
    assert _about_streams(replace(simulated, streams=calm)) == []
    half_ms = GROWTH_MS // 2 + 1
    restless = replace(calm[0], unsettled_ms=half_ms, window_epochs=9)
    (row,) = _about_streams(replace(simulated, streams=[restless]), half_ms)
    assert (row.kind, row.severity) == ("rebalancing", "warning")
    assert row.text.endswith("9 group epochs in that time")


def test_a_task_without_an_owner_is_a_finding_after_the_least_duration(simulated: Signs) -> None:
    sign = replace(simulated.streams[0], lag=replace(simulated.streams[0].lag, growth=0))
    since_ms = {TaskId("0", 1): sign.now_ms - MINUTE_MS, TaskId("0", 2): sign.now_ms - MINUTE_MS + 1}
    (row,) = _about_streams(replace(simulated, streams=[replace(sign, without_owner=since_ms)]))
    assert (row.kind, row.size) == ("tasks_without_owner", 1)
    assert row.text.endswith(": 0_1")
