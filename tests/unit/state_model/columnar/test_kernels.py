"""Kernels with and without the counting of references, called as Python calls them."""

from collections.abc import Callable

import numpy as np
import pytest

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
