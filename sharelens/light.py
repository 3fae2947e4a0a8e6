"""Start-up without pandas: Arrow imports it as soon as it is installed, which takes longer than most answers."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

PANDAS = "pandas"


class _NoPandas(MetaPathFinder):
    """Finds no pandas."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Raises for pandas; leaves all other modules to the next finder."""
        if fullname == PANDAS:
            raise ModuleNotFoundError(f"{PANDAS} is left out at start-up", name=PANDAS)
        return None


def leave_pandas_out() -> None:
    """Lets Arrow look for pandas once, in vain. Whoever asks for pandas afterwards still gets it."""
    if PANDAS in sys.modules:
        return
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        import pyarrow as pa

        pa.scalar(0)
    finally:
        sys.meta_path.remove(finder)
