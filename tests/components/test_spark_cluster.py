"""The pipeline on a standalone Spark cluster: a master and two workers, processes on loopback.

A packed environment, a lake in a bucket whose options the driver alone has; workers and drivers that are killed;
tasks that run twice; executors with another environment.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sharelens
from sharelens.lake.transactions import commit_path
from sharelens.spark.java import spark_home
from tests.datasets import dataset
from tests.depths import in_soak
from tests.lakes import assert_same, content, differences
from tests.processes.in_process import recorded_lake
from tests.processes.s3_server import S3Server
from tests.processes.spark_cluster import PATIENCE_S, SETTINGS, Cluster, outcome, spark_cluster, start_run
from tools.make_dist_env import ENTRY, make_environment

SCENARIO = "edge"
LOGS = dataset(SCENARIO) / "logs"
ATTEMPTS = 4
"""Runs in which a kill may come too late: on a busy machine this process may sleep until the stage is over."""
NO_PATH = {"spark.executorEnv.PYTHONPATH": ""}
"""Without the folder of this checkout, which executors on this machine would see."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


def wait_for_file(folder: Path, pattern: str, run: "subprocess.Popen[str]") -> None:
    """Waits until a run wrote the first file of a pattern."""
    deadline = time.monotonic() + PATIENCE_S
    while not any(folder.glob(pattern)):
        assert run.poll() is None, run.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.002)


def is_committed(lake: Path, table: str) -> bool:
    """Whether a table has a commit behind that of its creation."""
    return (lake / table / commit_path(1)).exists()


@pytest.mark.soak
def test_a_packed_environment_submitted_to_a_cluster_fills_a_bucket_with_options_of_the_driver_alone(
    cluster: Cluster, s3: S3Server, bucket: str, tmp_path: Path
) -> None:
    archive = make_environment(tmp_path)
    submit = [str(spark_home() / "bin" / "spark-submit"), "--master", cluster.url]
    submit += [word for name, value in (SETTINGS | NO_PATH).items() for word in ("--conf", f"{name}={value}")]
    submit += ["--conf", "spark.sql.session.timeZone=UTC", "--archives", f"{archive}#environment"]
    done = subprocess.run(
        [*submit, str(tmp_path / ENTRY), "run", "--lake", bucket, "--log-dir", str(LOGS)],
        env={
            **os.environ,
            "PYSPARK_PYTHON": "./environment/bin/python",
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SHARELENS_ENV": "test",
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert set(json.loads(done.stdout.splitlines()[-1])["engine"].values()) == {"spark"}
    assert not differences(content(bucket), content(recorded_lake(SCENARIO)))


@pytest.mark.soak
def test_a_worker_that_is_killed_in_a_stage_costs_its_tasks_alone(cluster: Cluster, tmp_path: Path) -> None:
    for attempt in range(ATTEMPTS):
        lake = tmp_path / str(attempt)
        run = start_run(cluster, lake, LOGS)
        wait_for_file(lake / "silver" / "share_record", "*.parquet", run)
        cluster.kill("worker-2")
        in_stage = not is_committed(lake, "silver/share_record")
        code, _, messages = outcome(run)
        registered = cluster.log("master").count("Registering worker")
        cluster.start_worker(2)
        cluster.wait_for_workers(registered + 1)
        assert code == 0, messages
        assert_same(lake, recorded_lake(SCENARIO))
        if in_stage:
            return
    pytest.fail(f"in none of {ATTEMPTS} runs was the worker killed before its stage was committed")


@pytest.mark.soak
def test_a_driver_that_is_killed_is_finished_by_the_next_run(cluster: Cluster, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    run = start_run(cluster, lake, LOGS)
    wait_for_file(lake / "gold" / "delivery_history", "*/*.parquet", run)
    run.kill()
    run.communicate()
    assert run.returncode == -signal.SIGKILL
    code, output, messages = outcome(start_run(cluster, lake, LOGS))
    assert code == 0, messages
    assert json.loads(output)["rows"].get("bronze.log_record", 0) == 0
    assert_same(lake, recorded_lake(SCENARIO))


def started_tasks(events: Path) -> list[dict[str, Any]]:
    """Spark's description of each task that started, from its event logs."""
    texts = [path.read_text() for path in events.rglob("*") if path.is_file()]
    lines = [line for text in texts for line in text.split("\n")[:-1]]
    return [json.loads(line)["Task Info"] for line in lines if '"SparkListenerTaskStart"' in line]


@pytest.mark.soak
def test_tasks_that_run_twice_leave_nothing_twice(cluster: Cluster, tmp_path: Path) -> None:
    lake, events = tmp_path / "lake", tmp_path / "events"
    events.mkdir()
    eager = {"": "true", ".interval": "10ms", ".quantile": "0.01", ".task.duration.threshold": "100ms"}
    settings = {f"spark.speculation{name}": value for name, value in eager.items()}
    settings |= {"spark.eventLog.enabled": "true", "spark.eventLog.dir": str(events)}
    settings["spark.eventLog.compress"] = "false"
    run = start_run(cluster, lake, LOGS, settings=settings)
    wait_for_file(lake / "bronze" / "log_record", "*.parquet", run)
    with cluster.stopped("worker-2"):
        deadline = time.monotonic() + PATIENCE_S
        while not any(task["Speculative"] for task in started_tasks(events)):
            assert time.monotonic() < deadline
            assert run.poll() is None, run.communicate()[1]
            time.sleep(0.1)
    code, _, messages = outcome(run)
    assert code == 0, messages
    assert_same(lake, recorded_lake(SCENARIO))


@pytest.mark.soak
@pytest.mark.parametrize("version", ["0.0.1", *in_soak(None)], ids=["another version", "without the package"])
def test_an_executor_with_another_environment_is_named_in_one_line(
    cluster: Cluster, tmp_path: Path, version: str | None
) -> None:
    python = environment_with(tmp_path / "environment", version)
    run = start_run(cluster, tmp_path / "lake", LOGS, settings=NO_PATH, variables={"PYSPARK_PYTHON": str(python)})
    code, output, messages = outcome(run)
    assert (code, output) == (1, "")
    (line,) = [line for line in messages.splitlines() if line.startswith("sharelens: ")]
    which = f"lacks sharelens {sharelens.__version__}" if version is None else f"has sharelens {version}, the driver"
    assert f"the executor on {os.uname().nodename} ({python}) {which}" in line
    assert "Traceback" not in messages


@pytest.mark.soak
def test_a_kubernetes_that_refuses_is_named_with_the_cause_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        master = f"k8s://http://127.0.0.1:{server.getsockname()[1]}"
    command = [
        sys.executable,
        "-m",
        "sharelens",
        "run",
        "--lake",
        str(tmp_path / "lake"),
        "--log-dir",
        str(LOGS),
        "--master",
        master,
    ]
    image = ["--conf", "spark.kubernetes.container.image=sharelens"]
    run = subprocess.run([*command, *image], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (run.returncode, run.stdout) == (1, "")
    (line,) = [line for line in run.stderr.splitlines() if line.startswith("sharelens: ")]
    assert line.startswith(f"sharelens: Spark did not start at {master}: ")
    assert line.endswith("(caused by java.net.ConnectException: Connection refused)")


def environment_with(folder: Path, version: str | None) -> Path:
    """The interpreter of an environment with all packages of this one, of sharelens a version's name or nothing."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = folder.glob("lib/*/site-packages")
    if version is not None:
        named = packages / f"sharelens-{version}.dist-info"
        named.mkdir()
        (named / "METADATA").write_text(f"Metadata-Version: 2.1\nName: sharelens\nVersion: {version}\n")
        (packages / "jobs" / "spark").mkdir(parents=True)
        (packages / "jobs" / "spark" / "executors.py").touch()
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    return folder / "bin" / "python"
