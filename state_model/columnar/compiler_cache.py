"""numba's cache of a kernel, with a lock: one process compiles, others wait for its code. Imports numba."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core.caching import NullCache

from state_model.columnar.compiler_lock import CompilerLock


class CompilerCache:
    """The cache of a kernel, in the place of numba's, which it asks.

    Where there is no code, another process that compiles this kernel is waited for; else this one compiles, with the
    lock. `unsaved` is called with a reason where code can't be kept: it serves this process alone.
    """

    def __init__(self, name: str, numba_cache: Any, *, unsaved: Callable[[str], None]) -> None:
        self._numba_cache, self._unsaved = numba_cache, unsaved
        folder = getattr(numba_cache, "cache_path", None)
        self.lock = CompilerLock(None if folder is None else Path(folder) / f"{name}.lock")

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """The code for a signature; None: there is none."""
        code = self._numba_cache.load_overload(signature, target_context)
        if code is None and self.lock.take():
            code = self._numba_cache.load_overload(signature, target_context)
        if code is not None:
            self.lock.release()
        return code

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keeps code that was compiled, where that can be written, and gives the lock back."""
        try:
            if isinstance(self._numba_cache, NullCache):
                self._unsaved("no folder for them is writable")
            else:
                self._numba_cache.save_overload(signature, compiled)
        except OSError as error:
            self._unsaved(f"{self._numba_cache.cache_path}: {error.strerror}")
        finally:
            self.lock.release()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # this object is not complete yet
            raise AttributeError(name)
        return getattr(self._numba_cache, name)
