"""A run of another process that stops at a named point of its own, so that somebody else takes its lake over."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from sharelens.lake.lake import Lake
from sharelens.lake.tables import TABLES
from tests.datasets import dataset
from tests.lakes import content, differences
from tests.processes.in_process import make_lake, recorded_lake

TERM_S = 3.0
"""The term of a lease, in both processes: a busy machine may keep a holder from renewing for a second."""
SCENARIO = "basic"
WRITER = """
import sys
from jobs.options import RunOptions
from jobs.run import run
from sharelens.lake import crash_points, lease
from sharelens.lake.lake import Lake
lease.TERM_S = float(sys.argv[3])
stop_at = sys.argv[4]
passing = crash_points.passing
def stopping(point):
    if point == stop_at:
        print("here", flush=True)
        sys.stdin.readline()
    passing(point)
crash_points.passing = stopping
run(RunOptions(lake=Lake(sys.argv[1]), log_dirs=(sys.argv[2],), in_process_bytes=1 << 62), lambda: None)
"""


@contextmanager
def stopped_run(lake: str, point: str) -> Iterator["subprocess.Popen[str]"]:
    """A process whose run waits at a point for a line of its input; it is killed in the end."""
    command = [sys.executable, "-c", WRITER, lake, str(dataset(SCENARIO) / "logs"), str(TERM_S), point]
    pipe = subprocess.PIPE
    run = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    try:
        assert run.stdout is not None
        assert run.stdout.readline() == "here\n"
        yield run
    finally:
        run.kill()
        run.communicate()


def assert_publishes_nothing_after_a_takeover(lake: str, point: str) -> None:
    """A run that stops at a point, and goes on when another one has taken the lake over, commits nothing more."""
    with stopped_run(lake, point) as stopped:
        stopped.send_signal(signal.SIGSTOP)
        make_lake(lake, dataset(SCENARIO) / "logs")
        versions = {name: Lake(lake).version(name) for name in TABLES}
        stopped.send_signal(signal.SIGCONT)
        _, errors = stopped.communicate("\n", timeout=60)
    assert stopped.returncode == 1
    assert "another process has taken the lake over" in errors
    assert {name: Lake(lake).version(name) for name in TABLES} == versions
    assert not differences(content(lake), content(recorded_lake(SCENARIO)))
