"""The commands that compute: over a small log no session is started."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from sharelens.cli import compute, main
from tests.in_process import no_session
from tests.state_logs import START_MS, snapshot, update, write_log_directory

pytestmark = pytest.mark.slow

Ran = tuple[int, dict[str, Any], str]
Run = Callable[..., Ran]


@pytest.fixture
def execute(capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Runs a command line; its exit code, the summary on stdout, stderr."""

    def executed(*words: str) -> Ran:
        code = main(list(words))
        out, err = capsys.readouterr()
        return code, json.loads(out) if out else {}, err

    with mock.patch.object(compute, "session_of", return_value=no_session):
        yield executed


@pytest.fixture
def logs(tmp_path: Path) -> str:
    story = [snapshot(), *(update(start=n, at_ms=START_MS + n * 1000) for n in range(1, 6))]
    return str(write_log_directory(tmp_path / "logs", story, cluster_id="a-cluster"))


def test_run_says_what_it_did_in_one_line_of_json(execute: Run, logs: str, tmp_path: Path) -> None:
    lake = str(tmp_path / "lake")
    code, summary, err = execute("run", "--log-dir", logs, "--lake", lake)
    assert (code, err) == (0, "")
    assert (summary["command"], summary["lake"], summary["cluster_id"]) == ("run", lake, "a-cluster")
    assert summary["rows"]["silver.share_record"] == 6
    assert summary["held_back"] == summary["quarantined"] == summary["gaps"] == 0
    assert summary["engine"] == {"ingest": "local", "decode": "local", "replay": "local", "measure": "local"}


def test_a_second_run_finds_nothing_and_is_a_success_unless_rows_are_required(
    execute: Run, logs: str, tmp_path: Path
) -> None:
    words = ["run", "--log-dir", logs, "--lake", str(tmp_path / "lake")]
    assert execute(*words)[0] == 0
    code, summary, _ = execute(*words)
    assert (code, summary["rows"]) == (0, {})
    code, summary, err = execute(*words, "--require-rows")
    assert (code, summary) == (1, {})
    assert "--require-rows" in err


def test_the_stages_one_by_one_are_a_run(execute: Run, logs: str, tmp_path: Path) -> None:
    lake = str(tmp_path / "lake")
    for stage in ("ingest", "decode", "replay", "measure", "publish"):
        log_dir = ["--log-dir", logs] if stage == "ingest" else []
        code, summary, err = execute(stage, "--lake", lake, *log_dir)
        assert (code, err, summary["command"]) == (0, "", stage)
    code, rows, _ = execute("state", "--lake", lake, "--output", "json")
    assert (code, [row["start_offset"] for row in rows]) == (0, [5])  # type: ignore[index]


def test_until_takes_the_prefix_before_the_time(execute: Run, logs: str, tmp_path: Path) -> None:
    lake = str(tmp_path / "lake")
    until = ["--until", str(START_MS + 3000)]
    assert execute("run", "--log-dir", logs, "--lake", lake, *until)[1]["rows"]["silver.share_record"] == 3
    _, rows, _ = execute("state", "--lake", lake, "--output", "json")
    assert [row["start_offset"] for row in rows] == [2]  # type: ignore[index]


@pytest.mark.parametrize("rebuild", ["decode", "replay"])
def test_a_rebuild_needs_no_log_directory(execute: Run, logs: str, tmp_path: Path, rebuild: str) -> None:
    lake = str(tmp_path / "lake")
    assert execute("run", "--log-dir", logs, "--lake", lake)[0] == 0
    code, _, err = execute("run", "--lake", lake, "--rebuild", rebuild)
    assert (code, err) == (0, "")
    code, rows, _ = execute("state", "--lake", lake, "--output", "json")
    assert [row["start_offset"] for row in rows] == [5]  # type: ignore[index]


def test_a_lake_inside_the_log_directory_is_refused(execute: Run, logs: str) -> None:
    code, _, err = execute("run", "--log-dir", logs, "--lake", f"{logs}/lake")
    assert code != 0
    assert "inside each other" in err
    assert not (Path(logs) / "lake").exists()


def test_settings_of_spark_and_flags_reach_the_settings(
    logs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def kept(command: str, settings: Any) -> Any:
        seen.append((command, settings))
        return lambda: None

    lake = str(tmp_path / "lake")
    assert main(["ingest", "--log-dir", logs, "--lake", lake]) == 0
    monkeypatch.setattr(compute, "session_of", kept)
    words = [
        "--master",
        "local[3]",
        "--conf",
        "spark.x=1",
        "--conf",
        "spark.y=a=b",
        "--offline",
        "--lock-timeout",
        "2.5",
    ]
    assert main(["decode", "--lake", lake, *words]) == 0
    ((command, settings),) = seen
    assert (command, settings.master, settings.offline, settings.lock_timeout_s) == ("decode", "local[3]", True, 2.5)
    assert {("spark.x", "1"), ("spark.y", "a=b")} <= set(settings.spark_conf.items())


def test_the_command_that_an_unpublished_lake_names_finishes_it(execute: Run, logs: str, tmp_path: Path) -> None:
    lake = str(tmp_path / "lake")
    assert execute("ingest", "--lake", lake, "--log-dir", logs)[0] == 0
    code, _, err = execute("state", "--lake", lake)
    assert (code, err.count("\n")) == (1, 1)
    (hint,) = re.findall(r"`sharelens (.*?)`", err)
    assert execute(*(logs if word == "DIR" else word for word in hint.split()))[0] == 0
    assert main(["state", "--lake", lake]) == 0
