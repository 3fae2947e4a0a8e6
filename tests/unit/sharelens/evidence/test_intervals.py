"""Interval sets against sets of numbers."""

from hypothesis import given
from hypothesis import strategies as st

from sharelens.evidence.intervals import Interval, difference, intersection, union

INTERVALS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=6)


def numbers(intervals: list[Interval]) -> set[int]:
    return {number for first, end in intervals for number in range(first, end)}


def is_canonical(intervals: list[Interval]) -> bool:
    """Sorted, disjoint, non-touching, none empty."""
    flat = [bound for interval in intervals for bound in interval]
    return flat == sorted(set(flat))


@given(INTERVALS, INTERVALS)
def test_the_operations_are_those_of_sets(left_intervals: list[Interval], right: list[Interval]) -> None:
    for ours, expected in (
        (union([*left_intervals, *right]), numbers(left_intervals) | numbers(right)),
        (difference(left_intervals, right), numbers(left_intervals) - numbers(right)),
        (intersection(left_intervals, right), numbers(left_intervals) & numbers(right)),
    ):
        assert numbers(ours) == expected
        assert is_canonical(ours)


def test_an_interval_of_all_offsets_is_no_work() -> None:
    all_offsets = (0, (1 << 63) - 1)
    assert difference([all_offsets], [(5, 6)]) == [(0, 5), (6, all_offsets[1])]
    assert intersection([all_offsets], [(5, 6)]) == [(5, 6)]
