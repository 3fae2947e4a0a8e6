"""Messages of kio over connections of kafka-python, compared with frames between real clients and Kafka 4.3.1."""

import dataclasses
import json
from pathlib import Path

import pytest
from kafka.protocol.broker_version_data import BrokerVersionData
from kafka.protocol.frame import KafkaBytes
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader

from sharelens.kafka_live.kio_messages import KioRequest

RECORDED = Path(__file__).parents[1] / "broker" / "protocol" / "frames.jsonl"
USED = {77, 90}
"""APIs whose requests kio encodes; of StreamsGroupDescribe (89) no frame was recorded."""
FRAMES = [
    frame for frame in map(json.loads, RECORDED.read_text().splitlines()) if frame["key"] in USED and frame["ver"] > 0
]


def read(schema, raw):
    header, at = entity_reader(schema.__header_schema__)(raw, 0)
    return header, entity_reader(schema)(raw, at)[0]


def request_of(frame, body):
    return KioRequest(frame["key"], (frame["ver"], frame["ver"]), dataclasses.asdict(body))


@pytest.mark.parametrize("frame", FRAMES, ids=[f"{frame['key']}-{number}" for number, frame in enumerate(FRAMES)])
def test_a_request_and_its_response_are_those_of_kafkas_tools(frame):
    raw, answer = bytes.fromhex(frame["req"]), bytes.fromhex(frame["resp"])
    header, body = read(load_request_schema(frame["key"], frame["ver"]), raw)
    request = request_of(frame, body)
    request.API_VERSION = BrokerVersionData(api_versions={frame["key"]: (0, 9)}).api_version(request)
    request.with_header(header.correlation_id, header.client_id)
    assert request.encode(header=True, framed=True) == len(raw).to_bytes(4, "big") + raw
    received = KafkaBytes(len(answer))
    received[:] = answer
    response = request.header.get_response_class()
    assert response.parse_header(received).correlation_id == header.correlation_id
    assert response.decode(received) == read(load_response_schema(frame["key"], frame["ver"]), answer)[1]


def test_the_frames_hold_both_apis():
    assert {frame["key"] for frame in FRAMES} == USED


def test_a_response_that_is_cut_short_is_an_error_that_the_connection_knows():
    frame = FRAMES[0]
    _, body = read(load_request_schema(frame["key"], frame["ver"]), bytes.fromhex(frame["req"]))
    request = request_of(frame, body)
    request.API_VERSION = frame["ver"]
    request.with_header(1, "c")
    with pytest.raises(ValueError, match="Response"):
        request.header.get_response_class().decode(KafkaBytes(3))
    with pytest.raises(ValueError, match="ResponseHeader"):
        request.header.get_response_class().parse_header(KafkaBytes(3))
