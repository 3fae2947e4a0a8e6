"""One process at a time compiles a kernel: others wait for its code, or do something else meanwhile.

The lock is advisory (flock), on a file beside the cached code, and goes with its process.
"""

import fcntl
import os
import time
from pathlib import Path

WAIT_S, PAUSE_S = 60.0, 0.02
"""The longest wait for another process, which may have been stopped; the pause between two looks."""


class CompilerLock:
    """The lock of one kernel. `path`: its file; None, and where it can't be written: nobody is waited for."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._handle: int | None = None

    def take(self) -> bool:
        """Takes the lock after at most WAIT_S; whether another process had it before."""
        end_s, has_waited = time.monotonic() + WAIT_S, False
        while not self._try() and time.monotonic() < end_s:
            has_waited = True
            time.sleep(PAUSE_S)
        return has_waited

    def release(self) -> None:
        """Gives the lock back, if it was taken."""
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)

    def is_taken(self) -> bool:
        """Whether somebody has the lock: another process, or another thread of this one."""
        if self._handle is not None or not self._try():
            return True
        self.release()
        return False

    def _try(self) -> bool:
        """Takes the lock; False: somebody has it."""
        try:
            handle = -1 if self._path is None else os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:
            return True
        if handle < 0:
            return True
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return False
        except OSError:  # a file system without locks
            os.close(handle)
            return True
        self._handle = handle
        return True
