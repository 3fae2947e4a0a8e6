"""Requests and answers, held to frames that a recording proxy took between real clients and Kafka 4.3.1.

frames.jsonl has one frame or two of each API, version and client, without the four bytes of its size, as hex.
"""

import io
import json
from pathlib import Path

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from sharelens.broker.errors import FrameError
from sharelens.broker.protocol.messages import (
    UnsupportedVersionError,
    encode_answer,
    error_response,
    milliseconds,
    topic_id_text,
)
from sharelens.kafka_formats.messages.reader import ELEMENTS_MAX, read
from tests.broker_parts.broker_messages import decode_request, plain

FRAMES = [json.loads(line) for line in (Path(__file__).parent / "frames.jsonl").read_text().splitlines()]
NAMES = [f"{frame['label']}-{frame['key']}v{frame['ver']}-{index}" for index, frame in enumerate(FRAMES)]
TOPIC_ID = "AAECAwQFBgcICQoLDA0ODw"


def frame_bytes(pieces):
    return b"".join(bytes(piece) for piece in pieces)


@pytest.mark.parametrize("frame", FRAMES, ids=NAMES)
def test_recorded_requests_decode_and_give_the_same_bytes_again(frame):
    raw = bytes.fromhex(frame["req"])
    request = decode_request(raw)
    schema = load_request_schema(frame["key"], frame["ver"])
    header = schema.__header_schema__(
        request_api_key=request.api_key,
        request_api_version=request.api_version,
        correlation_id=request.correlation_id,
        client_id=request.client_id,
    )
    out = io.BytesIO()
    entity_writer(schema.__header_schema__)(out, header)
    entity_writer(schema)(out, request.body)
    assert request.client_id == frame["client"]
    # librdkafka asks for all topics with three bytes too many, which Kafka ignores.
    assert out.getvalue() == raw or (frame["key"] == 3 and raw == out.getvalue() + b"\x01\x00\x00")


@pytest.mark.parametrize("frame", FRAMES, ids=NAMES)
def test_recorded_answers_are_built_from_mappings_to_the_same_bytes(frame):
    raw = bytes.fromhex(frame["resp"])
    schema = load_response_schema(frame["key"], frame["ver"])
    header, body_at = entity_reader(schema.__header_schema__)(raw, 0)
    body, size_bytes = entity_reader(schema)(raw, body_at)
    assert read(schema, raw, body_at) == (body, body_at + size_bytes)
    framed = frame_bytes(encode_answer(frame["key"], frame["ver"], header.correlation_id, plain(body)))
    assert framed == len(raw).to_bytes(4, "big") + raw


def test_an_answer_needs_only_fields_other_than_the_defaults():
    framed = frame_bytes(encode_answer(78, 1, 7, {"responses": [{"topic_id": TOPIC_ID, "partitions": [{}]}]}))
    body, _ = read(load_response_schema(78, 1), framed, 4 + 4 + 1)
    (topic,) = body.responses
    (partition,) = topic.partitions
    assert topic_id_text(topic.topic_id) == TOPIC_ID
    assert (partition.error_code, partition.records, partition.acquired_records) == (0, b"", ())
    assert body.error_message is None


def test_fields_that_a_version_lacks_are_dropped():
    answer = {"error_code": 0, "topics": [{"name": "t", "topic_id": TOPIC_ID}], "cluster_id": "c"}
    old, _ = read(load_response_schema(3, 1), frame_bytes(encode_answer(3, 1, 1, answer)), 8)
    assert [topic.name for topic in old.topics] == ["t"]
    assert not hasattr(old, "cluster_id")


@pytest.mark.parametrize(
    "answer", [{"throttle_time_ms": 1}, {"topics": [{"id": TOPIC_ID}]}], ids=["at the top", "inside"]
)
def test_a_name_that_no_version_has_is_a_mistake_of_ours(answer):
    with pytest.raises(TypeError, match="no version of MetadataResponse.* has a field"):
        encode_answer(3, 13, 1, answer)


def test_plain_numbers_become_times_and_back():
    framed = frame_bytes(
        encode_answer(0, 9, 1, {"responses": [{"partition_responses": [{"log_append_time": 12}]}], "throttle_time": 5})
    )
    body, _ = read(load_response_schema(0, 9), framed, 9)
    assert milliseconds(body.throttle_time) == 5
    assert body.responses[0].partition_responses[0].log_append_time.timestamp() == 0.012


def test_no_append_time_is_minus_one_on_the_wire():
    answer = {"responses": [{"name": "t", "partition_responses": [{"log_append_time": -1}]}]}
    assert b"\xff" * 8 in frame_bytes(encode_answer(0, 9, 1, answer))


def test_the_error_of_an_unsupported_version_names_the_request():
    with pytest.raises(UnsupportedVersionError) as caught:
        decode_request(bytes.fromhex("0012006300000005ffff"), lambda key, version: version < 5)
    assert (caught.value.api_key, caught.value.api_version, caught.value.correlation_id) == (18, 99, 5)


def test_tagged_fields_that_we_do_not_know_are_skipped():
    header = bytes.fromhex("0003000c00000001ffff") + b"\x01\x63\x03abc"
    assert decode_request(header + b"\x01\x01\x00\x01\x63\x03abc").body.topics == ()


@pytest.mark.parametrize(
    ("key", "version", "body"),
    [
        (3, 1, "7fffffff" + "00" * 10),
        (3, 1, "fffffffe" + "00" * 10),
        (3, 1, "00000001" + "7fff"),
        (3, 1, "00000001" + "8000"),
        (3, 12, "00" + "ffffffff0f"),
        (3, 12, "00" + "ff" * 30),
        (3, 12, "00" + "02" + "00" * 16 + "ffffffff0f"),
        (3, 12, "00" + "01"),
        (3, 12, "0001" + "01" + "ffffffff07"),
        (0, 9, "00" + "00" + "0001" + "00000001" + "02" + "0261" + "02" + "00000000" + "ffffffff07"),
        (18, 3, "00" + "03" + "ffff" + "0100"),
    ],
)
def test_lengths_that_lead_nowhere_are_refused_and_cost_nothing(key, version, body):
    head = key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(4) + b"\xff\xff"
    with pytest.raises(FrameError):
        decode_request(head + bytes.fromhex(body))


def test_a_message_of_more_elements_than_memory_allows_is_refused():
    partitions = (ELEMENTS_MAX + 1).to_bytes(4, "big") + bytes(4 * (ELEMENTS_MAX + 1))
    head = bytes.fromhex("00170002") + bytes(4) + b"\xff\xff"
    with pytest.raises(FrameError, match="elements announced"):
        decode_request(head + b"\x00\x00\x00\x01\x00\x01t" + partitions * 3)


@pytest.mark.parametrize("raw", [b"", b"\x00", bytes(7)])
def test_frames_without_a_header_are_refused(raw):
    with pytest.raises(FrameError):
        decode_request(raw)


def test_which_answers_have_an_error_code_of_their_own():
    assert error_response(76, 1, ErrorCode.invalid_request, "why") == {"error_code": 42, "error_message": "why"}
    assert error_response(88, 0, ErrorCode.invalid_request)["status"] == []
    assert error_response(0, 9, ErrorCode.invalid_request) is None
