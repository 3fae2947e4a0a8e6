"""Processes of the command `sharelens` that start in a moment: forks of one that has imported what a broker needs."""

import multiprocessing
import os
import signal
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TextIO

IMPORTED = (
    "sharelens.cli",
    "sharelens.broker.process",
    "sharelens.broker.broker",
    "sharelens.broker.config.start",
    "sharelens.broker.security.scram_options",
)


class Fork:
    """A process that runs one command line; the part of `subprocess.Popen` that tests use.

    Its stdout is a pipe, its stderr goes to the end of a file.
    """

    def __init__(self, words: Sequence[str], problems: Path) -> None:
        processes = multiprocessing.get_context("forkserver")
        processes.set_forkserver_preload(list(IMPORTED))
        reading, writing = processes.Pipe(duplex=False)
        self._process = processes.Process(
            target=_run, args=(list(words), dict(os.environ), writing, str(problems)), daemon=True
        )
        self._process.start()
        writing.close()
        self.stdout: TextIO = os.fdopen(os.dup(reading.fileno()), encoding="utf-8")
        reading.close()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout_s: float | None = None) -> int:
        """The exit code, once it has ended."""
        self._process.join(timeout_s)
        code = self.poll()
        if code is None:
            raise TimeoutError(f"process {self.pid} goes on after {timeout_s} s")
        return code


def _run(words: list[str], environment: dict[str, str], output: Connection, problems: str) -> None:
    """Becomes the command, as a shell would start it."""
    os.dup2(output.fileno(), 1)
    output.close()
    with open(problems, "ab") as stderr:
        os.dup2(stderr.fileno(), 2)
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(environment)
    from sharelens.cli import main

    raise SystemExit(main(words))
