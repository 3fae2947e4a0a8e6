"""The installed command: one command line, and the end of its process."""

import atexit
import gc
import logging
import os
import sys
from contextlib import suppress
from typing import NoReturn

from sharelens.cli.allocation import keep_freed_memory, limit_arenas
from state_model.collection import lasting_objects

with lasting_objects():
    from sharelens.cli.app import main

NEW_OBJECTS = 10_000
"""After so many new objects the garbage collector looks at them: with Python's 700 it takes a tenth of a short command,
because imports make objects that stay."""


def command() -> NoReturn:
    """Runs the command line of this process, and ends the process with its exit code.

    The process ends after what Python does at an exit (threads are joined, functions of `atexit` called, streams
    flushed), and before what C++ does: it destroys what threads of Arrow and delta-rs may still use, which aborts a
    process that has answered.
    """
    gc.set_threshold(NEW_OBJECTS)
    limit_arenas()
    keep_freed_memory()
    codes: list[int] = []
    atexit.register(_leave, codes)  # the first that is registered is called last
    codes.append(main())
    raise SystemExit(codes[0])


def _leave(codes: list[int]) -> None:
    """Ends the process, unless its command has no exit code: after an error of Python's it ends as Python does."""
    if not codes:
        return
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(codes[0])
