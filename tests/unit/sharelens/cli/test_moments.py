"""Times of day of a command line are those of the evidence, however old it is, and are printed with their date."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from jobs.commands.reading import Reading
from sharelens.cli import main
from sharelens.cli.moments import dated
from sharelens.parameters.times import HOUR_MS, MINUTE_MS, Clock, Rounding, TimeOfDay, parse_zone, time_text
from sharelens.source.request import Source
from sharelens.tables.ends import GOES_ON, EvidenceEnd, evidence_end
from tests.datasets import dataset
from tests.logs.file_times import set_times
from tests.logs.state_logs import snapshot, update, write_log_directory
from tests.once import made_once
from tests.processes.in_process import recorded_lake, story_lake
from tools.log_writer.writer import write_checkpoints

NOON_MS = 1_700_049_600_000
"""2023-11-15T12:00:00Z."""
TIMES = [NOON_MS - 10 * MINUTE_MS, NOON_MS - 5 * MINUTE_MS, NOON_MS]
STORY = [snapshot(at_ms=TIMES[0]), *(update(batches=[(0, n, 0, 1)], at_ms=at_ms) for n, at_ms in enumerate(TIMES[1:]))]
Answer = Callable[..., tuple[list[dict[str, int]], str]]


@pytest.fixture
def logs() -> Path:
    """The log directory of the story, to be read."""
    return made_once("moments/logs", lambda folder: write_log_directory(folder, STORY))


@pytest.fixture(params=["log directory", pytest.param("lake", marks=pytest.mark.slow)])
def evidence(request: pytest.FixtureRequest, logs: Path) -> list[str]:
    """The options that name the evidence."""
    if request.param == "lake":
        return ["--lake", str(story_lake("moments", STORY))]
    return ["--log-dir", str(logs)]


@pytest.fixture
def answer(evidence: list[str], capsys: pytest.CaptureFixture[str]) -> Answer:
    """The rows of a command, and what it says on stderr."""

    def rows(name: str, *words: str) -> tuple[list[dict[str, int]], str]:
        assert main([name, *evidence, "-o", "json", *words]) == 0
        captured = capsys.readouterr()
        return json.loads(captured.out), captured.err

    return rows


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("words", "offsets", "note"),
    [
        (["--from", "11:55"], [1, 2], "--from 11:55: 2023-11-15T11:55:00.000Z, the newest such time up to the end of"),
        (["--from", "12:00"], [2], "--from 12:00: 2023-11-15T12:00:00.000Z, the newest such time up to the end of"),
        (["--to", "12:00"], [0, 1], "--to 12:00: 2023-11-15T12:00:00.000Z, the newest such time up to the end of"),
        (["--to", "12:01"], [], "--to 12:01: 2023-11-14T12:01:00.000Z, the newest such time up to the end of"),
        (["--from", "end-5m"], [1, 2], ""),
        (["--from", "end"], [2], ""),
        (["--from", "end-6m", "--to", "end"], [1], ""),
        (
            ["--to", "12:01", "--from", "11:55"],
            [1, 2],
            "--to 12:01: 2023-11-15T12:01:00.000Z, the first such time after",
        ),
        (
            ["--from", "12:55", "--tz", "+01:00"],
            [1, 2],
            "--from 12:55: 2023-11-15T12:55:00.000+01:00 (UTC+01:00), the newest such time up to the end of the",
        ),
    ],
)
def test_bounds_are_the_newest_such_times_in_the_evidence(
    answer: Answer, words: list[str], offsets: list[int], note: str
) -> None:
    rows, notes = answer("records", *words)
    assert [row["log_offset"] for row in rows] == offsets
    assert note in notes


def test_a_state_is_that_of_the_newest_such_moment(answer: Answer) -> None:
    rows, notes = answer("state", "--as-of", "11:57")
    assert [row["log_offset"] for row in rows] == [1]
    assert notes.startswith("sharelens: --as-of 11:57: 2023-11-15T11:57:00.000Z, ")


def test_now_is_the_first_such_moment_that_does_not_lie_in_the_evidence(answer: Answer) -> None:
    _, notes = answer("stalled", "--now", "11:57")
    assert "now 2023-11-16T11:57:00.000Z, 23 h 57 min after the last record" in notes
    assert "--now 11:57: 2023-11-16T11:57:00.000Z, the first such time from the end of the evidence" in notes


def test_commands_that_are_no_questions_take_the_same_moments(
    evidence: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dlq", "plan", *evidence, "--from", "11:55", "--out", str(tmp_path / "plan.json")]) == 0
    assert "--from 11:55: 2023-11-15T11:55:00.000Z, " in capsys.readouterr().err


def test_a_full_time_opens_no_evidence_and_is_not_printed(answer: Answer) -> None:
    assert "--from" not in answer("records", "--from", time_text(NOON_MS))[1]


def test_times_of_files_prolong_the_evidence(tmp_path: Path) -> None:
    logs = write_log_directory(tmp_path / "logs", STORY)
    write_checkpoints(logs, high_watermarks={("__share_group_state", 0): 3})
    source = Source(log_dirs=(str(logs),))
    set_times(logs, appended_ms=NOON_MS, checkpoint_ms=NOON_MS + HOUR_MS)
    assert evidence_end(source) == EvidenceEnd(NOON_MS, NOON_MS + HOUR_MS)
    set_times(logs, appended_ms=NOON_MS + HOUR_MS, checkpoint_ms=NOON_MS + HOUR_MS)  # those of a copy
    assert evidence_end(source) == EvidenceEnd(NOON_MS, NOON_MS)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["admin", "streams-basic"])
def test_a_lake_ends_where_its_log_directory_ends(name: str) -> None:
    logs = Source(log_dirs=(str(dataset(name) / "logs"),))
    assert evidence_end(logs) == evidence_end(Source(lake=str(recorded_lake(name)))) != GOES_ON


def test_the_metadata_log_alone_has_an_end() -> None:
    nodes = sorted(path for path in dataset("metadata").rglob("__cluster_metadata-0") if path.is_dir())
    assert evidence_end(Source(log_dirs=(str(nodes[0].parent),))) != GOES_ON


def test_a_run_takes_records_until_the_newest_such_moment(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    typed = TimeOfDay("11:55", option="--until", rounding=Rounding.UP, clock=Clock(now_ms=0))
    assert Reading(until=typed).until_ms([str(logs)]) == NOON_MS - 5 * MINUTE_MS
    assert "--until 11:55: 2023-11-15T11:55:00.000Z" in capsys.readouterr().err
    assert Reading(until=NOON_MS).until_ms([]) == NOON_MS


def test_evidence_that_goes_on_ends_now(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock(now_ms=NOON_MS, zone=parse_zone("Asia/Kolkata", option="--tz"))
    typed = TimeOfDay("17:00", option="--from", clock=clock)
    assert dated({"from_ms": typed, "name": "x"}, GOES_ON) == {"from_ms": NOON_MS - 30 * MINUTE_MS, "name": "x"}
    assert capsys.readouterr().err == (
        "sharelens: --from 17:00: 2023-11-15T17:00:00.000+05:30 (Asia/Kolkata), the newest such time up to now, "
        "2023-11-15T12:00:00.000Z\n"
    )
