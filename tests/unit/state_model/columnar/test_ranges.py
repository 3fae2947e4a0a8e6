"""The range kernels against the reference's interval algebra."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_model.batches import coalesce, pointwise_maximum, prune
from state_model.columnar import ranges as kernels
from state_model.share_records import NOT_DETERMINED, StateBatch

MAX_OFFSET = (1 << 63) - 1
EDGES = st.integers(0, 24) | st.sampled_from([-(1 << 63), -1, MAX_OFFSET - 1, MAX_OFFSET])
BATCHES = st.lists(
    st.builds(
        StateBatch,
        first_offset=EDGES,
        last_offset=EDGES,
        delivery_state=st.sampled_from([0, 2, 4]) | st.integers(-128, 127),
        delivery_count=st.integers(0, 2) | st.sampled_from([-(1 << 15), (1 << 15) - 1]),
    ),
    max_size=8,
)


def rows(batches):
    matrix = np.zeros((max(1, len(batches)), 5), np.int64)
    for row, batch in zip(matrix, batches, strict=False):
        rank = kernels.priority(batch.delivery_count, batch.delivery_state)
        row[:3] = batch.first_offset, batch.last_offset, rank
    return matrix


def canonical(batches):
    out = np.zeros((2 * len(batches) + 2, 5), np.int64)
    return out, kernels.canonical(rows(batches), len(batches), out)


def ranges(matrix, count):
    return [tuple(int(value) for value in row[:3]) for row in matrix[:count]]


def expected(batches):
    return [
        (batch.first_offset, batch.last_offset, batch.delivery_count * 256 + batch.delivery_state) for batch in batches
    ]


@pytest.mark.slow
@given(BATCHES)
def test_the_canonical_form_is_the_pointwise_maximum(batches):
    assert ranges(*canonical(batches)) == expected(coalesce(batches))


@pytest.mark.slow
@given(BATCHES, BATCHES, st.integers(-1, 26) | st.sampled_from([NOT_DETERMINED, -2, MAX_OFFSET]))
def test_merging_is_the_pointwise_maximum_above_the_start_offset(old, new, start):
    (left_ranges, left_count), (right_ranges, right_count) = canonical(old), canonical(new)
    out = np.zeros((2 * (left_count + right_count) + 4, 5), np.int64)
    count = kernels.merged(left_ranges, 0, left_count, right_ranges, right_count, start, out)
    assert ranges(out, count) == expected(pointwise_maximum(prune((*old, *new), start)))


@given(BATCHES, BATCHES)
def test_merging_does_not_depend_on_order(old, new):
    (left_ranges, left_count), (right_ranges, right_count) = canonical(old), canonical(new)
    forward, backward = (np.zeros((2 * (left_count + right_count) + 4, 5), np.int64) for _ in range(2))
    count = kernels.merged(left_ranges, 0, left_count, right_ranges, right_count, NOT_DETERMINED, forward)
    assert count == kernels.merged(right_ranges, 0, right_count, left_ranges, left_count, NOT_DETERMINED, backward)
    assert ranges(forward, count) == ranges(backward, count)


@given(st.lists(st.tuples(st.integers(-(1 << 15), (1 << 15) - 1), st.integers(-128, 127)), min_size=2, max_size=6))
def test_priorities_sort_as_count_then_state(pairs):
    assert sorted(pairs) == sorted(pairs, key=lambda pair: kernels.priority(*pair))


@pytest.mark.parametrize("rows_there", [0, 1, 3, 16])
def test_growing_keeps_what_is_there(rows_there):
    before = np.arange(rows_there * 5, dtype=np.int64).reshape(rows_there, 5)
    after = kernels.grown(before, 9)
    assert len(after) >= 9
    assert np.array_equal(after[:rows_there][:9], before[:9])


@given(BATCHES, EDGES, EDGES)
def test_rows_touching_are_those_that_overlap_or_touch_the_range(batches, first, last):
    first, last = min(first, last), max(first, last)
    rows, count = canonical(batches)
    low, high = kernels.rows_touching(rows, 0, count, first, last)
    expected_rows = [
        i for i, (begin, end, _) in enumerate(ranges(rows, count)) if begin <= last + 1 and end >= first - 1
    ]
    assert list(range(low, high)) == expected_rows
