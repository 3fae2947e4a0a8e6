"""The questions: state, records, trace, diff. None of them starts a JVM."""

from dataclasses import replace

import click

from sharelens.cli.options.common import (
    REQUIRE_COMPLETE,
    Time,
    cut_options,
    examples,
    filter_options,
    output_options,
)
from sharelens.cli.options.source import evidence_options
from sharelens.output import Answer, Shown, say, show
from sharelens.parameters.filters import KeyFilter
from sharelens.parameters.times import Rounding
from sharelens.source.request import CutChoice, Source
from state_model.errors import UsageError

INCOMPLETE = 1
VERBOSE = click.option(
    "--verbose",
    is_flag=True,
    help="In text, show all ranges of record offsets, not the first four (on a terminal: --wide or --vertical too).",
)


def answer(answered: Answer, shown: Shown, require_complete: bool) -> None:
    """Shows the answer and warns of missing evidence; with --require-complete, exits 1 when a row is not complete."""
    show(_with_what_it_lacks(answered), shown)
    if not require_complete or "completeness" not in answered.table.column_names:
        return
    from sharelens.questions.answers.completeness import incomplete_rows

    counts = answered.all_rows
    incomplete = incomplete_rows(answered.table.column("completeness")) if counts is None else counts.incomplete
    if incomplete:
        say(f"sharelens: {incomplete} of {answered.row_count} rows are not complete (--require-complete)")
        raise click.exceptions.Exit(INCOMPLETE)


TIMES, OFFSETS = ("--from", "--to"), ("--from-offset", "--to-offset")


def in_order(command: str, begin: int | None, end: int | None, options: tuple[str, str] = TIMES) -> None:
    """Raises UsageError for an interval, given by two options, that ends before its beginning."""
    if begin is not None and end is not None and end < begin:
        raise UsageError(f"{command}: {options[1]} lies before {options[0]}; exchange them")


def _with_what_it_lacks(answered: Answer) -> Answer:
    from sharelens.questions.answers.missing import nameless, unnamed_topics

    counts = answered.all_rows
    unnamed = unnamed_topics(answered.table) if counts is None else nameless(counts.unnamed_topics)
    return replace(answered, warnings=(*answered.warnings, *unnamed))


@click.command(
    short_help="The state of share partitions, now or at a cut.",
    epilog=examples(
        "sharelens state --lake ./lake --group orders-workers --output json",
        "sharelens state --log-dir /var/kafka-copy --at-offset 3:1200",
    ),
)
@evidence_options
@filter_options
@cut_options
@VERBOSE
@REQUIRE_COMPLETE
@output_options
def state(
    source: Source, key_filter: KeyFilter, cut: CutChoice, verbose: bool, require_complete: bool, shown: Shown
) -> None:
    """The state of share partitions: now, as of a time, or at offsets of the state log."""
    from sharelens.questions import state
    from sharelens.questions.answers.checked import with_coordinators
    from sharelens.tables import opening

    with opening.open_evidence(source) as evidence:
        answered = with_coordinators(evidence, state.state(evidence, key_filter, cut, verbose=verbose), cut)
    answer(answered, shown, require_complete)


@click.command(
    short_help="Decoded records of the state log.",
    epilog=examples(
        "sharelens records --log-dir /var/kafka-copy --topic orders:0 --output jsonl",
        "sharelens records --lake ./lake --state-partition 3 --from-offset 1000 --to-offset 1100",
    ),
)
@evidence_options
@filter_options
@click.option("--from", "from_ms", type=Time(Rounding.UP), metavar="TIME", help="Log times from TIME on.")
@click.option("--to", "to_ms", type=Time(Rounding.UP), metavar="TIME", help="Log times before TIME.")
@click.option("--from-offset", type=click.IntRange(0, (1 << 63) - 1), metavar="O", help="State log offsets from O on.")
@click.option("--to-offset", type=click.IntRange(0, (1 << 63) - 1), metavar="O", help="State log offsets before O.")
@click.option(
    "--state-partition",
    type=click.IntRange(min=0, max=2**31 - 1),
    multiple=True,
    metavar="P",
    help="Only this partition of __share_group_state. Repeatable.",
)
@click.option(
    "--early-draft",
    "is_early_draft",
    is_flag=True,
    help="Control records of KIP-932's early design in the partitions of user topics, instead of the state log.",
)
@VERBOSE
@output_options
def records(
    source: Source,
    key_filter: KeyFilter,
    from_ms: int | None,
    to_ms: int | None,
    from_offset: int | None,
    to_offset: int | None,
    state_partition: tuple[int, ...],
    is_early_draft: bool,
    verbose: bool,
    shown: Shown,
) -> None:
    """Decoded records of the state log, in (state partition, log offset) order."""
    in_order("records", from_ms, to_ms)
    in_order("records", from_offset, to_offset, OFFSETS)
    if is_early_draft:
        if state_partition or (from_ms, to_ms, from_offset, to_offset) != (None,) * 4:
            raise UsageError("records: --early-draft takes --group, --topic and --partition only; leave out the others")
        from sharelens.questions import early_draft

        show(early_draft.records(source, key_filter), shown)
        return
    from sharelens.questions import records
    from sharelens.tables import opening
    from sharelens.tables.where import Span

    span = Span(
        from_ms=from_ms,
        to_ms=to_ms,
        from_offset=from_offset,
        to_offset=to_offset,
        state_partitions=frozenset(state_partition) or None,
    )
    with opening.open_evidence(source) as evidence:
        show(records.records(evidence, key_filter, span, verbose=verbose), shown)


@click.command(
    short_help="The life of one record.",
    epilog=examples("sharelens trace --lake ./lake --group orders-workers --topic orders --partition 0 --offset 4711"),
)
@evidence_options
@click.option("--group", metavar="GROUP", required=True, help="The share group.")
@click.option("--topic", metavar="TOPIC", required=True, help="The topic: NAME or ID, or NAME:0 with its partition.")
@click.option(
    "--partition",
    type=click.IntRange(min=0, max=2**31 - 1),
    metavar="N",
    help="The partition; required unless --topic names it.",
)
@click.option(
    "--offset", type=click.IntRange(min=0, max=2**63 - 1), required=True, metavar="O", help="The record's offset."
)
@click.option("--members", is_flag=True, help="Add the members with the partition assigned at each event (inferred).")
@REQUIRE_COMPLETE
@output_options
def trace(
    source: Source,
    group: str,
    topic: str,
    partition: int | None,
    offset: int,
    members: bool,
    require_complete: bool,
    shown: Shown,
) -> None:
    """The life of one record: each delivery state with its cause, the dead letter, and the start offset.

    The last line has the outcome, or why there is none: the topic's batch headers show what is at the offset.
    """
    from sharelens.parameters.filters import parse_partition_filter
    from sharelens.questions.traces import trace
    from sharelens.tables import opening

    key_filter = parse_partition_filter(group, topic, partition)
    with opening.open_evidence(source) as evidence:
        answered = trace.trace(evidence, key_filter, offset, members=members)
    answer(answered, shown, require_complete)


@click.command(
    short_help="The changes between two moments.",
    epilog=examples(
        "sharelens diff --lake ./lake --from 2026-11-21T05:00:00Z --to 2026-11-21T05:10:00Z --group orders-workers"
    ),
)
@evidence_options
@filter_options
@click.option(
    "--from", "from_ms", type=Time(), metavar="TIME", required=True, help="The earlier moment (state as of TIME)."
)
@click.option("--to", "to_ms", type=Time(), metavar="TIME", required=True, help="The later moment (state as of TIME).")
@VERBOSE
@REQUIRE_COMPLETE
@output_options
def diff(
    source: Source, key_filter: KeyFilter, from_ms: int, to_ms: int, verbose: bool, require_complete: bool, shown: Shown
) -> None:
    """The changes between two moments: scalars before and after, and record offsets whose delivery state differs."""
    from sharelens.questions.timelines import diff
    from sharelens.tables import opening

    with opening.open_evidence(source) as evidence:
        answered = diff.diff(evidence, key_filter, from_ms, to_ms, verbose=verbose)
    answer(answered, shown, require_complete)


COMMANDS = (state, records, trace, diff)
