"""The commands `what-if` and `advise`. They start no JVM."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import click

from sharelens.cli.incidents import settings_options
from sharelens.cli.options import REQUIRE_COMPLETE, cut_options, examples, filter_options, output_options
from sharelens.cli.questions import answer
from sharelens.cli.source_options import evidence_options
from sharelens.filters import KeyFilter
from sharelens.output import Shown
from sharelens.request import CutChoice, Source
from state_model.errors import UsageError

if TYPE_CHECKING:
    from sharelens.output import Answer
    from sharelens.questions.evidence import Evidence

    Question = Callable[[Evidence, KeyFilter, CutChoice, int], Answer]


def _in_range(name: str, value: int, smallest: int, largest: int) -> None:
    """Raises UsageError for a value that a broker would refuse."""
    if not smallest <= value <= largest:
        raise UsageError(f"what-if: {_option(name)} {value}: Kafka takes {smallest} to {largest}")


@click.command(
    "what-if",
    short_help="The same history under another setting.",
    epilog=examples(
        "sharelens what-if --snapshot-update-records 100 --lake ./lake",
        "sharelens what-if --delivery-count-limit 3 --lake ./lake --group orders-workers --list",
        "sharelens what-if --snapshot-update-records 50 --log-dir /var/kafka-copy --output json",
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
    help="What changes, one by one: ranges of offsets (--delivery-count-limit), share partitions (--state-partitions).",
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
    **settings: int | None,
) -> None:
    """Replays a recorded history under another setting: each figure as it was and as it would have been.

    A figure is exact, a bound (the true figure lies between the two), or inferred from what the log shows only in part.
    """
    option, value = _only(settings)
    range_, question, listing = _questions()[option]
    _in_range(option, value, *range_)
    if is_listed and listing is None:
        raise UsageError(f"what-if: {_option(option)} has no --list; leave it out")
    from sharelens.questions import opening

    with opening.open_evidence(source) as evidence:
        answered = (listing if is_listed and listing is not None else question)(evidence, key_filter, cut, value)
    answer(answered, shown, require_complete)


def _questions() -> "dict[str, tuple[tuple[int, int], Question, Question | None]]":
    """By option its range, the question about all figures, and the one about what changes."""
    from measures.what_if import delivery_limit, snapshots, state_partitions
    from sharelens.questions import what_if, what_if_placement

    return {
        "snapshot_update_records": (snapshots.RANGE, what_if.other_snapshot_interval, None),
        "delivery_count_limit": (delivery_limit.RANGE, what_if.other_delivery_limit, what_if.other_outcomes),
        "state_partitions": (
            state_partitions.RANGE,
            what_if_placement.other_balance,
            what_if_placement.other_placement,
        ),
    }


def _only(settings: Mapping[str, int | None]) -> tuple[str, int]:
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

    Delivery count limits, missing dead-letter topics, the interval of snapshots. No advice without evidence.
    """
    from sharelens.questions import advise, opening

    with opening.open_evidence(source) as evidence:
        answered = advise.advise(evidence, key_filter, cut)
    answer(answered, shown, require_complete=False)


COMMANDS = (what_if, advise)
