"""Compiles kernels with numba: without the interpreter lock, cached on disk where a cache is writable."""

from collections.abc import Callable
from functools import cached_property, update_wrapper
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Generic, ParamSpec, TypeVar, cast

from state_model.collection import lasting_objects
from state_model.columnar.hidden_modules import hidden

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Function = TypeVar("Function", bound=Callable[..., object])
SHIPPED, NUMBA = Path(__file__).parents[1] / "compiled_kernels", "NUMBA"
"""Compiled code of a wheel or of `make setup` (`state_model.columnar.shipped_kernels`), and the file in it with the
version of the numba that compiled it."""

when_numba_is_there: Callable[[], None] | None = None
"""Called once, when numba has been imported and before it compiles, so that a caller can listen to its events."""
when_unsaved: Callable[[str], None] | None = None
"""Called once, with the reason, when a kernel was compiled that can't be kept for the next process."""


class Kernel(Generic[Parameters, Result]):
    """A function that numba compiles at its first call; until then numba is not even imported, which takes 0.3 s.

    Kernels call each other as plain functions do: numba asks for `_numba_type_` where one kernel names another.
    """

    is_numba_loaded = False
    ships: ClassVar[bool] = False
    """Whether compiled code is written to SHIPPED, too."""

    def __init__(self, function: Callable[Parameters, Result], **options: bool) -> None:
        self.interpreted = function
        self._options = options
        update_wrapper(self, function)

    def __call__(self, *arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
        return cast(Result, self._compiled(*arguments, **named))

    @property
    def _numba_type_(self) -> object:
        from state_model.columnar.kernel_types import KernelType  # imports numba

        return KernelType(self._inlined)

    @cached_property
    def _compiled(self) -> Any:
        """The compiled function with an entry for Python."""
        compiler = self._compiler()
        try:
            compiled = compiler(cache=True, nogil=True, **self._options)(self.interpreted)
        except RuntimeError:  # no cache is writable
            compiled = compiler(nogil=True, **self._options)(self.interpreted)
        from state_model.columnar.shipped_kernels import ShippedCache  # imports numba

        if hasattr(compiled, "_cache"):  # not where NUMBA_DISABLE_JIT leaves the function as it is
            compiled._cache = ShippedCache(
                self.interpreted, compiled._cache, SHIPPED, unsaved=tell_unsaved, ships=Kernel.ships
            )
        return compiled

    def is_compiled_elsewhere(self) -> bool:
        """Whether another process compiles this kernel now."""
        cache = getattr(self._compiled, "_cache", None)
        return cache is not None and bool(cache.lock.is_taken())

    @cached_property
    def _inlined(self) -> Any:
        """The compiled function for other kernels: no entry for Python, machine code only in its callers."""
        options = self._options | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        return self._compiler()(nogil=True, **options)(self.interpreted)

    @staticmethod
    def _compiler() -> Any:
        if not Kernel.is_numba_loaded:
            _load_numba()
        import numba  # deferred: a command that computes nothing starts without it

        return numba.njit


def _load_numba() -> None:
    # numba.np.arraymath looks for a BLAS in SciPy, which no kernel uses: docs/adr/0010
    with lasting_objects(), hidden("scipy"):
        import_module("numba.np.arraymath")
    Kernel.is_numba_loaded = True
    _call_once()


def _call_once() -> None:
    global when_numba_is_there
    listener, when_numba_is_there = when_numba_is_there, None
    if listener is not None:
        listener()


def tell_unsaved(reason: str) -> None:
    """Calls `when_unsaved`, once."""
    global when_unsaved
    listener, when_unsaved = when_unsaved, None
    if listener is not None:
        listener(reason)


def numba_of_shipped() -> str | None:
    """The version of numba that compiled the kernels that came with the package; None: there are none."""
    try:
        return (SHIPPED / NUMBA).read_text(encoding="ascii").strip()
    except OSError:
        return None


def kernel(function: Function) -> Function:
    """Compile `function` at its first call, without the interpreter lock.

    The machine code is kept in NUMBA_CACHE_DIR, beside the source or in the user's cache directory. Where none of them
    is writable (a read-only image, an executor without a home), each process compiles the kernel: numba raises when it
    decorates, and that is caught. numba watches only the file of the kernel for changes, so kernels that call each
    other belong into one module, or the called one must not change.
    """
    return cast(Function, Kernel(function))


def leaf(function: Function) -> Function:
    """`kernel` for a function that neither creates nor returns an array: disables numba's reference counting.

    Reference counts (`_nrt`) cost a short function more than its work. Such a function may use views and single
    elements only: an array that it creates is never freed.
    """
    return cast(Function, Kernel(function, _nrt=False))


def compiled_if_loaded(function: Function) -> Function:
    """A kernel that calls no other one, for inputs that take less time than loading numba.

    It is the Python function as long as no kernel of this process was compiled.
    """
    assert isinstance(function, Kernel)
    return function if Kernel.is_numba_loaded else cast(Function, function.interpreted)
