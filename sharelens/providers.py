"""What other packages add to sharelens: commands, and code of Spark's workers; found by entry points."""

import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import Any, Final

from state_model.errors import SharelensError

COMMANDS: Final = "sharelens.commands"
"""Group of entry points. Each is a mapping like `sharelens.cli.commands.COMMANDS`: heading -> command -> its module."""
SPARK: Final = "sharelens.spark"
"""Group of the entry point `worker_daemon`: the module that Spark's Python workers are forks of."""


class ProviderError(SharelensError):
    """Raised when what an entry point names can't be imported, as where another project's package hides ours."""


def provided(group: str) -> Iterator[Any]:
    """The objects of a group's entry points, in the order of their names.

    Raises:
        ProviderError: one of them can't be imported.
    """
    for point in sorted(entry_points(group=group), key=lambda point: point.name):
        yield _loaded(point)


def provided_module(group: str, name: str) -> str | None:
    """The module that an entry point names; None without one, and where another project's package hides it."""
    for point in entry_points(group=group, name=name):
        try:
            return point.module if find_spec(point.module) is not None else None
        except ModuleNotFoundError:
            return None
    return None


def _loaded(point: EntryPoint) -> Any:
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        package = point.module.partition(".")[0]
        folder = next(iter(getattr(sys.modules.get(package), "__path__", ())), None)
        origin = "" if folder is None else f"; {package} is that of {folder}"
        raise ProviderError(
            f"{point.value} can't be imported ({error}){origin}: if it is another project's, start elsewhere"
        ) from error
