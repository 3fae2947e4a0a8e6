"""Kernels: functions with compiled code, of the package or by numba, that leave the interpreter lock to others."""

import os
from collections.abc import Callable
from functools import cached_property, update_wrapper
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast

from state_model.collection import lasting_objects
from state_model.columnar.hidden_modules import hidden

if TYPE_CHECKING:
    from state_model.columnar.shipped_kernels import Shipped

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Function = TypeVar("Function", bound=Callable[..., object])
SHIPPED, NOWHERE = Path(__file__).parents[1] / "compiled_kernels", Path(os.devnull)
"""Compiled code of a wheel or of `make setup`; a folder without any."""
INTERPRETS = "NUMBA_DISABLE_JIT"
"""numba's variable of the environment: 1 interprets all kernels."""

when_numba_is_there: Callable[[], None] | None = None
"""Called once, when numba has been imported and before it compiles, so that a caller can listen to its events."""
when_unsaved: Callable[[str], None] | None = None
"""Called once, with the reason, when a kernel was compiled that can't be kept for the next process."""


class Kernel(Generic[Parameters, Result]):
    """A function with compiled code, of the package or by numba, which is imported at the first call that needs it.

    numba takes 0.3 s of processor time to be imported and to load its code. Kernels call each other as plain functions
    do: numba asks for `_numba_type_` where one kernel names another.
    """

    is_numba_loaded = False

    def __init__(self, function: Callable[Parameters, Result], **options: bool) -> None:
        self.interpreted = function
        self._options = options
        update_wrapper(self, function)

    def __call__(self, *arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
        function = None if named else self._shipped.function_for(arguments)
        return cast(Result, (function or self._compiled)(*arguments, **named))

    @cached_property
    def _shipped(self) -> "Shipped":
        """The functions that came with the package; none where INTERPRETS is set."""
        from state_model.columnar.shipped_kernels import Shipped  # imports NumPy

        is_interpreted = os.environ.get(INTERPRETS, "0") not in ("", "0")
        return Shipped(NOWHERE if is_interpreted else SHIPPED, self.interpreted)

    @property
    def is_ready(self) -> bool:
        """Whether a call need not import numba first."""
        return Kernel.is_numba_loaded or bool(self._shipped)

    @property
    def _numba_type_(self) -> object:
        from state_model.columnar.kernel_types import KernelType  # imports numba

        return KernelType(self._inlined)

    @cached_property
    def _compiled(self) -> Any:
        """The function that numba compiles, with an entry for Python."""
        compiler = self._compiler()
        try:
            compiled = compiler(cache=True, nogil=True, **self._options)(self.interpreted)
        except RuntimeError:  # no cache is writable
            compiled = compiler(nogil=True, **self._options)(self.interpreted)
        from state_model.columnar.compiler_cache import CompilerCache  # imports numba
        from state_model.columnar.shipped_kernels import name_of

        if hasattr(compiled, "_cache"):  # not where INTERPRETS leaves the function as it is
            compiled._cache = CompilerCache(name_of(self.interpreted), compiled._cache, unsaved=tell_unsaved)
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


def has_shipped_kernels() -> bool:
    """Whether compiled kernels came with the package, for this Python and machine."""
    from state_model.columnar.shipped_kernels import are_shipped  # imports NumPy

    return are_shipped(SHIPPED)


def kernel(function: Function) -> Function:
    """Run `function` as compiled code, without the interpreter lock: of the package, or compiled at its first call.

    What numba compiles is kept in NUMBA_CACHE_DIR, beside the source or in the user's cache directory. Where none of
    them is writable (a read-only image, an executor without a home), each process compiles the kernel: numba raises
    when it decorates, and that is caught. Only the file of the kernel is watched for changes, so kernels that call each
    other belong into one module, or the called one must not change.
    """
    return cast(Function, Kernel(function))


def leaf(function: Function) -> Function:
    """`kernel` for a function that neither creates nor returns an array: disables numba's reference counting.

    Reference counts (`_nrt`) cost a short function more than its work. Such a function may use views and single
    elements only: an array that it creates is never freed.
    """
    return cast(Function, Kernel(function, _nrt=False))


def compiled_if_ready(function: Function) -> Function:
    """A kernel that calls no other one, for inputs that take less time than importing numba.

    It is the Python function as long as a call of the kernel would import numba.
    """
    assert isinstance(function, Kernel)
    return function if function.is_ready else cast(Function, function.interpreted)


def is_ready(function: Callable[..., object]) -> bool:
    """Whether a call of a kernel need not import numba first."""
    assert isinstance(function, Kernel)
    return function.is_ready
