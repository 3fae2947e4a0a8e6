"""Options that several commands share, each group as one value."""

import functools
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import click

from sharelens.filters import parse_at_offset, parse_key_filter
from sharelens.output import Form, Shown
from sharelens.request import DEFAULT_MAX_BYTES, CutChoice, Source
from sharelens.times import Rounding, parse_time
from state_model.errors import UsageError

Command = Callable[..., None]
DURATION = re.compile(r"([0-9]{1,9})(ms|s|m|h|d)")
TIME_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
BYTE_UNITS = {"": 1, "k": 10, "m": 20, "g": 30, "t": 40}


class Time(click.ParamType[int]):
    """A moment with a zone."""

    name = "time"

    def __init__(self, rounding: Rounding = Rounding.DOWN) -> None:
        self.rounding = rounding

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Epoch milliseconds; UsageError with the line to type."""
        if isinstance(value, int):
            return value
        option = param.opts[0] if param is not None else "--as-of"
        return parse_time(str(value), option=option, rounding=self.rounding)


class Duration(click.ParamType[int]):
    """A length of time with its unit: ms, s, m, h or d."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Milliseconds, at least one; a usage error for anything else."""
        if isinstance(value, int):
            return value
        match = DURATION.fullmatch(str(value).strip().lower())
        if match is None or int(match[1]) == 0:
            self.fail(f"{value!r} is no length of time; type 500ms, 30s, 5m, 1h or 1d", param, ctx)
        return int(match[1]) * TIME_UNITS[match[2]]


class Seconds(click.FloatRange):
    """A length of time in seconds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds within the range; a usage error for anything else, NaN included."""
        seconds = float(super().convert(value, param, ctx))
        if math.isnan(seconds):
            self.fail(f"{value!r} is no number of seconds", param, ctx)
        return seconds


class Size(click.ParamType[int]):
    """A number of bytes, with k, M, G or T as powers of 1024."""

    name = "bytes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number; a usage error for anything else."""
        if isinstance(value, int):
            return value
        text = str(value).strip().lower().removesuffix("ib").removesuffix("b")
        digits, unit = text.rstrip("kmgt"), text[len(text.rstrip("kmgt")) :]
        if not digits.isdecimal() or unit not in BYTE_UNITS:
            self.fail(f"{value!r} is no size; type 512M, 2G or a number of bytes", param, ctx)
        return int(digits) << BYTE_UNITS[unit] if unit else int(digits)


class Names(click.ParamType[tuple[str, ...]]):
    """Names with commas between them."""

    name = "names"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """The names, each once; a usage error where there is none."""
        if isinstance(value, tuple):
            return value
        names = tuple(dict.fromkeys(name.strip() for name in str(value).split(",") if name.strip()))
        if not names:
            self.fail(f"{value!r} names no column; type names with commas between them", param, ctx)
        return names


def stacked(command: Command, options: Sequence[Callable[[Command], Command]]) -> Command:
    """The command with the options, in the order of --help."""
    for option in reversed(options):
        command = option(command)
    return command


BOOTSTRAP = click.option("--bootstrap-server", metavar="HOST:PORT", help="A live cluster (not available yet).")
CLUSTER = click.option("--cluster-id", metavar="ID", help="The cluster; needed where the lake has several.")
UNCOMMITTED = click.option(
    "--include-uncommitted",
    is_flag=True,
    help="Read records at or above the high watermark too (for the copy of a dead broker).",
)
DELETED = click.option("--include-deleted", is_flag=True, help="Read *-delete and *-stray partition folders too.")
TOPIC_NAMES = click.option(
    "--topic-names", metavar="FILE", help="A file with lines TOPIC-ID NAME, for topics without a folder."
)


DLQ_TOPIC = click.option(
    "--dlq-topic", metavar="NAME", multiple=True, help="Search this topic for dead letters. Repeatable."
)
DLQ_PREFIX = click.option(
    "--dlq-prefix", metavar="PREFIX", help="Search topics with this name prefix for dead letters, too.  [default: dlq.]"
)


def refuse_bootstrap(bootstrap_server: str | None) -> None:
    """Raises UsageError where --bootstrap-server is set: a live cluster can't be read yet."""
    if bootstrap_server is not None:
        raise UsageError(
            "--bootstrap-server is not available yet; copy the broker's log directory and give it with --log-dir"
        )


def evidence_options(command: Command) -> Command:
    """--lake or --log-dir with their options; the command gets `source`."""

    @functools.wraps(command)
    def gathered(
        *args: Any,
        lake: str | None,
        log_dir: tuple[str, ...],
        bootstrap_server: str | None,
        cluster_id: str | None,
        include_uncommitted: bool,
        include_deleted: bool,
        topic_names: str | None,
        max_bytes: int,
        **others: Any,
    ) -> None:
        refuse_bootstrap(bootstrap_server)
        if (lake is None) == (not log_dir):
            raise UsageError("give either --lake DIR (the tables) or --log-dir DIR (a broker's log directory)")
        if lake is not None and (include_uncommitted or include_deleted or topic_names):
            raise UsageError(
                "--include-uncommitted, --include-deleted and --topic-names go with --log-dir; for a lake, with `run`"
            )
        source = Source(
            lake=lake,
            log_dirs=log_dir,
            cluster_id=cluster_id,
            include_uncommitted=include_uncommitted,
            include_deleted=include_deleted,
            topic_names=topic_names,
            max_bytes=max_bytes,
        )
        command(*args, source=source, **others)

    return stacked(
        gathered,
        [
            click.option("--lake", metavar="DIR", help="The lake that `sharelens run` wrote."),
            click.option(
                "--log-dir", metavar="DIR", multiple=True, help="A broker's log directory, or a copy. Repeatable."
            ),
            BOOTSTRAP,
            CLUSTER,
            UNCOMMITTED,
            DELETED,
            TOPIC_NAMES,
            click.option(
                "--max-bytes",
                type=Size(),
                default=DEFAULT_MAX_BYTES,
                show_default="2G",
                help="Largest state log to read.",
            ),
        ],
    )


def dead_letter_options(command: Command) -> Command:
    """--dlq-topic and --dlq-prefix; they become part of `source`. Apply it below evidence_options."""

    @functools.wraps(command)
    def gathered(*args: Any, source: Source, dlq_topic: tuple[str, ...], dlq_prefix: str | None, **others: Any) -> None:
        command(*args, source=replace(source, dlq_topics=dlq_topic, dlq_prefix=dlq_prefix), **others)

    return stacked(gathered, [DLQ_TOPIC, DLQ_PREFIX])


def filter_options(command: Command) -> Command:
    """--group, --topic and --partition, each repeatable; the command gets `key_filter`."""

    @functools.wraps(command)
    def gathered(
        *args: Any, group: tuple[str, ...], topic: tuple[str, ...], partition: tuple[int, ...], **others: Any
    ) -> None:
        command(*args, key_filter=parse_key_filter(group, topic, partition), **others)

    return stacked(
        gathered,
        [
            click.option("--group", metavar="GROUP", multiple=True, help="Only this share group. Repeatable."),
            click.option(
                "--topic", metavar="TOPIC", multiple=True, help="Only this topic: NAME, ID or NAME:0,1. Repeatable."
            ),
            click.option(
                "--partition",
                type=click.IntRange(min=0, max=2**31 - 1),
                metavar="N",
                multiple=True,
                help="Only this partition of the topic. Repeatable.",
            ),
        ],
    )


def cut_options(command: Command) -> Command:
    """--as-of and --at-offset; the command gets `cut`."""

    @functools.wraps(command)
    def gathered(*args: Any, as_of: int | None, at_offset: tuple[str, ...], **others: Any) -> None:
        if as_of is not None and at_offset:
            raise UsageError("--as-of and --at-offset exclude each other; give one of them")
        at_offsets = parse_at_offset(",".join(at_offset)) if at_offset else None
        command(*args, cut=CutChoice(as_of_ms=as_of, at_offsets=at_offsets), **others)

    return stacked(
        gathered,
        [
            click.option(
                "--as-of",
                type=Time(),
                metavar="TIME",
                help="The state after all records with a log time up to and including TIME.",
            ),
            click.option(
                "--at-offset",
                metavar="P:O[,P:O]",
                multiple=True,
                help="The state after records of state partition P up to and including log offset O (-1: none).",
            ),
        ],
    )


def output_options(command: Command) -> Command:
    """--output, --limit, --columns, --wide and --vertical; the command gets `shown`."""

    @functools.wraps(command)
    def gathered(
        *args: Any,
        output: str,
        limit: int | None,
        columns: tuple[str, ...] | None,
        wide: bool,
        vertical: bool,
        **others: Any,
    ) -> None:
        form = Form(output)
        if (wide or vertical) and form is not Form.TEXT:
            raise UsageError(f"--wide and --vertical go with --output text, not {output}; leave them out")
        shown = Shown(form=form, limit=limit, columns=columns or (), wide=wide, vertical=vertical)
        command(*args, shown=shown, **others)

    return stacked(
        gathered,
        [
            click.option(
                "--output",
                "-o",
                type=click.Choice([form.value for form in Form]),
                default="text",
                show_default=True,
                help="Format of the answer on stdout.",
            ),
            click.option(
                "--limit",
                type=click.IntRange(min=1),
                metavar="N",
                help="Largest number of rows  [default: 1000 in text, else all]",
            ),
            click.option(
                "--columns",
                type=Names(),
                metavar="A,B,C",
                help="These columns alone, in this order: headings or JSON field names, in every format.",
            ),
            click.option(
                "--wide", is_flag=True, help="On a terminal, show all columns, also where they don't fit its width."
            ),
            click.option(
                "--vertical",
                is_flag=True,
                help="In text, a line a column for each row (a terminal does so for one row).",
            ),
        ],
    )


END_OFFSETS = click.option(
    "--end-offsets", metavar="FILE", help="End offsets of topics, as kafka-get-offsets prints them (topic:partition:N)."
)
REQUIRE_COMPLETE = click.option("--require-complete", is_flag=True, help="Exit with 1 when a row is not complete.")


def examples(*lines: str) -> str:
    """The examples at the end of a help page."""
    return "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)
