"""Members of a workload in processes of their own, which can be killed: they print their entries as JSON."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from sharelens.workloads.journal import Write, now_ms

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

CLOSE_TIMEOUT_S: Final = 60.0


class MemberProcess:
    """A running member; its entries go to `write` in a thread. The last line of a killed one may be cut."""

    def __init__(self, command: Sequence[str], write: Write) -> None:
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._write = write
        self._reader = threading.Thread(target=self._copy, daemon=True)
        self._reader.start()

    def close(self) -> None:
        """Let it leave its group."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(CLOSE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._end()

    def pause(self) -> None:
        """Stop it as a machine does that sleeps."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it as a crash does."""
        self._process.kill()
        self._end()

    def _end(self) -> None:
        self._reader.join()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _copy(self) -> None:
        for line in self._process.stdout or ():
            if line.endswith("\n"):
                self._write(**json.loads(line))


def process_command(module: str, orders: "DataclassInstance") -> list[str]:
    """The command of a member's process: its module gets the orders as JSON."""
    return [sys.executable, "-m", module, json.dumps(asdict(orders))]


def run_member(run: Callable[[Write, Callable[[], bool]], None]) -> None:
    """Call `run(write, is_over)` in a member's process; it is over after SIGTERM or the parent's end."""
    parent, is_ending = os.getppid(), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: is_ending.set())

    def write(event: str, **fields: object) -> None:
        try:
            sys.stdout.write(json.dumps({"event": event, "at_ms": now_ms()} | fields) + "\n")
            sys.stdout.flush()
        except BrokenPipeError:
            # The parent is gone: end as by a kill.
            os._exit(1)

    run(write, lambda: is_ending.is_set() or os.getppid() != parent)
