"""Transactions for tools: DescribeProducers, DescribeTransactions, ListTransactions.

ListTransactions ends at version 1: later ones have a pattern, whose cost has no bound.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kio.schema.errors import ErrorCode

from sharelens.broker.coordinators.transaction_log import Transaction, TransactionStatus
from sharelens.broker.handlers.partitions import find_log
from sharelens.broker.protocol.registry import Answer, RequestContext, handles
from sharelens.broker.protocol.steps import LazyArray
from sharelens.broker.storage.producer_state import ProducerEntry
from sharelens.kafka_formats.messages.api_keys import ApiKey

if TYPE_CHECKING:
    from sharelens.broker.broker import Broker

NO_OPEN_TRANSACTION: Final = -1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_STATE_NAMES: Final = {
    TransactionStatus.EMPTY: "Empty",
    TransactionStatus.ONGOING: "Ongoing",
    TransactionStatus.PREPARE_COMMIT: "PrepareCommit",
    TransactionStatus.PREPARE_ABORT: "PrepareAbort",
    TransactionStatus.COMPLETE_COMMIT: "CompleteCommit",
    TransactionStatus.COMPLETE_ABORT: "CompleteAbort",
}
_KAFKA_STATES: Final = frozenset(_STATE_NAMES.values()) | {"Dead", "PrepareEpochFence"}


@handles(ApiKey.DESCRIBE_PRODUCERS, (0, 0))
def describe_producers(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """The producers of partitions, with the first offset of an open transaction."""
    return {
        "topics": [
            {
                "name": topic.name,
                "partitions": LazyArray(partial(_partition, broker, topic.name), topic.partition_indexes),
            }
            for topic in request.topics
        ]
    }


def _partition(broker: "Broker", topic: str, index: int) -> Mapping[str, Any]:
    log, error = find_log(broker, topic, None, index)
    producers = [] if log is None else [_producer(number, entry) for number, entry in log.producers.items()]
    return {"partition_index": index, "error_code": error, "active_producers": producers}


def _producer(producer_id: int, entry: ProducerEntry) -> Mapping[str, Any]:
    return {
        "producer_id": producer_id,
        "producer_epoch": entry.epoch,
        "last_sequence": entry.last_sequence,
        "last_timestamp": entry.last_timestamp_ms,
        "coordinator_epoch": entry.coordinator_epoch,
        "current_txn_start_offset": NO_OPEN_TRANSACTION if entry.open_from is None else entry.open_from,
    }


@handles(ApiKey.DESCRIBE_TRANSACTIONS, (0, 0))
def describe_transactions(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """The states of transactional ids, each with its own error code."""
    return {"transaction_states": LazyArray(partial(_described, broker), request.transactional_ids)}


def _described(broker: "Broker", transactional_id: str) -> Mapping[str, Any]:
    if not transactional_id:
        return _refused(transactional_id, ErrorCode.invalid_request)
    transaction = broker.transactions.get(transactional_id)
    if transaction is None:
        return _refused(transactional_id, ErrorCode.transactional_id_not_found)
    topics: dict[str, list[int]] = {}
    for at in sorted(transaction.partitions):
        topics.setdefault(at.topic, []).append(at.partition)
    return {
        "error_code": ErrorCode.none,
        "transactional_id": transactional_id,
        "transaction_state": _STATE_NAMES[transaction.status],
        "transaction_timeout": transaction.timeout_ms,
        "transaction_start_time": _EPOCH + timedelta(milliseconds=transaction.started_ms),
        "producer_id": transaction.producer_id,
        "producer_epoch": transaction.producer_epoch,
        "topics": [{"topic": topic, "partitions": partitions} for topic, partitions in topics.items()],
    }


def _refused(transactional_id: str, error: ErrorCode) -> Mapping[str, Any]:
    return {"transactional_id": transactional_id, "error_code": error}


@handles(ApiKey.LIST_TRANSACTIONS, (0, 1))
def list_transactions(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """All transactional ids, or those in certain states, of certain producers, open for longer than a duration."""
    states = set(request.state_filters)
    return {
        "error_code": ErrorCode.none,
        "unknown_state_filters": sorted(states - _KAFKA_STATES),
        "transaction_states": [
            {
                "transactional_id": transaction.transactional_id,
                "producer_id": transaction.producer_id,
                "transaction_state": _STATE_NAMES[transaction.status],
            }
            for transaction in _chosen(broker, request, states)
        ],
    }


def _chosen(broker: "Broker", request: Any, states: set[str]) -> Iterator[Transaction]:
    producers = set(request.producer_id_filters)
    open_ms = getattr(request, "duration_filter", -1)
    now_ms = broker.timers.now_ms()
    for transaction in broker.transactions:
        is_open_long = open_ms < 0 or 0 <= transaction.started_ms < now_ms - open_ms
        in_state = not states or _STATE_NAMES[transaction.status] in states
        if in_state and is_open_long and (not producers or transaction.producer_id in producers):
            yield transaction
