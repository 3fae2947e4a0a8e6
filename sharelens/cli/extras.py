"""Libraries of extras: whether they are there, and what installs them."""

from collections.abc import Iterable
from importlib.util import find_spec

from state_model.errors import UsageError


def ensure_libraries(command: str, libraries: Iterable[str]) -> None:
    """Raises UsageError with the extra to install, which has the command's name, when a library is missing."""
    missing = [library for library in libraries if find_spec(library) is None]
    if missing:
        raise UsageError(f"{command}: {', '.join(missing)} is missing: pip install 'sharelens[{command}]'")
