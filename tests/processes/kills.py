"""Runs that a raised fault kills at the crash points they pass (sharelens.lake.crash_points)."""

import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import pytest

from sharelens.lake import crash_points

Point = tuple[str, int]
"""A name, and which pass of it."""


def points_of(work: Callable[[], object]) -> list[Point]:
    """Every point that undisturbed work passes, in order."""
    with crash_points.record() as passed:
        work()
    return _numbered(passed)


def points_and_writes(work: Callable[[], object], folder: Path) -> tuple[list[Point], list[int]]:
    """Every point that undisturbed work passes, in order, and the indices of those that follow a write to the folder.

    A killed process leaves what is on the disk and nothing else: kills at two points with no write between them leave
    the same.
    """
    states: list[frozenset[tuple[str, int, int]]] = []
    with pytest.MonkeyPatch.context() as patch, crash_points.record() as passed:
        real = crash_points.passing

        def passing(point: str) -> None:
            states.append(_files(folder))
            real(point)

        patch.setattr(crash_points, "passing", passing)
        work()
    fresh = [at for at, state in enumerate(states) if at == 0 or state != states[at - 1]]
    return _numbered(passed), fresh


def _files(folder: Path) -> frozenset[tuple[str, int, int]]:
    """Name, size and time of every file and folder below a folder."""
    entries: list[tuple[str, int, int]] = []
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(parent, name)
            status = os.lstat(path)
            entries.append((path, status.st_size, status.st_mtime_ns))
    return frozenset(entries)


def _numbered(passed: list[str]) -> list[Point]:
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


def in_turn_by_write(
    points: list[Point], written: Sequence[int], marks: Collection[str], kills: int
) -> list[list[Point]]:
    """The points at the indices `written` in lists of at most `kills`, far apart, each with its pass in its own run.

    `marks`: names of points after which no later run repeats what came before. The run after a kill passes the points
    behind the last mark again.
    """
    lakes = -(-len(written) // kills)
    return [_by_run(points, written[first::lakes], marks) for first in range(lakes)]


def _by_run(points: list[Point], killed: Sequence[int], marks: Collection[str]) -> list[Point]:
    names = [name for name, _ in points]
    result, begun = [], 0
    for at in killed:
        result.append((names[at], names[begun : at + 1].count(names[at])))
        begun = max((mark + 1 for mark in range(begun, at + 1) if names[mark] in marks), default=begun)
    return result
