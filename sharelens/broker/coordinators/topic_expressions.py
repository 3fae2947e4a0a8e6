"""Regular expressions over topic names as RE2 knows them, which matches in linear time (Kafka's TopicRegexResolver).

The package google-re2 is in the extra `regex`. Without it, an expression is refused when its first member subscribes.
"""

from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

MISSING: Final = "this broker has no RE2, install sharelens[regex] beside it"


def has_re2() -> bool:
    """Whether the package is installed."""
    return find_spec("re2") is not None


def expression_error(expression: str) -> str | None:
    """Why an expression is invalid; None: it is valid."""
    if not has_re2():
        return MISSING
    re2 = import_module("re2")
    try:
        _compiled(re2, expression)
    except re2.error as error:
        (text,) = error.args
        return text.decode(errors="replace") if isinstance(text, bytes) else str(text)
    return None


def matching_topics(expression: str, names: Iterable[str], may_describe: Callable[[str], bool]) -> frozenset[str]:
    """The topics whose whole name a valid expression matches, but those that the member may not describe.

    Raises ModuleNotFoundError without the package.
    """
    fullmatch = _compiled(import_module("re2"), expression).fullmatch
    return frozenset(name for name in names if fullmatch(name) and may_describe(name))


def _compiled(re2: Any, expression: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    return re2.compile(expression, options)
