"""The kinds of parameters: which texts a parameter takes, and the type of its value."""

from dataclasses import dataclass
from typing import ClassVar

from sharelens.parameters.times import Rounding


@dataclass(frozen=True, slots=True)
class Text:
    """Any text."""

    value: ClassVar[type] = str


@dataclass(frozen=True, slots=True)
class Flag:
    """Set or not."""

    value: ClassVar[type] = bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A whole number between two bounds, inclusive; None: no bound."""

    value: ClassVar[type] = int
    least: int | None = None
    largest: int | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some words."""

    value: ClassVar[type] = str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Time:
    """A moment, in epoch milliseconds; a time of day becomes one when the end of the evidence is known."""

    value: ClassVar[type] = int
    rounding: Rounding = Rounding.DOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Duration:
    """A length of time in milliseconds; `bare_unit`: the unit of a number alone (None: refused).

    `takes_auto`: the word `auto` is the length 0, for which the question chooses one.
    """

    value: ClassVar[type] = int
    bare_unit: str | None = None
    least_ms: int = 1
    takes_auto: bool = False


@dataclass(frozen=True, slots=True)
class Size:
    """A number of bytes, with k, M, G or T as powers of 1024."""

    value: ClassVar[type] = int


@dataclass(frozen=True, slots=True)
class Names:
    """Names with commas between them."""

    value: ClassVar[type] = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The path or URI of a lake or a log directory; not empty."""

    value: ClassVar[type] = str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPath:
    """The path of a file or folder to write."""

    value: ClassVar[type] = str


Kind = Text | Flag | Number | Choice | Time | Duration | Size | Names | Address | NewPath
