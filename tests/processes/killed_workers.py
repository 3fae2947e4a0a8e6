"""Runs on Spark whose workers kill themselves: python -m tests.processes.killed_workers LAKE LOGS POINT...

Goes into each crash point in turn, in one session, and prints the errors of the runs as one JSON list. A worker that
comes to the point dies by SIGKILL, as one that the system kills for its memory. With `driver` before the points, this
process is the one that dies.

As the module of Spark's daemon it serves workers that do so.
"""

import json
import os
import signal
import sys
from collections.abc import Sequence

from jobs.errors import JobError
from jobs.options import RunOptions
from jobs.run import run
from jobs.spark import worker_daemon
from sharelens.configuration.settings import load_settings
from sharelens.lake import crash_points
from sharelens.lake.lake import Lake
from sharelens.spark.session import spark_session

DAEMON = {"spark.python.daemon.module": "tests.processes.killed_workers"}


def die(point: str) -> None:
    """Ends the process that passes an armed point."""
    os.kill(os.getpid(), signal.SIGKILL)


def errors_of_runs(lake: str, logs: str, points: Sequence[str]) -> list[str]:
    """The errors of runs into the points, one after the other."""
    session = spark_session("kills", load_settings(environment="test", flags={"spark_conf": DAEMON}), hands_out=True)
    errors = []
    for point in points:
        with crash_points.arm(point):
            try:
                run(RunOptions(lake=Lake(lake), log_dirs=(logs,)), lambda: session)
            except JobError as error:
                errors.append(str(error))
    session.stop()
    return errors


def main(words: Sequence[str]) -> None:
    """The daemon of Spark's workers, or the runs."""
    if words[0].startswith("pyspark."):
        crash_points._count_pass = die
        worker_daemon.main()
        return
    lake, logs, *points = words
    if points[0] == "driver":
        crash_points._count_pass = die
        del points[0]
    json.dump(errors_of_runs(lake, logs, points), sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
