"""An attribute that is made when it is first asked for, in any thread without waiting for others."""

from functools import cached_property
from typing import Self, TypeVar, overload

Made = TypeVar("Made")


class kept_property(cached_property[Made]):  # noqa: N801 - named as the decorator that it stands for
    """functools.cached_property without its lock: Python 3.11 has one for all instances of a class.

    Tasks on threads, each with an instance of its own, would wait for one another.
    """

    @overload
    def __get__(self, instance: None, owner: type[object] | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type[object] | None = None) -> Made: ...
    def __get__(self, instance: object, owner: type[object] | None = None) -> Self | Made:
        if instance is None:
            return self
        assert self.attrname is not None
        made = instance.__dict__[self.attrname] = self.func(instance)
        return made
