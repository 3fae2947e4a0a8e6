"""Streams groups against the light broker and against a real Kafka 4.3.1: the same clients, the same outcome."""

import random
import socket
import struct
import time
from base64 import standard_b64decode
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.brokers import kafka_broker
from sharelens.questions.groups.describe import View, describe
from sharelens.source.request import Source
from sharelens.spark.java import JavaError
from sharelens.tables.opening import open_evidence
from sharelens.workloads.admin import Admin
from state_model.group_records import decode_record
from state_model.group_topics import TopicMetadata, metadata_hash
from state_model.streams.records import MEMBER_TARGET, METADATA, STREAMS_TYPES
from state_model.streams.values import TasksByType
from state_model.topics import OFFSETS_TOPIC
from tests.broker import running
from tests.broker.streams import streams_reconciled
from tests.broker.streams import streams_scripts as scripts
from tests.broker.streams.streams_applications import Instance, StreamsMachine, streams_machine
from tests.broker.streams.streams_script import Script, topology
from tests.broker.streams.streams_targets import is_sticky, targets_of
from tests.broker.workload_runs import audit_errors
from tests.datasets import raw_records_of
from tools.kept_jars import ToolUnavailableError

pytestmark = pytest.mark.components

RACK = "rack-a"
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
    "broker.rack": RACK,
}
WORDS = [f"word-{number}" for number in range(12)]
PARTITIONS = 6
TIMEOUT_S = 240


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
    except (ToolUnavailableError, JavaError) as error:
        pytest.skip(f"Kafka's broker: {error}")  # a Kafka that does not start is a failure
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
        while {word: word_counts[-1] for word, word_counts in counts.items()} != self.sent:
            assert time.monotonic() < deadline_s, (self.cluster.name, counts, self.sent)
            message = reader.poll(1)
            if message is not None and message.error() is None:
                counts.setdefault(message.key().decode(), []).append(struct.unpack(">q", message.value())[0])
        reader.close()
        return counts


@pytest.mark.soak
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
    assert {word: word_counts[-1] for word, word_counts in light.items()} == {
        word: word_counts[-1] for word, word_counts in kafka.items()
    }
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
    for subtopology_tasks in row["assigned_tasks"]:
        tasks[subtopology_tasks["task_type"]] += [
            (subtopology_tasks["subtopology_id"], partition) for partition in subtopology_tasks["partitions"]
        ]
    return {"epoch": row["member_epoch"], "process": row["process_id"], **tasks}


def play_on_both(clusters: tuple[Cluster, Cluster], group: str, play: Callable[[Script], object]) -> int:
    """Play a script on both clusters, which must answer alike and record the same; the number of records."""
    answers = []
    for cluster in clusters:
        script = Script(cluster.bootstrap, group)
        play(script)
        answers.append(script.answers)
    for (sent, light), (_, kafka) in zip(*answers, strict=True):
        if kafka["error_message"] is None:
            light["error_message"] = None  # where Kafka says nothing, a reason does no harm
        assert (sent, light) == (sent, kafka)
    light_log, kafka_log = (recorded(cluster.log_dir, group) for cluster in clusters)
    assert light_log == kafka_log
    return len(light_log)


def recorded(log_dir: Path, group: str) -> list[Any]:
    """The records of a group without what differs between brokers: times, topics' ids, and the choice of ties."""
    decoded = [decode_record(*raw) for _, raw in sorted(raw_records_of(log_dir, OFFSETS_TOPIC).items())]
    group_records = [each for each in decoded if each.record_type in STREAMS_TYPES and each.group_id == group]
    result = []
    for record_type, records in groupby(group_records, key=lambda record: record.record_type):
        comparable_records = [
            (record_type, record.key.get("member_id"), _comparable_value(record.value)) for record in records
        ]
        result += sorted(comparable_records, key=repr) if record_type == MEMBER_TARGET else comparable_records
    return result


def _comparable_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        free = ("metadata_hash", "assignment_timestamp")
        return {name: _kept_field(name, each) for name, each in value.items() if name not in free}
    return value


def _kept_field(name: str, value: Any) -> Any:
    return sum(len(each["partitions"]) for each in value) if name.endswith("_tasks") or "pending" in name else value


@pytest.fixture(scope="module")
def topics(clusters: tuple[Cluster, Cluster]) -> None:
    """Topics for scripts; a group can be set up on both clusters then."""
    for cluster in clusters:
        admin = Admin(cluster.bootstrap)
        for name, partitions in (("in", 6), ("two", 2), ("log", 6), ("log-of-seven", 7), ("seven", 7)):
            admin.create_topic(name, partitions)
        probe = Script(cluster.bootstrap, "probe")
        while probe.join("m", topology({"source_topics": ["seven"]}))["status"]:
            time.sleep(0.05)


def test_a_life_of_a_group_has_the_answers_of_kafka(clusters: tuple[Cluster, Cluster], topics: None) -> None:
    assert play_on_both(clusters, "life", scripts.live) > 40


def test_refused_heartbeats_have_the_errors_of_kafka(clusters: tuple[Cluster, Cluster], topics: None) -> None:
    play_on_both(clusters, "refused", scripts.annoy)


def test_members_that_are_silent_or_keep_tasks_are_fenced_as_by_kafka(
    clusters: tuple[Cluster, Cluster], topics: None
) -> None:
    for cluster in clusters:
        Admin(cluster.bootstrap).configure_group("silent", {"streams.session.timeout.ms": "1000"})
    play_on_both(clusters, "silent", scripts.be_silent)
    play_on_both(clusters, "keeping", scripts.keep_tasks)


def test_offsets_and_administration_have_the_answers_of_kafka(clusters: tuple[Cluster, Cluster], topics: None) -> None:
    play_on_both(clusters, "administered", scripts.administrate)


def test_a_frame_above_the_largest_one_closes_the_connection(clusters: tuple[Cluster, Cluster]) -> None:
    for cluster in clusters:
        host, _, port = cluster.bootstrap.rpartition(":")
        with socket.create_connection((host, int(port)), TIMEOUT_S) as connection:
            connection.sendall(struct.pack(">ihhi", 101 << 20, 88, 0, 1))
            assert connection.recv(1) == b""


@pytest.mark.parametrize("name", scripts.TOPOLOGIES)
def test_odd_topologies_have_the_answers_of_kafka(clusters: tuple[Cluster, Cluster], topics: None, name: str) -> None:
    def join_twice(script: Script) -> None:
        for _ in range(2):
            script.join("a", scripts.TOPOLOGIES[name])

    play_on_both(clusters, name, join_twice)


def test_kafka_assigns_tasks_as_the_sticky_assignor_does(clusters: tuple[Cluster, Cluster], topics: None) -> None:
    counting = topology({"source_topics": ["seven"]}, {"source_topics": ["seven"], **scripts.changelog("log-of-seven")})
    for replicas in (0, 1, 2):
        for seed in range(4):
            group = f"assigned-{replicas}-{seed}"
            Admin(clusters[1].bootstrap).configure_group(group, {"streams.num.standby.replicas": str(replicas)})
            script = Script(clusters[1].bootstrap, group)
            _check_targets(script, counting, replicas, random.Random(group))


def _check_targets(script: Script, counting: dict[str, Any], replicas: int, dice: random.Random) -> None:
    """Members join and leave; each new target follows from the one before."""
    processes: dict[str, str] = {}
    before: dict[str, TasksByType] = {}
    for step in range(14):
        if len(processes) < 2 or (len(processes) < 7 and dice.random() < 0.6):
            processes[f"m{step}"] = f"p{dice.randrange(4)}"
            script.join(f"m{step}", counting, processes[f"m{step}"])
        else:
            leaving_member = dice.choice(sorted(processes))
            del processes[leaving_member]
            script.send(leaving_member, -1)
            script.beat(min(processes))
        after = targets_of(script.describe())
        counts = {"0": 7, "1": 7}
        assert is_sticky(before, after, processes, counts, stateful=["1"], standby_replicas=replicas), (
            script.group,
            step,
        )
        before = after


@pytest.mark.parametrize("replicas", [0, 1])
def test_kafka_reconciles_members_as_the_state_model_does(
    clusters: tuple[Cluster, Cluster], topics: None, replicas: int
) -> None:
    _, kafka = clusters
    group = f"reconciled-{replicas}"
    Admin(kafka.bootstrap).configure_group(group, {"streams.num.standby.replicas": str(replicas)})
    partitions = int(str(SETTINGS["offsets.topic.num.partitions"]))
    steps = streams_reconciled.play(Script(kafka.bootstrap, group), scripts.COUNTING, kafka.bootstrap, partitions)
    pairs = streams_reconciled.compared(kafka.log_dir, group, steps)
    assert len(pairs) > 30
    for expected, actual in pairs:
        assert expected == actual


def test_the_metadata_hash_is_kafkas_with_the_rack_of_its_broker(
    clusters: tuple[Cluster, Cluster], topics: None
) -> None:
    for cluster in clusters:
        Script(cluster.bootstrap, "hashed").join("a", scripts.COUNTING)
        raw = raw_records_of(cluster.log_dir, OFFSETS_TOPIC)
        decoded = [decode_record(*each) for _, each in sorted(raw.items())]
        (group,) = [each for each in decoded if (each.record_type, each.group_id) == (METADATA, "hashed")]
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        described = admin.describe_topics(TopicCollection(["in", "log"]))
        existing = {name: answer.result() for name, answer in described.items()}
        topic_metadata = [
            TopicMetadata(name, standard_b64decode(f"{each.topic_id}=="), len(each.partitions), (RACK,))
            for name, each in existing.items()
        ]
        assert group.value["metadata_hash"] == metadata_hash(topic_metadata)
