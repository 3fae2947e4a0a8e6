"""The same code on a standalone Spark cluster: a master and two workers on loopback give the same tables."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.datasets import dataset
from tests.in_process import recorded_lake
from tests.lakes import assert_same

PATIENCE_S = 60.0
LOOPBACK = "127.0.0.1"
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""An executor lives for seconds: the quick compiler and the simple collector start soonest."""
WORKERS = 2


@pytest.fixture
def cluster(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """The URL of a master with two workers, in the JVM of the test session: its executors are processes of their own.

    A worker's folder, `work-1` or `work-2`, gets a folder for each executor that it launches.
    """
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    scala, deploy, conf = gateway.jvm.scala, gateway.jvm.org.apache.spark.deploy, spark_conf(spark)
    running: list[Any] = [deploy.master.Master.startRpcEnvAndEndpoint(LOOPBACK, 0, 0, conf)._1()]
    try:
        url = f"spark://{LOOPBACK}:{running[0].address().port()}"
        masters = gateway.new_array(gateway.jvm.java.lang.String, 1)
        masters[0] = url
        for number in range(1, WORKERS + 1):
            place, size = (LOOPBACK, 0, 0), (1, 600)  # ports, then cores and megabytes
            own = (str(tmp_path / f"work-{number}"), scala.Some(number), conf, scala.Option.empty())
            running.append(deploy.worker.Worker.startRpcEnvAndEndpoint(*place, *size, masters, *own))
        yield url
    finally:
        for service in reversed(running):
            service.shutdown()
            service.awaitTermination()


def spark_conf(spark: SparkSession) -> Any:
    """Spark's defaults, not the settings of the session."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    return jvm.org.apache.spark.SparkConf(False)


def executors(tmp_path: Path) -> list[int]:
    """How many executors each worker launched."""
    return [len(list(tmp_path.glob(f"work-{number}/app-*/*"))) for number in range(1, WORKERS + 1)]


def test_a_cluster_of_two_workers_gives_the_same_tables(cluster: str, tmp_path: Path) -> None:
    logs = dataset("edge") / "logs"
    local = ["spark.driver.bindAddress=" + LOOPBACK, "spark.driver.host=" + LOOPBACK, "spark.executor.memory=500m"]
    local.append("spark.executor.extraJavaOptions=" + QUICK)
    command = [sys.executable, "-m", "sharelens", "run", "--master", cluster, "--lake", str(tmp_path / "lake")]
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
    assert executors(tmp_path) == [1] * WORKERS
    assert_same(tmp_path / "lake", recorded_lake("edge"))
