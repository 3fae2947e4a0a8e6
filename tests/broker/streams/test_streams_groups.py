"""Applications of Kafka Streams (KIP-1071) and kafka-streams-groups.sh against the light broker."""

import shutil
import struct
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from sharelens.cli import main
from tests.broker import running
from tests.broker.running import RunningBroker
from tests.broker.streams.streams_applications import StreamsMachine, streams_machine
from tests.broker_parts.dispatched_broker import DispatchedBroker

pytestmark = pytest.mark.components

STREAMS_GROUPS = "org.apache.kafka.tools.streams.StreamsGroupCommand"
SETTINGS = {
    "group_initial_rebalance_delay_ms": 0,
    "offsets_topic_num_partitions": 4,
    "group_streams_min_heartbeat_interval_ms": 100,
    "group_streams_heartbeat_interval_ms": 200,
    "group_streams_min_session_timeout_ms": 1_000,
    "group_streams_session_timeout_ms": 30_000,
    "group_streams_initial_rebalance_delay_ms": 100,
    "group_streams_assignment_interval_ms": 100,
    "group_streams_num_standby_replicas": 1,
}
WORDS = [f"word-{number}" for number in range(9)]
TIMEOUT_S = 120


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StreamsMachine]:
    with streams_machine(tmp_path_factory.mktemp("streams")) as started:
        yield started


class Broker:
    """A broker with the topics of the application; `sent` is what the counts must become."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process: RunningBroker = running.start(folder, **SETTINGS)
        self.bootstrap = self.process.bootstrap
        self.sent: Counter[str] = Counter()
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap})
        topics = [NewTopic("text", 4, 1), NewTopic("out", 1, 1)]
        for created in self.admin.create_topics(topics).values():
            created.result()

    def kill_and_restart(self) -> None:
        self.process.kill()
        self.process = running.start(self.folder, listen=self.bootstrap, **SETTINGS)

    def send(self, times: int) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for word in WORDS * times:
            producer.produce("text", key=word, value="")
        assert producer.flush(TIMEOUT_S) == 0
        self.sent.update(WORDS * times)

    def await_counts(self) -> list[int]:
        """The counts written for the first word, once every word has the count that it must have."""
        reader = Consumer(
            {"bootstrap.servers": self.bootstrap, "group.id": "reader", "isolation.level": "read_committed"}
        )
        reader.assign([TopicPartition("out", 0, 0)])
        counts: dict[str, int] = {}
        history = []
        deadline_s = time.monotonic() + TIMEOUT_S
        while counts != self.sent:
            assert time.monotonic() < deadline_s, (counts, self.sent)
            message = reader.poll(1)
            if message is not None and message.error() is None:
                word = message.key().decode()
                (counts[word],) = struct.unpack(">q", message.value())
                history += [counts[word]] if word == WORDS[0] else []
        reader.close()
        return history


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    started = Broker(tmp_path / "log")
    yield started
    started.process.kill()


def tool(machine: StreamsMachine, broker: Broker, *arguments: str) -> str:
    return machine.machine.tool(STREAMS_GROUPS, "--bootstrap-server", broker.bootstrap, *arguments).out


def test_an_application_scales_out_and_in_while_the_broker_is_killed(
    machine: StreamsMachine, broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.send(20)
    first = machine.instance(broker.bootstrap, "app").running()
    broker.await_counts()
    second = machine.instance(broker.bootstrap, "app").running()
    first.running()
    broker.send(20)
    broker.await_counts()
    members = tool(machine, broker, "--describe", "--group", "app", "--members")
    assert _assignments(members) == [
        "ACTIVE: 0:[0,1]; 1:[0,1]; STANDBY: 1:[2,3];",
        "ACTIVE: 0:[2,3]; 1:[2,3]; STANDBY: 1:[0,1];",
    ]
    broker.kill_and_restart()
    broker.send(5)
    broker.await_counts()
    assert _assignments(tool(machine, broker, "--describe", "--group", "app", "--members")) == _assignments(members)
    second.close()
    broker.send(5)
    broker.await_counts()
    assert "Stable" in tool(machine, broker, "--list", "--state", "Stable")
    _check_replay(broker)
    assert main(["describe", "--group", "app", "--bootstrap-server", broker.bootstrap]) == 0
    assert "compared with the coordinator on node 1: 1 of 1 group the same" in capsys.readouterr().out
    _refuse_while_active(machine, broker)
    first.close()
    _administrate(machine, broker)


def _assignments(members: str) -> list[str]:
    """The tasks of each member as the tool prints them, sorted."""
    return sorted("ACTIVE:" + line.partition("ACTIVE:")[2].rstrip() for line in members.split("\n")[1:] if line)


def _check_replay(broker: Broker) -> None:
    """What the broker of a copy of the log says after its load is what the running broker says."""
    copy = broker.folder.with_name("copy")
    shutil.copytree(broker.folder, copy)
    loaded = DispatchedBroker(copy, now_ms=int(time.time() * 1000), **SETTINGS)
    (group,) = loaded.call(89, 0, group_ids=["app"])["groups"]
    loaded.close()
    assert (group["group_state"], len(group["members"])) == ("Stable", 1)
    assert group["members"][0]["assignment"]["active_tasks"] == [
        {"subtopology_id": name, "partitions": [0, 1, 2, 3]} for name in ("0", "1")
    ]


def _refuse_while_active(machine: StreamsMachine, broker: Broker) -> None:
    group, topics = ("--group", "app"), "--all-input-topics"
    reset = tool(machine, broker, "--reset-offsets", *group, topics, "--to-earliest", "--execute")
    assert "inactive, but the current state is Stable" in reset
    assert "GroupNotEmptyException" in tool(machine, broker, "--delete", *group)
    assert tool(machine, broker, "--delete-offsets", *group, topics).count("GroupSubscribedToTopicException") == 4


def _administrate(machine: StreamsMachine, broker: Broker) -> None:
    offsets = ("--reset-offsets", "--group", "app", "--input-topic", "text:0,1")
    current = _new_offsets(tool(machine, broker, *offsets, "--to-current", "--dry-run"))
    assert _new_offsets(tool(machine, broker, *offsets, "--to-latest", "--dry-run")) == current
    assert _new_offsets(tool(machine, broker, *offsets, "--shift-by", "-2", "--dry-run")) == [n - 2 for n in current]
    for how in (("--to-offset", "0"), ("--by-duration", "PT1H"), ("--to-datetime", "2026-01-01T00:00:00.000")):
        assert _new_offsets(tool(machine, broker, *offsets, *how, "--dry-run")) == [0, 0]
    assert _new_offsets(tool(machine, broker, *offsets, "--to-earliest", "--execute")) == [0, 0]
    assert _new_offsets(tool(machine, broker, *offsets, "--to-current", "--dry-run")) == [0, 0]
    deleted = tool(machine, broker, "--delete-offsets", "--group", "app", "--input-topic", "text:3")
    assert "Successful" in deleted
    assert "successful" in tool(machine, broker, "--delete", "--group", "app", "--delete-all-internal-topics")
    assert tool(machine, broker, "--list").split() == []
    assert "app-counts-changelog" not in broker.admin.list_topics(timeout=TIMEOUT_S).topics


def _new_offsets(printed: str) -> list[int]:
    """The last column of the partitions that the tool prints."""
    return [int(line.split()[-1]) for line in printed.splitlines() if line.startswith("app ")]


def test_an_application_with_exactly_once_counts_every_record_once(machine: StreamsMachine, broker: Broker) -> None:
    broker.send(10)
    config = {"processing_guarantee": "exactly_once_v2", "num_stream_threads": 2}
    first = machine.instance(broker.bootstrap, "eos", **config).running()
    broker.await_counts()
    second = machine.instance(broker.bootstrap, "eos", **config).running()
    broker.send(10)
    history = broker.await_counts()
    assert history == list(range(1, 21))
    first.close()
    second.close()
