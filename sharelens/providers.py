"""What other packages add to sharelens: commands and Spark sessions, found by entry points and imported when used."""

import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from state_model.errors import SharelensError

COMMANDS: Final = "sharelens.commands"
"""Group of entry points. Each is a mapping like `sharelens.cli.commands.COMMANDS`: heading -> command -> its module."""
SPARK: Final = "sharelens.spark"
"""Group of two entry points: `configure` (`sharelens.configure_spark`) and `session` (of a command)."""


class ProviderError(SharelensError):
    """Raised when an entry point is missing, or when another project's package hides the one that it names."""


def provided(group: str) -> Iterator[Any]:
    """The objects of a group's entry points, in the order of their names.

    Raises:
        ProviderError: one of them can't be imported.
    """
    for point in sorted(entry_points(group=group), key=lambda point: point.name):
        yield _loaded(point)


def provided_by(group: str, name: str) -> Any:
    """The object of one entry point.

    Raises:
        ProviderError: it is missing or can't be imported.
    """
    points = entry_points(group=group, name=name)
    if not points:
        raise ProviderError(f"no package provides {name} of {group}; install sharelens with pip, in this environment")
    return _loaded(next(iter(points)))


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
