"""The settings of `sharelens what-if`: what Kafka takes for each, and the question about it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sharelens.measures.what_if import delivery_limit, isolation, lock_duration, snapshots, state_partitions
from sharelens.output import Answer
from sharelens.parameters.filters import KeyFilter
from sharelens.parameters.times import duration_text
from sharelens.questions import what_if, what_if_placement
from sharelens.source.request import CutChoice
from sharelens.tables.port import Tables
from state_model.errors import UsageError

Question = Callable[[Tables, KeyFilter, CutChoice, Any], Answer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What Kafka takes for a setting: a range of numbers, or some words; and the questions about it.

    `question`: about all figures; `listing`: about what changes. `text`: of a number.
    """

    takes: Sequence[int | str]
    question: Question
    listing: Question | None = None
    text: Callable[[int], str] = str

    def check(self, option: str, value: int | str) -> None:
        """Raises UsageError for a value that a broker would refuse."""
        if isinstance(value, str):
            if value not in self.takes:
                raise UsageError(f"what-if: {option} {value!r}: Kafka takes {' or '.join(map(str, self.takes))}")
            return
        low, high = (int(bound) for bound in self.takes)
        if not low <= value <= high:
            texts = (self.text(number) for number in (value, low, high))
            raise UsageError("what-if: {} {}: Kafka takes {} to {}".format(option, *texts))


SETTINGS = {
    "snapshot_update_records": Setting(takes=snapshots.RANGE, question=what_if.other_snapshot_interval),
    "delivery_count_limit": Setting(
        takes=delivery_limit.RANGE, question=what_if.other_delivery_limit, listing=what_if.other_outcomes
    ),
    "lock_duration": Setting(takes=lock_duration.RANGE, question=what_if.other_lock_duration, text=duration_text),
    "isolation_level": Setting(
        takes=isolation.LEVELS, question=what_if.other_isolation_level, listing=what_if.other_isolation_ranges
    ),
    "state_partitions": Setting(
        takes=state_partitions.RANGE,
        question=what_if_placement.other_balance,
        listing=what_if_placement.other_placement,
    ),
}
"""By the name of the parameter, in the order of its help page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherSetting:
    """A question about a setting, and the value that it takes the setting to have."""

    question: Question
    value: int | str


def other_setting(*, is_listed: bool, **values: int | str | None) -> OtherSetting:
    """The one setting that has a value; `is_listed`: the question about what changes.

    Raises:
        UsageError: none or several have one, a broker would refuse it, or there is no such question.
    """
    typed = {name: value for name, value in values.items() if value is not None}
    if len(typed) != 1:
        raise UsageError(f"what-if: name one setting, of {', '.join(map(_option, SETTINGS))}")
    ((name, value),) = typed.items()
    setting = SETTINGS[name]
    setting.check(_option(name), value)
    question = setting.listing if is_listed else setting.question
    if question is None:
        raise UsageError(f"what-if: {_option(name)} has no --list; leave it out")
    return OtherSetting(question=question, value=value)


def replay(evidence: Tables, key_filter: KeyFilter, cut: CutChoice, setting: OtherSetting) -> Answer:
    """The answer to `sharelens what-if`."""
    return setting.question(evidence, key_filter, cut, setting.value)


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")
