"""The option --now, for commands whose durations last until the evidence was read."""

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click

from sharelens.cli.options.common import Time
from sharelens.source.request import CutChoice

NOW = click.option(
    "--now",
    "now_ms",
    type=Time(),
    metavar="TIME",
    help="Until when the evidence was read: stalls that last go on until then.  [default: by the files' times]",
)


def now_option(command: Callable[..., None]) -> Callable[..., None]:
    """--now; it becomes part of `cut`. Apply it below cut_options."""

    @functools.wraps(command)
    def gathered(*args: Any, cut: CutChoice, now_ms: int | None, **other_options: Any) -> None:
        command(*args, cut=replace(cut, now_ms=now_ms), **other_options)

    return NOW(gathered)
