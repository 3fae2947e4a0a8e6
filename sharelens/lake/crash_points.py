"""Named places around every file and commit of ours, where the kill tests stop a run.

A point has no effect unless a test armed it; `record` lists the points that a run passes.
"""

from collections.abc import Iterator
from contextlib import contextmanager

_armed: str | None = None
_passes_left = 0
_passed: list[str] | None = None


class CrashPointReached(BaseException):
    """Raised when an armed point is passed; not an Exception, so that nothing on the way handles it."""


def armed() -> str | None:
    """The armed point, to be handed to tasks that run in other processes."""
    return _armed


def passing(point: str) -> None:
    """Marks a place in the program; raises when a test armed it."""
    if _passed is not None:
        _passed.append(point)
    if point == _armed:
        _count_pass(point)


def _count_pass(point: str) -> None:
    global _passes_left
    _passes_left -= 1
    if _passes_left <= 0:
        raise CrashPointReached(point)


@contextmanager
def arm(point: str | None, occurrence: int = 1) -> Iterator[None]:
    """Arms a point inside the block: its first pass, or a later one, raises."""
    global _armed, _passes_left
    before = _armed, _passes_left
    _armed, _passes_left = point, occurrence
    try:
        yield
    finally:
        _armed, _passes_left = before


@contextmanager
def record() -> Iterator[list[str]]:
    """Collects the points passed inside the block, in order."""
    global _passed
    before, _passed = _passed, []
    try:
        yield _passed
    finally:
        _passed = before
