"""One line on stderr when kernels are compiled, which takes half a minute or more once after an installation."""

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable

from sharelens.output import say
from state_model.columnar import kernels

AFTER_S = 1.0
LINE = "sharelens: compiling kernels, once after an installation; this takes half a minute to two minutes"
UNSAVED = (
    "sharelens: compiled kernels can't be kept ({}), so each command compiles them; NUMBA_CACHE_DIR names a folder"
)

HELP = "from sharelens.cli.kernel_compiler import help_compiling; help_compiling()"
helpers: list[subprocess.Popen[bytes]] = []
"""Processes that help this one; their stdin closes when it ends."""
HELPS = "SHARELENS_COMPILES_KERNELS"
"""Set in the environment of a process that helps, so that it gets no help."""


class Notice:
    """A listener of numba: starts a helper, and says LINE once compilation has taken AFTER_S.

    Loading compiled kernels is no compilation.
    """

    def __init__(self, start_helper: Callable[[], None]) -> None:
        self._start_helper = start_helper
        self._lock = threading.Lock()
        self._depth = 0
        self._started_s = 0.0
        self._compiled_s = 0.0
        self._timer: threading.Timer | None = None
        self._is_said = self._has_help = False

    def listen(self) -> None:
        """Registers at numba, which has been imported."""
        from numba.core import event

        begins, ends = self.begins, self.ends

        class Listener(event.Listener):
            def on_start(self, _: object) -> None:
                begins()

            def on_end(self, _: object) -> None:
                ends()

        event.register("numba:compile", Listener())  # type: ignore[no-untyped-call]

    def begins(self) -> None:
        """Counts a compilation that begins; those of kernels that call each other nest."""
        with self._lock:
            self._depth += 1
            if self._depth == 1 and not self._has_help:
                self._has_help = True
                self._start_helper()
            if self._depth == 1 and not self._is_said:
                self._started_s = time.monotonic()
                self._timer = threading.Timer(max(AFTER_S - self._compiled_s, 0), self._say)
                self._timer.daemon = True
                self._timer.start()

    def ends(self) -> None:
        """Adds the time of a compilation that ends."""
        with self._lock:
            self._depth -= 1
            if self._depth == 0 and self._timer is not None:
                self._timer.cancel()
                self._compiled_s += time.monotonic() - self._started_s

    def _say(self) -> None:
        with self._lock:
            if not self._is_said and self._depth:
                self._is_said = True
                say(LINE)


def start_helper() -> None:
    """Starts a process that compiles kernels beside this one, and ends with it.

    None where there is one core, and where the package's kernels serve: a few others compile soon.
    """
    if (os.cpu_count() or 1) < 2 or HELPS in os.environ or kernels.has_shipped_kernels():
        return
    quiet = subprocess.DEVNULL
    with contextlib.suppress(OSError):  # without help it takes longer
        helper = subprocess.Popen(
            [sys.executable, "-c", HELP],
            env=os.environ | {HELPS: "1"}, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, start_new_session=True,
        )  # fmt: skip
        helpers.append(helper)


def announce_compilation() -> None:
    """Says LINE when the first kernels of this process are compiled for long, and UNSAVED when they can't be kept.

    A process that compiles kernels for others says nothing.
    """
    if HELPS in os.environ:
        return
    kernels.when_numba_is_there = Notice(start_helper).listen
    kernels.when_unsaved = lambda reason: say(UNSAVED.format(reason))
