"""The commands of an incident: stalls and archived records. None of them starts a JVM."""

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click

from sharelens.cli.forensics import FAIL_ON, FROM, TO, fail_on_findings
from sharelens.cli.options.common import (
    REQUIRE_COMPLETE,
    Duration,
    cut_options,
    examples,
    filter_options,
    output_options,
    stacked,
)
from sharelens.cli.options.now import now_option
from sharelens.cli.options.source import evidence_options
from sharelens.cli.questions import answer, in_order
from sharelens.output import Shown, say_warnings
from sharelens.parameters.filters import KeyFilter
from sharelens.source.request import CutChoice, Source

MIN_DURATION = click.option(
    "--min-duration",
    "min_duration_ms",
    type=Duration("s", least_ms=0),
    default="1m",
    show_default=True,
    metavar="DURATION",
    help="The shortest stall: 90s, 5m; a number: seconds.",
)
IDLE = click.option("--idle", is_flag=True, help="Include share partitions without a backlog (kind idle).")


def settings_options(command: Callable[..., None]) -> Callable[..., None]:
    """--group-configs and --broker-config; they become part of `source`. Apply it below evidence_options."""

    @functools.wraps(command)
    def gathered(
        *args: Any, source: Source, group_configs: str | None, broker_config: str | None, **other_options: Any
    ) -> None:
        if group_configs is not None or broker_config is not None:
            from sharelens.settings.files import NO_SETTINGS_FILES
            from sharelens.settings.folder import with_single_files

            files = with_single_files(source.settings_files or NO_SETTINGS_FILES, group_configs, broker_config)
            say_warnings(files.warnings)
            source = replace(source, settings_files=files)
        command(*args, source=source, **other_options)

    return stacked(
        gathered,
        [
            click.option(
                "--group-configs",
                metavar="FILE",
                help="Settings of groups, as printed by kafka-configs --describe --entity-type groups.",
            ),
            click.option("--broker-config", metavar="FILE", help="The brokers' server.properties."),
        ],
    )


def stall_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options of `stalled` and of its alias `pinned`."""
    for option in (
        output_options, REQUIRE_COMPLETE, FAIL_ON, settings_options, IDLE, MIN_DURATION, TO, FROM, now_option,
        cut_options, filter_options, evidence_options,
    ):  # fmt: skip
        command = option(command)
    return command


@click.command(
    short_help="Stalls: share partitions without progress, since when, at which record.",
    epilog=examples(
        "sharelens stalled --lake ./lake --min-duration 5m",
        "sharelens stalled --log-dir /var/kafka-copy --group orders-workers --broker-config server.properties",
    ),
)
@stall_options
def stalled(**params: Any) -> None:
    """Intervals in which a share partition with a backlog made no progress: its first incomplete offset did not move.

    The longest come first. Kinds: dead_letter_pending, window_full, blocked_by_record, silent_with_backlog. --from and
    --to select intervals that overlap that time.
    """
    _stalled("stalled", still_only=False, **params)


@click.command(
    short_help="Stalls that still last.",
    epilog=examples("sharelens pinned --lake ./lake --fail-on"),
)
@stall_options
def pinned(**params: Any) -> None:
    """Stalls that last until the evidence was read (or at --as-of), the longest first."""
    _stalled("pinned", still_only=True, **params)


def _stalled(
    command: str,
    *,
    still_only: bool,
    source: Source,
    key_filter: KeyFilter,
    cut: CutChoice,
    from_ms: int | None,
    to_ms: int | None,
    min_duration_ms: int,
    idle: bool,
    fail_on: bool,
    require_complete: bool,
    shown: Shown,
) -> None:
    in_order(command, from_ms, to_ms)
    from sharelens.questions import stalled
    from sharelens.tables import opening
    from sharelens.tables.where import Span

    with opening.open_evidence(source) as evidence:
        answered = stalled.stalled(
            evidence,
            key_filter,
            cut,
            Span(from_ms=from_ms, to_ms=to_ms),
            evidence.settings.groups,
            min_duration_ms=min_duration_ms,
            still_only=still_only,
            idle=idle,
        )
    answer(answered, shown, require_complete)
    if fail_on:
        fail_on_findings(answered.table.num_rows, "stalls")


@click.command(
    short_help="Records that groups archived, and why.",
    epilog=examples(
        "sharelens poison --lake ./lake --group orders-workers --broker-config server.properties",
        "kafka-configs.sh --bootstrap-server localhost:9092 --describe --entity-type groups > groups.txt",
        "sharelens poison --log-dir /var/kafka-copy --group-configs groups.txt --near-limit",
    ),
)
@evidence_options
@filter_options
@cut_options
@FROM
@TO
@click.option("--near-limit", is_flag=True, help="Include records that the next failed delivery archives.")
@click.option(
    "--gaps", is_flag=True, help="Include archived offsets without a record (control records, compacted ones)."
)
@settings_options
@FAIL_ON
@REQUIRE_COMPLETE
@output_options
def poison(
    source: Source,
    key_filter: KeyFilter,
    cut: CutChoice,
    from_ms: int | None,
    to_ms: int | None,
    near_limit: bool,
    gaps: bool,
    fail_on: bool,
    require_complete: bool,
    shown: Shown,
) -> None:
    """Records that a group archived: rejected, or at the delivery count limit; with the source of the limit.

    --from and --to bound the log time of the last outcome.
    """
    in_order("poison", from_ms, to_ms)
    from sharelens.questions.dead_letters import poison
    from sharelens.tables import opening
    from sharelens.tables.where import Span

    span = Span(from_ms=from_ms, to_ms=to_ms)
    with opening.open_evidence(source) as evidence:
        answered = poison.poison(
            evidence,
            key_filter,
            cut,
            span,
            evidence.settings.groups,
            near_limit=near_limit,
            gaps=gaps,
            row_limit=shown.row_limit,
        )
    answer(answered, shown, require_complete)
    if fail_on:
        fail_on_findings(answered.row_count, "ranges of records were archived")


COMMANDS = (stalled, pinned, poison)
