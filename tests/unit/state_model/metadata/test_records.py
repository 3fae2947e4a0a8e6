"""Metadata records: real bytes decode to what Kafka prints; what may be secret is never kept."""

from collections.abc import Callable

import hypothesis.strategies as st
import pytest
from hypothesis import given

from state_model.codec.primitives import write_uvarint
from state_model.errors import DecodeError
from state_model.metadata.records import MetadataRecord, UnknownRecordError, decode_control, decode_record
from state_model.metadata.schemas import RECORD_TYPES
from state_model.schema import STRING

PASSWORD = "planted-Passw0rd"
REAL = [
    ("01110000000001000000000000000a010001ff", "broker_epoch", 10),
    ("0102000a72765f6f7264657273a2dd842e52764264985ece9bcb98b03b00", "topic_id", "ot2ELlJ2QmSYXs6by5iwOw"),
    (
        "010400020a72765f6f72646572730f636c65616e75702e706f6c6963790764656c65746500",
        "value",
        "delete",
    ),
    ("0109000da2dd893c1441a8b952e8d8ac704af600", "topic_id", "DaLdiTwUQai5UujYrHBK9g"),
    ("010f0000000001000000000000000a00000000000003e800", "next_producer_id", 1000),
    ("011c000d72765f7061792e6d656e747300", "topic_name", "rv_pay.ments"),
    (
        "01050200000001622e8f22b9134c609d877fb7fa3324b6040001010104ffffffff0605020000000207050200000002",
        "last_known_elr",
        (2,),
    ),
    ("010502000000006f6b9f144d464123af765b3508ada2b301010400000002", "leader", 2),
    ("01010000000002000000000000005400", "broker_epoch", 84),
]


def decode(value: bytes, key: bytes = b"key") -> MetadataRecord:
    return decode_record(value, offset=7, timestamp_ms=1, digest_key=key)


def outcome(decoding: Callable[[], MetadataRecord]) -> str:
    """The record as text, or the error; any other exception is raised."""
    try:
        return repr(decoding())
    except DecodeError as error:
        return f"{type(error).__name__}: {error}"


def config(resource_type: int, resource: str, name: str, value: str) -> bytes:
    texts = b"".join(STRING.write(text) for text in (resource, name, value))
    return bytes([1, 4, 0, resource_type]) + texts + b"\0"


def compact(data: bytes) -> bytes:
    return write_uvarint(len(data) + 1) + data


@pytest.mark.parametrize(("text", "field", "value"), REAL)
def test_real_record_has_the_value_that_kafka_prints(text: str, field: str, value: object) -> None:
    record = decode(bytes.fromhex(text))
    assert record.value is not None
    assert record.value[field] == value


@pytest.mark.parametrize(
    "raw",
    [
        config(4, "1", "ssl.keystore.password", PASSWORD),
        config(4, "", "listener.name.plain.scram-sha-256.sasl.jaas.config", PASSWORD),
        config(4, "1", "some.plugin.option", PASSWORD),
        config(2, "orders", "ssl.key.password", PASSWORD),
        config(32, "g", "plugin.option", PASSWORD),
        config(77, "g", "share.delivery.count.limit", PASSWORD),
        b"\x01\x0b\x00" + STRING.write("u") + b"\x01" + compact(PASSWORD.encode()) * 3 + bytes(4) + b"\0",
        b"\x01\x0a\x00" + STRING.write("o") * 2 + b"\x01" + bytes(24) + STRING.write(PASSWORD) + b"\0",
        b"\x01\x1a\x00" + STRING.write(PASSWORD) + b"\0",
        bytes.fromhex("010c00") + STRING.write("f") + b"\0\1\1\5" + compact(PASSWORD.encode()),
    ],
)
def test_planted_password_is_nowhere_in_a_record(raw: bytes) -> None:
    shown = outcome(lambda: decode(raw))
    assert PASSWORD not in shown
    assert PASSWORD.encode().hex() not in shown


def test_hidden_setting_has_its_length_and_a_digest_that_needs_the_key() -> None:
    raw = config(4, "1", "ssl.keystore.password", PASSWORD)
    values = [decode(raw, key).value for key in (b"a", b"a", b"b")]
    hidden = [value["hidden"] for value in values if value is not None]
    assert hidden[0] == hidden[1] != hidden[2]
    assert values[0] is not None
    assert values[0]["value"] is None
    assert isinstance(hidden[0], dict)
    assert hidden[0]["length"] == len(PASSWORD)


def test_unknown_types_versions_and_frames_are_named() -> None:
    for raw, message in (
        (b"\x01\x06\x00", "record type 6"),
        (b"\x01\x02\x01", "TOPIC_RECORD has version 1"),
        (b"\x00\x02\x00", "frame version 0"),
    ):
        with pytest.raises(UnknownRecordError, match=message):
            decode(raw)


def test_bytes_behind_a_message_are_refused() -> None:
    with pytest.raises(DecodeError, match="1 bytes are left behind a NO_OP_RECORD"):
        decode(b"\x01\x14\x00\x00\x00")


@given(st.sampled_from(sorted(RECORD_TYPES)), st.integers(0, 5), st.binary(max_size=200))
def test_random_bytes_are_a_record_or_a_decode_error(number: int, version: int, body: bytes) -> None:
    assert "\n" not in outcome(lambda: decode(bytes([1, number, version]) + body))


@given(st.binary(max_size=8), st.binary(max_size=100))
def test_random_control_bytes_are_a_record_or_a_decode_error(key: bytes, value: bytes) -> None:
    assert "\n" not in outcome(lambda: decode_control(key, value, offset=0, timestamp_ms=0))
