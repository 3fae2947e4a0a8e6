"""Buckets of ages: edges that no age is further from than 3.2 % of itself, so that histograms stay small.

    age         0 ... 63   64-65  66-67  ...  126-127   128-131  ...      each bucket of an age below 64 is one ms wide
    negative    the same, mirrored: -65..-64

A bucket keeps the six highest bits of an age. Lower bounds of ages are rounded down to the lower edge of their bucket,
upper bounds up to the upper edge: a percentile of rounded bounds is a bound of the percentile. 0 begins a bucket, so
the sign of an age is never lost. There are 32 buckets for each power of two.
"""

import numpy as np
import numpy.typing as npt

BITS_KEPT = 6
Ints = npt.NDArray[np.int64]


def lower_edges(ages: Ints) -> Ints:
    """The largest edge at or below each age."""
    return np.where(ages >= 0, _rounded_down(np.abs(ages)), -_rounded_up(np.abs(ages)))


def upper_edges(ages: Ints) -> Ints:
    """The smallest edge at or above each age."""
    return np.where(ages >= 0, _rounded_up(np.abs(ages)), -_rounded_down(np.abs(ages)))


def _rounded_down(sizes: Ints) -> Ints:
    shift = _bits_dropped(sizes)
    return (sizes >> shift) << shift


def _rounded_up(sizes: Ints) -> Ints:
    return sizes | ((np.int64(1) << _bits_dropped(sizes)) - 1)


def _bits_dropped(sizes: Ints) -> Ints:
    """How many low bits of each size lie behind the bits that are kept."""
    bits = np.frexp(sizes.astype(np.float64))[1].astype(np.int64)
    bits -= (sizes >> np.clip(bits - 1, 0, 62)) == 0  # a float rounds 2^60 - 1 up to 2^60
    return np.maximum(bits - BITS_KEPT, 0)
