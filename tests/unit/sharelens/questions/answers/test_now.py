"""Now on the command line: stalls last until the evidence was read, of a lake as of the copy that it was made from."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from jobs import books
from sharelens.cli import main
from sharelens.lake.lake import Lake
from sharelens.metrics.reading import read
from sharelens.source.request import Source
from state_model.topics import STATE_TOPIC
from tests.logs.file_times import set_times
from tests.logs.state_logs import START_MS, snapshot, update, write_log_directory
from tests.logs.user_topics import ORDERS_RECORDS, write_orders
from tests.once import made_once
from tests.processes.in_process import make_lake
from tools.log_writer.writer import write_checkpoints

pytestmark = pytest.mark.slow

ACKNOWLEDGED = 2
SILENCE_MS = 84_000


@pytest.fixture(scope="module")
def logs() -> Path:
    return made_once("now", make) / "logs"


@pytest.fixture(scope="module")
def lake() -> Path:
    return made_once("now", make) / "lake"


def make(folder: Path) -> None:
    """Logs and their lake: a copy that kept its times; the group, 5 of 40 records done, was silent for 84 s."""
    records = [snapshot(start=0), update(start=0, batches=[(0, 4, ACKNOWLEDGED, 1)])]
    stamped = [record | {"timestamp_ms": START_MS + 40} for record in records]
    directory = write_log_directory(folder / "logs", stamped)
    write_orders(directory)
    write_checkpoints(directory, high_watermarks={(STATE_TOPIC, 0): len(stamped), ("orders", 0): ORDERS_RECORDS})
    set_times(directory, appended_ms=START_MS + 40, checkpoint_ms=START_MS + 40 + SILENCE_MS)
    make_lake(folder / "lake", directory)


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command."""
    try:
        code = main(list(arguments)) or 0
    except SystemExit as stop:
        code = int(stop.code or 0)
    return code, *capsys.readouterr()


def stalls(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    code, out, err = call(capsys, "stalled", *arguments, "--output", "json")
    assert code == 0, err
    rows: list[dict[str, Any]] = json.loads(out)
    return rows


def sources(logs: Path, lake: Path) -> Sequence[Sequence[str]]:
    return ["--log-dir", str(logs)], ["--lake", str(lake)]


def test_a_silent_group_stalls_until_the_copy_was_made(
    logs: Path, lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for source in sources(logs, lake):
        (row,) = stalls(capsys, *source)
        assert (row["kind"], row["duration_ms"], row["until_ms"]) == ("silent_with_backlog", SILENCE_MS, None)
        assert call(capsys, "pinned", *source, "--fail-on")[0] == 3


def test_the_last_line_shows_now(logs: Path, lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for source in sources(logs, lake):
        closing = call(capsys, "stalled", *source)[1].splitlines()[-1]
        assert closing.endswith("; now 2026-09-21T14:14:44.040Z, 1 min 24 s after the last record")


def test_now_can_be_named(logs: Path, lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for source in sources(logs, lake):
        (row,) = stalls(capsys, *source, "--now", str(START_MS + 40 + 600_000))
        assert row["duration_ms"] == 600_000
        code, _, err = call(capsys, "stalled", *source, "--now", str(START_MS))
        assert code == 2
        assert err.count("\n") == 1
        assert "--now" in err
        assert "--as-of" in err


def test_as_of_an_earlier_moment_nothing_lasts_longer(
    logs: Path, lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for source in sources(logs, lake):
        assert stalls(capsys, *source, "--as-of", str(START_MS + 30_040)) == []
        (row,) = stalls(capsys, *source, "--as-of", str(START_MS + 30_040), "--min-duration", "30")
        assert row["duration_ms"] == 30_000


def test_short_stalls_that_last_are_counted(logs: Path, lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for source in sources(logs, lake):
        out = call(capsys, "stalled", *source, "--min-duration", "100")[1]
        assert "1 more stall lasts, not yet for 1 min 40 s: --min-duration 0 shows all" in out
        assert "not yet" not in call(capsys, "stalled", *source, "--min-duration", "0")[1]


def test_metrics_are_as_of_now(logs: Path, lake: Path) -> None:
    for source in (Source(log_dirs=(str(logs),)), Source(lake=str(lake))):
        (figures,) = read(source)
        assert figures.read_ms == START_MS + 40 + SILENCE_MS
        values = {metric.name: value for metric, value in figures.of_groups["g"].items()}
        assert values["kafka_sharegroup_group_stalled_seconds"] == SILENCE_MS / 1000


def test_a_run_until_a_moment_has_read_until_then(logs: Path, tmp_path: Path) -> None:
    until_ms = START_MS + 41
    make_lake(tmp_path / "lake", logs, until_ms=until_ms)
    assert {row["read_until_ms"] for row in books.extents(Lake(tmp_path / "lake"))} == {until_ms}
