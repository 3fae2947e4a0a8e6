"""The command `lag`. It starts no JVM."""

import time

import click

from sharelens.cli.options.common import (
    END_OFFSETS,
    REQUIRE_COMPLETE,
    Duration,
    Time,
    cut_options,
    examples,
    filter_options,
    output_options,
)
from sharelens.cli.options.source import evidence_options
from sharelens.cli.questions import answer, in_order
from sharelens.output import Shown
from sharelens.parameters.filters import KeyFilter
from sharelens.parameters.times import Rounding
from sharelens.source.request import CutChoice, Source
from state_model.errors import UsageError


@click.command(
    short_help="The lag of share groups.",
    epilog=examples(
        "sharelens lag --lake ./lake --group orders-workers",
        "kafka-get-offsets.sh --bootstrap-server localhost:9092 > ends.txt",
        "sharelens lag --log-dir /var/kafka-copy --end-offsets ends.txt --output json",
        "sharelens lag --lake ./lake --group orders-workers --every 5m --from 2026-11-21T03:00:00Z",
    ),
)
@evidence_options
@filter_options
@cut_options
@END_OFFSETS
@click.option(
    "--every",
    "every_ms",
    type=Duration(),
    metavar="DURATION",
    help="The lag over time, one moment each 30s, 5m, 1h or 1d.",
)
@click.option("--from", "from_ms", type=Time(Rounding.UP), metavar="TIME", help="With --every: moments from TIME on.")
@click.option("--to", "to_ms", type=Time(Rounding.UP), metavar="TIME", help="With --every: moments before TIME.")
@REQUIRE_COMPLETE
@output_options
def lag(
    source: Source,
    key_filter: KeyFilter,
    cut: CutChoice,
    end_offsets: str | None,
    every_ms: int | None,
    from_ms: int | None,
    to_ms: int | None,
    require_complete: bool,
    shown: Shown,
) -> None:
    """The lag of share groups: Kafka's figure (KIP-1226), a recount of the state batches, and why they differ.

    With --every, the lag at past moments; their end offsets are inferred from the batches' timestamps.
    """
    from sharelens.questions import lag
    from sharelens.questions.answers.checked import with_coordinators
    from sharelens.settings.end_offsets import read_end_offsets
    from sharelens.tables import opening

    if every_ms is None and (from_ms, to_ms) != (None, None):
        raise UsageError("lag: --from and --to go with --every; for one moment give --as-of")
    if every_ms is not None and (cut != CutChoice() or end_offsets is not None):
        raise UsageError("lag: --every excludes --as-of, --at-offset and --end-offsets; leave them out")
    in_order("lag", from_ms, to_ms)
    typed = None if end_offsets is None else read_end_offsets(end_offsets)
    with opening.open_evidence(source) as evidence:
        if every_ms is None:
            answered = lag.lag(evidence, key_filter, cut, end_offsets=typed, now_ms=time.time_ns() // 1_000_000)
            answered = answered if typed else with_coordinators(evidence, answered, cut)
        else:
            answered = lag.lag_over_time(evidence, key_filter, every_ms, from_ms, to_ms)
    answer(answered, shown, require_complete)


COMMANDS = (lag,)
