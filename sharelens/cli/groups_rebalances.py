"""The command rebalances. It starts no JVM."""

from dataclasses import replace

import click

from sharelens.cli.forensics import FROM, TO
from sharelens.cli.groups_describe import GROUP
from sharelens.cli.options.common import REQUIRE_COMPLETE, examples, output_options
from sharelens.cli.options.source import evidence_options
from sharelens.cli.questions import answer, in_order
from sharelens.output import Shown
from sharelens.source.request import Source


@click.command(
    short_help="Who joined a share or streams group, who was removed, what moved.",
    epilog=examples(
        "sharelens rebalances --lake ./lake --group orders-workers --from -1h",
        "sharelens rebalances --log-dir /var/kafka-copy --group orders-workers --output json",
    ),
)
@evidence_options
@GROUP
@FROM
@TO
@REQUIRE_COMPLETE
@output_options
def rebalances(
    source: Source, group: str, from_ms: int | None, to_ms: int | None, require_complete: bool, shown: Shown
) -> None:
    """Each group epoch of a group: who joined, who was removed, which partitions or tasks moved from whom to whom.

    A member that leaves and one that is fenced write the same records, so both are removed. Moves are those of the
    target assignment. Of streams groups also: active tasks that stay, tasks per member, the time until the group was
    stable, and how long active tasks had no owner.
    """
    in_order("rebalances", from_ms, to_ms)
    from sharelens.questions.groups import rebalances
    from sharelens.tables import opening
    from sharelens.tables.where import Span

    with opening.open_evidence(replace(source, needs_state_log=False)) as evidence:
        answered = rebalances.rebalances(evidence, group, Span(from_ms=from_ms, to_ms=to_ms))
    answer(answered, shown, require_complete)


COMMANDS = (rebalances,)
