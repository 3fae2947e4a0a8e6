"""A map from ranges of offsets to values; a later range replaces what it overlaps."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Generic, TypeVar

Value = TypeVar("Value")


class RangeMap(Generic[Value]):
    """Disjoint ranges (both ends inclusive) with a value each."""

    def __init__(self) -> None:
        self._first: list[int] = []
        self._last: list[int] = []
        self._value: list[Value] = []

    def pieces(self, first: int, last: int) -> list[tuple[int, int, Value | None]]:
        """The range from `first` to `last` in pieces of one value each; None where no value was put."""
        return list(self._pieces(first, last))

    def _pieces(self, first: int, last: int) -> Iterator[tuple[int, int, Value | None]]:
        low = bisect_left(self._last, first)
        for i in range(low, bisect_right(self._first, last)):
            if self._first[i] > first:
                yield first, self._first[i] - 1, None
            begin, end = max(first, self._first[i]), min(last, self._last[i])
            yield begin, end, self._value[i]
            first = end + 1
        if first <= last:
            yield first, last, None

    def put(self, first: int, last: int, value: Value) -> None:
        """Maps the range to the value, in place of earlier values."""
        low, high = bisect_left(self._last, first), bisect_right(self._first, last)
        pieces = [(first, last, value)]
        if low < high and self._first[low] < first:
            pieces.insert(0, (self._first[low], first - 1, self._value[low]))
        if low < high and self._last[high - 1] > last:
            pieces.append((last + 1, self._last[high - 1], self._value[high - 1]))
        self._first[low:high], self._last[low:high], self._value[low:high] = map(list, zip(*pieces, strict=True))
