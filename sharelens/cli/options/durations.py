"""The commands `latency` and `attempts`. They start no JVM."""

from collections.abc import Callable
from typing import Any

import click

from sharelens.cli.forensics import FROM, TO
from sharelens.cli.options.common import (
    REQUIRE_COMPLETE,
    cut_options,
    examples,
    filter_options,
    output_options,
    stacked,
)
from sharelens.cli.options.source import evidence_options
from sharelens.cli.questions import answer, in_order
from sharelens.output import Shown
from sharelens.parameters.filters import KeyFilter
from sharelens.source.request import CutChoice, Source
from state_model.errors import UsageError

BY = click.option(
    "--by",
    type=click.Choice(["partition", "hour"]),
    multiple=True,
    help="One row a partition, or one row an hour (UTC) of the outcome. Repeatable.",
)
RANGES = click.option(
    "--ranges", is_flag=True, help="List ranges of offsets with the bounds of their ages, the largest first."
)


EXACT = click.option(
    "--exact",
    is_flag=True,
    help="Exact percentiles from the histories: slower, and without rows that retention dropped.",
)


def options(command: Callable[..., None]) -> Callable[..., None]:
    """The options of both commands."""
    shared = (evidence_options, filter_options, cut_options, FROM, TO, BY, REQUIRE_COMPLETE, output_options)
    return stacked(command, shared)


@click.command(
    short_help="Time from a record's timestamp to its outcome.",
    epilog=examples(
        "sharelens latency --lake ./lake --group orders-workers --by hour",
        "sharelens latency --log-dir /var/kafka-copy --topic orders:0 --ranges --output json",
    ),
)
@RANGES
@EXACT
@options
def latency(source: Source, key_filter: KeyFilter, cut: CutChoice, ranges: bool, exact: bool, **params: Any) -> None:
    """Time from a record's timestamp to acknowledged or archived: percentiles by group and topic, and throughput.

    An age has two bounds: the topic's batch headers have the timestamps of a batch, not of each record. Percentiles are
    bucket edges, at most 5 % apart. An offset counts once a life, at its first outcome. --from and --to bound the log
    time of the outcome.
    """
    if ranges and params["by"]:
        raise UsageError("latency: --ranges has no totals; leave out --by")
    if ranges and exact:
        raise UsageError("latency: --ranges is always exact; leave out --exact")
    question = "ranges" if ranges else "exact" if exact else "latency"
    _answer("latency", question, source, key_filter, cut, **params)


@click.command(
    short_help="Number of deliveries of records.",
    epilog=examples(
        "sharelens attempts --lake ./lake --group orders-workers",
        "sharelens attempts --log-dir /var/kafka-copy --by partition --output csv",
    ),
)
@options
def attempts(source: Source, key_filter: KeyFilter, cut: CutChoice, **params: Any) -> None:
    """Distribution of delivery counts by group, topic and outcome, and the number of redeliveries.

    An offset counts once a life, with its largest delivery count. --from and --to bound the log time of the outcome.
    """
    _answer("attempts", "attempts", source, key_filter, cut, **params)


def _answer(
    command: str,
    question: str,
    source: Source,
    key_filter: KeyFilter,
    cut: CutChoice,
    *,
    from_ms: int | None,
    to_ms: int | None,
    by: tuple[str, ...],
    require_complete: bool,
    shown: Shown,
) -> None:
    in_order(command, from_ms, to_ms)
    from sharelens.measures.latency.tallies import By
    from sharelens.questions import latency
    from sharelens.tables import opening
    from sharelens.tables.where import Span

    span = Span(from_ms=from_ms, to_ms=to_ms)
    with opening.open_evidence(source) as evidence:
        if question == "ranges":
            answered = latency.ranges(evidence, key_filter, cut, span)
        else:
            form = By(partition="partition" in by, hour="hour" in by)
            if question == "attempts":
                answered = latency.attempts(evidence, key_filter, cut, span, form)
            else:
                answered = latency.latency(evidence, key_filter, cut, span, form, exact=question == "exact")
    answer(answered, shown, require_complete)


COMMANDS = (latency, attempts)
