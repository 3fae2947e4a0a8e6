"""A refusal names the requested partitions, also where request and response call them by other names."""

from types import SimpleNamespace

import pytest
from kio.schema.errors import ErrorCode

from sharelens.broker.protocol.error_answers import list_errors
from sharelens.kafka_formats.messages.api_keys import ApiKey

PARTITIONS = [3, 7]


@pytest.mark.parametrize(
    ("api_key", "version", "topics", "field", "answered_partitions", "answered_field"),
    [
        (ApiKey.FETCH, 4, "topics", "partition", "partitions", "partition_index"),
        (ApiKey.FETCH, 12, "topics", "partition", "partitions", "partition_index"),
        (ApiKey.PRODUCE, 9, "topic_data", "index", "partition_responses", "index"),
        (ApiKey.LIST_OFFSETS, 7, "topics", "partition_index", "partitions", "partition_index"),
        (ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, "topics", "partition", "partitions", "partition"),
    ],
)
def test_a_refusal_names_the_partitions_of_the_request(
    api_key: ApiKey, version: int, topics: str, field: str, answered_partitions: str, answered_field: str
) -> None:
    parts = [SimpleNamespace(**{field: number}) for number in PARTITIONS]
    topic = SimpleNamespace(name="orders", topic="orders", partitions=parts, partition_data=parts)
    refused = [(topic, {"error_code": ErrorCode.topic_authorization_failed})]
    _, (answered,) = list_errors(api_key, version, topics, refused)
    assert answered is not None
    assert [part[answered_field] for part in answered[answered_partitions]] == PARTITIONS
