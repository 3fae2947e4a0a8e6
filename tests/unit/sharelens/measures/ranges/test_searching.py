"""Searching from a near position and counting distinct values, against numpy."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sharelens.measures.ranges.searching import SPREAD, distinct, position

OFFSETS = st.integers(-3, 40) | st.integers(-(1 << 63), (1 << 63) - 1)


@given(st.lists(OFFSETS), OFFSETS, st.integers(0, 40))
def test_the_position_is_that_of_a_search_over_all_wherever_it_begins(values, value, near):
    ascending = np.sort(np.array(values, np.int64))
    assert position(ascending, value, min(near, len(values))) == np.searchsorted(ascending, value)


@given(st.lists(OFFSETS) | st.lists(st.integers(0, 40)))
def test_distinct_values_ascend(values):
    assert distinct(np.array(values, np.int64)).tolist() == sorted(set(values))


def test_values_at_either_side_of_the_spread_are_distinct():
    for high in (2 * SPREAD - 1, 2 * SPREAD):
        assert distinct(np.array([5 + high, 5], np.int64)).tolist() == [5, 5 + high]
