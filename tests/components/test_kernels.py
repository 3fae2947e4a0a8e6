"""Answers are equal with kernels of the package, compiled on the spot, and interpreted."""

import os
import sys
from pathlib import Path

import pytest

from sharelens.broker.simulator.settings import profile
from sharelens.broker.simulator.simulation import simulate
from state_model.columnar.kernels import SHIPPED
from tests.processes.answers import answers_of

QUESTIONS = ("state", "latency", "attempts", "redelivered")
LOGS = (("poison", 3), ("poison", 5), ("steady", 7))
PYTHON, VARIABLES = Path(sys.executable), {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    """Command lines that ask the questions about each log."""
    if not SHIPPED.is_dir():
        pytest.skip(f"{SHIPPED} has no kernels; `make setup` compiles them")
    command_lines = []
    for name, seed in LOGS:
        logs = tmp_path_factory.mktemp(f"{name}-{seed}") / "logs"
        simulate(profile(name, records=20), seed, logs)
        command_lines += [[question, "--log-dir", str(logs), "--output", "json"] for question in QUESTIONS]
    return command_lines


@pytest.mark.soak
@pytest.mark.parametrize("logs", [1, len(LOGS)])
def test_kernels_of_the_package_answer_as_interpreted_ones(lines: list[list[str]], logs: int) -> None:
    lines = lines[: logs * len(QUESTIONS)]
    with_package = answers_of(PYTHON, lines, VARIABLES)
    assert [code for code, *_ in with_package] == [0] * len(lines), with_package
    assert not any("compiling kernels" in err for _, _, err in with_package)
    assert answers_of(PYTHON, lines, {**VARIABLES, "NUMBA_DISABLE_JIT": "1"}) == with_package


@pytest.mark.soak
def test_kernels_compiled_on_the_spot_answer_as_those_of_the_package(lines: list[list[str]], tmp_path: Path) -> None:
    with_package = answers_of(PYTHON, lines, VARIABLES)
    elsewhere = {**VARIABLES, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    compiled = answers_of(PYTHON, lines, elsewhere, kernels=tmp_path / "none")
    assert [answer[:2] for answer in compiled] == [answer[:2] for answer in with_package]
    assert "compiling kernels" in compiled[0][2]
