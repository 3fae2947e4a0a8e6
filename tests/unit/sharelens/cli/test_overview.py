"""The overview on a terminal: colours, refreshing, exit codes; what it finds is in tests/broker and tests/compat."""

import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sharelens.cli import main
from tests.datasets import dataset
from tests.interrupts import HEEDING
from tests.terminals import screens

RED = "\x1b[31m"
CLEAR = "\x1b[2J"


def logs(name: str = "basic") -> str:
    return str(dataset(name) / "logs")


def test_severities_have_colours_unless_somebody_says_no(monkeypatch: pytest.MonkeyPatch) -> None:
    colored, plain = screens(["overview", "--log-dir", logs()], ["overview", "--log-dir", logs(), "--no-color"])
    assert RED in colored
    assert "\x1b" not in plain
    monkeypatch.setenv("NO_COLOR", "1")
    assert screens(["overview", "--log-dir", logs()]) == [plain]


def test_a_pipe_gets_tables_without_colours(capsys: pytest.CaptureFixture[str]) -> None:
    main(["overview", "--log-dir", logs()])
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert re.search(r"^error +no_members +g-implicit +orders-1 +402 ", out, re.MULTILINE)


def test_findings_fail_a_script_that_asks_for_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        raise SystemExit(main(["overview", "--log-dir", logs(), "--fail-on"]))
    assert stop.value.code == 3
    assert "3 findings (--fail-on)" in capsys.readouterr().err


def test_watch_is_for_text(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        raise SystemExit(main(["overview", "--log-dir", logs(), "--watch", "1s", "--output", "json"]))
    assert stop.value.code == 2
    assert "--watch" in capsys.readouterr().err


@pytest.mark.slow
def test_watch_shows_it_again_until_it_is_interrupted() -> None:
    ours, theirs = pty.openpty()
    command = [*HEEDING, sys.executable, "-m", "sharelens", "overview", "--log-dir", logs(), "--watch", "100ms"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE) as process:
        os.close(theirs)
        written = b""
        deadline_s = time.monotonic() + 60
        while written.count(CLEAR.encode()) < 2 and time.monotonic() < deadline_s:
            written += os.read(ours, 1 << 16)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert process.stderr is not None
        problems = process.stderr.read().decode()
    os.close(ours)
    assert written.decode().count("no members since") >= 2
    assert problems.split() == ["sharelens:", "interrupted"]


def test_a_log_without_share_state_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        raise SystemExit(main(["overview", "--log-dir", str(tmp_path)]))
    assert stop.value.code == 1
    assert capsys.readouterr().err.count("\n") == 1
