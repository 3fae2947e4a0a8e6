"""Fetch 4 to 18: without incremental sessions (the session id of every answer is 0), by topic id from 13 on."""

from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kio.schema.errors import ErrorCode

from sharelens.broker.errors import BrokerError, OffsetOutOfRangeError
from sharelens.broker.handlers.errors import code_of
from sharelens.broker.handlers.partitions import NO_LEADER_EPOCH, after_appends, find_log
from sharelens.broker.ports import Fetched
from sharelens.broker.protocol.messages import milliseconds, topic_id_text
from sharelens.broker.protocol.registry import ELEMENTS_MAX_AT_ONCE, Answer, RequestContext, handles
from sharelens.broker.storage.partition_log import PartitionLog
from sharelens.kafka_formats.messages.api_keys import ApiKey

if TYPE_CHECKING:
    from sharelens.broker.broker import Broker

READ_COMMITTED = 1
NO_SESSION = 0
UNKNOWN = -1


@handles(ApiKey.FETCH, (4, 18), elements_max=ELEMENTS_MAX_AT_ONCE)
def fetch(broker: "Broker", request: Any, context: RequestContext) -> Answer | Awaitable[Answer]:
    """Record batches from the requested offsets; waits for `min_bytes` of them, no longer than `max_wait`."""
    if getattr(request, "session_id", NO_SESSION) != NO_SESSION:
        return {"error_code": ErrorCode.fetch_session_id_not_found}
    wait_ms = milliseconds(request.max_wait)
    read = _read_all(broker, request)
    if read.is_ready or wait_ms <= 0 or not read.logs:
        return read.answer()

    def attempt(is_over: bool) -> Answer | None:
        again = _read_all(broker, request)
        return again.answer() if again.is_ready or is_over else None

    return after_appends(read.logs, wait_ms=wait_ms, timers=broker.timers, attempt=attempt)


@dataclass(slots=True)
class _Read:
    """The result of one read. An answer is ready with enough bytes, with an error, or with a diverging epoch."""

    bytes_left: int
    min_bytes: int
    is_committed: bool
    logs: list[PartitionLog] = field(default_factory=list)
    responses: list[dict[str, Any]] = field(default_factory=list)
    size_bytes: int = 0
    must_answer: bool = False

    @property
    def is_ready(self) -> bool:
        return self.must_answer or self.size_bytes >= self.min_bytes

    def answer(self) -> Answer:
        return {"error_code": ErrorCode.none, "session_id": NO_SESSION, "responses": self.responses}


def _read_all(broker: "Broker", request: Any) -> _Read:
    read = _Read(
        bytes_left=min(request.max_bytes, broker.config.integer("fetch.max.bytes")),
        min_bytes=request.min_bytes,
        is_committed=request.isolation_level == READ_COMMITTED,
    )
    for topic in request.topics:
        name = getattr(topic, "topic", None)
        topic_id = topic_id_text(getattr(topic, "topic_id", None))
        partitions = [_read_partition(broker, read, name, topic_id, partition) for partition in topic.partitions]
        read.responses.append({"topic": name, "topic_id": topic_id, "partitions": partitions})
    return read


def _read_partition(
    broker: "Broker", read: _Read, name: str | None, topic_id: str | None, requested: Any
) -> dict[str, Any]:
    leader_epoch = getattr(requested, "current_leader_epoch", NO_LEADER_EPOCH)
    log, error = find_log(broker, name, topic_id, requested.partition, leader_epoch)
    if log is None:
        return _error(broker, read, requested.partition, error)
    end_offset = log.last_stable_offset if read.is_committed else log.high_watermark
    limit_bytes = min(read.bytes_left, requested.partition_max_bytes)
    fetched_epoch = getattr(requested, "last_fetched_epoch", NO_LEADER_EPOCH)
    try:
        diverging = _diverging_epoch(log, fetched_epoch, requested.fetch_offset)
        if diverging is not None:
            read.must_answer = True
            return _offsets(requested.partition, log) | {"diverging_epoch": diverging, "records": b""}
        fetched = log.read(requested.fetch_offset, max_bytes=max(limit_bytes, 0), end_offset=end_offset)
    except BrokerError as refused:
        return _error(broker, read, requested.partition, code_of(refused))
    data, last_offset = _within(fetched, limit_bytes, must_have_batch=read.size_bytes == 0)
    read.logs.append(log)
    read.size_bytes += len(data)
    read.bytes_left -= len(data)
    return _offsets(requested.partition, log) | {
        "aborted_transactions": _aborted(log, requested.fetch_offset, last_offset) if read.is_committed else None,
        "records": data,
    }


def _offsets(partition: int, log: PartitionLog) -> dict[str, Any]:
    """The part of an answer about a log that every answer without an error has."""
    return {
        "partition_index": partition,
        "error_code": ErrorCode.none,
        "high_watermark": log.high_watermark,
        "last_stable_offset": log.last_stable_offset,
        "log_start_offset": log.log_start_offset,
    }


def _diverging_epoch(log: PartitionLog, fetched_epoch: int, offset: int) -> dict[str, int] | None:
    """The largest leader epoch at or below the fetched one and its end, where the fetched log is another one.

    Rule: kafka.cluster.Partition.readFromLocalLog. Raises OffsetOutOfRangeError where the log doesn't know the epoch.
    """
    if fetched_epoch == NO_LEADER_EPOCH:
        return None
    epoch, end_offset = log.epochs.end_offset_for(fetched_epoch, log.high_watermark)
    if epoch == UNKNOWN or offset < log.log_start_offset:
        raise OffsetOutOfRangeError(f"{log.topic_partition}: no end of leader epoch {fetched_epoch} for {offset}")
    if epoch < fetched_epoch or end_offset < offset:
        return {"epoch": epoch, "end_offset": end_offset}
    return None


def _within(fetched: Fetched, limit_bytes: int, *, must_have_batch: bool) -> tuple[bytes, int]:
    """Whole batches within a limit and their last offset; the first of an answer however large it is."""
    size_bytes, last_offset = 0, UNKNOWN
    for span in fetched.spans:
        if size_bytes + span.size_bytes > limit_bytes and not (must_have_batch and size_bytes == 0):
            break
        size_bytes += span.size_bytes
        last_offset = span.last_offset
    return (fetched.data if size_bytes == len(fetched.data) else fetched.data[:size_bytes]), last_offset


def _aborted(log: PartitionLog, first_offset: int, last_offset: int) -> list[dict[str, int]]:
    if last_offset < first_offset:
        return []
    return [
        {"producer_id": aborted.producer_id, "first_offset": aborted.first_offset}
        for aborted in log.aborted_transactions(first_offset, last_offset)
    ]


def _error(broker: "Broker", read: _Read, partition: int, code: ErrorCode) -> dict[str, Any]:
    read.must_answer = True
    return {
        "partition_index": partition,
        "error_code": code,
        "high_watermark": UNKNOWN,
        "aborted_transactions": None,
        "records": b"",
    }
