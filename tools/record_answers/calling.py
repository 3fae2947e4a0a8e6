"""Call the command line in this process and catch what it prints."""

import io
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sharelens.cli import main

FIXED_ENVIRONMENT = {"TZ": "UTC", "COLUMNS": "200", "NO_COLOR": "1"}
"""Variables that change what is printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """The outcome of one call: the exit code, or the exception that left `main`; both streams."""

    exit_code: str
    stdout: str
    stderr: str


def set_environment() -> None:
    """Set the variables that change what is printed, and remove those of sharelens."""
    for name in [name for name in os.environ if name.startswith("SHARELENS_")]:
        del os.environ[name]
    os.environ.update(FIXED_ENVIRONMENT)


def call(words: Sequence[str]) -> Printed:
    """Run one command line of sharelens."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)]
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = streams
    try:
        exit_code = str(main(list(words)))
    except (Exception, SystemExit) as error:  # a recorded answer like any other
        exit_code = f"raised {type(error).__name__}: {error}"
    finally:
        sys.stdout, sys.stderr = before
    stdout, stderr = (_text(stream) for stream in streams)
    return Printed(exit_code=exit_code, stdout=stdout, stderr=stderr)


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode("utf-8", errors="backslashreplace")


def remove(path: Path) -> None:
    """Remove a file or a folder, if there is one."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
