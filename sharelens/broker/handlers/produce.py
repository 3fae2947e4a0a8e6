"""Produce 3 to 13: by topic name up to version 12, by topic id from 13 on."""

from typing import TYPE_CHECKING, Any

from kio.schema.errors import ErrorCode

from sharelens.broker.errors import BrokerError, FrameError
from sharelens.broker.handlers.errors import RefusedError, code_of
from sharelens.broker.handlers.partitions import find_log
from sharelens.broker.protocol.messages import topic_id_text
from sharelens.broker.protocol.registry import ELEMENTS_MAX_AT_ONCE, Answer, RequestContext, handles
from sharelens.broker.storage.partition_log import PartitionLog
from sharelens.broker.storage.record_batch import read_header
from sharelens.kafka_formats.messages.api_keys import ApiKey

if TYPE_CHECKING:
    from sharelens.broker.broker import Broker

NO_OFFSET = -1
ADMIN_CLIENT_ID = "__admin_client"
"""The client id that may write to internal topics (Kafka's AdminUtils.ADMIN_CLIENT_ID)."""


@handles(ApiKey.PRODUCE, (3, 13), elements_max=ELEMENTS_MAX_AT_ONCE)
def produce(broker: "Broker", request: Any, context: RequestContext) -> Answer | None:
    """Append one batch to each partition. A single node has written when it answers, whatever the acks.

    Internal topics are refused but for one client id, which needs the right to write as for other topics.

    Without acks there is no response; an error then closes the connection, as in Kafka.
    """
    is_admin = context.client_id == ADMIN_CLIENT_ID
    responses = []
    failed = None
    for topic in request.topic_data:
        name = getattr(topic, "name", None)
        topic_id = topic_id_text(getattr(topic, "topic_id", None))
        partitions = [
            _append(broker, request, name, topic_id, partition, is_admin=is_admin) for partition in topic.partition_data
        ]
        failed = failed or next((answer for answer in partitions if answer["error_code"] != ErrorCode.none), None)
        responses.append({"name": name, "topic_id": topic_id, "partition_responses": partitions})
    if request.acks == 0:
        if failed is not None:
            raise FrameError(f"a write without acknowledgement failed: {failed['error_code'].name}")
        return None
    return {"responses": responses}


def _append(
    broker: "Broker", request: Any, name: str | None, topic_id: str | None, partition: Any, *, is_admin: bool
) -> dict[str, Any]:
    if request.acks not in (-1, 0, 1):
        return _error(partition.index, ErrorCode.invalid_required_acks, f"acks {request.acks}")
    log, error = find_log(broker, name, topic_id, partition.index)
    if log is None:
        return _error(partition.index, error, None)
    topic = broker.catalog.by_name(log.topic_partition.topic)
    if topic is not None and topic.is_internal and not is_admin:
        return _error(partition.index, ErrorCode.invalid_topic_exception, "clients must not write to internal topics")
    records = partition.records or b""
    try:
        if request.transactional_id is not None:
            _verify(broker, log, records)
        appended = log.append_client(records)
    except BrokerError as refused:
        return _error(partition.index, code_of(refused), str(refused))
    return {
        "index": partition.index,
        "error_code": ErrorCode.none,
        "base_offset": appended.base_offset,
        "log_append_time": appended.log_append_time_ms,
        "log_start_offset": appended.log_start_offset,
    }


def _verify(broker: "Broker", log: PartitionLog, records: bytes) -> None:
    """Check that the open transaction of a batch has the partition (KIP-890). Raises RefusedError."""
    header = read_header(records)
    if header is None or not header.is_transactional:
        return
    code = broker.transactions.verify(header.producer_id, header.producer_epoch, [log.topic_partition])
    if code is not ErrorCode.none:
        raise RefusedError(code, f"{log.topic_partition} is not part of a transaction of producer {header.producer_id}")


def _error(index: int, code: ErrorCode, message: str | None) -> dict[str, Any]:
    return {
        "index": index,
        "error_code": code,
        "base_offset": NO_OFFSET,
        "log_append_time": NO_OFFSET,
        "log_start_offset": NO_OFFSET,
        "error_message": message,
    }
