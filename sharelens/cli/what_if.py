"""The command `what-if`. It starts no JVM."""

import click

from sharelens.cli.options import REQUIRE_COMPLETE, cut_options, examples, filter_options, output_options
from sharelens.cli.questions import answer
from sharelens.cli.source_options import evidence_options
from sharelens.filters import KeyFilter
from sharelens.output import Shown
from sharelens.request import CutChoice, Source
from state_model.errors import UsageError


def _in_range(option: str, value: int, smallest: int, largest: int) -> None:
    """Raises UsageError for a value that a broker would refuse."""
    if not smallest <= value <= largest:
        raise UsageError(f"what-if: {option} {value}: Kafka takes {smallest} to {largest}")


@click.command(
    "what-if",
    short_help="The same history under another setting.",
    epilog=examples(
        "sharelens what-if --snapshot-update-records 100 --lake ./lake",
        "sharelens what-if --snapshot-update-records 50 --log-dir /var/kafka-copy --output json",
    ),
)
@evidence_options
@filter_options
@cut_options
@click.option(
    "--snapshot-update-records",
    type=int,
    metavar="N",
    help="Updates between two snapshots: share.coordinator.snapshot.update.records.per.snapshot, 0 to 500.",
)
@REQUIRE_COMPLETE
@output_options
def what_if(
    source: Source,
    key_filter: KeyFilter,
    cut: CutChoice,
    snapshot_update_records: int | None,
    require_complete: bool,
    shown: Shown,
) -> None:
    """Replays a recorded history under another setting: each figure as it was and as it would have been.

    A figure is exact, a bound (the true figure lies between the two), or inferred from what the log shows only in part.
    """
    from measures.what_if.snapshots import RANGE as UPDATES
    from sharelens.questions import opening, what_if

    if snapshot_update_records is None:
        raise UsageError("what-if: name one setting: --snapshot-update-records N")
    _in_range("--snapshot-update-records", snapshot_update_records, *UPDATES)
    with opening.open_evidence(source) as evidence:
        answered = what_if.other_snapshot_interval(evidence, key_filter, cut, snapshot_update_records)
    answer(answered, shown, require_complete)


COMMANDS = (what_if,)
