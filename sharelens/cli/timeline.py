"""The command timeline. It starts no JVM."""

from dataclasses import replace

import click

from sharelens.cli.forensics import FROM, TO
from sharelens.cli.incidents import MIN_DURATION, settings_options
from sharelens.cli.options.common import cut_options, examples, filter_options, output_options
from sharelens.cli.options.now import now_option
from sharelens.cli.options.source import dead_letter_options, evidence_options
from sharelens.cli.questions import answer, in_order
from sharelens.output import Shown
from sharelens.parameters.filters import KeyFilter
from sharelens.source.request import CutChoice, Source
from state_model.errors import UsageError


@click.command(
    short_help="What happened to a group, in the order of time.",
    epilog=examples(
        "sharelens timeline --lake ./lake --group orders-workers --from -1h",
        "sharelens timeline --log-dir /var/kafka-copy --group orders-workers --topic orders:0",
    ),
)
@evidence_options
@dead_letter_options
@filter_options
@cut_options
@now_option
@FROM
@TO
@MIN_DURATION
@settings_options
@output_options
def timeline(
    source: Source,
    key_filter: KeyFilter,
    cut: CutChoice,
    from_ms: int | None,
    to_ms: int | None,
    min_duration_ms: int,
    shown: Shown,
) -> None:
    """What happened to a group, in the order of time: creations, resets and deletions, members and epochs, stalls,
    gaps of the state log, and minute by minute archived, repeated and dead-lettered records. Of a streams group also
    topologies, rebalances with the tasks that moved, times in which it was not ready, and offsets that were reset.
    Each entry names the record that proves it.

    --from and --to bound the times of the entries.
    """
    in_order("timeline", from_ms, to_ms)
    if not key_filter.groups:
        raise UsageError("timeline: name the group with --group; `sharelens overview` lists those with findings")
    from sharelens.questions.timelines import timeline
    from sharelens.tables import opening
    from sharelens.tables.where import Span

    span = Span(from_ms=from_ms, to_ms=to_ms)
    with opening.open_evidence(replace(source, takes_group_log=True)) as evidence:
        answered = timeline.timeline(evidence, key_filter, cut, span, evidence.settings.groups, min_duration_ms)
    answer(answered, shown, require_complete=False)


COMMANDS = (timeline,)
