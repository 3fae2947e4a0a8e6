"""Streams groups against the light broker and against a real Kafka 4.3.1: the same clients, the same outcome."""

import random
import struct
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.brokers import kafka_broker
from sharelens.questions.describe import View, describe
from sharelens.questions.opening import open_evidence
from sharelens.request import Source
from state_model.errors import SharelensError
from tests.broker import running
from tests.broker.streams_applications import Instance, StreamsMachine, streams_machine
from tests.broker.workload_runs import audit_errors
from workloads.admin import Admin

pytestmark = pytest.mark.broker

SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 2,
    "transaction.state.log.num.partitions": 2,
    "group.streams.min.heartbeat.interval.ms": 100,
    "group.streams.heartbeat.interval.ms": 200,
    "group.streams.min.session.timeout.ms": 1_000,
    "group.streams.session.timeout.ms": 30_000,
    "group.streams.initial.rebalance.delay.ms": 0,
    "group.streams.assignment.interval.ms": 0,
}
WORDS = [f"word-{number}" for number in range(12)]
PARTITIONS = 6
TIMEOUT_S = 60


class Cluster(NamedTuple):
    """A broker under test."""

    name: str
    bootstrap: str
    log_dir: Path


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Cluster]]:
    """The light broker and Kafka. Skipped, with the reason in a line, where Java or Kafka's jars can't be had."""
    folder = tmp_path_factory.mktemp("clusters")
    light = running.start(folder / "light", **{name.replace(".", "_"): value for name, value in SETTINGS.items()})
    try:
        with kafka_broker(folder / "kafka", SETTINGS) as kafka:
            yield (
                Cluster("light", light.bootstrap, light.log_dir),
                Cluster("kafka", kafka.bootstrap, folder / "kafka" / "log"),
            )
    except SharelensError as error:
        pytest.skip(f"Kafka's broker: {error}")
    finally:
        light.kill()


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StreamsMachine]:
    with streams_machine(tmp_path_factory.mktemp("streams")) as started:
        yield started


class Application:
    """A word count with three instances on a cluster; `sent` is what the counts must become."""

    def __init__(self, machine: StreamsMachine, cluster: Cluster, name: str, **config: object) -> None:
        self.cluster, self.name = cluster, name
        self.topics = (f"{name}-text", f"{name}-out")
        self.sent: Counter[str] = Counter()
        self._words = random.Random(name)
        self._machine, self._config = machine, config
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        created = admin.create_topics([NewTopic(self.topics[0], PARTITIONS, 1), NewTopic(self.topics[1], 2, 1)])
        for each in created.values():
            each.result()
        self.instances: list[Instance] = []

    def start(self) -> None:
        """Start one more instance."""
        started = self._machine.instance(self.cluster.bootstrap, self.name, self.topics, **self._config)
        self.instances.append(started)

    def send(self, records: int) -> None:
        """Send words that the application's name decides."""
        producer = Producer({"bootstrap.servers": self.cluster.bootstrap, "partitioner": "murmur2"})
        for word in self._words.choices(WORDS, k=records):
            producer.produce(self.topics[0], key=word, value="")
            self.sent[word] += 1
        assert producer.flush(TIMEOUT_S) == 0

    def written(self) -> dict[str, list[int]]:
        """The counts written for each word, in order, once the last ones are those that they must be."""
        settings = {"bootstrap.servers": self.cluster.bootstrap, "group.id": "r", "isolation.level": "read_committed"}
        reader = Consumer(settings)
        reader.assign([TopicPartition(self.topics[1], partition, 0) for partition in range(2)])
        counts: dict[str, list[int]] = {}
        deadline_s = time.monotonic() + TIMEOUT_S
        while {word: own[-1] for word, own in counts.items()} != self.sent:
            assert time.monotonic() < deadline_s, (self.cluster.name, counts, self.sent)
            message = reader.poll(1)
            if message is not None and message.error() is None:
                counts.setdefault(message.key().decode(), []).append(struct.unpack(">q", message.value())[0])
        reader.close()
        return counts


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_three_instances_count_as_on_kafka(
    machine: StreamsMachine, clusters: tuple[Cluster, Cluster], guarantee: str
) -> None:
    name = guarantee.replace("_", "-")
    for cluster in clusters:
        Admin(cluster.bootstrap).configure_group(name, {"streams.num.standby.replicas": "1"})
    applications = [Application(machine, cluster, name, processing_guarantee=guarantee) for cluster in clusters]
    for step in ("start", "start", "start", "close"):
        for application in applications:
            application.send(60)
            application.start() if step == "start" else application.instances.pop(0).close()
        for application in applications:
            for instance in application.instances:
                instance.running()
    light, kafka = (application.written() for application in applications)
    assert {word: own[-1] for word, own in light.items()} == {word: own[-1] for word, own in kafka.items()}
    if guarantee == "exactly_once_v2":
        assert light == kafka == {word: list(range(1, count + 1)) for word, count in applications[0].sent.items()}
    described = [machine.settled(cluster.bootstrap, name, members=2) for cluster in clusters]
    assert [tasks_of(group) for group in described] == [([6, 6], 6)] * 2
    assert replayed(clusters[0].log_dir, name) == described[0]
    for application in applications:
        for instance in application.instances:
            instance.close()
    assert audit_errors(clusters[0].log_dir, "4.3") == []


def tasks_of(group: dict[str, Any]) -> tuple[list[int], int]:
    """The number of active tasks of each member, and of standby tasks in all."""
    members = group["members"].values()
    return sorted(len(each["ACTIVE"]) for each in members), sum(len(each["STANDBY"]) for each in members)


def replayed(log_dir: Path, name: str) -> dict[str, Any]:
    """A group as `sharelens describe` reads it from the log, in the form of `StreamsMachine.settled`."""
    with open_evidence(Source(log_dirs=(str(log_dir),), include_uncommitted=True, needs_state_log=False)) as evidence:
        (state,) = describe(evidence, name, None, View.STATE).table.to_pylist()
        members = describe(evidence, name, None, View.MEMBERS).table.to_pylist()
    return {
        "state": state["state"],
        "epochs": (state["group_epoch"], state["assignment_epoch"]),
        "members": {each["member_id"]: _replayed_member(each) for each in members},
    }


def _replayed_member(row: dict[str, Any]) -> dict[str, Any]:
    tasks: dict[str, Any] = {"ACTIVE": [], "STANDBY": []}
    for own in row["assigned_tasks"]:
        tasks[own["task_type"]] += [(own["subtopology_id"], partition) for partition in own["partitions"]]
    return {"epoch": row["member_epoch"], "process": row["process_id"], **tasks}
