"""Values of a JSON document of this broker, checked where they are read.

All raise ValueError or TypeError for another kind of value; the message shows its beginning.
"""

from collections.abc import Mapping

SHOWN_CHARACTERS = 40


def mapping(value: object) -> Mapping[str, object]:
    """An object of names and values."""
    if not isinstance(value, dict):
        raise TypeError(f"{_shown(value)} where names and values belong")
    return value


def mappings(value: object) -> list[Mapping[str, object]]:
    """A list of objects."""
    if not isinstance(value, list):
        raise TypeError(f"{_shown(value)} where a list belongs")
    return [mapping(entry) for entry in value]


def texts(value: object) -> Mapping[str, str]:
    """An object of names and texts."""
    return {name: text(each) for name, each in mapping(value).items()}


def text(value: object) -> str:
    """A text."""
    if not isinstance(value, str):
        raise TypeError(f"{_shown(value)} where a text belongs")
    return value


def number(value: object, limit: int) -> int:
    """An integer from 0 to a limit."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= limit:
        raise ValueError(f"{_shown(value)} where a number up to {limit} belongs")
    return value


def _shown(value: object) -> str:
    return repr(str(value)[:SHOWN_CHARACTERS])
