"""Guards of requests that read, write, describe, create and delete topics."""

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Final

from kio.schema.errors import ErrorCode

from sharelens.broker.errors import FrameError
from sharelens.broker.handlers.rights.guards import (
    NO_ANSWER,
    Call,
    Error,
    Guard,
    Outcome,
    Proceed,
    changed,
    cluster,
    each,
    followed_by,
    refusal,
    topic_name,
    topics,
)
from sharelens.broker.protocol.messages import metadata_topics, topic_id_text
from sharelens.broker.protocol.registry import Answer
from sharelens.broker.protocol.steps import LazyArray
from sharelens.broker.security.authorization.entries import CLUSTER_NAME, Operation, ResourceType
from sharelens.broker.storage.record_batch import read_header

CLUSTER_ACTION: Final = cluster(Operation.CLUSTER_ACTION)
_TOPIC_REFUSED: Final = refusal(ResourceType.TOPIC)
_UNKNOWN_OFFSETS: Final[Mapping[str, Any]] = {
    "high_watermark": -1,
    "last_stable_offset": -1,
    "log_start_offset": -1,
    "aborted_transactions": [],
    "records": b"",
}
_NOT_WRITTEN: Final[Mapping[str, Any]] = {"base_offset": -1, "log_append_time": -1, "log_start_offset": -1}


# Records

_read_topics = topics("topics", Operation.READ, **_UNKNOWN_OFFSETS)
_write_topics = topics("topic_data", Operation.WRITE, **_NOT_WRITTEN)
_transactions_refused = refusal(ResourceType.TRANSACTIONAL_ID, **_NOT_WRITTEN)
_refuse_records = each("topic_data", lambda *_: _transactions_refused)


def fetch(call: Call, request: Any, proceed: Proceed) -> Outcome:
    """READ each topic; CLUSTER_ACTION for replicas, which then read all topics."""
    replica_state = getattr(request, "replica_state", None)
    replica_id = request.replica_id if replica_state is None else replica_state.replica_id
    if replica_id < 0:
        return _read_topics(call, request, proceed)
    if CLUSTER_ACTION.is_met(call, request):
        return proceed(request)
    refuse_all = each("topics", lambda *_: {**_TOPIC_REFUSED, **_UNKNOWN_OFFSETS})
    return refuse_all(call, request, proceed)


def produce(call: Call, request: Any, proceed: Proceed) -> Outcome:
    """WRITE each topic; transactional records need WRITE on the request's transactional id before that.

    Raises FrameError when a request that wants no answer is refused, in whole or in part, as in Kafka.
    """
    guard = _write_topics
    if _has_transactional_records(request):
        name = request.transactional_id
        if name is None or not call.rights.has(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, name):
            guard = _refuse_records
    outcome = guard(call, request, proceed)
    if request.acks == 0 and outcome is not None:
        raise FrameError(NO_ANSWER)
    return outcome


def _has_transactional_records(request: Any) -> bool:
    headers = (
        read_header(partition.records)
        for topic in request.topic_data
        for partition in topic.partition_data
        if partition.records
    )
    return any(header is not None and header.is_transactional for header in headers)


# Descriptions


def metadata(call: Call, request: Any, proceed: Proceed) -> Outcome:
    """DESCRIBE each topic, CREATE for those that the request creates; topics of a request for all are left out."""
    if request.topics is None or (not request.topics and call.context.api_version == 0):
        return changed(proceed(request), lambda answer: _described_only(call, answer))
    requested_topics = metadata_topics(request, call.context.api_version)
    errors = [(topic, _metadata_error(call, request, topic)) for topic in requested_topics]
    allowed_topics = tuple(topic for topic, error in errors if error is None)
    refusals = [error for _, error in errors if error is not None]
    return changed(
        proceed(replace(request, topics=allowed_topics)),
        # An answer of version 0 to a request for no topic has all of them.
        lambda answer: followed_by(answer if allowed_topics else {**answer, "topics": []}, "topics", refusals),
    )


def _described_only(call: Call, answer: Answer) -> Answer:
    described: LazyArray[Answer] = answer["topics"]
    return {**answer, "topics": described.where(lambda topic: call.rights.topic(Operation.DESCRIBE, topic.name))}


def _metadata_error(call: Call, request: Any, topic: Any) -> Error | None:
    name = topic_name(call, topic)
    if name is None or _has_both(topic):
        return None
    if not call.rights.topic(Operation.DESCRIBE, name):
        if topic.name is not None:
            return {**_TOPIC_REFUSED, "name": name}
        return {**_TOPIC_REFUSED, "name": None, "topic_id": topic_id_text(topic.topic_id)}
    is_created = (
        getattr(request, "allow_auto_topic_creation", True)
        and call.broker.config.flag("auto.create.topics.enable")
        and call.broker.catalog.by_name(name) is None
    )
    return {**_TOPIC_REFUSED, "name": name} if is_created and not call.rights.may_create_topic(name) else None


def _has_both(topic: Any) -> bool:
    """Whether a requested topic has a name and an id, which the handler refuses."""
    return getattr(topic, "name", None) is not None and getattr(topic, "topic_id", None) is not None


def describe_topic_partitions(call: Call, request: Any, proceed: Proceed) -> Outcome:
    """DESCRIBE each topic; topics of a request for all are left out."""
    names = {topic.name for topic in request.topics}
    allowed = {name for name in names or call.broker.catalog.topics if call.rights.topic(Operation.DESCRIBE, name)}
    refusals = [{**_TOPIC_REFUSED, "name": name} for name in sorted(names - allowed)] if request.cursor is None else []
    if not allowed:
        return {"topics": refusals}
    shown = tuple(SimpleNamespace(name=name) for name in allowed)
    return changed(proceed(replace(request, topics=shown)), lambda answer: followed_by(answer, "topics", refusals))


# Creation and deletion

_create_topics = topics(
    "topics", Operation.CREATE, alternative=cluster(Operation.CREATE), error_message="Authorization failed.", configs=[]
)
_NOT_DESCRIBED: Final = {
    "topic_config_error_code": ErrorCode.topic_authorization_failed,
    "num_partitions": -1,
    "replication_factor": -1,
    "configs": [],
}


def create_topics(call: Call, request: Any, proceed: Proceed) -> Outcome:
    """CREATE on the cluster or the topic; configurations of new topics are shown with DESCRIBE_CONFIGS."""

    def hide(topic: Answer) -> Answer:
        is_shown = topic["error_code"] or call.rights.topic(Operation.DESCRIBE_CONFIGS, topic["name"])
        return topic if is_shown else {**topic, **_NOT_DESCRIBED}

    def with_hidden(answer: Answer) -> Answer:
        return {**answer, "topics": LazyArray(hide, answer.get("topics", ()))}

    return changed(_create_topics(call, request, proceed), with_hidden)


def delete_topics(call: Call, request: Any, proceed: Proceed) -> Outcome:
    """DELETE on the cluster or the topic; without DESCRIBE a topic's absence is not shown, nor the name of an id."""
    list_name = "topics" if hasattr(request, "topics") else "topic_names"
    return _delete_topics[list_name](call, request, proceed)


def _delete_error(call: Call, request: Any, topic: Any) -> Error | None:
    name = topic if isinstance(topic, str) else topic_name(call, topic)
    if name is None or _has_both(topic) or call.rights.cluster(Operation.DELETE):
        return None
    # A right to DELETE is one to DESCRIBE, unless an entry denies that.
    is_described = call.rights.topic(Operation.DESCRIBE, name)
    is_absent = call.broker.catalog.by_name(name) is None
    if is_described and (is_absent or call.rights.topic(Operation.DELETE, name)):
        return None
    is_by_id = getattr(topic, "name", name) is None
    shown = {"name": name} if is_by_id and is_described else {}
    return refusal(ResourceType.TOPIC, has_message=True, **shown)


_delete_topics: Final[Mapping[str, Guard]] = {name: each(name, _delete_error) for name in ("topics", "topic_names")}


# Configurations

_TYPES: Final = {2: ResourceType.TOPIC, 32: ResourceType.GROUP}
"""Types of resources (ConfigResource.Type) with rights of their own; for all others the cluster's count."""


def configs(operation: Operation) -> Guard:
    """A right to each topic and group of the request, and to the cluster for all other resources."""

    def error_of(call: Call, request: Any, resource: Any) -> Error | None:
        resource_type = _TYPES.get(resource.resource_type, ResourceType.CLUSTER)
        name = CLUSTER_NAME if resource_type is ResourceType.CLUSTER else resource.resource_name
        if call.rights.has(operation, resource_type, name):
            return None
        return refusal(resource_type, has_message=True)

    return each("resources", error_of)
