"""Definitions of configurations: name, type, default, range and documentation, and how their text is parsed."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from sharelens.broker.errors import ConfigError

Value = str | int | float | bool | tuple[str, ...] | None
"""A configuration's value; null when it has neither a default nor a text."""


class Kind(IntEnum):
    """The type of a configuration, with its number in DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


_INTEGER_BITS = {Kind.INT: 32, Kind.SHORT: 16, Kind.LONG: 64}
LONG_MAX = 2**63 - 1
INT_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One configuration. Bounds are inclusive; `choices` empty means any; `check` returns the fault of a text.

    `is_dynamic`: a change while the broker runs is in force at once. `is_stored_only`: it is stored and described, and
    never in force, also after a restart.
    `synonyms` are the broker's configurations that stand in for a topic's or a group's, strongest first, each with the
    factor that turns its unit into this one's.
    """

    name: str
    kind: Kind
    default: Value
    doc: str
    low: int | float | None = None
    high: int | float | None = None
    choices: tuple[str, ...] = ()
    is_dynamic: bool = False
    is_stored_only: bool = False
    synonyms: tuple[tuple[str, int], ...] = ()
    check: Callable[[str], str | None] | None = None

    def parse(self, text: str) -> Value:
        """The value of a text.

        Raises:
            ConfigError: the text has no value; the message names the key and its values.
        """
        text = text.strip()
        if self.kind is Kind.BOOLEAN:
            value: Value = self._boolean(text)
        elif self.kind in _INTEGER_BITS or self.kind is Kind.DOUBLE:
            value = self._number(text)
        elif self.kind is Kind.LIST:
            value = tuple(part.strip() for part in text.split(",") if part.strip())
            self._check_choices(value)
        else:
            value = text
            self._check_choices((text,))
        problem = self.check(text) if self.check is not None else None
        if problem:
            raise self.error(text, problem)
        return value

    def error(self, text: str, problem: str) -> ConfigError:
        """The error for an invalid text."""
        return ConfigError(f"{self.name}={text!r}: {problem}")

    def _boolean(self, text: str) -> bool:
        if text.lower() not in ("true", "false"):
            raise self.error(text, "takes true or false")
        return text.lower() == "true"

    def _number(self, text: str) -> int | float:
        takes = self._range()
        try:
            value = float(text) if self.kind is Kind.DOUBLE else int(text)
        except ValueError:
            raise self.error(text, f"takes {takes}") from None
        low, high = self._limits()
        if not low <= value <= high:
            raise self.error(text, f"takes {takes}")
        return value

    def _limits(self) -> tuple[int | float, int | float]:
        bits = _INTEGER_BITS.get(self.kind)
        low = self.low if self.low is not None else (-(2 ** (bits - 1)) if bits else float("-inf"))
        high = self.high if self.high is not None else (2 ** (bits - 1) - 1 if bits else float("inf"))
        return low, high

    def _range(self) -> str:
        number = "a number" if self.kind is Kind.DOUBLE else "an integer"
        if self.low is not None and self.high is not None:
            return f"{number} from {self.low} to {self.high}"
        if self.low is not None:
            return f"{number} of at least {self.low}"
        return number if self.high is None else f"{number} of at most {self.high}"

    def _check_choices(self, parts: tuple[str, ...]) -> None:
        for part in parts:
            if self.choices and part not in self.choices:
                raise self.error(",".join(parts), f"takes {', '.join(self.choices)}")

    def text(self, value: Value) -> str | None:
        """A value as Kafka's tools print it."""
        if value is None:
            return None
        if isinstance(value, bool):
            return "true" if value else "false"
        return ",".join(value) if isinstance(value, tuple) else str(value)


def table(definitions: Iterable[Definition]) -> Mapping[str, Definition]:
    """Definitions by name; no name twice."""
    by_name: dict[str, Definition] = {}
    for definition in definitions:
        assert definition.name not in by_name, definition.name
        by_name[definition.name] = definition
    return by_name
