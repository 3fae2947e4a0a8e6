"""Transactions: InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, EndTxn.

AddPartitionsToTxn ends at version 3, EndTxn at 4: later ones belong to transaction.version 2, which is not finalized.
"""

from typing import TYPE_CHECKING, Any

from kio.schema.errors import ErrorCode

from sharelens.broker.ports import TopicPartition
from sharelens.broker.protocol.messages import milliseconds
from sharelens.broker.protocol.registry import ELEMENTS_MAX_AT_ONCE, Answer, RequestContext, handles
from sharelens.broker.security.authorization.entries import Operation
from sharelens.broker.storage.catalog import INTERNAL_TOPICS
from sharelens.kafka_formats.messages.api_keys import ApiKey
from state_model.topics import OFFSETS_TOPIC

if TYPE_CHECKING:
    from sharelens.broker.broker import Broker

_FENCED_VERSION_INIT = 4
_FENCED_VERSION = 2


@handles(ApiKey.INIT_PRODUCER_ID, (0, 5))
def init_producer_id(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """A producer id and epoch, for an idempotent or a transactional producer."""
    answer = broker.transactions.init_producer_id(
        request.transactional_id,
        milliseconds(request.transaction_timeout),
        producer_id=getattr(request, "producer_id", -1),
        producer_epoch=getattr(request, "producer_epoch", -1),
    )
    return {
        "error_code": _fenced(answer.error_code, context, _FENCED_VERSION_INIT),
        "producer_id": answer.producer_id,
        "producer_epoch": answer.producer_epoch,
    }


@handles(ApiKey.ADD_PARTITIONS_TO_TXN, (0, 3), elements_max=ELEMENTS_MAX_AT_ONCE)
def add_partitions_to_txn(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """All partitions are added, or none: beside a refused one the others are not attempted.

    Internal topics are refused for everyone, like topics that the client may not write.
    """
    topics = [(topic.name, list(topic.partitions)) for topic in request.v3_and_below_topics]
    refused = {
        (name, partition): ErrorCode.unknown_topic_or_partition
        for name, partitions in topics
        for partition in partitions
        if broker.logs.get(name, partition) is None
    }
    for name, partitions in topics:
        if name in INTERNAL_TOPICS or not context.rights.topic(Operation.WRITE, name):
            refused |= {(name, partition): ErrorCode.topic_authorization_failed for partition in partitions}
    error = ErrorCode.operation_not_attempted
    if not refused:
        error = broker.transactions.add_partitions(
            request.v3_and_below_transactional_id,
            request.v3_and_below_producer_id,
            request.v3_and_below_producer_epoch,
            [TopicPartition(name, partition) for name, partitions in topics for partition in partitions],
        )
        error = _fenced(error, context, _FENCED_VERSION)
    return {
        "results_by_topic_v3_and_below": [
            {
                "name": name,
                "results_by_partition": [
                    {
                        "partition_index": partition,
                        "partition_error_code": refused.get((name, partition), error),
                    }
                    for partition in partitions
                ],
            }
            for name, partitions in topics
        ]
    }


@handles(ApiKey.ADD_OFFSETS_TO_TXN, (0, 4))
def add_offsets_to_txn(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """The partition that holds the group's offsets becomes part of the transaction."""
    error = broker.transactions.add_partitions(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        [TopicPartition(OFFSETS_TOPIC, broker.group_log.partition_for(request.group_id))],
    )
    return {"error_code": _fenced(error, context, _FENCED_VERSION)}


@handles(ApiKey.END_TXN, (0, 4))
def end_txn(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """Commit or abort."""
    error = broker.transactions.end(
        request.transactional_id, request.producer_id, request.producer_epoch, is_commit=request.committed
    )
    return {"error_code": _fenced(error, context, _FENCED_VERSION)}


def _fenced(error: ErrorCode, context: RequestContext, version: int) -> ErrorCode:
    """The error code of a version: older ones have INVALID_PRODUCER_EPOCH for PRODUCER_FENCED."""
    if error is ErrorCode.producer_fenced and context.api_version < version:
        return ErrorCode.invalid_producer_epoch
    return error
