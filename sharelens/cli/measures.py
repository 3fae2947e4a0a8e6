"""The commands that measure: answers over the histories. None of them starts a JVM."""

import click

from sharelens.asked import CutAsked, Source
from sharelens.cli.options import (
    REQUIRE_COMPLETE,
    cut_options,
    evidence_options,
    examples,
    filter_options,
    output_options,
)
from sharelens.cli.questions import answer
from sharelens.filters import Wanted
from sharelens.output import Shown


@click.command(
    short_help="How far share groups are behind.",
    epilog=examples(
        "sharelens lag --lake ./lake --group orders-workers",
        "kafka-get-offsets.sh --bootstrap-server localhost:9092 > ends.txt",
        "sharelens lag --log-dir /var/kafka-copy --end-offsets ends.txt --output json",
    ),
)
@evidence_options
@filter_options
@cut_options
@click.option(
    "--end-offsets", metavar="FILE", help="End offsets of topics, as kafka-get-offsets prints them (topic:partition:N)."
)
@REQUIRE_COMPLETE
@output_options
def lag(
    source: Source, wanted: Wanted, cut: CutAsked, end_offsets: str | None, require_complete: bool, shown: Shown
) -> None:
    """How far share groups are behind: Kafka's lag (KIP-1226), a recount of the state batches, and why they differ."""
    from sharelens.end_offsets import read_end_offsets
    from sharelens.questions import lag, opening

    ends = None if end_offsets is None else read_end_offsets(end_offsets)
    with opening.open_evidence(source) as evidence:
        answered = lag.lag(evidence, wanted, cut, end_offsets=ends)
    answer(answered, shown, require_complete)


COMMANDS = (lag,)
