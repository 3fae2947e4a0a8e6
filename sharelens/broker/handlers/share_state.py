"""The share coordinator's five APIs, which brokers and tools send (share-group-state-log §5, rpcs §1)."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Protocol

from sharelens.broker.ports import Persister
from sharelens.broker.protocol.messages import state_batches_of, topic_id_text
from sharelens.broker.protocol.registry import Answer, RequestContext, handles
from sharelens.broker.protocol.steps import LazyArray
from sharelens.kafka_formats.messages.api_keys import ApiKey
from state_model.answers import ErrorCode
from state_model.coordinator import WriteRequest
from state_model.rule_sets import RuleSet
from state_model.share_records import UNKNOWN_COUNT, SharePartitionKey

Operation = Callable[[SharePartitionKey, Any], Mapping[str, Any]]
"""Answers one partition of a request: its error code and what else the response has."""

# Kafka's texts (ShareCoordinatorShard, ShareCoordinatorService, Errors).
NULL_TOPIC_ID: Final = "The topic id cannot be null."
NEGATIVE_PARTITION: Final = "The partition id cannot be a negative number."
NEGATIVE_LEADER_EPOCH: Final = "The leader epoch cannot be a negative number."
NEGATIVE_STATE_EPOCH: Final = "The state epoch cannot be a negative number."
_UNINITIALIZED: Final = {
    ApiKey.READ_SHARE_GROUP_STATE: "Read operation on uninitialized share partition not allowed.",
    ApiKey.WRITE_SHARE_GROUP_STATE: "Write operation on uninitialized share partition not allowed.",
}
_MESSAGES: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.FENCED_LEADER_EPOCH: "The leader epoch in the request is older than the epoch on the broker.",
    ErrorCode.FENCED_STATE_EPOCH: "The share coordinator rejected the request because the share-group state epoch "
    "did not match.",
}
_FAILED: Final = {
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: "Unable to initialize share group state: ",
    ApiKey.READ_SHARE_GROUP_STATE: "Unable to read share group state: ",
    ApiKey.WRITE_SHARE_GROUP_STATE: "Unable to write share group state: ",
    ApiKey.DELETE_SHARE_GROUP_STATE: "Unable to delete share group state: ",
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: "Unable to read share group state summary: ",
}
_CAUSES: Final = {
    ErrorCode.UNKNOWN_SERVER_ERROR: "The server experienced an unexpected error when processing the request.",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "The coordinator is loading and hence can't process requests.",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.NOT_COORDINATOR: "This is not the correct coordinator.",
}


class ShareStateServer(Protocol):
    """The parts of the broker that these handlers use."""

    @property
    def share_coordinator(self) -> Persister:
        """The share coordinator."""

    @property
    def rules(self) -> RuleSet:
        """The rules that the share coordinator follows."""


@handles(ApiKey.INITIALIZE_SHARE_GROUP_STATE, (0, 0))
def initialize(broker: ShareStateServer, request: Any, context: RequestContext) -> Answer:
    """Reset the state of share partitions to a start offset without state batches."""

    def operation(key: SharePartitionKey, requested: Any) -> Mapping[str, Any]:
        code = broker.share_coordinator.initialize(
            key, state_epoch=requested.state_epoch, start_offset=requested.start_offset
        )
        return {"error_code": code}

    return _answer(broker, request, context, operation)


@handles(ApiKey.READ_SHARE_GROUP_STATE, (0, 0))
def read(broker: ShareStateServer, request: Any, context: RequestContext) -> Answer:
    """The whole state of share partitions."""

    def operation(key: SharePartitionKey, requested: Any) -> Mapping[str, Any]:
        answer = broker.share_coordinator.read(key, leader_epoch=requested.leader_epoch)
        return {
            "error_code": answer.error_code,
            "state_epoch": answer.state_epoch,
            "start_offset": answer.start_offset,
            "state_batches": [
                {
                    "first_offset": batch.first_offset,
                    "last_offset": batch.last_offset,
                    "delivery_state": batch.delivery_state,
                    "delivery_count": batch.delivery_count,
                }
                for batch in answer.state_batches
            ],
        }

    return _answer(broker, request, context, operation)


@handles(ApiKey.WRITE_SHARE_GROUP_STATE, (0, 1))
def write(broker: ShareStateServer, request: Any, context: RequestContext) -> Answer:
    """Change the state of share partitions; version 0 has no delivery complete count."""

    def operation(key: SharePartitionKey, requested: Any) -> Mapping[str, Any]:
        write_request = WriteRequest(
            state_epoch=requested.state_epoch,
            leader_epoch=requested.leader_epoch,
            start_offset=requested.start_offset,
            delivery_complete_count=getattr(requested, "delivery_complete_count", UNKNOWN_COUNT),
            state_batches=state_batches_of(requested.state_batches),
        )
        return {"error_code": broker.share_coordinator.write(key, write_request)}

    return _answer(broker, request, context, operation)


@handles(ApiKey.DELETE_SHARE_GROUP_STATE, (0, 0))
def delete(broker: ShareStateServer, request: Any, context: RequestContext) -> Answer:
    """Delete the state of share partitions."""

    def operation(key: SharePartitionKey, requested: Any) -> Mapping[str, Any]:
        return {"error_code": broker.share_coordinator.delete(key)}

    return _answer(broker, request, context, operation)


@handles(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, (0, 1))
def read_summary(broker: ShareStateServer, request: Any, context: RequestContext) -> Answer:
    """The scalars of share partitions; the leader epoch of the request is not checked."""

    def operation(key: SharePartitionKey, requested: Any) -> Mapping[str, Any]:
        answer = broker.share_coordinator.read_summary(key)
        return {
            "error_code": answer.error_code,
            "state_epoch": answer.state_epoch,
            "leader_epoch": answer.leader_epoch,
            "start_offset": answer.start_offset,
            "delivery_complete_count": answer.delivery_complete_count,
        }

    return _answer(broker, request, context, operation)


def _answer(broker: ShareStateServer, request: Any, context: RequestContext, operation: Operation) -> Answer:
    """The results of all partitions; none without a group id, an invalid request without a topic id."""
    if not request.group_id:
        return {"results": []}
    api = ApiKey(context.api_key)

    def result(topic_id: str | None, requested: Any) -> Mapping[str, Any]:
        if topic_id is None:
            return _error(requested, ErrorCode.INVALID_REQUEST, NULL_TOPIC_ID)
        key = SharePartitionKey(group_id=request.group_id, topic_id=topic_id, partition=requested.partition)
        answer = operation(key, requested)
        code: ErrorCode = answer["error_code"]
        if code is ErrorCode.NONE:
            return {"partition": requested.partition, **answer}
        return _error(requested, code, error_message(api, code, requested, broker.rules))

    def topic_results(topic: Any) -> Mapping[str, Any]:
        topic_id = topic_id_text(topic.topic_id)
        return {"topic_id": topic.topic_id, "partitions": LazyArray(partial(result, topic_id), topic.partitions)}

    return {"results": LazyArray(topic_results, request.topics)}


def _error(requested: Any, code: ErrorCode, message: str) -> Mapping[str, Any]:
    return {"partition": requested.partition, "error_code": code, "error_message": message}


def error_message(api: ApiKey, code: ErrorCode, requested: Any, rules: RuleSet) -> str:
    """The text that Kafka sends with an error code, which names the field that it refuses."""
    if code is not ErrorCode.INVALID_REQUEST:
        return _MESSAGES.get(code) or _FAILED[api] + _CAUSES[code]
    if requested.partition < 0:
        return NEGATIVE_PARTITION
    if rules.refuses_negative_epochs and getattr(requested, "leader_epoch", 0) < 0:
        return NEGATIVE_LEADER_EPOCH
    if rules.refuses_negative_epochs and getattr(requested, "state_epoch", 0) < 0:
        return NEGATIVE_STATE_EPOCH
    return _UNINITIALIZED[api]
