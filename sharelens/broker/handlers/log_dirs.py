"""DescribeLogDirs 1 to 4: the one log directory of the broker (Kafka's ReplicaManager.describeLogDirs)."""

import shutil
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kio.schema.errors import ErrorCode

from sharelens.broker.protocol.registry import Answer, RequestContext, handles
from sharelens.broker.protocol.steps import LazyArray
from sharelens.broker.storage.partition_log import PartitionLog
from sharelens.kafka_formats.messages.api_keys import ApiKey

if TYPE_CHECKING:
    from sharelens.broker.broker import Broker

NO_LAG: Final = 0
"""A single node has the only replica, which is never behind."""


@handles(ApiKey.DESCRIBE_LOG_DIRS, (1, 4))
def describe_log_dirs(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """The sizes of the requested logs in bytes, those of all when the request has null; unknown ones are left out.

    The space of the file system is in answers from version 4 on. A directory that the system does not show is
    answered with KAFKA_STORAGE_ERROR and without logs.
    """
    return {"error_code": ErrorCode.none, "results": [_log_dir(broker, request.topics)]}


def _log_dir(broker: "Broker", requested: Iterable[Any] | None) -> Answer:
    path = broker.log_dir.absolute()
    try:
        usage = shutil.disk_usage(path)
    except OSError:
        return {"error_code": ErrorCode.kafka_storage_error, "log_dir": str(path)}
    return {
        "error_code": ErrorCode.none,
        "log_dir": str(path),
        "topics": LazyArray(partial(_topic, broker), list(_existing_partitions(broker, requested).items())),
        "total_bytes": usage.total,
        "usable_bytes": usage.free,
    }


def _existing_partitions(broker: "Broker", requested: Iterable[Any] | None) -> dict[str, list[int]]:
    """The partitions with a log by their topic, in ascending order; topics without such partitions are left out."""
    partitions: dict[str, set[int]] = {}
    if requested is None:
        for topic in broker.catalog.topics.values():
            partitions[topic.name] = set(range(topic.partitions))
    else:
        for topic in requested:
            partitions.setdefault(topic.topic, set()).update(topic.partitions)
    with_log = {
        name: sorted(number for number in numbers if broker.logs.get(name, number) is not None)
        for name, numbers in partitions.items()
    }
    return {name: numbers for name, numbers in with_log.items() if numbers}


def _topic(broker: "Broker", topic: tuple[str, list[int]]) -> Answer:
    name, numbers = topic
    logs = [(number, broker.logs.get(name, number)) for number in numbers]
    return {"name": name, "partitions": [_partition(number, log) for number, log in logs if log is not None]}


def _partition(number: int, log: PartitionLog) -> Answer:
    return {
        "partition_index": number,
        "partition_size": log.size_bytes,
        "offset_lag": NO_LAG,
        "is_future_key": False,
    }
