"""A broker as a process of its own, as its users start it."""

import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.broker.forks import Fork

START_TIMEOUT_S = 120
STOP_TIMEOUT_S = 120
READY = "ready: "


@dataclass(slots=True)
class RunningBroker:
    """`bootstrap` is HOST:PORT; `ready_line` what the broker printed."""

    process: "subprocess.Popen[str] | Fork"
    bootstrap: str
    log_dir: Path
    ready_line: str
    problems: Path

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        host, _, port = self.bootstrap.rpartition(":")
        return host, int(port)

    def stop(self) -> int:
        """End it in order; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self._ended()

    def kill(self) -> None:
        """End it at once, as a crash does."""
        if self.process.poll() is None:
            self.process.kill()
        self._ended()

    def _ended(self) -> int:
        code = self.process.wait(STOP_TIMEOUT_S)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code

    def memory_bytes(self) -> int:
        """What it holds in memory now."""
        return self._status("VmRSS")

    def peak_memory_bytes(self) -> int:
        """The most that it ever held."""
        return self._status("VmHWM")

    def _status(self, name: str) -> int:
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
        raise AssertionError(f"no {name}")


def command(log_dir: Path, *options: str, listen: str | None = "127.0.0.1:0", **settings: object) -> list[str]:
    """The command line; `settings` are configurations with `_` for `.`; without `listen` the listeners are theirs."""
    return [*(sys.executable, "-m", "sharelens"), *words(log_dir, *options, listen=listen, **settings)]


def words(log_dir: Path, *options: str, listen: str | None = "127.0.0.1:0", **settings: object) -> list[str]:
    """The words behind `sharelens`."""
    sets = [f"--set={name.replace('_', '.')}={value}" for name, value in settings.items()]
    return [
        *("broker", "start"),
        *(() if listen is None else ("--listen", listen)),
        *("--log-dir", str(log_dir)),
        *options,
        *sets,
    ]


def start(
    log_dir: Path, *options: str, listen: str | None = "127.0.0.1:0", is_fork: bool = True, **settings: object
) -> RunningBroker:
    """Start a broker and wait until it is ready; what it says on stderr goes to a file beside its directory.

    `is_fork`: it is a fork of a process that has imported its code; otherwise a Python of its own, as users start it.
    """
    problems = log_dir.with_name(f"{log_dir.name}.stderr")
    process: subprocess.Popen[str] | Fork
    if is_fork:
        process = Fork(words(log_dir, *options, listen=listen, **settings), problems)
    else:
        with problems.open("ab") as stderr:
            process = subprocess.Popen(
                command(log_dir, *options, listen=listen, **settings), stdout=subprocess.PIPE, stderr=stderr, text=True
            )
    line = _first_line(process)
    if not line.startswith(READY):
        process.kill()
        process.wait(STOP_TIMEOUT_S)
        raise AssertionError(f"the broker did not start: {line!r} {problems.read_text()[-2000:]}")
    bootstrap = line.removeprefix(READY).split()[0].split(",")[0]
    return RunningBroker(
        process=process, bootstrap=bootstrap, log_dir=log_dir, ready_line=line.rstrip("\n"), problems=problems
    )


def _first_line(process: "subprocess.Popen[str] | Fork") -> str:
    assert process.stdout is not None
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline_s:
        readable, _, _ = select.select([process.stdout], [], [], 0.5)
        if readable:
            return process.stdout.readline()
    return ""
