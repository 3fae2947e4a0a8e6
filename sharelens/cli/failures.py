"""Errors as one line and an exit code."""

import errno
from dataclasses import dataclass

import click

from state_model.errors import SharelensError, UsageError

FAILURE, USAGE = 1, 2
SHOW_TRACE = "SHARELENS_TRACEBACK"
FULL = "no space left on the disk; free some and run the command again: published cuts are unchanged"


@dataclass(frozen=True, slots=True)
class Failure:
    """What to say about an error, and the exit code."""

    line: str
    exit_code: int = FAILURE


def failure(error: Exception) -> Failure:
    """The one line for an error."""
    match error:
        case UsageError():
            return Failure(_one_line(str(error)), USAGE)
        case SharelensError():
            return Failure(_one_line(str(error)))
        case click.UsageError():
            where = error.ctx.command_path if error.ctx is not None else "sharelens"
            return Failure(f"{_one_line(usage_text(error))} ({where} --help shows how)", USAGE)
        case click.ClickException():
            return Failure(_one_line(error.format_message()))
        case MemoryError():
            return Failure("out of memory; narrow the question (--group, --topic) or ask a lake, not --log-dir")
        case OSError():
            place = f"{error.filename}: " if error.filename else ""
            message = FULL if error.errno in (errno.ENOSPC, errno.EDQUOT) else _one_line(error.strerror or str(error))
            return Failure(f"{place}{message}")
        case UnicodeEncodeError(object=text):
            return Failure(f"{text!r} is not UTF-8, and tables have no other text; type or rename it in UTF-8")
        case _:
            return Failure(f"{type(error).__name__}: {_one_line(str(error))} (set {SHOW_TRACE}=1 to see where)")


def usage_text(error: click.UsageError) -> str:
    """What is wrong with a command line; of options that are missing all, where click names the first."""
    context = error.ctx
    if not isinstance(error, click.MissingParameter) or context is None:
        return error.format_message()
    required = [option for option in context.command.params if isinstance(option, click.Option) and option.required]
    missing = [f"'{option.opts[-1]}'" for option in required if option.name not in context.params]
    return error.format_message() if len(missing) < 2 else f"Missing options {', '.join(missing)}."


def _one_line(message: str) -> str:
    return " ".join(part.strip() for part in message.splitlines() if part.strip())
