"""Suppressions: findings that are known, with a reason and an end date, and that count for nothing until then."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final

from state_model.errors import UsageError

Codes = Callable[[object], tuple[str, ...]]
FIELDS: Final = ("rule", "group", "topic", "partition", "state_partition", "reason", "until")


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppression:
    """Findings of some rules, of the places that are not None. `number`: of the entry, from 1 on.

    `topic`: a name or an id. `until`: the last day (UTC) on which it holds.
    """

    number: int
    rules: tuple[str, ...]
    reason: str
    until: date
    group: str | None = None
    topic: str | None = None
    partition: int | None = None
    state_partition: int | None = None

    def is_expired(self, today: date) -> bool:
        """Whether its last day is over."""
        return today > self.until

    def text(self) -> str:
        """The entry in words: its number, rules, place and last day, with the reason."""
        places = {
            "group": self.group,
            "topic": self.topic,
            "partition": self.partition,
            "state partition": self.state_partition,
        }
        where = "".join(f", {name} {value}" for name, value in places.items() if value is not None)
        return f"suppression {self.number} ({', '.join(self.rules)}{where}; {self.reason!r}) until {self.until}"


def suppressions_of(entries: object, codes: Codes | None = None) -> tuple[Suppression, ...]:
    """The suppressions of a list of mappings with the keys of FIELDS; rule, reason and until are required.

    `codes`: the codes of rules that a value of `rule` names; None: those of the audit.

    Raises:
        ValueError: it is no such list; the message names the first wrong entry.
    """
    if entries is None:
        return ()
    if isinstance(entries, str) or not isinstance(entries, Sequence):
        raise ValueError(f"suppressions are a list of entries, not {_shown(entries)}")
    return tuple(_suppression(number, entry, codes or _rules) for number, entry in enumerate(entries, 1))


def _suppression(number: int, entry: object, codes: Codes) -> Suppression:
    try:
        return _checked(number, entry, codes)
    except ValueError as error:
        raise ValueError(f"entry {number}: {error}") from None


def _checked(number: int, entry: object, codes: Codes) -> Suppression:
    if not isinstance(entry, Mapping):
        raise ValueError(f"an entry is a mapping with {', '.join(FIELDS)}, not {_shown(entry)}")
    for name in entry:
        if name not in FIELDS:
            raise ValueError(f"unknown key {_shown(name)}; there are {', '.join(FIELDS)}")
    return Suppression(
        number=number,
        rules=codes(entry.get("rule")),
        reason=_required_text(entry, "reason"),
        until=_day(entry.get("until")),
        group=_text(entry, "group"),
        topic=_text(entry, "topic"),
        partition=_number(entry, "partition"),
        state_partition=_number(entry, "state_partition"),
    )


def _rules(value: object) -> tuple[str, ...]:
    from state_model.audit.table import rules_named  # imports all rules: settings are read without suppressions, too

    if value is None:
        raise ValueError("no rule; name one by its code or number")
    try:
        rules = rules_named(str(value))
    except UsageError:
        raise ValueError(f"rule {_shown(value)} is no rule; docs/reference/audit-rules.md lists them") from None
    if all(rule.is_legal for rule in rules):
        raise ValueError(f"rule {value} has never a finding")
    return tuple(rule.code for rule in rules)


def _required_text(entry: Mapping[object, object], name: str) -> str:
    value = _text(entry, name)
    if value is None:
        raise ValueError(f"no {name}; every suppression needs one")
    return value


def _text(entry: Mapping[object, object], name: str) -> str | None:
    value = entry.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{name} is a text, not {_shown(value)}; put it into quotes")
    return value


def _number(entry: Mapping[object, object], name: str) -> int | None:
    value = entry.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise ValueError(f"{name} is a number from 0 on, not {_shown(value)}")
    return value


def _day(value: object) -> date:
    if value is None:
        raise ValueError("no until; every suppression ends on a day, as 2026-12-31")
    try:
        if isinstance(value, date) and not isinstance(value, datetime):
            return value
        return date.fromisoformat(value if isinstance(value, str) else "")
    except ValueError:
        raise ValueError(f"until is a day as 2026-12-31, not {_shown(value)}") from None


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"
