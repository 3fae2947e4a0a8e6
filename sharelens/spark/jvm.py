"""Ends the JVM that this process started, also one that is only starting."""

import os
import signal
from contextlib import suppress
from pathlib import Path


def end_children() -> None:
    """Kills the child processes: of a process that uses Spark, its JVM, or the shell that is about to become one.

    Tables need no orderly end. pyspark makes its JVM ignore SIGINT, and forgets one that is interrupted while it
    starts: that JVM would live on.
    """
    for pid in _children():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)


def _children() -> list[int]:
    """Process ids of the children of this process; none on systems without /proc."""
    parents = {int(path.parent.name): _parent(path) for path in Path("/proc").glob("[0-9]*/stat")}
    return [pid for pid, parent in parents.items() if parent == os.getpid()]


def _parent(stat: Path) -> int | None:
    """The parent's id from /proc/PID/stat, whose second field is a name in parentheses; None when it has ended."""
    try:
        return int(stat.read_bytes().rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return None
