"""Named tuples made in one step, for the records of a log: a class's own `__new__` and `_make` are Python functions."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

T = TypeVar("T", bound=NamedTuple)


def maker(named_tuple: type[T]) -> Callable[[tuple[Any, ...]], T]:
    """Takes a tuple of all fields in their order, those with defaults too; their number is not checked."""
    return cast(Callable[[tuple[Any, ...]], T], partial(tuple.__new__, named_tuple))
