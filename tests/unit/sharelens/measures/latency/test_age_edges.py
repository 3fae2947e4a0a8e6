"""Buckets of ages: true bounds, narrow ones, and few."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sharelens.measures.latency.age_edges import lower_edges, upper_edges

AGES = st.integers(-(1 << 62), 1 << 62) | st.integers(-10_000, 10_000)


@given(st.lists(AGES, min_size=1))
def test_an_age_lies_between_its_edges_which_are_at_most_a_twentieth_apart(ages):
    values = np.array(ages, np.int64)
    low, high = lower_edges(values), upper_edges(values)
    for age, least, upper_edge in zip(ages, low.tolist(), high.tolist(), strict=True):
        assert least <= age <= upper_edge
        assert 20 * (upper_edge - least) <= abs(age)
        assert (least < 0) == (age < 0) == (upper_edge < 0)


@given(st.lists(AGES, min_size=1))
def test_an_edge_stays_where_it_is(ages):
    values = np.array(ages, np.int64)
    assert (lower_edges(lower_edges(values)) == lower_edges(values)).all()
    assert (upper_edges(upper_edges(values)) == upper_edges(values)).all()


@given(AGES, AGES)
def test_edges_ascend_with_ages(age, other):
    values = np.array(sorted([age, other]), np.int64)
    for edges in (lower_edges(values), upper_edges(values)):
        assert edges[0] <= edges[1]


def test_a_day_of_milliseconds_has_few_buckets():
    ages = np.concatenate([np.arange(0, 1 << 17), np.arange(1 << 17, 86_400_000, 1 << 10)])  # each bucket has some
    assert len(np.unique(lower_edges(ages.astype(np.int64)))) < 800
