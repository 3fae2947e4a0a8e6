"""The commands about how long it took and how often it was tried: latency and attempts. None starts a JVM."""

from collections.abc import Callable
from typing import Any

import click

from sharelens.asked import CutAsked, Source
from sharelens.cli.forensics import FROM, TO, in_order
from sharelens.cli.options import (
    REQUIRE_COMPLETE,
    cut_options,
    evidence_options,
    examples,
    filter_options,
    output_options,
    stacked,
)
from sharelens.cli.questions import answer
from sharelens.filters import Wanted
from sharelens.output import Shown
from state_model.errors import UsageError

BY = click.option(
    "--by",
    type=click.Choice(["partition", "hour"]),
    multiple=True,
    help="A row for each partition, or for each hour (UTC) of the outcome. Repeatable.",
)
RANGES = click.option(
    "--ranges", is_flag=True, help="List ranges of offsets with the bounds of their age, the largest first."
)


def options(command: Callable[..., None]) -> Callable[..., None]:
    """The options of both commands."""
    shared = (evidence_options, filter_options, cut_options, FROM, TO, BY, REQUIRE_COMPLETE, output_options)
    return stacked(command, shared)


@click.command(
    short_help="How long records waited until they were settled.",
    epilog=examples(
        "sharelens latency --lake ./lake --group orders-workers --by hour",
        "sharelens latency --log-dir /var/kafka-copy --topic orders:0 --ranges --output json",
    ),
)
@RANGES
@options
def latency(source: Source, wanted: Wanted, cut: CutAsked, ranges: bool, **asked: Any) -> None:
    """Time from a record's own timestamp to acknowledged or archived: percentiles by group and topic, and throughput.

    An age has two bounds, because the topic's batch headers say when a batch was stamped, not when each of its records
    was. Offsets count once a life, at their first outcome. --from and --to bound the log time of the outcome.
    """
    if ranges and asked["by"]:
        raise UsageError("latency: --ranges lists single ranges; leave --by out")
    _answer("latency", "ranges" if ranges else "latency", source, wanted, cut, **asked)


@click.command(
    short_help="How many deliveries records took.",
    epilog=examples(
        "sharelens attempts --lake ./lake --group orders-workers",
        "sharelens attempts --log-dir /var/kafka-copy --by partition --output csv",
    ),
)
@options
def attempts(source: Source, wanted: Wanted, cut: CutAsked, **asked: Any) -> None:
    """Distribution of delivery counts by group, topic and outcome, and what redelivery costs.

    Offsets count once a life, with their largest delivery count. --from and --to bound the log time of the outcome.
    """
    _answer("attempts", "attempts", source, wanted, cut, **asked)


def _answer(
    command: str,
    question: str,
    source: Source,
    wanted: Wanted,
    cut: CutAsked,
    *,
    from_ms: int | None,
    to_ms: int | None,
    by: tuple[str, ...],
    require_complete: bool,
    shown: Shown,
) -> None:
    in_order(command, from_ms, to_ms)
    from measures.tallies import By
    from sharelens.questions import latency, opening
    from sharelens.questions.evidence import Span

    span = Span(from_ms=from_ms, to_ms=to_ms)
    with opening.open_evidence(source) as evidence:
        if question == "ranges":
            answered = latency.ranges(evidence, wanted, cut, span)
        else:
            ask = latency.latency if question == "latency" else latency.attempts
            answered = ask(evidence, wanted, cut, span, By(partition="partition" in by, hour="hour" in by))
    answer(answered, shown, require_complete)


COMMANDS = (latency, attempts)
