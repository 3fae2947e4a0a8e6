"""Ctrl-C while Spark starts and while it works: one line, exit code 130, and no JVM is left."""

import time
from pathlib import Path

import pytest

from tests.in_process import make_lake
from tests.interrupts import Process, has_jvm, interrupted, long_log, on_a_terminal, written
from tests.lakes import assert_same
from tests.once import made_once

pytestmark = pytest.mark.spark
ON_SPARK = {"SHARELENS_IN_PROCESS_BYTES": "0"}


@pytest.mark.parametrize("after_s", [0.0, 0.5, 2.0])
def test_a_jvm_that_starts_is_ended(after_s: float, tmp_path: Path) -> None:
    started: list[float] = []

    def moment(process: Process) -> bool:
        if has_jvm(process):
            started.append(time.monotonic())
        return bool(started) and time.monotonic() >= started[0] + after_s

    run = ["run", "--lake", str(tmp_path / "lake"), "--log-dir", str(long_log())]
    assert interrupted(run, moment, **ON_SPARK) == (130, ["sharelens: interrupted"])


def test_an_interrupted_run_on_spark_is_one_line_and_the_next_one_goes_on(tmp_path: Path) -> None:
    lake, logs = tmp_path / "lake", long_log()
    run = ["run", "--lake", str(lake), "--log-dir", str(logs)]
    assert interrupted(run, written(lake, "bronze.log_record"), **ON_SPARK) == (130, ["sharelens: interrupted"])
    make_lake(lake, logs, lock_timeout_s=0)
    assert_same(lake, made_once("interrupted/whole", lambda whole: make_lake(whole, logs)))


def test_a_terminal_sees_that_spark_starts(tmp_path: Path) -> None:
    run = ["run", "--lake", str(tmp_path / "lake"), "--log-dir", str(long_log())]
    assert on_a_terminal(run, **ON_SPARK).count("starting Spark") > 10
