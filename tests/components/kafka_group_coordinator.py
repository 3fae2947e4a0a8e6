"""Kafka's own group coordinator, GroupCoordinatorShard of 4.3.1, driven step by step over py4j.

Time, timers and tasks are those of the test.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from py4j.protocol import Py4JJavaError

from state_model.consumer.classic_group import ClassicGroup, ClassicMember
from state_model.consumer.classic_members import ClassicCall, Join
from state_model.consumer.heartbeat import Heartbeat
from state_model.consumer.reconciliation import Partitions
from state_model.consumer.records import MEMBER_TARGET, value_of
from state_model.consumer.soft_state import Settings
from state_model.group_forms import name_of
from state_model.group_records import GroupRecord, decode_record, encode_record
from state_model.group_topics import TopicMetadata
from state_model.uuids import uuid_text
from tests.broker.java import JavaMachine

PACKAGE = "org.apache.kafka.coordinator.group"


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
        self.version = 1

    def clientId(self) -> str:  # noqa: N802
        return "c"

    def clientAddress(self) -> Any:  # noqa: N802
        return self._address

    def requestVersion(self) -> int:  # noqa: N802
        return self.version

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
        config, manager = self._configuration(settings)
        self._service = self._new_service(log, config)
        self._shard = (
            getattr(self._group, "GroupCoordinatorShard$Builder")(config, manager)
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

    def _configuration(self, settings: Settings) -> tuple[Any, Any]:
        values = self._jvm.java.util.HashMap()
        values["group.consumer.assignment.interval.ms"] = str(settings.assignment_interval_ms)
        values["group.consumer.max.size"] = str(settings.max_size)
        values["group.consumer.assignors"] = ",".join(settings.assignors)
        values["group.consumer.migration.policy"] = settings.migration_policy.value
        values["group.max.size"] = str(settings.classic_max_size)
        group, share = self._group.GroupCoordinatorConfig, self._group.modern.share.ShareGroupConfig
        definitions = self._kafka.common.utils.Utils.mergeConfigs([group.CONFIG_DEF, share.CONFIG_DEF])
        config = self._kafka.common.config.AbstractConfig(definitions, values, False)
        group_config = group(config)
        manager = self._group.GroupConfigManager(self._jvm.java.util.HashMap(), group_config, share(config))
        return group_config, manager

    def _new_service(self, log: Any, config: Any) -> Any:
        """The service that checks requests before the coordinator gets them; it has nothing else."""
        constructor = _constructor(self._jvm, "GroupCoordinatorService")
        return constructor.newInstance(self._array(log, config, *[None] * 6))

    def _array(self, *values: Any) -> Any:
        return self._jvm.java.util.ArrayList(list(values)).toArray()

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
        """The result of a heartbeat or a departure, of version 1; an error's code."""
        data = self._kafka.common.message.ConsumerGroupHeartbeatRequestData()
        data.setGroupId(request.group_id).setMemberId(request.member_id).setMemberEpoch(request.member_epoch)
        data.setInstanceId(request.instance_id).setRackId(request.rack_id)
        data.setRebalanceTimeoutMs(request.rebalance_timeout_ms).setServerAssignor(request.server_assignor)
        names = request.subscribed_topic_names
        data.setSubscribedTopicNames(None if names is None else list(names))
        data.setSubscribedTopicRegex(request.subscribed_topic_regex)
        data.setTopicPartitions(None if request.owned is None else self._owned(request.owned))
        try:
            check = _method(self._jvm, "GroupCoordinatorService", "throwIfConsumerGroupHeartbeatRequestIsInvalid")
            check.invoke(self._service, self._array(data, 1))
            return self._shard.consumerGroupHeartbeat(self._context, data)
        except Py4JJavaError as error:
            return self._code(error)

    def _code(self, error: Py4JJavaError) -> int:
        exception = error.java_exception
        if exception.getClass().getSimpleName() == "InvocationTargetException":
            exception = exception.getCause()
        return int(self._kafka.common.protocol.Errors.forException(exception).code())

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
            if result.replayRecords():
                self._shard.replay(0, -1, -1, record)
            decoded.append(decode_record(bytes(self._serde.serializeKey(record)), self._serde.serializeValue(record)))
        if result.appendFuture() is not None:
            result.appendFuture().complete(None)
        return tuple(decoded)

    def replay_record(self, record: GroupRecord) -> None:
        key, value = encode_record(record)
        wrap = self._jvm.java.nio.ByteBuffer.wrap
        self._shard.replay(0, -1, -1, self._serde.deserialize(wrap(key), None if value is None else wrap(value)))

    # Members of the classic protocol

    def join(self, request: Join, version: int) -> tuple[Any, Any]:
        """The result of a JoinGroup or an error's code, and the answer that may come later."""
        message = self._kafka.common.message
        protocols = getattr(message, "JoinGroupRequestData$JoinGroupRequestProtocolCollection")()
        for name, metadata in request.protocols:
            protocol = getattr(message, "JoinGroupRequestData$JoinGroupRequestProtocol")()
            protocols.add(protocol.setName(name).setMetadata(metadata))
        data = message.JoinGroupRequestData().setGroupId(request.group_id).setProtocols(protocols)
        data.setMemberId("" if request.is_new_id else request.member_id).setGroupInstanceId(request.instance_id)
        data.setSessionTimeoutMs(request.session_timeout_ms).setRebalanceTimeoutMs(request.rebalance_timeout_ms)
        return self._answered(self._shard.classicGroupJoin, data.setProtocolType(request.protocol_type), version)

    def sync(self, call: ClassicCall, assignments: Mapping[str, bytes]) -> tuple[Any, Any]:
        """The result of a SyncGroup or an error's code, and the answer that may come later."""
        message = self._kafka.common.message
        assignment = getattr(message, "SyncGroupRequestData$SyncGroupRequestAssignment")
        data = message.SyncGroupRequestData().setGroupId(call.group_id).setMemberId(call.member_id)
        data.setGenerationId(call.generation).setGroupInstanceId(call.instance_id)
        data.setProtocolType(call.protocol_type).setProtocolName(call.protocol_name)
        data.setAssignments([assignment().setMemberId(each).setAssignment(assignments[each]) for each in assignments])
        return self._answered(self._shard.classicGroupSync, data, 5)

    def _answered(self, operation: Any, data: Any, version: int) -> tuple[Any, Any]:
        future = self._jvm.java.util.concurrent.CompletableFuture()
        self._context.version = version
        try:
            return operation(self._context, data, future), future
        except Py4JJavaError as error:
            return self._code(error), future

    def classic_heartbeat(self, call: ClassicCall) -> Any:
        """The result of a Heartbeat; an error's code."""
        data = self._kafka.common.message.HeartbeatRequestData().setGroupId(call.group_id)
        data.setMemberId(call.member_id).setGenerationId(call.generation).setGroupInstanceId(call.instance_id)
        try:
            return self._shard.classicGroupHeartbeat(self._context, data)
        except Py4JJavaError as error:
            return self._code(error)

    def leave(self, members: Sequence[tuple[str, str | None]]) -> Any:
        """The result of a LeaveGroup of members by member id and instance id; an error's code."""
        message = self._kafka.common.message
        identity = getattr(message, "LeaveGroupRequestData$MemberIdentity")
        data = message.LeaveGroupRequestData().setGroupId("g")
        data.setMembers([identity().setMemberId(name).setGroupInstanceId(instance) for name, instance in members])
        try:
            return self._shard.classicGroupLeave(self._context, data)
        except Py4JJavaError as error:
            return self._code(error)

    def group(self) -> Any:
        """The group; None: there is none."""
        try:
            return _field(self._jvm, "GroupCoordinatorShard", "groupMetadataManager").get(self._shard).group("g")
        except Py4JJavaError:
            return None

    def classic_group(self) -> ClassicGroup | None:
        """The group, if it is a classic one."""
        group = self.group()
        if group is None or group.type().name() != "CLASSIC":
            return None
        name = group.protocolName().orElse(None)
        members = tuple(map(self._classic_member, self._jvm.java.util.ArrayList(group.allMembers())))
        return ClassicGroup(group.generationId(), group.protocolType().orElse(""), name, members)

    def _classic_member(self, member: Any) -> ClassicMember:
        return ClassicMember(
            member.memberId(),
            member.groupInstanceId().orElse(None),
            member.clientId(),
            member.clientHost(),
            member.rebalanceTimeoutMs(),
            member.sessionTimeoutMs(),
            tuple(
                (each.name(), bytes(each.metadata()))
                for each in self._jvm.java.util.ArrayList(member.supportedProtocols())
            ),
            bytes(member.assignment()),
        )


@cache
def _field(jvm: Any, class_name: str, name: str) -> Any:
    """A field that only Kafka itself reads."""
    field = jvm.java.lang.Class.forName(f"{PACKAGE}.{class_name}").getDeclaredField(name)
    field.setAccessible(True)
    return field


@cache
def _method(jvm: Any, class_name: str, name: str) -> Any:
    """A method that only Kafka itself calls."""
    methods = jvm.java.lang.Class.forName(f"{PACKAGE}.{class_name}").getDeclaredMethods()
    (method,) = (each for each in methods if each.getName() == name)
    method.setAccessible(True)
    return method


@cache
def _constructor(jvm: Any, class_name: str) -> Any:
    """The constructor that only Kafka itself calls."""
    (constructor,) = jvm.java.lang.Class.forName(f"{PACKAGE}.{class_name}").getDeclaredConstructors()
    constructor.setAccessible(True)
    return constructor


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
