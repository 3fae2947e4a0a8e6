"""run --every from outside: its options, summaries, upkeep and metrics."""

import json
import os
import shutil
import signal
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from sharelens.cli import main
from sharelens.lake.errors import LakeError
from sharelens.lake.scan import open_lake
from sharelens.lake.tables import TABLES
from tests.logs.state_logs import START_MS, snapshot, update, write_log_directory

PATIENCE_S = 60


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--maintain-every", "1h"], "--maintain-every goes with --every"),
        (["--listen", "127.0.0.1:0"], "--listen goes with --every"),
        (["--cpu-quota", "50%"], "--cpu-quota goes with --every"),
        (["--every", "1s", "--cpu-quota", "0"], "'0' is no percentage from 1% on; type 30%"),
        (["--every", "1s", "--cpu-quota", "half"], "'half' is no percentage from 1% on; type 30%"),
        (["--every", "1s", "--retain", "bronze=1d"], "--retain goes with --maintain-every"),
        (["--every", "1s", "--maintain-window", "1d"], "--maintain-window goes with --maintain-every"),
        (["--every", "1s", "--allow-remote"], "--allow-remote goes with --listen"),
        (["--every", "1s", "--listen", "0.0.0.0:0"], "is reachable from other machines; add --allow-remote"),
        (["--every", "1s", "--listen", "9309"], "is not HOST:PORT"),
        (["--every", "1s", "--require-rows"], "--every excludes --require-rows and --rebuild"),
    ],
)
def test_options_that_need_or_exclude_others_are_named(words, line, tmp_path, capsys):
    assert main(["run", "--lake", str(tmp_path / "lake"), "--log-dir", str(tmp_path), *words]) == 2
    assert line in capsys.readouterr().err
    assert not (tmp_path / "lake").exists()


class Log:
    """A log directory that grows by a record when told to."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.count = folder, 0
        self.grow()

    def grow(self) -> None:
        """One more record; the directory is replaced at once."""
        self.count += 1
        later = (update("g", start=5 * n, at_ms=START_MS + n) for n in range(1, self.count))
        new_directory = write_log_directory(
            self.folder.with_name(f"made-{self.count}"), [snapshot("g", start=0), *later]
        )
        for source in new_directory.rglob("*"):
            if source.is_file():
                target = self.folder / source.relative_to(new_directory)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target.with_suffix(".new"))
                target.with_suffix(".new").replace(target)


def run_until_sigterm(words: list[str], work: Callable[[], None]) -> int:
    """Runs the command while `work` goes on in a thread; its exit code after a SIGTERM behind that."""
    errors: list[BaseException] = []

    def then_end() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=then_end)
    thread.start()
    code = main(words)
    thread.join()
    if errors:
        raise errors[0]
    return code


def until(condition: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.1)  # a look at a lake takes the time of the runs that it waits for


def records(lake: Path) -> int:
    """How many records of the state log the newest cut has; 0 before the first."""
    try:
        return open_lake(lake).scan("silver.share_record").num_rows
    except LakeError:
        return 0


@pytest.mark.soak
@pytest.mark.slow
def test_upkeep_inside_keeps_the_files_few_and_the_summaries_tell_of_both(tmp_path, capsys):
    lake, log = tmp_path / "lake", Log(tmp_path / "log")

    def work() -> None:
        for _ in range(6):
            log.grow()
            until(lambda: records(lake) == log.count)

    words = ["run", "--lake", str(lake), "--log-dir", str(log.folder), "--every", "100ms"]
    assert run_until_sigterm([*words, "--maintain-every", "1s", "--retain", "bronze=9d"], work) == 0
    summaries = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    runs = [summary for summary in summaries if summary["command"] == "run"]
    upkeeps = [summary for summary in summaries if summary["command"] == "maintain"]
    assert sum(summary["rows"]["bronze.log_record"] for summary in runs) == log.count
    assert [summary["command"] for summary in summaries[:2]] == ["run", "maintain"]
    assert all(summary["freshness_of_runs_ms"].keys() == {"p50", "p95", "p99"} for summary in runs)
    assert len(upkeeps) > 1
    assert all(summary["files_after"] < len(TABLES) for summary in upkeeps)


@pytest.mark.slow
def test_metrics_of_the_runs_are_served_while_they_go_on(tmp_path, capsys, monkeypatch):
    lake, log = tmp_path / "lake", Log(tmp_path / "log")
    pages: list[str] = []
    lines: list[str] = []
    monkeypatch.setattr("jobs.commands.keep_fresh.say", lines.append)

    def work() -> None:
        until(lambda: records(lake))
        until(lambda: lines)
        address = lines[0].removeprefix("ready: ")
        log.grow()

        def page() -> bool:
            with urllib.request.urlopen(address, timeout=10) as answer:
                pages.append(answer.read().decode())
            return 'sharelens_runs_total{outcome="published"} 2.0' in pages[-1]

        until(page)

    words = ["run", "--lake", str(lake), "--log-dir", str(log.folder), "--every", "200ms", "--listen", "127.0.0.1:0"]
    assert run_until_sigterm(words, work) == 0
    assert 'sharelens_run_freshness_seconds{quantile="0.95"}' in pages[-1]
    assert "sharelens_run_up 1.0" in pages[-1]
    assert "process_resident_memory_bytes" in pages[-1]
