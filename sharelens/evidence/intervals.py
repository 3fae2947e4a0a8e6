"""Sets of offsets as sorted, disjoint, half-open intervals [first, end)."""

from collections.abc import Iterable

Interval = tuple[int, int]


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Sorted, disjoint, non-touching form; empty intervals vanish."""
    result: list[Interval] = []
    for first, end in sorted(i for i in intervals if i[0] < i[1]):
        if result and first <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], end))
        else:
            result.append((first, end))
    return result


def difference(left_intervals: Iterable[Interval], right: Iterable[Interval]) -> list[Interval]:
    """The offsets of `left_intervals` that `right` lacks."""
    result: list[Interval] = []
    holes, at = union(right), 0
    for first, end in union(left_intervals):
        while at < len(holes) and holes[at][1] <= first:
            at += 1  # both sets ascend: the hole lies before all further intervals
        place = at
        while place < len(holes) and holes[place][0] < end:
            hole_first, hole_end = holes[place]
            if hole_first > first:
                result.append((first, hole_first))
            first = max(first, hole_end)
            place += 1
        if first < end:
            result.append((first, end))
    return result


def intersection(left_intervals: Iterable[Interval], right: Iterable[Interval]) -> list[Interval]:
    """The offsets that both sets have."""
    left_union = union(left_intervals)
    return difference(left_union, difference(left_union, right))
