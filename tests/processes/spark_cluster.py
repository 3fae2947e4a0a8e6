"""A standalone Spark cluster for tests: a master and workers as processes on loopback, and runs of the command on it.

Workers have addresses of their own (127.0.0.1, 127.0.0.2, …): Spark starts no speculative copy of a task on its host.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sharelens.spark.java import find_java, home_for_spark, spark_home
from tools.kafka_tools import QUICK_JVM

MASTER_HOST = "127.0.0.1"
QUICK = " ".join(QUICK_JVM)
MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
PATIENCE_S = 1200.0
"""Only a machine with much else to do needs more than a tenth of it."""
SETTINGS = {
    "spark.driver.bindAddress": MASTER_HOST,
    "spark.driver.host": MASTER_HOST,
    "spark.executor.memory": "500m",
    "spark.executor.extraJavaOptions": QUICK,
    "spark.ui.enabled": "false",
}


@dataclass(slots=True, kw_only=True)
class Cluster:
    """A running master, and workers with one core each."""

    folder: Path
    port: int
    processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """The address for --master."""
        return f"spark://{MASTER_HOST}:{self.port}"

    def start(self, name: str, main_class: str, host: str, *options: str) -> None:
        """Starts a process; it is in the master's or worker's own process group."""
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "PYTHON", "PYSPARK_", "SHARELENS_"))}
        variables = {"SPARK_HOME": str(spark_home()), "JAVA_HOME": str(home_for_spark(find_java()))}
        variables |= {"SPARK_LOCAL_IP": host, "SPARK_DAEMON_MEMORY": "200m", "SPARK_DAEMON_JAVA_OPTS": QUICK}
        command = [str(spark_home() / "bin" / "spark-class"), main_class, "--host", host, "--webui-port", "0", *options]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                command, env=clean | variables, stdout=log, stderr=log, start_new_session=True
            )

    def start_worker(self, number: int) -> None:
        """Starts the worker of a number from 1 on; its executors' folders lie in `work-NUMBER`."""
        options = ["--cores", "1", "--memory", "600m", "--work-dir", str(self.folder / f"work-{number}"), self.url]
        self.start(f"worker-{number}", WORKER, f"127.0.0.{number}", *options)

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """Ends a process with the executors that it started."""
        process = self.processes.pop(name)
        os.killpg(process.pid, number)
        process.wait(PATIENCE_S)

    def stop(self, name: str) -> None:
        """A process and the executors that it started stand still from now on."""
        os.killpg(self.processes[name].pid, signal.SIGSTOP)

    @contextmanager
    def stopped(self, name: str) -> Iterator[None]:
        """They stand still for the block."""
        self.stop(name)
        try:
            yield
        finally:
            os.killpg(self.processes[name].pid, signal.SIGCONT)

    def log(self, name: str) -> str:
        """What a process printed."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def wait_for_workers(self, number: int) -> None:
        """Waits until so many workers have registered since the start."""
        deadline = time.monotonic() + PATIENCE_S
        while self.log("master").count("Registering worker") < number:
            assert time.monotonic() < deadline, self.log("master")
            time.sleep(0.1)


@contextmanager
def spark_cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """A cluster for the block."""
    with socket.create_server((MASTER_HOST, 0)) as free:
        port = free.getsockname()[1]
    cluster = Cluster(folder=folder, port=port)
    try:
        cluster.start("master", MASTER, MASTER_HOST, "--port", str(port))
        for number in range(1, workers + 1):
            cluster.start_worker(number)
        cluster.wait_for_workers(workers)
        yield cluster
    finally:
        for name in reversed(list(cluster.processes)):
            cluster.kill(name, signal.SIGTERM)


def start_run(
    cluster: Cluster,
    lake: Path | str,
    logs: Path | str,
    *,
    program: Sequence[str] = (sys.executable, "-m", "sharelens"),
    settings: Mapping[str, str] | None = None,
    variables: Mapping[str, str] | None = None,
) -> "subprocess.Popen[str]":
    """Starts `sharelens run` on a cluster, with splits so small that a stage has many tasks."""
    conf = SETTINGS | dict(settings or {})
    words = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    command = [*program, "run", "--master", cluster.url, "--lake", str(lake), "--log-dir", str(logs), *words]
    return subprocess.Popen(
        command,
        env={**os.environ, "SHARELENS_ENV": "test", "SHARELENS_SPLIT_BYTES": "20000", **(variables or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def outcome(run: "subprocess.Popen[str]") -> tuple[int, str, str]:
    """Exit code, standard output and messages of a run that comes to its end."""
    output, messages = run.communicate(timeout=PATIENCE_S)
    return run.returncode, output, messages
