"""Long work in steps: generators that pause after a bounded number of array elements.

A message may have hundreds of thousands of array elements. Work that pauses lets its caller serve others in between.
"""

from collections.abc import Generator
from typing import TypeVar

STEP_ELEMENTS = 512
"""Array elements between two pauses: a few milliseconds of work."""

Result = TypeVar("Result")
Steps = Generator[None, None, Result]
"""Work that pauses at each yield and returns its result at the end."""


class StepCounter:
    """Counts array elements and says when a pause is due."""

    __slots__ = ("_remaining",)

    def __init__(self) -> None:
        self._remaining = STEP_ELEMENTS

    def is_pause_due(self) -> bool:
        """Count one element; true after every STEP_ELEMENTS of them."""
        self._remaining -= 1
        if self._remaining > 0:
            return False
        self._remaining = STEP_ELEMENTS
        return True


def run(steps: Steps[Result]) -> Result:
    """The result of all steps, without a pause."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
