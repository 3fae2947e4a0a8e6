"""Row numbers grouped by a number: counting sort, O(n)."""

import numpy as np
import numpy.typing as npt

from state_model.columnar.kernels import kernel

Ints = npt.NDArray[np.int64]


@kernel
def _counted(codes: np.ndarray, groups: int) -> np.ndarray:
    bounds = np.zeros(groups + 1, np.int64)
    for i in range(codes.shape[0]):
        bounds[codes[i] + 1] += 1
    for group in range(groups):
        bounds[group + 1] += bounds[group]
    return bounds


@kernel
def _filled(codes: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    at = bounds[:-1].copy()
    order = np.empty(codes.shape[0], np.int64)
    for i in range(codes.shape[0]):
        order[at[codes[i]]] = i
        at[codes[i]] += 1
    return order


def grouped(codes: Ints, groups: int) -> tuple[Ints, Ints]:
    """Row numbers by group (a stable order), and the index at which each group begins, with the end as last value."""
    bounds = _counted(codes, groups)
    return _filled(codes, bounds), bounds


def in_order(codes: Ints, groups: int, offsets: Ints) -> tuple[Ints, Ints]:
    """Like `grouped`, with each group sorted by `offsets`."""
    order, bounds = grouped(codes, groups)
    ordered = offsets[order]
    inside = np.diff(ordered) < 0
    inside[bounds[1:-1][(bounds[1:-1] > 0) & (bounds[1:-1] < len(order))] - 1] = False
    if inside.any():
        order = np.lexsort((offsets, codes))
    return order, bounds
