"""The one way to compile a kernel: numba, without the interpreter lock, kept on disk where a cache is writable."""

from collections.abc import Callable
from typing import TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])


def kernel(function: Function) -> Function:
    """Compile `function` at its first call, without the interpreter lock.

    The machine code is kept in NUMBA_CACHE_DIR, beside the source or in the user's cache directory. Where none of them
    is writable (a read-only image, an executor without a home) the kernel compiles once a process instead: numba says
    so when it decorates, so an import never fails for it. numba watches only the file of the kernel itself for changes:
    kernels that call each other belong into one module, or the called one must stay as it is.
    """
    try:
        compiled = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:
        compiled = numba.njit(nogil=True)(function)
    return cast(Function, compiled)
