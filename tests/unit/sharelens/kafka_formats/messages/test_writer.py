"""Our writer writes what kio's writes, for every response and request header of every version."""

import io
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_writer
from kio.static.primitive import Records

import sharelens.broker.handlers.all  # noqa: F401  (registers the handlers)
from sharelens.broker.protocol.registry import registered
from sharelens.broker.protocol.steps import LazyArray
from sharelens.kafka_formats.messages.api_keys import ApiKey
from sharelens.kafka_formats.messages.reader import read
from sharelens.kafka_formats.messages.writer import write, write_in_steps
from state_model.codec.steps import STEP_ELEMENTS
from state_model.codec.writers import LARGE_BYTES, Output
from tests.broker_parts.broker_messages import plain

st.register_type_strategy(Records, st.binary(max_size=20).map(Records))
MESSAGES = [
    (direction, api.key, version)
    for api in registered().values()
    for version in range(api.first_version, api.last_version + 1)
    for direction in ("request", "response")
]
OF_LATER_METADATA = {"request": "include_topic_authorized_operations", "response": "throttle_time"}
"""Fields of Metadata that version 1 lacks."""
LOADERS = {"request": load_request_schema, "response": load_response_schema}


def load(message):
    direction, key, version = message
    return LOADERS[direction](key, version)


@cache
def schemas():
    """All messages and headers. Loading takes seconds, so collecting leaves it to the test."""
    messages = [load(message) for message in MESSAGES]
    return messages + sorted({schema.__header_schema__ for schema in messages}, key=str)


def kio_bytes(entity):
    out = io.BytesIO()
    entity_writer(type(entity))(out, entity)
    return out.getvalue()


@pytest.mark.slow
@given(data=st.data())
def test_any_message_has_the_bytes_of_kios_writer(data):
    schema = data.draw(st.sampled_from(schemas()))
    message = data.draw(st.from_type(schema))
    assert write(schema, plain(message)) == kio_bytes(message)


@pytest.mark.slow
@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: "-".join(map(str, message)))
def test_an_empty_message_can_be_read_again(message):
    schema = load(message)
    data = write(schema, {})
    decoded, end = read(schema, data)
    assert end == len(data)
    assert kio_bytes(decoded) == data


def test_a_large_array_is_written_in_steps_of_bounded_size():
    computed = []

    def group(name):
        computed.append(name)
        return {"group_id": name}

    out = Output()
    steps = write_in_steps(load_response_schema(15, 0), {"groups": LazyArray(group, ["g"] * 3000)}, out)
    counts = [len(computed) for _ in steps]
    assert counts == list(range(STEP_ELEMENTS, 3000, STEP_ELEMENTS))
    body, _ = read(load_response_schema(15, 0), b"".join(out.pieces))
    assert [described.group_id for described in body.groups] == ["g"] * 3000


def test_elements_of_nested_arrays_count_too():
    topics = [{"topic": "t", "partitions": [{"partition_index": index} for index in range(2)]} for _ in range(1000)]
    out = Output()
    answer = {"topics": [{"name": topic["topic"], "partitions": topic["partitions"]} for topic in topics]}
    pauses = sum(1 for _ in write_in_steps(load_response_schema(3, 12), answer, out))
    assert pauses == 3000 // STEP_ELEMENTS


def test_large_byte_fields_are_not_copied():
    records = bytes(LARGE_BYTES + 1)
    out = Output()
    answer = {"responses": [{"topic": "t", "partitions": [{"records": records}, {"records": b"small"}]}]}
    assert list(write_in_steps(load_response_schema(1, 12), answer, out)) == []
    assert any(piece is records for piece in out.pieces)
    body, _ = read(load_response_schema(1, 12), b"".join(out.pieces))
    assert [bytes(partition.records) for partition in body.responses[0].partitions] == [records, b"small"]


def test_a_text_that_may_not_be_null_is_refused():
    with pytest.raises(TypeError, match="may not be null"):
        write(load_response_schema(15, 0), {"groups": [{"group_id": None}]})


@pytest.mark.parametrize("direction", ["request", "response"])
def test_fields_of_other_versions_are_left_out_and_unknown_ones_refused(direction):
    early, field = load((direction, ApiKey.METADATA, 1)), OF_LATER_METADATA[direction]
    assert write(early, {field: 1}) == write(early, {})
    with pytest.raises(TypeError, match="has a field colour"):
        write(early, {"colour": 1})
