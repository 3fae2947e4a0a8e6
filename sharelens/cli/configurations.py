"""The command configurations: settings over time by the metadata log. It starts no JVM."""

import click

from sharelens.cli.options.common import CLUSTER, REQUIRE_COMPLETE, Size, Time, examples, output_options
from sharelens.cli.options.data import lake_option, log_dir_option
from sharelens.cli.questions import answer
from sharelens.output import Shown
from sharelens.source.request import DEFAULT_MAX_BYTES, Source
from state_model.errors import UsageError


@click.command(
    short_help="The settings of groups, topics and brokers over time.",
    epilog=examples(
        "sharelens configurations --log-dir /var/kafka-copy --group orders-workers",
        "sharelens configurations --lake ./lake --topic orders --as-of 2026-11-21T05:10:00Z",
    ),
)
@lake_option("The lake that `sharelens run` wrote.")
@log_dir_option("A log directory with the folder __cluster_metadata-0, or a copy. Repeatable.")
@CLUSTER
@click.option(
    "--max-bytes",
    type=Size(),
    default=DEFAULT_MAX_BYTES,
    show_default="2G",
    help="Largest metadata log to read.",
)
@click.option("--group", metavar="GROUP", multiple=True, help="Only this group. Repeatable.")
@click.option("--topic", metavar="TOPIC", multiple=True, help="Only this topic: NAME or ID, deleted too. Repeatable.")
@click.option(
    "--broker", metavar="N", multiple=True, help="Only this broker: its id, or `default` for all brokers. Repeatable."
)
@click.option("--as-of", type=Time(), metavar="TIME", help="The settings in force at TIME.")
@REQUIRE_COMPLETE
@output_options
def configurations(
    lake: str | None,
    log_dir: tuple[str, ...],
    cluster_id: str | None,
    max_bytes: int,
    group: tuple[str, ...],
    topic: tuple[str, ...],
    broker: tuple[str, ...],
    as_of: int | None,
    require_complete: bool,
    shown: Shown,
) -> None:
    """Lists the settings that the metadata log has, each value with the time in which it was in force.

    These are the dynamic settings; what brokers read from their files, and Kafka's defaults, are not in the log. Of
    settings that can be secret only length and digest are shown: equal values of one answer have equal digests. A lake
    has no digests.
    """
    if (lake is None) == (not log_dir):
        raise UsageError("give either --lake DIR (the tables) or --log-dir DIR (a broker's log directory)")
    from sharelens.kafka_log.archives import log_directories  # brings numpy, which a help page does without
    from sharelens.questions import configurations

    source = Source(lake=lake, log_dirs=log_directories(log_dir), cluster_id=cluster_id, max_bytes=max_bytes)
    chosen = configurations.ResourceFilter(groups=frozenset(group), topics=frozenset(topic), brokers=frozenset(broker))
    answer(configurations.configurations(source, chosen, as_of), shown, require_complete)


COMMANDS = (configurations,)
