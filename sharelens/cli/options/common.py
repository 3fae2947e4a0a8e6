"""Options that several commands share, each group as one value."""

import functools
import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import click

from sharelens.output import Form, Shown
from sharelens.parameters.filters import parse_at_offset, parse_key_filter
from sharelens.parameters.times import SECOND_MS, Clock, Rounding, duration_text, parse_duration, parse_time, parse_zone
from sharelens.source.request import CutChoice
from state_model.errors import UsageError

Command = Callable[..., None]
MAX_LIMIT = (1 << 63) - 2
"""Largest --limit: one row more is read, and counted in 64 bits."""
CLOCK = "sharelens.clock"
"""The key of the command line's Clock in a click context."""
BYTE_UNITS = {"": 1, "k": 10, "m": 20, "g": 30, "t": 40}


class Time(click.ParamType[int]):
    """A moment, as `parse_time` reads it. All times of a command line have the same now."""

    name = "time"

    def __init__(self, rounding: Rounding = Rounding.DOWN) -> None:
        self.rounding = rounding

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Epoch milliseconds; UsageError with the line to type."""
        if isinstance(value, int):
            return value
        clock = None if ctx is None else ctx.meta.setdefault(CLOCK, Clock())
        return parse_time(str(value), option=_option(param, "--as-of"), rounding=self.rounding, clock=clock)


class Duration(click.ParamType[int]):
    """A length of time, in milliseconds. `bare_unit`: the unit of a number alone (None: refused)."""

    name = "duration"

    def __init__(self, bare_unit: str | None = None, *, least_ms: int = 1) -> None:
        self.bare_unit = bare_unit
        self.least_ms = least_ms

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Milliseconds, at least `least_ms`; UsageError for anything else."""
        if isinstance(value, int):
            return value
        option = _option(param, "duration")
        duration_ms = parse_duration(str(value), option=option, bare_unit=self.bare_unit)
        if duration_ms < self.least_ms:
            raise UsageError(f"{option}: {value!r} is too short; type {duration_text(self.least_ms)} or more")
        return duration_ms


class Seconds(click.ParamType[float]):
    """A length of time, in seconds; a number alone is one of seconds."""

    name = "duration"

    def __init__(self, *, least_ms: int = 0) -> None:
        self.duration = Duration("s", least_ms=least_ms)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds; UsageError for anything else."""
        if isinstance(value, int | float):
            return value
        return self.duration.convert(value, param, ctx) / SECOND_MS


class Percent(click.ParamType[float]):
    """A percentage from 1% on, as 30% or 30; the value is a fraction."""

    name = "percent"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The fraction; UsageError for anything else."""
        if isinstance(value, float):
            return value
        try:
            percent = float(str(value).strip().removesuffix("%"))
        except ValueError:
            percent = math.nan
        if not 1 <= percent < math.inf:
            self.fail(f"{value!r} is no percentage from 1% on; type 30%", param, ctx)
        return percent / 100


def _option(param: click.Parameter | None, otherwise: str) -> str:
    """The option's name for messages: the first long one."""
    if param is None:
        return otherwise
    return next((name for name in param.opts if name.startswith("--")), param.opts[0])


def _set_clock(ctx: click.Context, param: click.Parameter, zone: str | None) -> None:
    ctx.meta[CLOCK] = Clock(zone=None if not zone else parse_zone(zone, option="--tz"))


def time_zone_option() -> click.Option:
    """--tz, the zone of times without a zone; it is read before them."""
    return click.Option(
        ["--tz"],
        metavar="ZONE",
        envvar="SHARELENS_TZ",
        is_eager=True,
        expose_value=False,
        callback=_set_clock,
        help="Zone of times without a zone, such as 03:29: Europe/Berlin, +02:00, local  [default: UTC]",
    )


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


def ensure_name(path: str | os.PathLike[str], option: str) -> None:
    """UsageError for an empty path, which would be the current directory."""
    if not os.fspath(path):
        raise UsageError(f"{option}: the path is empty (an unset variable?); name it, or type . for this directory")


class NewPath(click.Path):
    """A file or folder to write under its own name; `-` and an empty one are refused."""

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        """The path; UsageError for an empty one, and for `-`, which means stdout elsewhere."""
        ensure_name(value, _option(param, "path"))
        if value == "-":
            raise UsageError(f"{_option(param, 'path')}: - is no name here, and the result can't go to stdout; name it")
        return super().convert(value, param, ctx)


def stacked(command: Command, options: Sequence[Callable[[Command], Command]]) -> Command:
    """The command with the options, in the order of --help."""
    for option in reversed(options):
        command = option(command)
    return command


BOOTSTRAP = click.option("--bootstrap-server", metavar="HOST:PORT", help="A running cluster.")
COMMAND_CONFIG = click.option(
    "--command-config",
    metavar="FILE",
    help="With --bootstrap-server, a file of Kafka's client properties: TLS with PEM files; SASL PLAIN, SCRAM and "
    "OAUTHBEARER.",
)
USER_TOPICS = click.option(
    "--user-topics",
    type=click.Choice(["none", "samples", "all"]),
    help="With --bootstrap-server, what to read of user topics: nothing, their end offsets and the batches of "
    "first incomplete records, or all records.  [default: samples]",
)
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
SETTINGS = click.option(
    "--settings",
    metavar="DIR",
    help="A folder with files of settings: group-configs.txt, broker.properties, topics.txt, end-offsets.txt, "
    "dead-letter-topics.txt.",
)
DLQ_TOPIC = click.option(
    "--dlq-topic", metavar="NAME", multiple=True, help="Search this topic for dead letters. Repeatable."
)
DLQ_PREFIX = click.option(
    "--dlq-prefix", metavar="PREFIX", help="Search topics with this name prefix for dead letters, too.  [default: dlq.]"
)


def filter_options(command: Command) -> Command:
    """--group, --topic and --partition, each repeatable; the command gets `key_filter`."""

    @functools.wraps(command)
    def gathered(
        *args: Any, group: tuple[str, ...], topic: tuple[str, ...], partition: tuple[int, ...], **other_options: Any
    ) -> None:
        command(*args, key_filter=parse_key_filter(group, topic, partition), **other_options)

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
    def gathered(*args: Any, as_of: int | None, at_offset: tuple[str, ...], **other_options: Any) -> None:
        if as_of is not None and at_offset:
            raise UsageError("--as-of and --at-offset exclude each other; give one of them")
        at_offsets = parse_at_offset(",".join(at_offset)) if at_offset else None
        command(*args, cut=CutChoice(as_of_ms=as_of, at_offsets=at_offsets), **other_options)

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
        **other_options: Any,
    ) -> None:
        form = Form(output)
        if (wide or vertical) and form is not Form.TEXT:
            raise UsageError(f"--wide and --vertical go with --output text, not {output}; leave them out")
        shown = Shown(form=form, limit=limit, columns=columns or (), wide=wide, vertical=vertical)
        command(*args, shown=shown, **other_options)

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
                type=click.IntRange(1, MAX_LIMIT),
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


LOCK_TIMEOUT = click.option(
    "--lock-timeout",
    type=Seconds(),
    default="1m",
    show_default=True,
    metavar="DURATION",
    help="Time to wait for the lock of another run: 90s, 5m; a number: seconds.",
)
END_OFFSETS = click.option(
    "--end-offsets", metavar="FILE", help="End offsets of topics, as kafka-get-offsets prints them (topic:partition:N)."
)
REQUIRE_COMPLETE = click.option("--require-complete", is_flag=True, help="Exit with 1 when a row is not complete.")


def examples(*lines: str) -> str:
    """The examples at the end of a help page."""
    return "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)
