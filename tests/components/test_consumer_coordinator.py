"""Heartbeats of consumer groups answered as Kafka's own coordinator does: GroupCoordinatorShard of 4.3.1, step by step.

Random histories of a group run on both, each with its own assignors. Members of a history that prefer an assignor
prefer the same: where preferences are equally frequent, Kafka takes the one that a hash table has first. Records are
compared in their order, but for the targets of members, which Kafka writes in the order of a hash table. Kafka then
replays our records without an objection.
"""

import random
from collections.abc import Iterator
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from state_model.consumer import coordinator
from state_model.consumer.assignors import ASSIGNORS
from state_model.consumer.group import apply
from state_model.consumer.group_values import ConsumerGroup, PartitionMetadata, ResolvedExpression
from state_model.consumer.heartbeat import ErrorCode, Heartbeat, HeartbeatError
from state_model.consumer.reconciliation import Partition, Partitions
from state_model.consumer.records import MEMBER_TARGET, record_of, value_of
from state_model.consumer.soft_state import Settings, SoftState
from state_model.group_forms import name_of
from state_model.group_records import GroupRecord, decode_record, encode_record
from state_model.group_topics import TopicMetadata
from state_model.uuids import uuid_text
from tests.broker.java import JavaMachine, launch
from tools.kafka_tools import class_path

pytestmark = pytest.mark.components

HISTORIES, STEPS = 100, 30
MEMBERS = (("a", "b", "c", "d"), ("c", "d"), ("b", "c", "d"))
"""The members of a history: c and d have one instance id and follow each other, b has one in some of its requests."""
OPERATIONS = (
    ["join"] * 5 + ["beat"] * 10 + ["work"] * 5 + ["leave", "leave", "expire", "topic", "wait", "resolve", "old"]
)


class Clock:
    """The time that Kafka asks for."""

    now_ms = 1_000

    def milliseconds(self) -> int:
        return self.now_ms

    class Java:
        implements = ["org.apache.kafka.common.utils.Time"]


class Timers:
    """Kafka's timers by their keys, and the calls for them."""

    def __init__(self) -> None:
        self.operations: dict[str, Any] = {}
        self.calls: list[tuple[str, int | None]] = []

    def schedule(self, key: str, delay: int, *arguments: Any) -> None:
        self.calls.append((key, delay))
        self.operations[key] = arguments[-1]

    def scheduleIfAbsent(self, key: str, delay: int, *arguments: Any) -> None:  # noqa: N802
        if key not in self.operations:
            self.schedule(key, delay, *arguments)

    def cancel(self, key: str) -> None:
        self.calls.append((key, None))
        self.operations.pop(key, None)

    def isScheduled(self, key: str) -> bool:  # noqa: N802
        return key in self.operations

    class Java:
        implements = ["org.apache.kafka.coordinator.common.runtime.CoordinatorTimer"]


class Executor:
    """Kafka's tasks by their keys."""

    def __init__(self) -> None:
        self.tasks: dict[str, tuple[Any, Any]] = {}

    def schedule(self, key: str, task: Any, operation: Any) -> bool:
        self.tasks[key] = (task, operation)
        return True

    def isScheduled(self, key: str) -> bool:  # noqa: N802
        return key in self.tasks

    def cancel(self, key: str) -> None:
        self.tasks.pop(key, None)

    class Java:
        implements = ["org.apache.kafka.coordinator.common.runtime.CoordinatorExecutor"]


class Context:
    """The client of a request."""

    def __init__(self, address: Any) -> None:
        self._address = address

    def clientId(self) -> str:  # noqa: N802
        return "c"

    def clientAddress(self) -> Any:  # noqa: N802
        return self._address

    def requestVersion(self) -> int:  # noqa: N802
        return 1

    class Java:
        implements = ["org.apache.kafka.server.authorizer.AuthorizableRequestContext"]


class Kafka:
    """A coordinator of Kafka's, in a JVM."""

    def __init__(self, machine: JavaMachine, settings: Settings) -> None:
        jvm = self._jvm = machine.jvm
        self._kafka = jvm.org.apache.kafka
        self._group = self._kafka.coordinator.group
        self._serde = self._group.GroupCoordinatorRecordSerde()
        self.clock, self.timers, self.executor = Clock(), Timers(), Executor()
        self._context = Context(jvm.java.net.InetAddress.getByName("127.0.0.1"))
        self._image = self._kafka.image.MetadataImage.EMPTY
        log = self._kafka.common.utils.LogContext()
        metrics = self._group.metrics.GroupCoordinatorMetrics()
        self._shard = (
            self._builder(settings)
            .withAuthorizerPlugin(jvm.java.util.Optional.empty())
            .withLogContext(log)
            .withSnapshotRegistry(self._kafka.timeline.SnapshotRegistry(log))
            .withTime(self.clock)
            .withTimer(self.timers)
            .withExecutor(self.executor)
            .withCoordinatorMetrics(metrics)
            .withTopicPartition(self._kafka.common.TopicPartition("__consumer_offsets", 0))
            .build()
        )
        self._shard.onLoaded(self._coordinator_image())

    def _builder(self, settings: Settings) -> Any:
        values = self._jvm.java.util.HashMap()
        values["group.consumer.assignment.interval.ms"] = str(settings.assignment_interval_ms)
        values["group.consumer.max.size"] = str(settings.max_size)
        group, share = self._group.GroupCoordinatorConfig, self._group.modern.share.ShareGroupConfig
        definitions = self._kafka.common.utils.Utils.mergeConfigs([group.CONFIG_DEF, share.CONFIG_DEF])
        config = self._kafka.common.config.AbstractConfig(definitions, values, False)
        group_config = group(config)
        manager = self._group.GroupConfigManager(self._jvm.java.util.HashMap(), group_config, share(config))
        return getattr(self._group, "GroupCoordinatorShard$Builder")(group_config, manager)

    def _coordinator_image(self) -> Any:
        return self._kafka.coordinator.common.runtime.KRaftCoordinatorMetadataImage(self._image)

    def _uuid(self, text: str) -> Any:
        return self._kafka.common.Uuid.fromString(text)

    def change_topic(self, old: TopicMetadata | None, new: TopicMetadata | None) -> None:
        delta = getattr(self._kafka.image, "MetadataDelta$Builder")().setImage(self._image).build()
        records = self._kafka.common.metadata
        if old is not None and (new is None or old.topic_id != new.topic_id):
            delta.replay(records.RemoveTopicRecord().setTopicId(self._uuid(uuid_text(old.topic_id))))
            old = None
        if new is not None:
            topic_id = self._uuid(uuid_text(new.topic_id))
            if old is None:
                delta.replay(records.TopicRecord().setName(new.name).setTopicId(topic_id))
            for number in range(0 if old is None else old.partitions, new.partitions):
                partition = records.PartitionRecord().setTopicId(topic_id).setPartitionId(number)
                delta.replay(partition.setReplicas([1]).setIsr([1]).setLeader(1))
        self._image = delta.apply(self._kafka.image.MetadataProvenance(self._image.offset() + 1, 0, 0, True))
        java_delta = self._kafka.coordinator.common.runtime.KRaftCoordinatorMetadataDelta(delta)
        self._shard.onMetadataUpdate(java_delta, self._coordinator_image())

    def heartbeat(self, request: Heartbeat) -> Any:
        """The result of a heartbeat or a departure; an error's code."""
        data = self._kafka.common.message.ConsumerGroupHeartbeatRequestData()
        data.setGroupId(request.group_id).setMemberId(request.member_id).setMemberEpoch(request.member_epoch)
        data.setInstanceId(request.instance_id).setRackId(request.rack_id)
        data.setRebalanceTimeoutMs(request.rebalance_timeout_ms).setServerAssignor(request.server_assignor)
        names = request.subscribed_topic_names
        data.setSubscribedTopicNames(None if names is None else list(names))
        data.setSubscribedTopicRegex(request.subscribed_topic_regex)
        data.setTopicPartitions(None if request.owned is None else self._owned(request.owned))
        try:
            return self._shard.consumerGroupHeartbeat(self._context, data)
        except Py4JJavaError as error:
            return int(self._kafka.common.protocol.Errors.forException(error.java_exception).code())

    def _owned(self, partitions: Partitions) -> list[Any]:
        topic = getattr(self._kafka.common.message, "ConsumerGroupHeartbeatRequestData$TopicPartitions")
        topic_ids = sorted({part.topic_id for part in partitions})
        return [
            topic()
            .setTopicId(self._uuid(topic_id))
            .setPartitions([part.partition for part in partitions if part.topic_id == topic_id])
            for topic_id in topic_ids
        ]

    def replay(self, result: Any) -> tuple[GroupRecord, ...]:
        """The records of a result, after they are in force."""
        decoded = []
        for record in result.records():
            self._shard.replay(0, -1, -1, record)
            decoded.append(decode_record(bytes(self._serde.serializeKey(record)), self._serde.serializeValue(record)))
        return tuple(decoded)

    def replay_record(self, record: GroupRecord) -> None:
        key, value = encode_record(record)
        wrap = self._jvm.java.nio.ByteBuffer.wrap
        self._shard.replay(0, -1, -1, self._serde.deserialize(wrap(key), None if value is None else wrap(value)))


class History:
    """One group on both sides, and its clients: epochs and partitions as the last answers said."""

    def __init__(self, kafka: Kafka, settings: Settings, dice: random.Random) -> None:
        self.kafka, self.dice, self.settings = kafka, dice, settings
        self.topics: dict[str, TopicMetadata] = {}
        self.group: ConsumerGroup | None = None
        self.soft = SoftState()
        self.clients: dict[str, tuple[int, Partitions]] = {}
        self.members = dice.choice(MEMBERS)
        self.preferred = dice.choice(["range", "uniform"])
        self.revocations: dict[str, tuple[int, int]] = {}
        self.codes: set[ErrorCode] = set()
        self.log: list[GroupRecord] = []
        self.incarnation = 0
        for name in ("t1", "t2"):
            self.change_topic(name, 2)

    def change_topic(self, name: str, partitions: int) -> None:
        """Create a topic, add partitions or (0) delete it."""
        old, new = self.topics.pop(name, None), None
        if partitions:
            self.incarnation += old is None
            topic_id = old.topic_id if old else bytes([1, self.incarnation]).ljust(16, b"\1")
            partitions = max(partitions, old.partitions if old else 0)
            new = self.topics[name] = TopicMetadata(name, topic_id, partitions)
        self.kafka.change_topic(old, new)
        if self.group is not None and name in self.group.topic_names:
            self.soft = SoftState()

    def step(self) -> str:
        """A random step on both sides, with equal results; its text."""
        dice, member_id = self.dice, self.dice.choice(self.members)
        operation = dice.choice(OPERATIONS)
        self.kafka.clock.now_ms += 100
        match operation:
            case "join" | "beat" | "leave":
                self.send(self.request(operation, member_id))
            case "work":
                for name, (epoch, partitions) in list(self.clients.items()):
                    self.send(Heartbeat("g", name, epoch, "c", "/127.0.0.1", self.instance(name), owned=partitions))
            case "expire":
                self.expire(dice.choice(["session", "rebalance"]), member_id)
            case "topic":
                self.change_topic(dice.choice(["t1", "t2"]), dice.randint(0, 4) and dice.randint(4, 6))
            case "wait":
                self.kafka.clock.now_ms += 11_000
            case "resolve":
                self.resolve()
            case "old" if self.group is not None:
                record = record_of(4, "g", PartitionMetadata())
                self.kafka.replay_record(record)
                self.log.append(record)
                self.group = apply(self.group, record)
        return operation

    def instance(self, member_id: str) -> str | None:
        instances = {"c": ["i"], "d": ["i"], "b": [None, None, "j"]}
        return self.dice.choice(instances.get(member_id, [None]))

    def request(self, operation: str, member_id: str) -> Heartbeat:
        dice = self.dice
        epoch, partitions = self.clients.get(member_id, (0, frozenset[Partition]()))
        request = Heartbeat("g", member_id, epoch, "c", "/127.0.0.1", self.instance(member_id))
        if operation == "leave":
            return request._replace(member_epoch=dice.choice([-1, -2, -2]) if request.instance_id else -1)
        names = dice.choice([None, None, frozenset[str](), frozenset({"t1"}), frozenset({"t1", "t2", "t3"})])
        regex = dice.choice([None, None, None, "t1.*", "t.*", "", "("])
        request = request._replace(subscribed_topic_names=names, subscribed_topic_regex=regex)
        request = request._replace(
            rack_id=dice.choice([None, None, "r"]), server_assignor=dice.choice([None, self.preferred])
        )
        if operation == "join":
            names = frozenset({"t1"}) if names is None and regex is None else names
            return request._replace(
                member_epoch=0, rebalance_timeout_ms=60_000, owned=frozenset(), subscribed_topic_names=names
            )
        if dice.random() < 0.7:
            request = request._replace(subscribed_topic_names=None, subscribed_topic_regex=None)
        timeout_ms = dice.choice([-1, -1, 60_000])
        epoch = dice.choice([epoch, epoch, epoch, epoch, max(1, epoch - 1), epoch + 1])
        return request._replace(
            member_epoch=epoch, rebalance_timeout_ms=timeout_ms, owned=dice.choice([None, partitions, frozenset()])
        )

    def send(self, request: Heartbeat) -> None:
        self.kafka.timers.calls.clear()
        result = self.kafka.heartbeat(request)
        records = () if isinstance(result, int) else self.kafka.replay(result)
        outcome = self.outcome_of(request)
        if isinstance(outcome, ErrorCode) or isinstance(result, int):
            assert outcome == result, request
            self.codes.add(ErrorCode(result))
            self.clients.pop(request.member_id, None)
            return
        self.accept(outcome, records, request.member_id)
        assert tuple(outcome.answer) == self.answer(result.response())
        self.clients[request.member_id] = (
            outcome.answer.member_epoch,
            self.clients.get(request.member_id, (0, frozenset()))[1]
            if outcome.answer.assigned is None
            else outcome.answer.assigned,
        )
        if request.member_epoch < 0:
            self.clients.pop(request.member_id)

    def outcome_of(self, request: Heartbeat) -> coordinator.Outcome | ErrorCode:
        """By our rules, with our assignors; an error's code."""
        now_ms = self.kafka.clock.now_ms
        try:
            if request.member_epoch < 0:
                return coordinator.leave(self.group, self.soft, request, self.topics.get)
            return coordinator.heartbeat(self.group, self.soft, request, self.topics.get, self.settings, now_ms)
        except HeartbeatError as error:
            return error.code

    def accept(self, outcome: coordinator.Outcome, records: tuple[GroupRecord, ...], member_id: str) -> None:
        """Compare records and timers, and go on with the group after them."""
        assert comparable(outcome.records) == comparable(records)
        self.log += outcome.records
        key = f"rebalance-timeout-g-{member_id}"
        calls = [delay for name, delay in self.kafka.timers.calls if name == key]
        expected = [outcome.revocation[1]] if outcome.revocation else [None] if outcome.ends_revocation else []
        assert calls == expected
        if outcome.revocation is not None:
            self.revocations[member_id] = outcome.revocation
        self.group, self.soft = outcome.group, outcome.soft

    def answer(self, response: Any) -> tuple[Any, ...]:
        assignment = response.assignment()
        partitions = None
        if assignment is not None:
            topics = assignment.topicPartitions()
            partitions = {Partition(each.topicId().toString(), part) for each in topics for part in each.partitions()}
        return response.memberId(), response.memberEpoch(), response.heartbeatIntervalMs(), partitions

    def expire(self, timer: str, member_id: str) -> None:
        operation = self.kafka.timers.operations.pop(f"{timer}-timeout-g-{member_id}", None)
        if operation is None:
            return
        self.kafka.timers.calls.clear()
        records = self.kafka.replay(operation.generateRecords())
        if timer == "session":
            outcome = coordinator.expire_session("g", self.group, self.soft, member_id, self.topics.get)
        else:
            epoch = self.revocations[member_id][0]
            outcome = coordinator.expire_revocation("g", self.group, self.soft, member_id, epoch, self.topics.get)
        if outcome is None:
            assert records == ()
        else:
            self.accept(outcome, records, member_id)

    def resolve(self) -> None:
        task, operation = self.kafka.executor.tasks.pop("g-regex", (None, None))
        if task is None or self.group is None:
            return
        matches = task.run()
        records = self.kafka.replay(operation.onComplete(matches, None))
        expressions = {
            regex: ResolvedExpression(frozenset(each.topics()), each.version(), each.timestamp())
            for regex, each in matches.items()
        }
        now_ms = self.kafka.clock.now_ms
        outcome = coordinator.resolve("g", self.group, self.soft, expressions, self.topics.get, now_ms)
        assert sorted(comparable(outcome.records), key=str) == sorted(comparable(records), key=str)
        self.log += outcome.records
        self.group, self.soft = outcome.group, outcome.soft


def comparable(records: tuple[GroupRecord, ...]) -> list[tuple[int, str, object]]:
    """Type, name and value of each record; neighbouring targets of members by their ids."""
    entries = [(record.record_type, name_of(record), value_of(record)) for record in records]
    ordered: list[tuple[int, str, object]] = []
    for entry in entries:
        index = len(ordered)
        while entry[0] == MEMBER_TARGET and index and ordered[index - 1][0] == MEMBER_TARGET:
            if ordered[index - 1][1] <= entry[1]:
                break
            index -= 1
        ordered.insert(index, entry)
    return ordered


@pytest.fixture(scope="module")
def machine() -> Iterator[JavaMachine]:
    java = launch(class_path)
    try:
        yield java
    finally:
        java.end()


def test_random_histories_are_those_of_kafka(machine):
    steps: list[str] = []
    codes, record_types = set(), set()
    for seed in range(HISTORIES):
        dice = random.Random(seed)
        settings = Settings(ASSIGNORS, assignment_interval_ms=dice.choice([0, 1_000]), max_size=dice.choice([2, 9, 9]))
        history = History(Kafka(machine, settings), settings, dice)
        steps += [history.step() for _ in range(STEPS)]
        codes |= history.codes
        record_types |= {-each.record_type if each.is_tombstone else each.record_type for each in history.log}
        restarted = Kafka(machine, settings)
        for record in history.log:
            restarted.replay_record(record)
    assert set(steps) == set(OPERATIONS)
    assert set(ErrorCode) - codes == {
        *(ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.INVALID_REQUEST),  # no history has them
        ErrorCode.UNSUPPORTED_ASSIGNOR,
    }
    assert record_types == {3, 4, -4, 5, -5, 6, 7, -7, 8, -8, 16, -16}
