"""Ctrl-C to a real process, at a moment that its lake shows."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tests.once import made_once
from tests.processes.terminals import Terminal

Process = subprocess.Popen[str]
LONGEST_S = 60
ON_SPARK_S = 300
HEEDING = ("env", "--default-signal=INT")
"""Words before a command that heeds SIGINT where the test run does not, as a background job of a shell."""


class Ended(NamedTuple):
    """How a process ended, and its lines on stderr."""

    code: int
    lines: list[str]


def long_log() -> Path:
    """A log whose stages take long enough to be interrupted, written once a test run."""

    def make(folder: Path) -> None:
        from sharelens.broker.simulator.settings import profile
        from sharelens.broker.simulator.simulation import simulate

        simulate(profile("steady", records=20_000), 7, folder / "logs")

    return made_once("interrupted/logs", make) / "logs"


def interrupted(
    words: list[str], moment: Callable[[Process], bool], stdout: Path = Path(os.devnull), **variables: str
) -> Ended:
    """Sends SIGINT to the process group of a command, as a terminal does, once `moment` is true of its process.

    `stdout`: the file that gets what it prints.
    """
    command = [*HEEDING, sys.executable, "-m", "sharelens", *words]
    environment = {**os.environ, **variables}
    with (
        stdout.open("w", encoding="utf-8") as printed,
        subprocess.Popen(
            command, env=environment, stdout=printed, stderr=subprocess.PIPE, text=True, start_new_session=True
        ) as process,
    ):
        end_s = time.monotonic() + LONGEST_S
        while not moment(process) and process.poll() is None and time.monotonic() < end_s:
            time.sleep(0.005)
        assert process.poll() is None, f"{words} ended before the moment: {process.communicate()[1]}"
        os.killpg(process.pid, signal.SIGINT)
        try:
            _, stderr = process.communicate(timeout=LONGEST_S)
        finally:
            process.kill()  # one that heeds no interruption would be waited for without end
    return Ended(process.returncode, stderr.splitlines())


def written(lake: Path, table: str) -> Callable[[object], bool]:
    """Whether a table has its first commit behind its creation: the stage that writes it is at work, or done."""
    log = lake / table.replace(".", "/") / "_delta_log" / f"{1:020d}.json"
    return lambda _: log.exists()


def has_jvm(process: Process) -> bool:
    """Whether a process has started the shell that becomes a JVM, its only child."""
    for children in Path(f"/proc/{process.pid}/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended meanwhile
            if children.read_text():
                return True
    return False


def on_a_terminal(words: list[str], **variables: str) -> str:
    """What a command that succeeds writes to stderr when that is a terminal."""
    command = [sys.executable, "-m", "sharelens", *words]
    with Terminal(command, env={**os.environ, **variables}, stdout=subprocess.DEVNULL) as terminal:
        text = terminal.text(longest_s=ON_SPARK_S)
        assert terminal.process.wait(LONGEST_S) == 0, text
    return text
