"""The share coordinator's five APIs, as brokers and tools ask them (share-group-state-log §5, rpcs §1)."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from broker.ports import Persister
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages import state_batches_of, topic_id_text
from broker.protocol.registry import Answer, RequestContext, handles
from state_model.answers import ErrorCode
from state_model.coordinator import WriteRequest
from state_model.share_records import UNKNOWN_COUNT, SharePartitionKey


class ShareStateServer(Protocol):
    """What these handlers need of the broker."""

    @property
    def share_coordinator(self) -> Persister:
        """The share coordinator."""


@handles(ApiKey.INITIALIZE_SHARE_GROUP_STATE, (0, 0))
def initialize(broker: ShareStateServer, request: Any, context: RequestContext) -> Answer:
    """Begin the state of share partitions anew."""

    def one(key: SharePartitionKey, asked: Any) -> Mapping[str, Any]:
        code = broker.share_coordinator.initialize(key, state_epoch=asked.state_epoch, start_offset=asked.start_offset)
        return {"error_code": code}

    return _each(request, one)


@handles(ApiKey.READ_SHARE_GROUP_STATE, (0, 0))
def read(broker: ShareStateServer, request: Any, context: RequestContext) -> Answer:
    """The whole state of share partitions."""

    def one(key: SharePartitionKey, asked: Any) -> Mapping[str, Any]:
        answer = broker.share_coordinator.read(key, leader_epoch=asked.leader_epoch)
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

    return _each(request, one)


@handles(ApiKey.WRITE_SHARE_GROUP_STATE, (0, 1))
def write(broker: ShareStateServer, request: Any, context: RequestContext) -> Answer:
    """Change the state of share partitions; version 0 has no delivery complete count."""

    def one(key: SharePartitionKey, asked: Any) -> Mapping[str, Any]:
        wanted = WriteRequest(
            state_epoch=asked.state_epoch,
            leader_epoch=asked.leader_epoch,
            start_offset=asked.start_offset,
            delivery_complete_count=getattr(asked, "delivery_complete_count", UNKNOWN_COUNT),
            state_batches=state_batches_of(asked.state_batches),
        )
        return {"error_code": broker.share_coordinator.write(key, wanted)}

    return _each(request, one)


@handles(ApiKey.DELETE_SHARE_GROUP_STATE, (0, 0))
def delete(broker: ShareStateServer, request: Any, context: RequestContext) -> Answer:
    """Forget the state of share partitions."""
    return _each(request, lambda key, asked: {"error_code": broker.share_coordinator.delete(key)})


@handles(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, (0, 1))
def read_summary(broker: ShareStateServer, request: Any, context: RequestContext) -> Answer:
    """The scalars of share partitions; the leader epoch of the request is not looked at."""

    def one(key: SharePartitionKey, asked: Any) -> Mapping[str, Any]:
        answer = broker.share_coordinator.read_summary(key)
        return {
            "error_code": answer.error_code,
            "state_epoch": answer.state_epoch,
            "leader_epoch": answer.leader_epoch,
            "start_offset": answer.start_offset,
            "delivery_complete_count": answer.delivery_complete_count,
        }

    return _each(request, one)


def _each(request: Any, one: Callable[[SharePartitionKey, Any], Mapping[str, Any]]) -> Answer:
    """Ask for each partition. Nothing asked, or no group, is an empty answer; no topic id an invalid request."""
    if not request.group_id:
        return {"results": []}
    return {
        "results": [
            {
                "topic_id": topic.topic_id,
                "partitions": [_result(request.group_id, topic.topic_id, asked, one) for asked in topic.partitions],
            }
            for topic in request.topics
        ]
    }


def _result(
    group_id: str, topic_id: Any, asked: Any, one: Callable[[SharePartitionKey, Any], Mapping[str, Any]]
) -> Mapping[str, Any]:
    topic = topic_id_text(topic_id)
    if topic is None:
        answer: Mapping[str, Any] = {"error_code": ErrorCode.INVALID_REQUEST}
    else:
        answer = one(SharePartitionKey(group_id=group_id, topic_id=topic, partition=asked.partition), asked)
    code: ErrorCode = answer["error_code"]
    return {
        "partition": asked.partition,
        "error_message": code.name.replace("_", " ").lower() if code else None,
        **answer,
    }
