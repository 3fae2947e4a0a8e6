"""Command lines in files of configuration, parsed by our own parser."""

from collections.abc import Sequence
from inspect import signature
from typing import Any

import click

from jobs.commands.keep_fresh import Schedule, schedule_of
from sharelens.cli.app import cli


def parsed(words: Sequence[str]) -> dict[str, Any]:
    """The parameters of a command with these words; click's errors for wrong ones."""
    command = cli.get_command(click.Context(cli), words[0])
    assert command is not None
    return command.make_context(words[0], list(words[1:])).params


def schedule(words: Sequence[str]) -> Schedule:
    names = signature(schedule_of).parameters.keys()
    options = schedule_of(**{name: value for name, value in parsed(words).items() if name in names})
    assert options is not None
    return options
