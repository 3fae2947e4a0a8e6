"""Ctrl-C while Spark starts and while it works: one line, exit code 130, and no JVM is left."""

import time
from pathlib import Path

import pytest

from tests.datasets import dataset
from tests.depths import in_soak
from tests.lakes import assert_same
from tests.processes.in_process import make_lake, recorded_lake
from tests.processes.interrupts import Process, has_jvm, interrupted, on_a_terminal, written

pytestmark = pytest.mark.spark
LOG = "dlq"
"""A log that each stage of a new session works on for a second, however small it is."""
ON_SPARK = {"SHARELENS_ENV": "test"}


@pytest.mark.parametrize("after_s", [0.0, 2.0, *in_soak(0.5)])
def test_a_jvm_that_starts_is_ended(after_s: float, tmp_path: Path) -> None:
    started: list[float] = []

    def moment(process: Process) -> bool:
        if has_jvm(process):
            started.append(time.monotonic())
        return bool(started) and time.monotonic() >= started[0] + after_s

    run = ["run", "--lake", str(tmp_path / "lake"), "--log-dir", str(dataset(LOG) / "logs")]
    assert interrupted(run, moment, **ON_SPARK) == (130, ["sharelens: interrupted"])


@pytest.mark.soak
def test_an_interrupted_run_on_spark_is_one_line_and_the_next_one_goes_on(tmp_path: Path) -> None:
    lake, logs = tmp_path / "lake", dataset(LOG) / "logs"
    run = ["run", "--lake", str(lake), "--log-dir", str(logs)]
    assert interrupted(run, written(lake, "bronze.log_record"), **ON_SPARK) == (130, ["sharelens: interrupted"])
    make_lake(lake, logs, lock_timeout_s=0)
    assert_same(lake, recorded_lake(LOG))


@pytest.mark.soak
def test_a_terminal_sees_that_spark_starts(tmp_path: Path) -> None:
    run = ["run", "--lake", str(tmp_path / "lake"), "--log-dir", str(dataset(LOG) / "logs")]
    assert on_a_terminal(run, **ON_SPARK).count("starting Spark") > 10
