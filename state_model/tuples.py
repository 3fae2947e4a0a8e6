"""Fast construction of named tuples: their `__new__` and `_make` are Python functions, `tuple.__new__` is not."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

T = TypeVar("T", bound=NamedTuple)


def maker(named_tuple: type[T]) -> Callable[[tuple[Any, ...]], T]:
    """A constructor from a tuple of all fields in order, those with defaults too; their number is not checked."""
    return cast(Callable[[tuple[Any, ...]], T], partial(tuple.__new__, named_tuple))
