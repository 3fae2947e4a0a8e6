"""Compiles kernels with numba: without the interpreter lock, cached on disk where a cache is writable."""

from collections.abc import Callable
from typing import TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])


def kernel(function: Function) -> Function:
    """Compile `function` at its first call, without the interpreter lock.

    The machine code is kept in NUMBA_CACHE_DIR, beside the source or in the user's cache directory. Where none of them
    is writable (a read-only image, an executor without a home), each process compiles the kernel: numba raises when it
    decorates, and that is caught, so an import never fails. numba watches only the file of the kernel for changes, so
    kernels that call each other belong into one module, or the called one must not change.
    """
    return _compiled(function)


def leaf(function: Function) -> Function:
    """`kernel` for a function that neither creates nor returns an array: disables numba's reference counting.

    Reference counts (`_nrt`) cost a short function more than its work. Such a function may use views and single
    elements only: an array that it creates is never freed.
    """
    return _compiled(function, _nrt=False)


def _compiled(function: Function, **options: bool) -> Function:
    compiler: Callable[..., Callable[[Function], object]] = numba.njit
    try:
        compiled = compiler(cache=True, nogil=True, **options)(function)
    except RuntimeError:
        compiled = compiler(nogil=True, **options)(function)
    return cast(Function, compiled)
