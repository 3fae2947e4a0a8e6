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
    return _compiled(function)


def leaf(function: Function) -> Function:
    """`kernel` for a function that makes no array and gives none back: it takes no count of references to arrays.

    Those counts cost a short function more than its work does. Views and single elements only: an array that it makes
    is never freed.
    """
    return _compiled(function, _nrt=False)


def _compiled(function: Function, **options: bool) -> Function:
    compiler: Callable[..., Callable[[Function], object]] = numba.njit
    try:
        compiled = compiler(cache=True, nogil=True, **options)(function)
    except RuntimeError:
        compiled = compiler(nogil=True, **options)(function)
    return cast(Function, compiled)
