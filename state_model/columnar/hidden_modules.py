"""Imports of a library without one of its optional dependencies, which takes longer than the answer."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from threading import get_ident
from types import ModuleType


class _Hiding:
    """A finder of sys.meta_path that hides one module from the imports of the thread that made it."""

    def __init__(self, name: str) -> None:
        self._name, self._thread = name, get_ident()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Raises for the module and what lies in it; leaves all others to the next finder."""
        if get_ident() == self._thread and (fullname == self._name or fullname.startswith(f"{self._name}.")):
            raise ModuleNotFoundError(f"{self._name} is hidden while another library is imported", name=self._name)
        return None


@contextmanager
def hidden(name: str) -> Iterator[None]:
    """Hides a module that is not yet imported from this thread; afterwards `import` finds it."""
    if name in sys.modules:
        yield
        return
    finder = _Hiding(name)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
