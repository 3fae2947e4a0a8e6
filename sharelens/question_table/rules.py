"""Rules between the parameters of a question, with the messages of errors. `names` are those of parameters."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sharelens.question_table.references import load
from state_model.errors import UsageError


@dataclass(frozen=True, slots=True)
class Excludes:
    """One of `names` and one of `other_names` can't both have a value."""

    names: tuple[str, ...]
    other_names: tuple[str, ...]
    message: str

    def check(self, question: str, values: Mapping[str, Any]) -> None:
        """Raises UsageError."""
        if _any(values, self.names) and _any(values, self.other_names):
            raise UsageError(f"{question}: {self.message}")


@dataclass(frozen=True, slots=True)
class Needs:
    """Where one of `names` has a value (no names: always), one of `other_names` needs one."""

    names: tuple[str, ...]
    other_names: tuple[str, ...]
    message: str

    def check(self, question: str, values: Mapping[str, Any]) -> None:
        """Raises UsageError."""
        if (not self.names or _any(values, self.names)) and not _any(values, self.other_names):
            raise UsageError(f"{question}: {self.message}")


@dataclass(frozen=True, slots=True)
class AtMostOne:
    """At most one of `names` has a value."""

    names: tuple[str, ...]
    message: str

    def check(self, question: str, values: Mapping[str, Any]) -> None:
        """Raises UsageError."""
        if sum(has_value(values[name]) for name in self.names) > 1:
            raise UsageError(f"{question}: {self.message}")


@dataclass(frozen=True, slots=True)
class InOrder:
    """The value of `last` isn't below that of `first`; `options`: their options."""

    first: str
    last: str
    options: tuple[str, str]

    def check(self, question: str, values: Mapping[str, Any]) -> None:
        """Raises UsageError."""
        first, last = values[self.first], values[self.last]
        if first is not None and last is not None and last < first:
            raise UsageError(f"{question}: {self.options[1]} lies before {self.options[0]}; exchange them")


@dataclass(frozen=True, slots=True)
class OneOf:
    """Each value of a repeatable parameter is one of `words` (a tuple, as MODULE:NAME).

    `message`: the end of the error's text, in which {words} stands for them.
    """

    name: str
    option: str
    words: str
    message: str

    def check(self, question: str, values: Mapping[str, Any]) -> None:
        """Raises UsageError."""
        words = load(self.words)
        for unknown in sorted(set(values[self.name]) - set(words)):
            message = self.message.format(words=", ".join(words))
            raise UsageError(f"{question}: {self.option}: {unknown!r} is no {message}")


Rule = Excludes | Needs | AtMostOne | InOrder | OneOf
INTERVAL = InOrder("from_ms", "to_ms", ("--from", "--to"))
OFFSETS = InOrder("from_offset", "to_offset", ("--from-offset", "--to-offset"))


def has_value(value: object) -> bool:
    """Whether a parameter was typed or has a default; a flag: whether it is set."""
    return value is not None and value is not False and value != ()


def _any(values: Mapping[str, Any], names: tuple[str, ...]) -> bool:
    return any(has_value(values[name]) for name in names)
