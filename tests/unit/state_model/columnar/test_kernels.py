"""Kernels with and without the counting of references, called as Python calls them and by each other."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba.core.event import install_recorder

from state_model.columnar.kernels import kernel, leaf

Filling = Callable[[np.ndarray, int], int]


def filled(rows: np.ndarray, value: int) -> int:
    for i in range(rows.shape[0]):
        rows[i] = value
    return int(rows.shape[0])


@pytest.mark.parametrize("compiled", [kernel, leaf])
def test_a_kernel_and_a_leaf_work_in_the_arrays_that_they_are_given(compiled: Callable[[Filling], Filling]) -> None:
    rows = np.zeros(3, np.int64)
    assert compiled(filled)(rows, 7) == 3
    assert rows.tolist() == [7, 7, 7]


CALLED_WITH_CONSTANTS = """
def put(rows, at, value, step=1):
    rows[at] = value * step

def fill(rows, value):
    put(rows, 0, 5)
    put(rows, 1, 6, 2)
    put(rows, at=2, value=value)
    put(rows, 3, 8, step=value)
"""


def test_a_kernel_is_compiled_once_whatever_constants_others_call_it_with() -> None:
    names: dict[str, Any] = {}
    exec(CALLED_WITH_CONSTANTS, names)  # of no file, so that nothing is kept
    put, fill = names["put"], names["fill"]
    names["put"] = kernel(put)
    rows = np.zeros(4, np.int64)
    with install_recorder("numba:compile") as recorder:
        kernel(fill)(rows, 7)
    assert rows.tolist() == [5, 12, 7, 56]
    signatures = [event.data["args"] for _, event in recorder.buffer if event.is_start and "put" in str(event.data)]
    assert {len(signature) for signature in signatures} == {4}
    assert len(signatures) == 2  # with a step and without one


def test_python_calls_a_kernel_that_a_kernel_called_before() -> None:
    names: dict[str, Any] = {}
    exec(CALLED_WITH_CONSTANTS, names)
    names["put"] = kernel(names["put"])
    rows = np.zeros(4, np.int64)
    kernel(names["fill"])(rows, 7)
    names["put"](rows, 1, 3)
    assert rows.tolist() == [5, 3, 7, 56]
