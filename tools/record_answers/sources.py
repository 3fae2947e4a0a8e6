"""The three sources of answers about one log: the log directory, a lake made from it, a broker that serves it."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

START_TIMEOUT_S, STOP_TIMEOUT_S = 60, 60
READY = "ready: "
FROZEN = {
    "log.retention.ms": "-1",
    "log.cleaner.enable": "false",
    "offsets.retention.minutes": "2000000000",
    "share.coordinator.state.topic.prune.interval.ms": "2000000000",
    "group.initial.rebalance.delay.ms": "0",
}
"""Settings of the light broker that leave the recorded records as they are."""


class BrokerRefusalError(Exception):
    """Raised when the light broker does not serve a log; the message is what it printed."""


@contextmanager
def served(log_dir: Path) -> Iterator[str]:
    """The address of a light broker that serves a log directory of its own until the block ends.

    Raises BrokerRefusalError.
    """
    sets = [f"--set={name}={value}" for name, value in FROZEN.items()]
    words = ("broker", "start", "--listen", "127.0.0.1:0", "--log-dir", str(log_dir), *sets)
    stderr_path = log_dir.with_name(f"{log_dir.name}.stderr")
    with stderr_path.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "sharelens", *words], stdout=subprocess.PIPE, stderr=stderr, env=_environment()
        )
    try:
        line = _first_line(process)
        if not line.startswith(READY):
            raise BrokerRefusalError(stderr_path.read_text(encoding="utf-8") or f"no answer in {START_TIMEOUT_S} s")
        yield line.removeprefix(READY).split()[0].split(",")[0]
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
        if process.stdout is not None:
            process.stdout.close()


def _environment() -> dict[str, str]:
    """The environment with the import path of this process, so that the broker is that of the same checkout."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def _first_line(process: "subprocess.Popen[bytes]") -> str:
    assert process.stdout is not None
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline_s:
        readable, _, _ = select.select([process.stdout], [], [], 0.5)
        if readable:
            return process.stdout.readline().decode()
    return ""
