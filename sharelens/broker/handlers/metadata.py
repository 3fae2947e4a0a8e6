"""Metadata 0 to 13, DescribeCluster, DescribeTopicPartitions, FindCoordinator, ListPartitionReassignments."""

from typing import TYPE_CHECKING, Any

from kio.schema.errors import ErrorCode

from sharelens.broker.errors import BrokerError
from sharelens.broker.handlers.errors import code_of
from sharelens.broker.ports import Topic
from sharelens.broker.protocol.messages import metadata_topics, topic_id_text
from sharelens.broker.protocol.registry import ELEMENTS_MAX_AT_ONCE, Answer, RequestContext, handles
from sharelens.broker.protocol.steps import LazyArray
from sharelens.broker.security.authorization.entries import ResourceType
from sharelens.broker.storage.catalog import INTERNAL_TOPICS
from sharelens.kafka_formats.messages.api_keys import ApiKey
from state_model.uuids import is_uuid_text

if TYPE_CHECKING:
    from sharelens.broker.broker import Broker

NULL_TOPICS_VERSION = 1
ELR_LIMIT = 2_000
BROKER_ENDPOINTS = 1
NO_OPERATIONS = -(2**31)


@handles(ApiKey.METADATA, (0, 13))
def metadata(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """The broker and the requested topics; topics that don't exist are created when client and broker allow it."""
    requested = request.topics
    is_for_all = requested is None or (not requested and context.api_version < NULL_TOPICS_VERSION)
    may_create = getattr(request, "allow_auto_topic_creation", True) and broker.config.flag("auto.create.topics.enable")
    has_operations = getattr(request, "include_topic_authorized_operations", False)
    topics: LazyArray[Answer]
    if is_for_all:
        topics = LazyArray(lambda topic: _topic(broker, topic), list(broker.catalog.topics.values()))
    else:
        named = metadata_topics(request, context.api_version)
        topics = LazyArray(lambda topic: _requested_topic(broker, topic, may_create), named)
    if has_operations:
        topics = topics.then(lambda topic: _with_operations(topic, context))
    cluster_operations = getattr(request, "include_cluster_authorized_operations", False)
    return {
        "brokers": [_broker(broker, context, "node_id")],
        "cluster_id": broker.catalog.cluster_id,
        "controller_id": broker.node_id,
        "topics": topics,
        "cluster_authorized_operations": context.rights.cluster_bits() if cluster_operations else NO_OPERATIONS,
    }


def _with_operations(topic: Answer, context: RequestContext) -> Answer:
    """The topic with what the client may do with it, whether it exists or not."""
    if topic["name"] is None:
        return topic
    return {**topic, "topic_authorized_operations": context.rights.bits(ResourceType.TOPIC, topic["name"])}


def _node(broker: "Broker", context: RequestContext, id_field: str) -> dict[str, Any]:
    """This node, with the address of the listener that the request came in on."""
    host, port = broker.advertised(context.connection.listener)
    return {id_field: broker.node_id, "host": host, "port": port}


def _broker(broker: "Broker", context: RequestContext, id_field: str) -> dict[str, Any]:
    return _node(broker, context, id_field) | {"rack": broker.config.text("broker.rack") or None}


def _requested_topic(broker: "Broker", requested: Any, may_create: bool) -> dict[str, Any]:
    """One topic of a request, which has its name or its id; an id in versions that can not ask by it is refused."""
    topic_id = topic_id_text(getattr(requested, "topic_id", None))
    if requested.name is not None and topic_id is not None:
        return {"error_code": ErrorCode.invalid_request, "name": requested.name, "topic_id": topic_id}
    if requested.name is None:
        topic = broker.catalog.by_id(topic_id) if topic_id is not None else None
        if topic is not None:
            return _topic(broker, topic)
        return {"error_code": ErrorCode.unknown_topic_id, "name": None, "topic_id": topic_id}
    topic = broker.catalog.by_name(requested.name)
    if topic is None:
        try:
            topic = _create_missing(broker, requested.name, may_create)
        except BrokerError as error:
            return {"error_code": code_of(error), "name": requested.name}
    if topic is None:
        return {"error_code": ErrorCode.unknown_topic_or_partition, "name": requested.name}
    return _topic(broker, topic)


def _create_missing(broker: "Broker", name: str, may_create: bool) -> Topic | None:
    """A new topic, where auto.create.topics.enable allows it; an illegal name is refused in any case."""
    broker.catalog.check_name(name)
    if not may_create:
        return None
    if name in INTERNAL_TOPICS:
        return broker.catalog.ensure_internal(name)
    return broker.catalog.create(name, broker.config.integer("num.partitions"))


def _topic(broker: "Broker", topic: Topic) -> dict[str, Any]:
    return {
        "error_code": ErrorCode.none,
        "name": topic.name,
        "topic_id": topic.topic_id,
        "is_internal": topic.is_internal,
        "partitions": [_partition(broker, topic, partition) for partition in range(topic.partitions)],
    }


def _partition(broker: "Broker", topic: Topic, partition: int) -> dict[str, Any]:
    log = broker.logs.get(topic.name, partition)
    return {
        "error_code": ErrorCode.none if log is not None else ErrorCode.leader_not_available,
        "partition_index": partition,
        "leader_id": broker.node_id if log is not None else -1,
        "leader_epoch": log.leader_epoch if log is not None else -1,
        "replica_nodes": [broker.node_id],
        "isr_nodes": [broker.node_id],
    }


@handles(ApiKey.DESCRIBE_CLUSTER, (0, 2))
def describe_cluster(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """This node, which is broker and controller; only controllers know endpoints of controllers."""
    endpoint_type = getattr(request, "endpoint_type", BROKER_ENDPOINTS)
    if endpoint_type != BROKER_ENDPOINTS:
        return {
            "error_code": ErrorCode.mismatched_endpoint_type,
            "error_message": "this endpoint is a broker's",
            "endpoint_type": endpoint_type,
        }
    has_operations = request.include_cluster_authorized_operations
    return {
        "endpoint_type": endpoint_type,
        "cluster_id": broker.catalog.cluster_id,
        "controller_id": broker.node_id,
        "brokers": [_broker(broker, context, "broker_id")],
        "cluster_authorized_operations": context.rights.cluster_bits() if has_operations else NO_OPERATIONS,
    }


@handles(ApiKey.DESCRIBE_TOPIC_PARTITIONS, (0, 0), elements_max=ELEMENTS_MAX_AT_ONCE)
def describe_topic_partitions(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """Topics in the order of their names, from a cursor on, up to a number of partitions (KIP-966)."""
    cursor = request.cursor
    first = (cursor.topic_name, max(cursor.partition_index, 0)) if cursor is not None else ("", 0)
    names = {topic.name for topic in request.topics} or set(broker.catalog.topics)
    remaining_partitions = min(max(request.response_partition_limit, 1), ELR_LIMIT)
    answers: list[Answer] = []
    for name in sorted(name for name in names if name >= first[0]):
        if remaining_partitions == 0:
            return {"topics": answers, "next_cursor": {"topic_name": name, "partition_index": 0}}
        topic = broker.catalog.by_name(name)
        if topic is None:
            unknown = {"error_code": ErrorCode.unknown_topic_or_partition, "name": name}
            answers.append(_with_operations(unknown, context))
            continue
        answer = _topic(broker, topic)
        begin = first[1] if name == first[0] else 0
        # Java's admin client takes no null for the eligible leader replicas.
        answer["partitions"] = [
            {**partition, "eligible_leader_replicas": [], "last_known_elr": []}
            for partition in answer["partitions"][begin : begin + remaining_partitions]
        ]
        answers.append(_with_operations(answer, context))
        end = begin + len(answer["partitions"])
        remaining_partitions -= len(answer["partitions"])
        if end < topic.partitions:
            return {"topics": answers, "next_cursor": {"topic_name": name, "partition_index": end}}
    return {"topics": answers, "next_cursor": None}


@handles(ApiKey.LIST_PARTITION_REASSIGNMENTS, (0, 0))
def list_partition_reassignments(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """None: a single node has nowhere to move partitions to."""
    return {}


GROUP_COORDINATOR = 0
TRANSACTION_COORDINATOR = 1
SHARE_COORDINATOR = 2
FIRST_BATCHED_VERSION = 4
FIRST_SHARE_VERSION = 6
_TOPIC_OF = {
    GROUP_COORDINATOR: "__consumer_offsets",
    TRANSACTION_COORDINATOR: "__transaction_state",
    SHARE_COORDINATOR: "__share_group_state",
}


@handles(ApiKey.FIND_COORDINATOR, (0, 6))
def find_coordinator(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """This node, the coordinator of everything.

    The first request for a share coordinator creates the state topic and is answered with COORDINATOR_NOT_AVAILABLE.
    """
    key_type = getattr(request, "key_type", GROUP_COORDINATOR)
    if context.api_version < FIRST_BATCHED_VERSION:
        return _coordinator(broker, context, key_type, request.key)

    def coordinator(key: str) -> Answer:
        return {"key": key, **_coordinator(broker, context, key_type, key)}

    return {"coordinators": LazyArray(coordinator, request.coordinator_keys)}


def _coordinator(broker: "Broker", context: RequestContext, key_type: int, key: str) -> dict[str, Any]:
    error = _coordinator_error(broker, key_type, key, context.api_version)
    if error is not ErrorCode.none:
        return {"error_code": error, "error_message": error.name.upper(), "node_id": -1, "host": "", "port": -1}
    return {"error_code": error, "error_message": "", **_node(broker, context, "node_id")}


def _coordinator_error(broker: "Broker", key_type: int, key: str, version: int) -> ErrorCode:
    topic = _TOPIC_OF.get(key_type)
    if topic is None or (key_type == SHARE_COORDINATOR and (version < FIRST_SHARE_VERSION or not _is_share_key(key))):
        return ErrorCode.invalid_request
    is_new = broker.catalog.by_name(topic) is None
    try:
        broker.catalog.ensure_internal(topic)
    except BrokerError:
        return ErrorCode.coordinator_not_available
    return ErrorCode.coordinator_not_available if is_new and key_type == SHARE_COORDINATOR else ErrorCode.none


def _is_share_key(key: str) -> bool:
    """Whether it is group:topicId:partition; the group may have colons of its own."""
    group_id, _, rest = key.rpartition(":")[0].rpartition(":")
    partition = key.rpartition(":")[2]
    return bool(group_id) and is_uuid_text(rest) and partition.isascii() and partition.isdecimal()
