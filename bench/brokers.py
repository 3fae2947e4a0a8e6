"""The light broker and a real Kafka 4.3.1 on this machine: each a process of its own, one node, loopback only."""

import json
import socket
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bench.measure import COMMAND
from sharelens.broker.storage.catalog import new_id
from state_model.errors import SharelensError
from tools.kafka_tools import QUICK_JVM, tool_command

HOST = "127.0.0.1"
START_TIMEOUT_S = 180
PROPERTIES = "server.properties"
STOP_TIMEOUT_S = 60
TRY_AGAIN_S = 0.01
IDLE_S = 3.0
BRIEF_JVM = (*QUICK_JVM, "-Xmx1G")
"""For a broker that lives for a minute: most of its processor time would be Java's second compiler."""
SERVER_JVM = ("-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-Djava.awt.headless=true")
"""As Kafka's own start script starts a broker."""
# Both ask members to report as often, so that neither waits longer for its first assignment.
SHARE_SETTINGS = {"group.share.heartbeat.interval.ms": "1000", "group.share.min.heartbeat.interval.ms": "1000"}
KAFKA_SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers={host}:{controller}
listeners=PLAINTEXT://{host}:{broker},CONTROLLER://{host}:{controller}{listeners}
advertised.listeners=PLAINTEXT://{host}:{broker}{listeners}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT{protocols}
log.dirs={log_dir}
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""


class BrokerUnavailableError(SharelensError):
    """Raised when a broker does not start on this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A broker that answers: its address, the seconds until its first answer, its process."""

    bootstrap: str
    start_s: float
    pid: int

    def idle_bytes(self) -> int:
        """Resident memory of the process after a few seconds without any client."""
        time.sleep(IDLE_S)
        for line in Path(f"/proc/{self.pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise BrokerUnavailableError(f"process {self.pid} has ended")


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Figures of a broker; `records_per_s` by the most records in a batch of the producer, median of the rounds."""

    start_s: float
    idle_bytes: int
    records_per_s: dict[int, float]


class Listener(NamedTuple):
    """A further listener of a broker, of one of Kafka's security protocols."""

    protocol: str
    port: int


NO_LISTENERS: Mapping[str, Listener] = {}
Broker = Callable[[Path], AbstractContextManager[Started]]
"""A broker with its files in a new folder; ended when the block ends."""


def measure(broker: Broker, folder: Path, records: int) -> Speed:
    """Start a broker, look at it at rest, and let one client work through records, several times over.

    Raises:
        BrokerUnavailableError: it does not start, or its client failed; and whatever the broker raises.
    """
    with broker(folder) as started:
        idle_bytes = started.idle_bytes()
        command = [sys.executable, "-m", "bench.share_load", started.bootstrap, str(records)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise BrokerUnavailableError(f"the client failed: {_last_line(done.stderr)}")
        rounds = json.loads(done.stdout)
    medians = {int(batch): statistics.median(rates) for batch, rates in rounds.items()}
    return Speed(start_s=started.start_s, idle_bytes=idle_bytes, records_per_s=medians)


@contextmanager
def light_broker(
    folder: Path, changed: Mapping[str, object] = SHARE_SETTINGS, listeners: Mapping[str, Listener] = NO_LISTENERS
) -> Iterator[Started]:
    """The light broker as its command starts it, configured as `kafka_broker`. Raises BrokerUnavailableError."""
    folder.mkdir(parents=True)
    broker, controller = free_ports(2)
    properties = _properties(folder, changed, listeners, broker, controller)
    command = [str(COMMAND), "broker", "start", "--config", str(properties)]
    with _running(command, folder, broker) as started:
        yield started


@contextmanager
def kafka_broker(
    folder: Path,
    changed: Mapping[str, object] = SHARE_SETTINGS,
    listeners: Mapping[str, Listener] = NO_LISTENERS,
    *,
    jvm: Sequence[str] = BRIEF_JVM,
) -> Iterator[Started]:
    """A real broker in KRaft mode, with its defaults but for the changed configurations; `listeners`: more, by name.

    Raises:
        ToolUnavailableError: no jars. JavaError: no Java. BrokerUnavailableError.
    """
    folder.mkdir(parents=True)
    broker, controller = free_ports(2)
    properties = _properties(folder, changed, listeners, broker, controller)
    formatted = subprocess.run(
        tool_command("kafka.tools.StorageTool", "format", "-t", new_id(), "-c", str(properties), "--standalone"),
        capture_output=True, text=True, timeout=START_TIMEOUT_S, check=False,
    )  # fmt: skip
    if formatted.returncode != 0:
        raise BrokerUnavailableError(f"Kafka's log directory can't be formatted: {_last_line(formatted.stderr)}")
    with _running(tool_command("kafka.Kafka", str(properties), jvm=jvm), folder, broker) as started:
        yield started


def kafka_server(folder: Path) -> AbstractContextManager[Started]:
    """A real broker with the JVM options of Kafka's own start script, to be measured."""
    return kafka_broker(folder, jvm=SERVER_JVM)


@contextmanager
def kafka_again(folder: Path, bootstrap: str) -> Iterator[Started]:
    """A real broker that had ended, with the files and the address that `kafka_broker` gave it."""
    command = tool_command("kafka.Kafka", str(folder / PROPERTIES), jvm=BRIEF_JVM)
    with _running(command, folder, int(bootstrap.rpartition(":")[2])) as started:
        yield started


def _properties(
    folder: Path, changed: Mapping[str, object], listeners: Mapping[str, Listener], broker: int, controller: int
) -> Path:
    """A server.properties in a folder."""
    settings = KAFKA_SETTINGS.format(
        host=HOST,
        broker=broker,
        controller=controller,
        log_dir=folder / "log",
        listeners="".join(f",{name}://{HOST}:{listener.port}" for name, listener in listeners.items()),
        protocols="".join(f",{name}:{listener.protocol}" for name, listener in listeners.items()),
    )
    path = folder / PROPERTIES
    path.write_text(settings + "".join(f"{name}={text}\n" for name, text in changed.items()), encoding="utf-8")
    return path


def free_ports(count: int) -> list[int]:
    """Free ports of the loopback address."""
    sockets = [socket.socket() for _ in range(count)]
    for listener in sockets:
        listener.bind((HOST, 0))
    ports = [int(listener.getsockname()[1]) for listener in sockets]
    for listener in sockets:
        listener.close()
    return ports


@contextmanager
def _running(command: Sequence[str], folder: Path, port: int) -> Iterator[Started]:
    output_file = folder / "output.txt"
    begun_s = time.perf_counter()
    with output_file.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        while not _answers(port):
            if process.poll() is not None or time.perf_counter() - begun_s > START_TIMEOUT_S:
                raise BrokerUnavailableError(f"no answer: {_last_line(output_file.read_text(errors='replace'))}")
            time.sleep(TRY_AGAIN_S)
        yield Started(bootstrap=f"{HOST}:{port}", start_s=time.perf_counter() - begun_s, pid=process.pid)
    finally:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answers(port: int) -> bool:
    """Whether the broker answers ApiVersions, the first request of every client."""
    request = struct.pack(">hhih", 18, 0, 1, 0)
    try:
        with socket.create_connection((HOST, port), timeout=5) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            return len(connection.recv(8)) > 0
    except OSError:
        return False


def _last_line(text: str) -> str:
    return next((line.strip()[:200] for line in reversed(text.splitlines()) if line.strip()), "it said nothing")
