"""The command group, and the one place where errors become a line and an exit code."""

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import click

from sharelens.cli.commands import Commands
from sharelens.cli.compiling import announce_compilation
from sharelens.cli.failures import SHOW_TRACE, USAGE, failure
from sharelens.cli.help import GroupedContext, write_commands
from sharelens.cli.interrupts import INTERRUPTED, LINE, end_jvm, interruptible
from sharelens.cli.options.common import Time, examples, time_zone_option
from sharelens.output import say

OK = 0


def _complete(command: click.Command) -> None:
    """Adds --tz behind the last option of a time, and groups to the help page; in a group's commands too."""
    command.context_class = GroupedContext
    times = [number for number, parameter in enumerate(command.params) if isinstance(parameter.type, Time)]
    if times:
        command.params.insert(times[-1] + 1, time_zone_option())
    for subcommand in command.commands.values() if isinstance(command, click.Group) else ():
        _complete(subcommand)


COMMANDS = Commands(_complete)


class InOrder(click.Group):
    """A group that lists its commands in the order of a day's work, not of the alphabet, and imports one to run it."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.commands = COMMANDS

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order of COMMANDS."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the commands in groups."""
        write_commands(COMMANDS, formatter)

    def invoke(self, ctx: click.Context) -> object:
        """Runs the command; handles a closed pipe and Ctrl-C, to which click adds a failure and an empty line."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            return _reader_left()
        except KeyboardInterrupt:
            raise click.Abort from None


@click.group(
    cls=InOrder,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    epilog=examples(
        "sharelens run --log-dir /var/kafka-copy --lake ./lake",
        "sharelens state --lake ./lake --group orders-workers",
        "sharelens state --log-dir /var/kafka-copy --as-of 2026-11-21T05:10:00Z",
    ),
)
@click.version_option(package_name="sharelens", prog_name="sharelens")
def cli() -> None:
    """The flight recorder and forensic lab for the share groups of Apache Kafka®.

    Questions read a lake's tables (--lake), or a broker's log directory (--log-dir); they need no Java. Exit codes:
    0 ok, 1 failure, 2 usage, 3 findings.
    """


def headings() -> dict[str, list[str]]:
    """Heading -> names of its commands, those of the pipeline included, in the order of `sharelens --help`."""
    return COMMANDS.by_heading()


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line and returns its exit code; a failure is one line on stderr."""
    _open_closed_streams()
    _survive_odd_terminals()
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # one heap with NumPy: docs/adr/0013
    announce_compilation()
    with interruptible() as interruption:
        try:
            return _main(argv)
        except (click.Abort, KeyboardInterrupt):
            return _interrupted()
        except Exception as error:
            return _interrupted() if interruption.came else _failed(error)


def _main(argv: Sequence[str] | None) -> int:
    try:
        outcome = cli.main(args=None if argv is None else list(argv), prog_name="sharelens", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.exceptions.NoArgsIsHelpError as bare:
        bare.show()
        return USAGE
    except BrokenPipeError:
        return _reader_left()
    return outcome if isinstance(outcome, int) else OK


def _interrupted() -> int:
    end_jvm()
    say(LINE)
    exec("")  # noqa: S102 - clears CPython's note of a KeyboardInterrupt inside an exec, which changes the exit code
    return INTERRUPTED


def _failed(error: Exception) -> int:
    """Prints an error in one line."""
    if os.environ.get(SHOW_TRACE):
        traceback.print_exception(error)
    failed = failure(error)
    say(f"sharelens: {failed.line}")
    return failed.exit_code


def _open_closed_streams() -> None:
    """Opens the null device for standard streams that the caller closed (`>&-`).

    A file that opens later would get their numbers, and with them what a library prints.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - as long as the process


def _survive_odd_terminals() -> None:
    """Escapes characters that the terminal can't show."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _reader_left() -> int:
    """Exit code after a closed pipe (`| head`), without an error and without a flush."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return OK
