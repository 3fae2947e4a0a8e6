"""Parameters of the DataFrame API under their earlier names."""

import functools
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Value = TypeVar("Value")


def renamed_parameter(earlier: str, name: str) -> Callable[[Callable[Parameters, Value]], Callable[Parameters, Value]]:
    """A decorator: a call may name the parameter by its earlier name, with a DeprecationWarning."""

    def decorate(function: Callable[Parameters, Value]) -> Callable[Parameters, Value]:
        @functools.wraps(function)
        def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Value:
            if earlier in kwargs:
                if name in kwargs:
                    raise TypeError(f"{function.__name__}() got both {name!r} and its earlier name {earlier!r}")
                text = f"{function.__name__}: the parameter {earlier!r} is called {name!r} now"
                warnings.warn(text, DeprecationWarning, stacklevel=2)
                kwargs[name] = kwargs.pop(earlier)
            return function(*args, **kwargs)

        return call

    return decorate
