"""Work in steps (state_model.codec.steps) of a broker: arrays that are computed while they are written, and turns.

A message may have ELEMENTS_MAX array elements. To read, handle and write that many in one piece would keep every other
connection waiting for seconds.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, overload

from state_model.codec.steps import Result, Steps

Element = TypeVar("Element")


class LazyArray(Sequence[Element]):
    """An array of an answer, one element for each item of a request, computed while the response is written.

    For answers that change nothing: other requests run between the elements of a large array.
    """

    __slots__ = ("_compute", "_items")

    def __init__(self, compute: Callable[[Any], Element], items: Sequence[Any]) -> None:
        self._compute = compute
        self._items = items

    def where(self, condition: Callable[[Any], bool]) -> "LazyArray[Element]":
        """The array of those items that meet a condition."""
        return LazyArray(self._compute, [item for item in self._items if condition(item)])

    def then(self, change: Callable[[Element], Element]) -> "LazyArray[Element]":
        """The array with each element changed."""
        return LazyArray(lambda item: change(self._compute(item)), self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Element]:
        return map(self._compute, self._items)

    @overload
    def __getitem__(self, index: int) -> Element: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Element]: ...
    def __getitem__(self, index: int | slice) -> Element | Sequence[Element]:
        if isinstance(index, slice):
            return LazyArray(self._compute, self._items[index])
        return self._compute(self._items[index])


async def run_in_turns(steps: Steps[Result]) -> Result:
    """The result of all steps, one step in each turn of the event loop."""
    while True:
        await asyncio.sleep(0)
        try:
            next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
