"""The notice that kernels are compiled: once, on stderr, and only where it takes long."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sharelens.cli import compiling
from state_model.columnar import kernels
from state_model.columnar.shipped_kernels import INDEX
from tests.evidence_folders import log_directory


@pytest.mark.slow
def test_short_compilations_say_nothing_and_a_long_one_says_it_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compiling, "AFTER_S", 0.2)
    helpers: list[None] = []
    notice = compiling.Notice(lambda: helpers.append(None))
    for step in (notice.begins, notice.begins, notice.ends, notice.ends):
        step()
    assert capsys.readouterr().err == ""
    for _ in range(2):
        notice.begins()
        time.sleep(0.4)
        notice.ends()
    assert capsys.readouterr() == ("", f"{compiling.LINE}\n")
    assert helpers == [None]


COMPILES = """
import resource, sys
from pathlib import Path
from state_model.columnar import kernels
from state_model.columnar.shipped_kernels import INDEX
kernels.SHIPPED = Path(sys.argv.pop(1))
if sys.argv.pop(1) == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # no file can be written, as on a full disk
from sharelens.cli import compiling, main
compiling.AFTER_S = 0.1
raise SystemExit(main())
"""


@pytest.fixture(scope="module")
def question(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A question that needs few kernels."""
    logs = log_directory(tmp_path_factory.mktemp("compiling") / "logs")
    return ["locate", "--topic", "orders:0", "--key", "k", "--log-dir", str(logs), "--output", "json"]


def answer_of(
    question: list[str], cache: Path, disk: str = "roomy", shipped: Path = Path("none")
) -> subprocess.CompletedProcess[str]:
    """Asks in a process of its own without kernels of the package."""
    words = [sys.executable, "-c", COMPILES, str(shipped), disk, *question]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=True)


@pytest.mark.slow
def test_the_first_question_compiles_where_the_package_has_kernels_of_another_source(
    question: list[str], tmp_path: Path
) -> None:
    shipped = tmp_path / "compiled_kernels"
    shipped.mkdir()
    index = json.loads((kernels.SHIPPED / INDEX).read_text(encoding="utf-8")) if kernels.has_shipped_kernels() else {}
    of_another_source = {name: {"source": "another", "functions": []} for name in index}
    (shipped / INDEX).write_text(json.dumps(of_another_source), encoding="utf-8")
    first, second = (answer_of(question, tmp_path / "cache", shipped=shipped) for _ in range(2))
    assert compiling.LINE in first.stderr.splitlines()
    assert compiling.LINE not in second.stderr
    assert first.stdout == second.stdout != ""


@pytest.mark.soak
@pytest.mark.slow
def test_the_first_question_after_an_installation_says_that_it_compiles(question: list[str], tmp_path: Path) -> None:
    assert compiling.LINE in answer_of(question, tmp_path / "cache").stderr.splitlines()


@pytest.mark.soak
@pytest.mark.slow
def test_a_full_disk_costs_the_compilation_again_and_is_said(question: list[str], tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    done = answer_of(question, tmp_path / "cache", disk="full")
    assert done.stdout == answer_of(question, tmp_path / "cache").stdout
    (line,) = (line for line in done.stderr.splitlines() if "can't be kept" in line)
    assert "File too large), so each command compiles them; NUMBA_CACHE_DIR names a folder" in line
