"""Sums of values by number (of a place, a record, an entry) and by stretch; beyond 64 bits they wrap."""

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def sums_by(number: Ints, values: Ints, count: int) -> Ints:
    """The sum of the values of each number from 0 up to, not including, `count`."""
    sums = np.zeros(count, np.int64)
    np.add.at(sums, number, values)
    return sums


def any_by(number: Ints, flags: Flags, count: int) -> Flags:
    """Whether a value of each number from 0 up to, not including, `count` has the flag."""
    flagged: Flags = np.bincount(number[flags], minlength=count) > 0
    return flagged


def sums_of_stretches(values: Ints, begins: Ints, ends: Ints) -> Ints:
    """The sum of values[begin:end] for each pair."""
    total = np.concatenate([np.zeros(1, np.int64), np.cumsum(values)])  # wraps alike at both ends: differences hold
    result: Ints = total[ends] - total[begins]
    return result
