"""Types of options, and parts of help pages."""

import functools
import math
import os
from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

import click

from sharelens.parameters.times import (
    SECOND_MS,
    BeforeEnd,
    Clock,
    Rounding,
    TimeOfDay,
    duration_text,
    parse_duration,
    parse_time,
    parse_zone,
)
from state_model.errors import UsageError

Command = Callable[..., None]
CLOCK = "sharelens.clock"
"""The key of the command line's Clock in a click context."""
BYTE_UNITS = {"": 1, "k": 10, "m": 20, "g": 30, "t": 40}


class Time(click.ParamType[int | TimeOfDay | BeforeEnd]):
    """A moment, perhaps without a date yet, as `parse_time` reads it. All times of a command line have the same now."""

    name = "time"

    def __init__(self, rounding: Rounding = Rounding.DOWN) -> None:
        self.rounding = rounding

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | TimeOfDay | BeforeEnd:
        """Epoch milliseconds or what the end of the evidence decides; UsageError with the line to type."""
        if isinstance(value, int | TimeOfDay | BeforeEnd):
            return value
        clock = None if ctx is None else ctx.meta.setdefault(CLOCK, Clock())
        return parse_time(str(value), option=_option(param, "--as-of"), rounding=self.rounding, clock=clock)


class Duration(click.ParamType[int]):
    """A length of time, in milliseconds. `bare_unit`: the unit of a number alone (None: refused).

    `takes_auto`: the word `auto` is 0.
    """

    name = "duration"

    def __init__(self, bare_unit: str | None = None, *, least_ms: int = 1, takes_auto: bool = False) -> None:
        self.bare_unit = bare_unit
        self.least_ms = least_ms
        self.takes_auto = takes_auto

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Milliseconds, at least `least_ms`; UsageError for anything else."""
        if isinstance(value, int):
            return value
        if self.takes_auto and value == "auto":
            return 0
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
        help="Zone of times without a zone, such as 03:29 (the newest one in the evidence): Europe/Berlin, +02:00, "
        "local  [default: UTC]",
    )


class Address(click.ParamType[str]):
    """The path or URI of a lake or a log directory; for one in a store the environment gets the options of conf/."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The address; UsageError for an empty one."""
        ensure_name(value, _option(param, "path"))
        if "://" in value:
            from sharelens.configuration.settings import load_settings
            from sharelens.object_stores.options import set_defaults

            set_defaults(load_settings().storage_options)
        return str(value)


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


def becomes(
    argument: str, make: Callable[..., Any], *options: Callable[[Command], Command]
) -> Callable[[Command], Command]:
    """Adds options to a command; its function gets `argument`, which `make` makes of their values, in their place.

    `make` takes values by the names of its parameters; where a command has no such option its default counts.
    """
    names = signature(make).parameters.keys()

    def add(command: Command) -> Command:
        @functools.wraps(command)
        def gathered(*args: Any, **values: Any) -> Any:
            made_of = {name: value for name, value in values.items() if name in names}
            other_values = {name: value for name, value in values.items() if name not in names}
            return command(*args, **{argument: make(**made_of)}, **other_values)

        return stacked(gathered, options)

    return add


LOCK_TIMEOUT = click.option(
    "--lock-timeout",
    type=Seconds(),
    default="1m",
    show_default=True,
    metavar="DURATION",
    help="Time to wait for the lock of another run: 90s, 5m; a number: seconds.",
)


def examples(*lines: str) -> str:
    """The examples at the end of a help page."""
    return "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)
