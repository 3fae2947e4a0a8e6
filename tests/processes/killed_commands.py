"""Commands in processes of their own that are killed at a moment that no crash point names."""

import multiprocessing
import os
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path

from sharelens.cli import main


def begun(words: Sequence[str], environment: Mapping[str, str]) -> BaseProcess:
    """A process that executes a command.

    It is a fork of one that has imported all and has run nothing, so that no time goes by before it works.
    """
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["jobs.run", "jobs.commands.stages", __name__])
    process = processes.Process(target=_execute, args=(tuple(words), dict(environment)))
    process.start()
    return process


def ended(process: BaseProcess) -> int:
    """The exit code of a process that is killed now, unless it has ended."""
    process.kill()
    process.join()
    assert process.exitcode is not None
    return process.exitcode


def wait_for(path: Path, process: BaseProcess, longest_s: float) -> None:
    """Waits until a file is there, unless the process ends or time is up before."""
    deadline = time.monotonic() + longest_s
    while not path.exists() and process.is_alive() and time.monotonic() < deadline:
        time.sleep(0.01)


def rounds(count: int) -> Iterator[random.Random]:
    """A source of random moments for each of so many rounds, another one in each test run."""
    seed = random.SystemRandom().randrange(1 << 32)
    for number in range(count):
        yield random.Random(f"{seed} {number}")


def _execute(words: Sequence[str], environment: Mapping[str, str]) -> None:
    with Path(os.devnull).open("w") as nowhere:
        for stream in (1, 2):
            os.dup2(nowhere.fileno(), stream)
    os.environ |= {"SHARELENS_ENV": "test", **environment}
    raise SystemExit(main(list(words)))
