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


def test_answers_do_not_depend_on_who_compiled_the_kernels(tmp_path: Path) -> None:
    if not SHIPPED.is_dir():
        pytest.skip(f"{SHIPPED} has no kernels; `make setup` compiles them")
    lines = []
    for name, seed in LOGS:
        logs = tmp_path / f"{name}-{seed}" / "logs"
        simulate(profile(name, records=20), seed, logs)
        lines += [[question, "--log-dir", str(logs), "--output", "json"] for question in QUESTIONS]
    python, variables = Path(sys.executable), {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with_package = answers_of(python, lines, variables)
    assert [code for code, *_ in with_package] == [0] * len(lines), with_package
    assert not any("compiling kernels" in err for _, _, err in with_package)
    interpreted = answers_of(python, lines, {**variables, "NUMBA_DISABLE_JIT": "1"})
    assert interpreted == with_package
    elsewhere = {**variables, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    compiled = answers_of(python, lines, elsewhere, kernels=tmp_path / "none")
    assert [answer[:2] for answer in compiled] == [answer[:2] for answer in with_package]
    assert "compiling kernels" in compiled[0][2]
