"""The parts of answers to ElectLeaders, for its handler and its guard."""

from collections.abc import Callable, Mapping
from typing import Any

from kio.schema.errors import ErrorCode

from sharelens.broker.protocol.registry import Answer

Result = Mapping[str, Any]
"""error_code and error_message of a partition."""


def election_results(request: Any, result_of: Callable[[str, int], Result]) -> list[Answer]:
    """The result of each named partition (topic, partition), in the order of the request; none for null."""
    return [
        {
            "topic": topic.topic,
            "partition_result": [
                {"partition_id": partition, **result_of(topic.topic, partition)} for partition in topic.partitions
            ],
        }
        for topic in request.topic_partitions or ()
    ]


def refused_election(request: Any, code: ErrorCode, message: str) -> Answer:
    """The answer that refuses the request: at its top, where the version has a code there, and for each partition."""
    error = {"error_code": code, "error_message": message}
    return {"error_code": code, "replica_election_results": election_results(request, lambda name, partition: error)}
