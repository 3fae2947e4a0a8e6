"""Kernels of a checkout serve an environment with the same code at another time, and no other code."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.kernel_cache import share_kernels

pytestmark = pytest.mark.slow

MODULE = """
import numba


@numba.njit(cache=True)
def doubled(number):
    return number * 2


def compiled():
    assert doubled(4) == 8
    return sum(doubled.stats.cache_misses.values())
"""
ASK = "from state_model.doubling import compiled; print(compiled())"


def place_with(folder: Path, text: str, time_s: int) -> Path:
    """A folder with a package of one module, of that time."""
    module = folder / "state_model" / "doubling.py"
    module.parent.mkdir(parents=True)
    (module.parent / "__init__.py").touch()
    module.write_text(text)
    os.utime(module, (time_s, time_s))
    return folder


def compiled_in(folder: Path) -> int:
    """How many kernels a process compiles that has the package of a folder."""
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "NUMBA_CACHE_DIR")}
    done = subprocess.run([sys.executable, "-c", ASK], cwd=folder, env=variables, capture_output=True, check=True)
    return int(done.stdout)


def test_the_same_code_needs_no_compiler_and_other_code_keeps_its_own(tmp_path: Path) -> None:
    checkout = place_with(tmp_path / "checkout", MODULE, 1_000_000_000)
    same = place_with(tmp_path / "same", MODULE, 1_500_000_000)
    other = place_with(tmp_path / "other", f"{MODULE}\n", 1_000_000_000)
    assert compiled_in(checkout) == 1
    assert share_kernels(checkout, same) == 2
    assert compiled_in(same) == 0
    assert share_kernels(checkout, other) == 0
    assert compiled_in(other) == 1
