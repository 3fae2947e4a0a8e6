"""Compiled kernels that came with the package: machine code for any processor of its kind, so that nobody waits.

numba keeps compiled code by processor; these were compiled for a generic one (`tools.ship_kernels`) and load on every
one. They count only for the numba, the Python and the source that they were compiled with: with
another one numba compiles, as without them. Imports numba.
"""

import hashlib
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core.caching import IndexDataCacheFile, NullCache
from numba.core.compiler import CompileResult

from state_model.columnar.compiler_lock import CompilerLock


class ShippedCache:
    """The cache of a kernel, in the place of numba's: shipped code comes before what numba keeps on this machine.

    Where there is no code, another process that compiles this kernel is waited for; else this one compiles, with the
    lock.

    `numba_cache`: that of numba. `folder`: where shipped code lies; with `ships`, compiled code is written there, too.
    `unsaved` is called with a reason where code can't be kept: it serves this process alone.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        numba_cache: Any,
        folder: Path,
        *,
        unsaved: Callable[[str], None],
        ships: bool = False,
    ) -> None:
        self._numba_cache, self._unsaved, self._ships = numba_cache, unsaved, ships
        self._code = hashlib.sha256(function.__code__.co_code).hexdigest()
        try:
            source = hashlib.sha256(Path(function.__code__.co_filename).read_bytes()).hexdigest()
        except OSError:  # of no file
            source = ""
        version = f"py{sys.version_info.major}{sys.version_info.minor}"
        name = f"{function.__module__}.{function.__qualname__}.{version}"
        self._shipped = IndexDataCacheFile(str(folder), name, source)  # type: ignore[no-untyped-call]
        cached = getattr(numba_cache, "cache_path", None)
        self.lock = CompilerLock(None if cached is None else Path(cached) / f"{name}.lock")

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """The code for a signature: shipped, or of numba's cache; None: there is none."""
        target_context.refresh()
        shipped = self._shipped.load(self._key(signature))  # type: ignore[no-untyped-call]
        if shipped is not None:
            return CompileResult._rebuild(target_context, *shipped)  # type: ignore[no-untyped-call]
        code = self._numba_cache.load_overload(signature, target_context)
        if code is None and self.lock.take():
            code = self._numba_cache.load_overload(signature, target_context)
        if code is not None:
            self.lock.release()
        return code

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keeps code that was compiled, where that can be written, and gives the lock back."""
        try:
            if self._ships:
                self._shipped.save(self._key(signature), compiled._reduce())  # type: ignore[no-untyped-call]
            self._save(signature, compiled)
        finally:
            self.lock.release()

    def _save(self, signature: Any, compiled: Any) -> None:
        if isinstance(self._numba_cache, NullCache):
            self._unsaved("no folder for them is writable")
            return
        try:
            self._numba_cache.save_overload(signature, compiled)
        except OSError as error:
            self._unsaved(f"{self._numba_cache.cache_path}: {error.strerror}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # this object is not complete yet
            raise AttributeError(name)
        return getattr(self._numba_cache, name)

    def _key(self, signature: Any) -> tuple[Any, ...]:
        return signature, platform.machine(), self._code
