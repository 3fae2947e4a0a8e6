"""Processes that compile kernels together: each is compiled by one of them, and a helper ends with its starter."""

import subprocess
import sys
from typing import Any

import pytest

from sharelens.cli import compiling, kernel_compiler
from state_model.columnar.kernels import Kernel


class CompiledElsewhere(Kernel[Any, Any]):
    """A kernel that another process compiles."""

    def is_compiled_elsewhere(self) -> bool:
        return True

    @property
    def _compiled(self) -> Any:  # type: ignore[override]
        raise AssertionError("this process compiles it, too")


def test_a_kernel_that_another_process_compiles_is_interpreted_with_those_that_it_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inner = CompiledElsewhere(lambda number: number + 1)
    outer = CompiledElsewhere(lambda number: 2 * inner(number))
    monkeypatch.setattr(Kernel, "__call__", kernel_compiler._shared_call())
    assert outer(3) == 8


@pytest.mark.slow
def test_a_helper_ends_when_its_starter_has_gone() -> None:
    helper = subprocess.Popen([sys.executable, "-c", compiling.HELP], stdin=subprocess.PIPE)
    assert helper.stdin is not None
    helper.stdin.close()
    assert helper.wait(120) == 0


def test_a_helper_gets_no_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(compiling.HELPS, "1")
    monkeypatch.setattr(compiling, "helpers", [])
    compiling.start_helper()
    assert compiling.helpers == []
