"""The command describe. It starts no JVM."""

from dataclasses import replace

import click

from sharelens.cli.options.common import END_OFFSETS, REQUIRE_COMPLETE, Time, examples, output_options
from sharelens.cli.options.source import evidence_options
from sharelens.cli.questions import answer
from sharelens.output import Shown
from sharelens.source.request import Source
from state_model.errors import UsageError

GROUP = click.option("--group", metavar="GROUP", required=True, help="The share or streams group.")


@click.command(
    short_help="A share or streams group as Kafka's tool described it.",
    epilog=examples(
        "sharelens describe --log-dir /var/kafka-copy --group orders-workers",
        "sharelens describe --lake ./lake --group orders-workers --members --as-of 2026-11-21T05:10:00Z",
        "sharelens describe --log-dir /var/kafka-copy --group word-count --tasks",
    ),
)
@evidence_options
@GROUP
@click.option(
    "--as-of", type=Time(), metavar="TIME", help="The group after all of its records with a log time up to TIME."
)
@click.option("--offsets", is_flag=True, help="Start or committed offset and lag of each partition (default).")
@click.option("--members", is_flag=True, help="The members with their assignments.")
@click.option("--tasks", is_flag=True, help="The tasks of a streams group with the members that have them.")
@click.option("--state", is_flag=True, help="State, epochs and number of members.")
@END_OFFSETS
@REQUIRE_COMPLETE
@output_options
def describe(
    source: Source,
    group: str,
    as_of: int | None,
    offsets: bool,
    members: bool,
    tasks: bool,
    state: bool,
    end_offsets: str | None,
    require_complete: bool,
    shown: Shown,
) -> None:
    """A group at a moment, in the words of kafka-share-groups.sh or kafka-streams-groups.sh --describe.

    The logs have no coordinator, so its column is left out. The lag of a share group is that of `sharelens lag`; the
    lag of a streams group counts from its committed offsets, also those of partitions that no member has. At an
    earlier moment lags are inferred from the timestamps of the topic's batches.
    """
    if offsets + members + tasks + state > 1:
        raise UsageError("describe: --offsets, --members, --tasks and --state exclude each other; give one of them")
    if end_offsets is not None and (members or tasks or state):
        raise UsageError("describe: --end-offsets is for the lag; leave it out with --members, --tasks and --state")
    from sharelens.questions.groups import describe
    from sharelens.settings.end_offsets import read_end_offsets
    from sharelens.tables import opening

    views = {describe.View.MEMBERS: members, describe.View.TASKS: tasks, describe.View.STATE: state}
    view = next((view for view, chosen in views.items() if chosen), describe.View.OFFSETS)
    ends = None if end_offsets is None else read_end_offsets(end_offsets)
    with opening.open_evidence(replace(source, needs_state_log=False)) as evidence:
        answered = describe.describe(evidence, group, as_of, view, end_offsets=ends)
    answer(answered, shown, require_complete)


COMMANDS = (describe,)
