"""CreateTopics 2 to 7, DeleteTopics 1 to 6, CreatePartitions 0 to 3."""

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from kio.schema.errors import ErrorCode

from sharelens.broker.config.definitions import Definition
from sharelens.broker.config.settings import Source, parse_all
from sharelens.broker.config.topic_keys import TOPIC
from sharelens.broker.errors import BrokerError, ConfigError
from sharelens.broker.handlers.errors import RefusedError, code_of
from sharelens.broker.ports import Topic
from sharelens.broker.protocol.messages import topic_id_text
from sharelens.broker.protocol.registry import Answer, RequestContext, handles
from sharelens.broker.protocol.steps import LazyArray
from sharelens.kafka_formats.messages.api_keys import ApiKey

if TYPE_CHECKING:
    from sharelens.broker.broker import Broker

DEFAULT = -1
REPLICATION_FACTOR = 1


@handles(ApiKey.CREATE_TOPICS, (2, 7))
def create_topics(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """Create topics independently; each has its error."""
    counts = Counter(topic.name for topic in request.topics)

    def create(topic: Any) -> Answer:
        count = counts[topic.name]
        if count == 1:
            return _create(broker, topic, is_dry_run=request.validate_only)
        error = RefusedError(ErrorCode.invalid_request, f"topic {topic.name} is named {count} times")
        return {"name": topic.name, **_refused(error)}

    return {"topics": LazyArray(create, list({topic.name: topic for topic in request.topics}.values()))}


def _create(broker: "Broker", requested: Any, *, is_dry_run: bool) -> dict[str, Any]:
    try:
        partitions = _partition_count(broker, requested)
        configs = _configs(requested)
        if is_dry_run:
            broker.catalog.check_name(requested.name)
            broker.catalog.check_partitions(requested.name, partitions)
            topic_id = None
        else:
            topic_id = broker.catalog.create(requested.name, partitions, configs).topic_id
    except BrokerError as error:
        return {"name": requested.name, **_refused(error)}
    return {
        "name": requested.name,
        "topic_id": topic_id,
        "error_code": ErrorCode.none,
        "error_message": None,
        "num_partitions": partitions,
        "replication_factor": REPLICATION_FACTOR,
        "configs": [_described(broker, definition, configs) for definition in TOPIC.values()],
    }


def _refused(error: BrokerError) -> dict[str, Any]:
    return {"error_code": code_of(error), "error_message": str(error)}


def _described(broker: "Broker", definition: Definition, topic_configs: Mapping[str, str]) -> dict[str, Any]:
    setting = broker.config.layers(definition, topic_configs, Source.TOPIC)[0]
    return {
        "name": definition.name,
        "value": setting.text,
        "read_only": False,
        "config_source": setting.source,
        "is_sensitive": False,
    }


def _partition_count(broker: "Broker", requested: Any) -> int:
    """The requested number of partitions. Raises RefusedError for replicas on other nodes."""
    assignments = requested.assignments
    if assignments:
        if requested.num_partitions != DEFAULT or requested.replication_factor != DEFAULT:
            raise RefusedError(ErrorCode.invalid_request, "assignments exclude numbers of partitions and replicas")
        if sorted(assignment.partition_index for assignment in requested.assignments) != list(
            range(len(requested.assignments))
        ):
            raise RefusedError(ErrorCode.invalid_replica_assignment, "partitions must be assigned from 0 on, each once")
        _check_replicas(broker, assignments)
        return len(assignments)
    if requested.replication_factor not in (DEFAULT, REPLICATION_FACTOR):
        message = f"replication factor {requested.replication_factor}: there is one broker"
        raise RefusedError(ErrorCode.invalid_replication_factor, message)
    return (
        broker.config.integer("num.partitions")
        if requested.num_partitions == DEFAULT
        else int(requested.num_partitions)
    )


def _check_replicas(broker: "Broker", assignments: Any) -> None:
    for assignment in assignments:
        if tuple(assignment.broker_ids) != (broker.node_id,):
            message = f"replicas on {list(assignment.broker_ids)}: node {broker.node_id} is the only one"
            raise RefusedError(ErrorCode.invalid_replica_assignment, message)


def _configs(requested: Any) -> dict[str, str]:
    topic_configs = {}
    for config in requested.configs:
        if config.value is None:
            raise ConfigError(f"{config.name} has no value")
        topic_configs[config.name] = config.value
    parse_all(TOPIC, topic_configs)
    return topic_configs


@handles(ApiKey.DELETE_TOPICS, (1, 6))
def delete_topics(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """Delete topics by name, from version 6 on by id too; one that is named several times stays (ControllerApis)."""
    names = [(name, None) for name in getattr(request, "topic_names", ())]
    topics = [(topic.name, topic_id_text(topic.topic_id)) for topic in getattr(request, "topics", ())]
    counts = Counter([*names, *topics])
    existing_topics = {requested: _named_topic(broker, *requested) for requested in counts}
    counts_by_topic = Counter(existing_topics.values())

    def delete(requested: tuple[str | None, str | None]) -> dict[str, Any]:
        topic = existing_topics[requested]
        is_named_once = counts[requested] == 1 and (topic is None or counts_by_topic[topic] == 1)
        return _delete(broker, *requested, is_named_once=is_named_once)

    return {"responses": LazyArray(delete, list(counts))}


def _named_topic(broker: "Broker", name: str | None, topic_id: str | None) -> Topic | None:
    """The topic of a name or of an id; None for both of them, neither, and what does not exist."""
    if topic_id is None:
        return None if name is None else broker.catalog.by_name(name)
    return broker.catalog.by_id(topic_id) if name is None else None


def _delete(broker: "Broker", name: str | None, topic_id: str | None, *, is_named_once: bool) -> dict[str, Any]:
    topic = _named_topic(broker, name, topic_id)
    try:
        if (name is None) == (topic_id is None):
            raise RefusedError(ErrorCode.invalid_request, "a topic is deleted by its name or by its id")
        if not is_named_once:
            raise RefusedError(ErrorCode.invalid_request, "the topic is named several times")
        if topic is None:
            unknown = ErrorCode.unknown_topic_or_partition if name is not None else ErrorCode.unknown_topic_id
            raise RefusedError(unknown, "there is no such topic")
        if not broker.config.flag("delete.topic.enable"):
            raise RefusedError(ErrorCode.topic_deletion_disabled, "delete.topic.enable=false")
        if topic.is_internal:
            raise RefusedError(
                ErrorCode.invalid_request, f"{topic.name} is internal and can't be deleted while the broker runs"
            )
        broker.catalog.delete(topic.name)
    except BrokerError as error:
        return {"name": name, "topic_id": topic_id, **_refused(error)}
    return {"name": topic.name, "topic_id": topic.topic_id, "error_code": ErrorCode.none, "error_message": None}


@handles(ApiKey.CREATE_PARTITIONS, (0, 3))
def create_partitions(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """Add partitions to topics; their number never shrinks."""
    return {"results": LazyArray(partial(_add_partitions, broker, is_dry_run=request.validate_only), request.topics)}


def _add_partitions(broker: "Broker", requested: Any, *, is_dry_run: bool) -> dict[str, Any]:
    topic = broker.catalog.by_name(requested.name)
    try:
        if topic is None:
            raise RefusedError(ErrorCode.unknown_topic_or_partition, "there is no such topic")
        if topic.is_internal:
            raise RefusedError(ErrorCode.invalid_request, f"the partitions of {topic.name} must never change")
        broker.catalog.check_partitions(requested.name, requested.count)
        if requested.assignments is not None:
            if len(requested.assignments) != requested.count - topic.partitions:
                message = (
                    f"{len(requested.assignments)} assignments for {requested.count - topic.partitions} new partitions"
                )
                raise RefusedError(ErrorCode.invalid_replica_assignment, message)
            _check_replicas(broker, requested.assignments)
        if not is_dry_run:
            broker.catalog.add_partitions(requested.name, requested.count)
    except BrokerError as error:
        return {"name": requested.name, **_refused(error)}
    return {"name": requested.name, "error_code": ErrorCode.none, "error_message": None}
