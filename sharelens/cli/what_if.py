"""The commands `what-if` and `advise`. They start no JVM."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from sharelens.cli.incidents import settings_options
from sharelens.cli.options.common import (
    REQUIRE_COMPLETE,
    Duration,
    cut_options,
    examples,
    filter_options,
    output_options,
)
from sharelens.cli.options.source import evidence_options
from sharelens.cli.questions import answer
from sharelens.output import Shown
from sharelens.parameters.filters import KeyFilter
from sharelens.parameters.times import duration_text
from sharelens.source.request import CutChoice, Source
from state_model.errors import UsageError

if TYPE_CHECKING:
    from sharelens.output import Answer
    from sharelens.tables.port import Tables

    Question = Callable[[Tables, KeyFilter, CutChoice, Any], Answer]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setting:
    """What Kafka takes for a setting: a range of numbers, or some words; and the questions about it.

    `question`: about all figures; `listing`: about what changes. `text`: of a number.
    """

    takes: Sequence[int | str]
    question: "Question"
    listing: "Question | None" = None
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


@click.command(
    "what-if",
    short_help="The same history under another setting.",
    epilog=examples(
        "sharelens what-if --snapshot-update-records 100 --lake ./lake",
        "sharelens what-if --delivery-count-limit 3 --lake ./lake --group orders-workers --list",
        "sharelens what-if --lock-duration 60s --lake ./lake --group orders-workers",
        "sharelens what-if --isolation-level read_committed --log-dir /var/kafka-copy --output json",
    ),
)
@evidence_options
@filter_options
@cut_options
@click.option(
    "--snapshot-update-records",
    type=int,
    metavar="N",
    help="Updates between two snapshots: share.coordinator.snapshot.update.records.per.snapshot, 0 to 500.",
)
@click.option(
    "--delivery-count-limit",
    type=int,
    metavar="N",
    help="Deliveries after which a released record is archived: share.delivery.count.limit, 2 to 25.",
)
@click.option(
    "--lock-duration",
    type=Duration("ms", least_ms=0),
    metavar="DURATION",
    help="How long a record stays acquired without an acknowledgement: share.record.lock.duration.ms, 1s to 1h.",
)
@click.option(
    "--isolation-level",
    metavar="LEVEL",
    help="Which records of transactions are delivered: share.isolation.level, read_committed or read_uncommitted.",
)
@settings_options
@click.option(
    "--state-partitions",
    type=int,
    metavar="N",
    help="Partitions of __share_group_state: share.coordinator.state.topic.num.partitions, at least 1.",
)
@click.option(
    "--list",
    "is_listed",
    is_flag=True,
    help="What changes, one by one: ranges of offsets (--delivery-count-limit, --isolation-level), or share partitions "
    "(--state-partitions).",
)
@REQUIRE_COMPLETE
@output_options
def what_if(
    source: Source,
    key_filter: KeyFilter,
    cut: CutChoice,
    is_listed: bool,
    require_complete: bool,
    shown: Shown,
    **settings: int | str | None,
) -> None:
    """Replays a recorded history under another setting: each figure as it was and as it would have been.

    A figure is exact, a bound (the true figure lies between the two), or inferred from what the log shows only in part.
    """
    name, value = _only(settings)
    setting = _settings()[name]
    setting.check(_option(name), value)
    question = setting.listing if is_listed else setting.question
    if question is None:
        raise UsageError(f"what-if: {_option(name)} has no --list; leave it out")
    from sharelens.tables import opening

    with opening.open_evidence(source) as evidence:
        answered = question(evidence, key_filter, cut, value)
    answer(answered, shown, require_complete)


def _settings() -> dict[str, _Setting]:
    """By parameter the setting."""
    from sharelens.measures.what_if import delivery_limit, isolation, lock_duration, snapshots, state_partitions
    from sharelens.questions import what_if, what_if_placement

    return {
        "snapshot_update_records": _Setting(takes=snapshots.RANGE, question=what_if.other_snapshot_interval),
        "delivery_count_limit": _Setting(
            takes=delivery_limit.RANGE, question=what_if.other_delivery_limit, listing=what_if.other_outcomes
        ),
        "lock_duration": _Setting(takes=lock_duration.RANGE, question=what_if.other_lock_duration, text=duration_text),
        "isolation_level": _Setting(
            takes=isolation.LEVELS, question=what_if.other_isolation_level, listing=what_if.other_isolation_ranges
        ),
        "state_partitions": _Setting(
            takes=state_partitions.RANGE,
            question=what_if_placement.other_balance,
            listing=what_if_placement.other_placement,
        ),
    }


def _only(settings: Mapping[str, int | str | None]) -> tuple[str, int | str]:
    """The one setting that has a value; UsageError for none and for several."""
    typed = {name: value for name, value in settings.items() if value is not None}
    if len(typed) != 1:
        options = ", ".join(_option(name) for name in settings)
        raise UsageError(f"what-if: name one setting, of {options}")
    return next(iter(typed.items()))


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


@click.command(
    short_help="Settings that the history suggests, with the evidence.",
    epilog=examples(
        "sharelens advise --lake ./lake",
        "sharelens advise --log-dir /var/kafka-copy --group-configs groups.txt --broker-config server.properties",
    ),
)
@evidence_options
@filter_options
@cut_options
@settings_options
@output_options
def advise(source: Source, key_filter: KeyFilter, cut: CutChoice, shown: Shown) -> None:
    """Settings that a recorded history suggests: the evidence for each, and what it would have changed.

    Delivery count limits, lock durations, missing dead-letter topics, the interval of snapshots, the number of state
    partitions. No advice without evidence.
    """
    from sharelens.questions import advise
    from sharelens.tables import opening

    with opening.open_evidence(source) as evidence:
        answered = advise.advise(evidence, key_filter, cut)
    answer(answered, shown, require_complete=False)


COMMANDS = (what_if, advise)
