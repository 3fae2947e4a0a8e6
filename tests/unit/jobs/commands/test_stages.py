"""The commands that compute: over a small log no session is started."""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from jobs.commands import stages as compute
from sharelens.cli import main
from tests.depths import in_soak
from tests.logs.state_logs import START_MS, snapshot, update, write_log_directory
from tests.once import made_once
from tests.processes.in_process import empty_lake, make_lake, no_session

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
def logs() -> str:
    return str(made_once("compute/logs", write_logs))


@pytest.fixture
def empty(tmp_path: Path) -> str:
    """A lake whose tables have no rows."""
    return str(shutil.copytree(empty_lake(), tmp_path / "lake"))


@pytest.fixture
def lake(logs: str, tmp_path: Path) -> str:
    """A lake of one run over the logs."""
    shared_lake = made_once("compute/lake", lambda folder: make_lake(folder, Path(logs)))
    return str(shutil.copytree(shared_lake, tmp_path / "lake"))


def write_logs(folder: Path) -> None:
    story = [snapshot(), *(update(start=n, at_ms=START_MS + n * 1000) for n in range(1, 6))]
    write_log_directory(folder, story, cluster_id="a-cluster")


def test_run_says_what_it_did_in_one_line_of_json(execute: Run, logs: str, tmp_path: Path) -> None:
    lake = str(tmp_path / "lake")
    code, summary, err = execute("run", "--log-dir", logs, "--lake", lake)
    assert (code, err) == (0, "")
    assert (summary["command"], summary["lake"], summary["cluster_id"]) == ("run", lake, "a-cluster")
    assert summary["rows"]["silver.share_record"] == 6
    assert summary["held_back"] == summary["quarantined"] == summary["gaps"] == 0
    assert summary["engine"] == {
        "ingest": "local",
        "decode": "local",
        "replay": "local",
        "measure": "local",
        "audit": "local",
    }
    code, overview, _ = execute("overview", "--lake", lake, "--output", "json")
    assert (code, summary["verdict"]) == (0, overview["verdict"])


@pytest.mark.soak
def test_a_second_run_finds_nothing_and_is_a_success_unless_rows_are_required(
    execute: Run, logs: str, lake: str
) -> None:
    words = ["run", "--log-dir", logs, "--lake", lake]
    code, summary, _ = execute(*words)
    assert (code, summary["rows"], summary["verdict"]) == (0, {}, None)
    code, summary, err = execute(*words, "--require-rows")
    assert (code, summary) == (1, {})
    assert "--require-rows" in err


def test_the_stages_one_by_one_are_a_run(execute: Run, logs: str, empty: str) -> None:
    for stage in ("ingest", "decode", "replay", "measure", "audit-log", "publish"):
        log_dir = ["--log-dir", logs] if stage == "ingest" else []
        code, summary, err = execute(stage, "--lake", empty, *log_dir)
        assert (code, err, summary["command"]) == (0, "", stage)
    code, rows, _ = execute("state", "--lake", empty, "--output", "json")
    assert (code, [row["start_offset"] for row in rows]) == (0, [5])  # type: ignore[index]


@pytest.mark.soak
def test_until_takes_the_prefix_before_the_time(execute: Run, logs: str, empty: str) -> None:
    until = ["--until", str(START_MS + 3000)]
    assert execute("run", "--log-dir", logs, "--lake", empty, *until)[1]["rows"]["silver.share_record"] == 3
    _, rows, _ = execute("state", "--lake", empty, "--output", "json")
    assert [row["start_offset"] for row in rows] == [2]  # type: ignore[index]


@pytest.mark.soak
@pytest.mark.parametrize("rebuild", ["replay", *in_soak("decode", "audit")])
def test_a_rebuild_needs_no_log_directory(execute: Run, lake: str, rebuild: str) -> None:
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
    recorded_calls: list[Any] = []

    def record_call(command: str, settings: Any) -> Any:
        recorded_calls.append((command, settings))
        return lambda: None

    lake = str(tmp_path / "lake")
    assert main(["ingest", "--log-dir", logs, "--lake", lake]) == 0
    monkeypatch.setattr(compute, "session_of", record_call)
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
    ((command, settings),) = recorded_calls
    assert (command, settings.master, settings.offline, settings.lock_timeout_s) == ("decode", "local[3]", True, 2.5)
    assert {("spark.x", "1"), ("spark.y", "a=b")} <= set(settings.spark_conf.items())


@pytest.mark.soak
def test_a_run_computes_where_the_option_says(
    execute: Run, logs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class SessionStartedError(AssertionError):
        """Raised in place of starting Spark."""

    def session(*_: object) -> Any:
        def start() -> None:
            raise SessionStartedError

        return start

    monkeypatch.setattr(compute, "session_of", session)
    words = ["run", "--log-dir", logs, "--lake", str(tmp_path / "lake")]
    code, _, err = execute(*words, "--engine", "spark")
    assert (code, "SessionStartedError" in err) == (1, True)
    code, summary, _ = execute(*words, "--engine", "local")
    assert (code, set(summary["engine"].values())) == (0, {"local"})
    code, _, err = execute(*words, "--engine", "local", "--master", "spark://host:7077")
    assert (code, "leave one of them out" in err) == (2, True)


def test_the_command_that_an_unpublished_lake_names_finishes_it(execute: Run, logs: str, empty: str) -> None:
    assert execute("ingest", "--lake", empty, "--log-dir", logs)[0] == 0
    code, _, err = execute("state", "--lake", empty)
    assert (code, err.count("\n")) == (1, 1)
    (hint,) = re.findall(r"`sharelens (.*?)`", err)
    assert execute(*(logs if word == "DIR" else word for word in hint.split()))[0] == 0
    assert main(["state", "--lake", empty]) == 0


GROUP_CONFIGS = """\
Dynamic configs for group g are:
  share.delivery.count.limit=3 sensitive=false synonyms={DYNAMIC_GROUP_CONFIG:share.delivery.count.limit=3}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of settings whose only file was modified at the epoch's second second."""
    path = tmp_path / "settings" / "group-configs.txt"
    path.parent.mkdir()
    path.write_text(GROUP_CONFIGS, encoding="utf-8")
    os.utime(path, ns=(10**9, 10**9))
    return path.parent


@pytest.mark.soak
def test_a_run_says_which_settings_are_new_and_from_when_on(execute: Run, logs: str, folder: Path, empty: str) -> None:
    words = ["--lake", empty, "--settings", str(folder)]
    code, summary, err = execute("run", "--log-dir", logs, *words)
    assert (code, err, summary["settings"]) == (0, "", [{"kind": "group_configs", "from_ms": None}])
    assert execute("measure", *words)[1]["settings"] == []
    path = folder / "group-configs.txt"
    path.write_text(GROUP_CONFIGS.replace("=3", "=4"), encoding="utf-8")
    os.utime(path, ns=(10**18, 10**18))
    code, summary, err = execute("measure", *words)
    assert summary["settings"] == [{"kind": "group_configs", "from_ms": 10**12}]
    assert "settings: group_configs changed: the file counts from 2001-09-09T01:46:40.000Z on" in err
    assert summary["rows"]["gold.progress"] == 1
    assert execute("publish", *words[:2])[0] == 0
    status = execute("status", *words[:2], "--output", "json")[1]["settings"]
    assert [(row["kind"], row["valid_from_ms"], row["settings"]) for row in status] == [
        ("group_configs", 1000, 1), ("group_configs", 10**12, 1)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x00\xff\xfe\x00binary", "group-configs.txt: it is no text in UTF-8"),
        (b"some text\n", "line 1 of .*group-configs.txt is not what kafka-configs prints"),
        (None, "can't read the folder .*: No such file or directory"),
    ],
)
def test_settings_that_cannot_be_read_are_refused_before_a_lake_is_made(
    execute: Run, logs: str, folder: Path, tmp_path: Path, content: bytes | None, message: str
) -> None:
    path = folder / "group-configs.txt"
    if content is None:
        shutil.rmtree(folder)
    else:
        path.write_bytes(content)
    code, _, err = execute("run", "--log-dir", logs, "--lake", str(tmp_path / "lake"), "--settings", str(folder))
    assert code != 0
    assert err.count("\n") == 1
    assert re.search(message, err), err
    assert not (tmp_path / "lake").exists()


def test_settings_of_a_file_instead_of_a_folder_are_refused(execute: Run, logs: str, folder: Path) -> None:
    path = folder / "group-configs.txt"
    code, _, err = execute("run", "--log-dir", logs, "--lake", str(folder / "lake"), "--settings", str(path))
    assert code == 1
    assert "--settings: can't read the folder" in err
    assert "Not a directory" in err
