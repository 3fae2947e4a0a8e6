"""Sums by number and by stretch equal those of a loop, and wrap as 64 bits do."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sharelens.measures.ranges.sums import any_by, sums_by, sums_of_stretches

ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(-(1 << 40), 1 << 40), st.booleans()), max_size=20)


@given(ROWS)
def test_each_number_has_the_sum_of_its_values(rows: list[tuple[int, int, bool]]):
    number, values, flags = (np.array([row[at] for row in rows], kind) for at, kind in enumerate((int, int, bool)))
    sums = [sum(value for row_number, value, _ in rows if row_number == each) for each in range(5)]
    assert sums_by(number, values, 5).tolist() == sums
    any_flags = [any(flag for row_number, _, flag in rows if row_number == each) for each in range(5)]
    assert any_by(number, flags, 5).tolist() == any_flags


@given(st.lists(st.integers(-(1 << 62), 1 << 62), max_size=8), st.data())
def test_a_stretch_has_the_sum_of_its_values(values: list[int], data: st.DataObject):
    places = st.integers(0, len(values))
    pairs = [sorted(pair) for pair in data.draw(st.lists(st.tuples(places, places), max_size=4))]
    begins, ends = (np.array([pair[at] for pair in pairs], np.int64) for at in (0, 1))
    expected = [(sum(values[begin:end]) + (1 << 63)) % (1 << 64) - (1 << 63) for begin, end in pairs]
    with np.errstate(over="ignore"):
        assert sums_of_stretches(np.array(values, np.int64), begins, ends).tolist() == expected
