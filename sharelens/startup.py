"""Start-up without pandas: Arrow imports an installed pandas at once, which takes longer than most answers."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

PANDAS = "pandas"


class _NoPandas(MetaPathFinder):
    """Hides pandas from `import`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Raises for pandas; leaves all other modules to the next finder."""
        if fullname == PANDAS:
            raise ModuleNotFoundError(f"{PANDAS} is hidden while Arrow is imported", name=PANDAS)
        return None


def import_arrow_without_pandas() -> None:
    """Imports Arrow while an import hook hides pandas; a later `import pandas` works."""
    if PANDAS in sys.modules:
        return
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        import pyarrow as pa

        pa.scalar(0)
    finally:
        sys.meta_path.remove(finder)
