"""Ctrl-C: one line on stderr and exit code 130, whatever the command does."""

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

INTERRUPTED = 130
LINE = "sharelens: interrupted"
AGAIN_S = 0.05


@dataclass(slots=True)
class Interruption:
    """Whether Ctrl-C came. Libraries raise errors of their own then, so the exception alone does not show it."""

    came: bool = False


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Raises KeyboardInterrupt in the block at the first Ctrl-C, and ends the process at the second.

    Without effect in other threads than the main one, and where SIGINT is ignored (`nohup`, a background job). A
    copy of the process that is about to become another program ends without a word: a terminal interrupts it, too.
    Where Python drops the exception (in a `__del__`, in a callback of C code), it is raised again a moment later.
    """
    interruption, owner = Interruption(), os.getpid()
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield interruption
        return

    def handle(_: int, __: FrameType | None) -> None:
        if os.getpid() != owner:
            os._exit(INTERRUPTED)
        if interruption.came:
            end_jvm()
            os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, f"{LINE}\n".encode())
            os._exit(INTERRUPTED)
        interruption.came = True
        logging.disable(logging.CRITICAL)  # libraries log the interruption with a trace
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, handle)
    try:
        with _raised_again(interruption):
            yield interruption
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _raised_again(interruption: Interruption) -> Iterator[None]:
    """Raises a KeyboardInterrupt that Python dropped once more, instead of printing it as ignored."""
    print_ignored = sys.unraisablehook

    def raise_again(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    def dropped(unraisable: "sys.UnraisableHookArgs") -> None:
        if interruption.came and isinstance(unraisable.exc_value, KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, AGAIN_S)
        else:
            print_ignored(unraisable)

    before = signal.signal(signal.SIGALRM, raise_again)
    sys.unraisablehook = dropped
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.unraisablehook = print_ignored
        signal.signal(signal.SIGALRM, before)


@contextmanager
def unwinding_on_sigterm() -> Iterator[None]:
    """SIGTERM ends the block as an exception does, so that temporary folders go; other handlers than Python's stay."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def end_jvm() -> None:
    """Ends a JVM that this process started."""
    if "pyspark" in sys.modules:
        import socketserver

        from sharelens.spark.jvm import end_children

        # The server of Spark's accumulators prints a trace when the JVM goes.
        socketserver.BaseServer.handle_error = lambda *_: None  # type: ignore[method-assign]
        end_children()
