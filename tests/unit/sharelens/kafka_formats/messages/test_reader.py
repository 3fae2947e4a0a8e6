"""Whatever a peer sends, reading it costs bounded memory and ends in a message or a MessageError."""

import json
import struct
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_request_schema

from sharelens.kafka_formats.messages.errors import MessageError
from sharelens.kafka_formats.messages.reader import read

FRAMES = sorted(
    {
        bytes.fromhex(json.loads(line)["req"])
        for line in (Path(__file__).parents[2] / "broker" / "protocol" / "frames.jsonl").read_text().splitlines()
    }
)
PATCHES = st.lists(
    st.tuples(
        st.integers(0, 10_000),
        st.sampled_from([b"\xff", b"\x00", b"\x80", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07"])
        | st.binary(max_size=5),
    ),
    min_size=1,
    max_size=4,
)


def read_request(frame):
    schema = load_request_schema(*struct.unpack_from(">hh", frame))
    header, at = read(schema.__header_schema__, frame)
    read(schema, frame, at)
    return header


@given(frame=st.sampled_from(FRAMES), patches=PATCHES, cut=st.none() | st.integers(4, 400))
def test_damaged_requests_are_read_or_refused(frame, patches, cut):
    damaged = bytearray(frame[:cut])
    for place, patch in patches:
        # The API and its version stay: what is under test is the reading of the body.
        at = 4 + place % max(len(damaged) - 4, 1)
        damaged[at : at + len(patch)] = patch
    try:
        header = read_request(bytes(damaged))
    except MessageError:
        return
    assert header.request_api_key == int.from_bytes(damaged[:2], "big")


@given(st.binary(max_size=64))
def test_garbage_behind_a_header_is_read_or_refused(garbage):
    for head in ("0003000d", "00000009", "004e0002", "00120003", "000b0005"):
        try:
            header = read_request(bytes.fromhex(head) + bytes(4) + b"\xff\xff\x00" + garbage)
        except MessageError:
            continue
        assert header.request_api_key == int(head[:4], 16)
