"""The same code on a standalone Spark cluster: a master and two workers on loopback give the same tables."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest

from jobs.spark.java import find_java, home_for_spark
from tests.datasets import dataset
from tests.in_process import recorded_lake
from tests.lakes import assert_same

PATIENCE_S = 60.0
LOOPBACK = "127.0.0.1"
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Each process lives for seconds: the quick compiler and the simple collector start soonest."""


@contextmanager
def started(log: Path, *words: str) -> Iterator[None]:
    """One of Spark's own processes, ended by its id afterwards; what it prints goes into a file."""
    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ,
        "JAVA_HOME": str(home_for_spark(find_java())),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK,
        "SPARK_LAUNCHER_OPTS": QUICK,
        "SPARK_NO_DAEMONIZE": "1",
    }
    with log.open("wb") as file:
        process = subprocess.Popen(
            [home / "bin" / "spark-class", *words], env=environment, stdout=file, stderr=subprocess.STDOUT
        )
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def await_text(log: Path, text: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while text not in log.read_text(encoding="utf-8", errors="replace"):
        assert time.monotonic() < deadline, f"no {text!r} in: {log.read_text(encoding='utf-8', errors='replace')}"
        time.sleep(0.1)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The URL of a master with two workers, and the master's log."""
    package = "org.apache.spark.deploy"
    port = free_port()
    url, logs = f"spark://{LOOPBACK}:{port}", [tmp_path / f"{name}.log" for name in ("master", "one", "two")]
    with ExitStack() as running:
        place = ["--host", LOOPBACK, "--webui-port", "0"]
        master = started(logs[0], f"{package}.master.Master", *place, "--port", str(port))
        running.enter_context(master)
        await_text(logs[0], "New state: ALIVE")
        for log in logs[1:]:
            own = ["--cores", "1", "--memory", "600m", "--work-dir", str(tmp_path / log.stem)]
            running.enter_context(started(log, f"{package}.worker.Worker", *place, *own, url))
        for log in logs[1:]:
            await_text(log, "Successfully registered with master")
        yield url, logs[0]


def test_a_cluster_of_two_workers_gives_the_same_tables(cluster: tuple[str, Path], tmp_path: Path) -> None:
    url, log = cluster
    logs = dataset("edge") / "logs"
    local = ["spark.driver.bindAddress=" + LOOPBACK, "spark.driver.host=" + LOOPBACK, "spark.executor.memory=500m"]
    local.append("spark.executor.extraJavaOptions=" + QUICK)
    command = [sys.executable, "-m", "sharelens", "run", "--master", url, "--lake", str(tmp_path / "lake")]
    done = subprocess.run(
        [*command, "--log-dir", str(logs), *(word for setting in local for word in ("--conf", setting))],
        env={**os.environ, "SHARELENS_ENV": "test", "SHARELENS_SPLIT_BYTES": "50000"},
        capture_output=True,
        text=True,
        timeout=3 * PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"]["silver.share_record"] > 3000
    assert log.read_text(encoding="utf-8").count("Launching executor") == 2
    assert_same(tmp_path / "lake", recorded_lake("edge"))
