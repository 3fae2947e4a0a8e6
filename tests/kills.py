"""Runs that a raised fault kills at the crash points they pass (lake.crash_points)."""

from collections.abc import Callable

import pytest

from lake import crash_points

Point = tuple[str, int]
"""A name, and which pass of it."""


def points_of(work: Callable[[], object]) -> list[Point]:
    """Every point that undisturbed work passes, in order."""
    with crash_points.record() as passed:
        work()
    return [(name, passed[: at + 1].count(name)) for at, name in enumerate(passed)]


def kill(point: Point, work: Callable[[], object], *, raised: tuple[type[BaseException], ...] = ()) -> BaseException:
    """Works into a point; what it ended with: the fault, or one of the errors that may stand for it."""
    with crash_points.arm(*point), pytest.raises((crash_points.CrashPointReached, *raised), match=point[0]) as caught:
        work()
    return caught.value


def in_turn(points: list[Point], kills: int) -> list[list[Point]]:
    """Every point in one list of at most `kills`: the points at which one lake is killed, far apart, one after another.

    Work that goes on after a kill passes what is left, so that only work from the start passes a name again: those
    points are alone in their lists.
    """
    once = [point for point in points if point[1] == 1]
    lakes = -(-len(once) // kills)
    return [*(once[first::lakes] for first in range(lakes)), *([point] for point in points if point[1] > 1)]
