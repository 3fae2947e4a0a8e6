"""The commands groups, redelivered, account, life and cost. None of them starts a JVM."""

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
from sharelens.cli.questions import OFFSETS, answer, in_order
from sharelens.output import Shown, say
from sharelens.parameters.filters import KeyFilter
from sharelens.parameters.times import Rounding
from sharelens.source.request import CutChoice, Source
from state_model.errors import UsageError

FINDINGS = 3
MAX_OFFSET = (1 << 63) - 2
FROM = click.option("--from", "from_ms", type=Time(Rounding.UP), metavar="TIME", help="Log times from TIME on.")
TO = click.option("--to", "to_ms", type=Time(Rounding.UP), metavar="TIME", help="Log times before TIME.")
FAIL_ON = click.option("--fail-on", is_flag=True, help="Exit with 3 when there is a finding.")


def fail_on_findings(count: int, noun: str) -> None:
    """Exits with code 3 when the count is above 0."""
    if count:
        say(f"sharelens: {count} {noun} (--fail-on)")
        raise click.exceptions.Exit(FINDINGS)


@click.command(
    short_help="Records that were delivered more than once.",
    epilog=examples(
        "sharelens redelivered --lake ./lake --group orders-workers",
        "sharelens redelivered --log-dir /var/kafka-copy --kind delivered_after_acknowledged --fail-on",
    ),
)
@evidence_options
@filter_options
@cut_options
@FROM
@TO
@click.option(
    "--kind", metavar="KIND", multiple=True, help="Only this kind (retry, replayed_by_reset, ...). Repeatable."
)
@FAIL_ON
@REQUIRE_COMPLETE
@output_options
def redelivered(
    source: Source,
    key_filter: KeyFilter,
    cut: CutChoice,
    from_ms: int | None,
    to_ms: int | None,
    kind: tuple[str, ...],
    fail_on: bool,
    require_complete: bool,
    shown: Shown,
) -> None:
    """Record offsets that were delivered more than once, by kind, with the state log records as evidence.

    Kinds: retry, delivered_after_acknowledged, replayed_by_reset, replayed_by_recreation, start_went_back. --from and
    --to bound the log time of the later delivery's newest outcome.
    """
    in_order("redelivered", from_ms, to_ms)
    from sharelens.measures.schemas import REDELIVERIES
    from sharelens.questions import redelivered
    from sharelens.tables import opening
    from sharelens.tables.where import Span

    for unknown in sorted(set(kind) - set(REDELIVERIES)):
        raise UsageError(f"redelivered: --kind: {unknown!r} is no kind; kinds: {', '.join(REDELIVERIES)}")
    span = Span(from_ms=from_ms, to_ms=to_ms)
    with opening.open_evidence(source) as evidence:
        answered = redelivered.redelivered(
            evidence, key_filter, cut, span, kinds=kind or REDELIVERIES, row_limit=shown.row_limit
        )
    answer(answered, shown, require_complete)
    if fail_on:
        fail_on_findings(answered.row_count, "ranges of record offsets were delivered more than once")


@click.command(
    short_help="The outcome of every record offset.",
    epilog=examples(
        "sharelens account --lake ./lake --group orders-workers",
        "sharelens account --log-dir /var/kafka-copy --topic orders:0 --class passed_without_outcome",
    ),
)
@evidence_options
@filter_options
@cut_options
@click.option("--from", "from_ms", type=Time(Rounding.UP), metavar="TIME", help="Records appended from TIME on.")
@click.option("--to", "to_ms", type=Time(Rounding.UP), metavar="TIME", help="Records appended before TIME.")
@click.option("--from-offset", type=click.IntRange(0, MAX_OFFSET), metavar="O", help="Record offsets from O on.")
@click.option("--to-offset", type=click.IntRange(0, MAX_OFFSET), metavar="O", help="Record offsets before O.")
@click.option("--class", "classes", metavar="CLASS", multiple=True, help="List the ranges of this class. Repeatable.")
@REQUIRE_COMPLETE
@output_options
def account(
    source: Source,
    key_filter: KeyFilter,
    cut: CutChoice,
    from_ms: int | None,
    to_ms: int | None,
    from_offset: int | None,
    to_offset: int | None,
    classes: tuple[str, ...],
    require_complete: bool,
    shown: Shown,
) -> None:
    """The outcome of every record offset that was appended in a window: each offset has exactly one class.

    Times are those of the topic's batches, looked up as Kafka looks up offsets by time. Classes: acknowledged_once,
    acknowledged_after_retries, archived, open, below_first_start, skipped_by_reset, passed_without_outcome,
    not_in_evidence.
    """
    in_order("account", from_ms, to_ms)
    in_order("account", from_offset, to_offset, OFFSETS)
    from sharelens.measures.schemas import CLASSES
    from sharelens.questions import accounting
    from sharelens.tables import opening
    from sharelens.tables.where import Span

    for unknown in sorted(set(classes) - set(CLASSES)):
        raise UsageError(f"account: --class: {unknown!r} is no class; classes: {', '.join(CLASSES)}")
    window = Span(from_ms=from_ms, to_ms=to_ms, from_offset=from_offset, to_offset=to_offset)
    with opening.open_evidence(source) as evidence:
        answered = accounting.account(evidence, key_filter, cut, window, listed=classes)
    answer(answered, shown, require_complete)


@click.command(
    short_help="Creations, resets and deletions of share partitions.",
    epilog=examples(
        "sharelens life --lake ./lake --group orders-workers",
        "sharelens life --log-dir /var/kafka-copy --event reset --event deleted --output json",
    ),
)
@evidence_options
@filter_options
@cut_options
@FROM
@TO
@click.option("--event", "events", metavar="EVENT", multiple=True, help="Only this event (reset, ...). Repeatable.")
@REQUIRE_COMPLETE
@output_options
def life(
    source: Source,
    key_filter: KeyFilter,
    cut: CutChoice,
    from_ms: int | None,
    to_ms: int | None,
    events: tuple[str, ...],
    require_complete: bool,
    shown: Shown,
) -> None:
    """The lives of share partitions: creations, resets, deletions, epochs, and offsets skipped or replayed by resets.

    Events: first_seen, created, recreated, reset, deleted, state_epoch_moved, leader_epoch_moved,
    start_offset_went_back. The state log does not distinguish the deletion of a group from that of a topic; the
    command infers it from __consumer_offsets.
    """
    in_order("life", from_ms, to_ms)
    from sharelens.measures.schemas import EVENTS
    from sharelens.questions import life
    from sharelens.tables import opening
    from sharelens.tables.where import Span

    for unknown in sorted(set(events) - set(EVENTS)):
        raise UsageError(f"life: --event: {unknown!r} is no event; events: {', '.join(EVENTS)}")
    with opening.open_evidence(source) as evidence:
        answered = life.life(evidence, key_filter, cut, Span(from_ms=from_ms, to_ms=to_ms), events=events or EVENTS)
    answer(answered, shown, require_complete)


@click.command(
    short_help="The cost of share state for its coordinator.",
    epilog=examples("sharelens cost --lake ./lake", "sharelens cost --log-dir /var/kafka-copy --state-partitions"),
)
@evidence_options
@filter_options
@cut_options
@FROM
@TO
@click.option(
    "--state-partitions",
    is_flag=True,
    help="One row a state partition: bytes that pruning can free, and the share partition that blocks it.",
)
@click.option(
    "--compare-early-draft",
    "is_compared",
    is_flag=True,
    help="Beside it the cost of the same writes under KIP-932's early design.",
)
@REQUIRE_COMPLETE
@output_options
def cost(
    source: Source,
    key_filter: KeyFilter,
    cut: CutChoice,
    from_ms: int | None,
    to_ms: int | None,
    state_partitions: bool,
    is_compared: bool,
    require_complete: bool,
    shown: Shown,
) -> None:
    """The cost of share state: records and bytes per acknowledged record, updates between snapshots, pruning.

    --from and --to bound the log time of the state records.
    """
    in_order("cost", from_ms, to_ms)
    if state_partitions and not key_filter.keeps_all:
        raise UsageError(
            "cost: --state-partitions counts whole state partitions; leave out --group, --topic, --partition"
        )
    if state_partitions and (from_ms, to_ms) != (None, None):
        raise UsageError(
            "cost: --state-partitions has no interval; leave out --from and --to, or give --as-of for a moment"
        )
    if is_compared and (state_partitions or (from_ms, to_ms) != (None, None)):
        raise UsageError(
            "cost: --compare-early-draft takes whole histories; leave out --state-partitions, --from, --to"
        )
    from sharelens.questions import cost, cost_compared
    from sharelens.tables import opening
    from sharelens.tables.where import Span

    with opening.open_evidence(source) as evidence:
        if is_compared:
            answered = cost_compared.cost_compared(evidence, key_filter, cut)
        elif state_partitions:
            answered = cost.pruning(evidence, cut)
        else:
            answered = cost.cost(evidence, key_filter, cut, Span(from_ms=from_ms, to_ms=to_ms))
    answer(answered, shown, require_complete)


@click.command(
    short_help="Share and streams groups: state, members, epochs, last change.",
    epilog=examples("sharelens groups --lake ./lake", "sharelens groups --log-dir /var/kafka-copy --output json"),
)
@evidence_options
@click.option("--group", metavar="GROUP", multiple=True, help="Only this group. Repeatable.")
@click.option(
    "--as-of", type=Time(), metavar="TIME", help="The state after all records of the group up to and including TIME."
)
@FROM
@TO
@REQUIRE_COMPLETE
@output_options
def groups(
    source: Source,
    group: tuple[str, ...],
    as_of: int | None,
    from_ms: int | None,
    to_ms: int | None,
    require_complete: bool,
    shown: Shown,
) -> None:
    """Share and streams groups in the group coordinator's log: state, members, epochs, last change.

    --from and --to bound the time of a group's last change.
    """
    in_order("groups", from_ms, to_ms)
    from sharelens.questions.groups import groups
    from sharelens.tables import opening
    from sharelens.tables.where import Span

    with opening.open_evidence(replace(source, needs_state_log=False)) as evidence:
        answered = groups.groups(evidence, frozenset(group), as_of, Span(from_ms=from_ms, to_ms=to_ms))
    answer(answered, shown, require_complete)


COMMANDS = (groups, redelivered, account, life, cost)
