"""ListOffsets 1 to 11, OffsetForLeaderEpoch 2 to 4, DeleteRecords 0 to 2."""

from bisect import bisect_right
from functools import partial
from typing import TYPE_CHECKING, Any

from kio.schema.errors import ErrorCode

from sharelens.broker.errors import BrokerError
from sharelens.broker.handlers.errors import code_of
from sharelens.broker.handlers.partitions import NO_LEADER_EPOCH, find_log
from sharelens.broker.protocol.registry import Answer, RequestContext, handles
from sharelens.broker.protocol.steps import LazyArray
from sharelens.broker.storage.catalog import INTERNAL_TOPICS
from sharelens.broker.storage.partition_log import PartitionLog
from sharelens.kafka_formats.messages.api_keys import ApiKey

if TYPE_CHECKING:
    from sharelens.broker.broker import Broker

READ_COMMITTED = 1
UNKNOWN = -1

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6
# The first version in which each of the special times may be requested.
_SINCE_VERSION = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}


@handles(ApiKey.LIST_OFFSETS, (1, 11))
def list_offsets(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """The offset of each partition at a time, or at one of the special times."""
    is_committed = getattr(request, "isolation_level", 0) == READ_COMMITTED

    def topic_offsets(topic: Any) -> Answer:
        offset = partial(_list, broker, topic.name, version=context.api_version, is_committed=is_committed)
        return {"name": topic.name, "partitions": LazyArray(offset, topic.partitions)}

    return {"topics": LazyArray(topic_offsets, request.topics)}


def _list(broker: "Broker", topic: str, requested: Any, *, version: int, is_committed: bool) -> dict[str, Any]:
    leader_epoch = getattr(requested, "current_leader_epoch", NO_LEADER_EPOCH)
    log, error = find_log(broker, topic, None, requested.partition_index, leader_epoch)
    answer = {"partition_index": requested.partition_index, "error_code": error}
    if log is None:
        return answer
    if requested.timestamp < 0 and version < _SINCE_VERSION.get(requested.timestamp, version + 1):
        return answer | {"error_code": ErrorCode.unsupported_version}
    try:
        timestamp_ms, offset = _offset_at(log, requested.timestamp, is_committed)
    except BrokerError as failed:
        return answer | {"error_code": code_of(failed)}
    return answer | {"timestamp": timestamp_ms, "offset": offset, "leader_epoch": _epoch_at(log, offset)}


def _offset_at(log: PartitionLog, timestamp: int, is_committed: bool) -> tuple[int, int]:
    """Timestamp and offset; -1 where the log has none. Special times have timestamp -1, except for the largest."""
    end_offset = log.last_stable_offset if is_committed else log.high_watermark
    match timestamp:
        case -1:
            return UNKNOWN, end_offset
        case -2 | -4:
            return UNKNOWN, log.log_start_offset
        case -5 | -6:
            return UNKNOWN, UNKNOWN
        case -3:
            position = log.max_timestamp()
        case _:
            position = log.offset_for_timestamp(timestamp)
    return position if position is not None and position[1] < end_offset else (UNKNOWN, UNKNOWN)


def _epoch_at(log: PartitionLog, offset: int) -> int:
    """The leader epoch that an offset belongs to; the current one at the end of the log."""
    if offset == UNKNOWN:
        return UNKNOWN
    entries = log.epochs.entries()
    index = bisect_right(entries, offset, key=lambda entry: entry[1]) - 1
    return entries[index][0] if index >= 0 else log.leader_epoch


@handles(ApiKey.OFFSET_FOR_LEADER_EPOCH, (2, 4))
def offset_for_leader_epoch(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """The end offsets of leader epochs, for clients that detect truncation."""

    def topic_epochs(topic: Any) -> Answer:
        return {
            "topic": topic.topic,
            "partitions": LazyArray(partial(_epoch_end, broker, topic.topic), topic.partitions),
        }

    return {"topics": LazyArray(topic_epochs, request.topics)}


def _epoch_end(broker: "Broker", topic: str, requested: Any) -> dict[str, Any]:
    log, error = find_log(broker, topic, None, requested.partition, requested.current_leader_epoch)
    if log is None:
        return {"partition": requested.partition, "error_code": error}
    epoch, end_offset = log.epochs.end_offset_for(requested.leader_epoch, log.high_watermark)
    return {
        "partition": requested.partition,
        "error_code": ErrorCode.none,
        "leader_epoch": epoch,
        "end_offset": end_offset,
    }


@handles(ApiKey.DELETE_RECORDS, (0, 2))
def delete_records(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """Raise log start offsets; -1 means to the end. Those of internal topics are refused for everyone."""

    def delete_of_topic(topic: Any) -> Answer:
        return {"name": topic.name, "partitions": LazyArray(partial(_delete, broker, topic.name), topic.partitions)}

    return {"topics": LazyArray(delete_of_topic, request.topics)}


def _delete(broker: "Broker", topic: str, requested: Any) -> dict[str, Any]:
    answer = {"partition_index": requested.partition_index, "low_watermark": UNKNOWN}
    if topic in INTERNAL_TOPICS:
        return answer | {"error_code": ErrorCode.invalid_topic_exception}
    log, error = find_log(broker, topic, None, requested.partition_index)
    if log is None:
        return answer | {"error_code": error}
    if not log.config.deletes:
        return answer | {"error_code": ErrorCode.policy_violation}
    before_offset = log.high_watermark if requested.offset == UNKNOWN else requested.offset
    if not 0 <= before_offset <= log.high_watermark:
        return answer | {"error_code": ErrorCode.offset_out_of_range}
    try:
        return answer | {"error_code": ErrorCode.none, "low_watermark": log.delete_records(before_offset)}
    except BrokerError as failed:
        return answer | {"error_code": code_of(failed)}
