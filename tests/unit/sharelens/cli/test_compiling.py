"""The notice that kernels are compiled: once, on stderr, and only where it takes long."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sharelens.cli import compiling
from tests.evidence_folders import log_directory


@pytest.mark.slow
def test_short_compilations_say_nothing_and_a_long_one_says_it_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compiling, "AFTER_S", 0.2)
    notice = compiling.Notice()
    for step in (notice.begins, notice.begins, notice.ends, notice.ends):
        step()
    assert capsys.readouterr().err == ""
    for _ in range(2):
        notice.begins()
        time.sleep(0.4)
        notice.ends()
    assert capsys.readouterr() == ("", f"{compiling.LINE}\n")


@pytest.mark.slow
def test_the_first_question_after_an_installation_says_that_it_compiles(tmp_path: Path) -> None:
    soon = "from sharelens.cli import compiling, main; compiling.AFTER_S = 0.1; raise SystemExit(main())"
    question = ["locate", "--topic", "orders:0", "--key", "k", "--log-dir", str(log_directory(tmp_path / "logs"))]
    words = [sys.executable, "-c", soon, *question, "--output", "json"]  # it needs few kernels
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    first, second = (
        subprocess.run(words, env=environment, capture_output=True, text=True, check=True) for _ in range(2)
    )
    assert compiling.LINE in first.stderr.splitlines()
    assert compiling.LINE not in second.stderr
    assert first.stdout == second.stdout
