"""Varints and lengths."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_model.codec.primitives import read_length, read_uvarint, write_length, write_uvarint
from state_model.errors import BufferUnderflowError, EncodeError, InvalidLengthError, MalformedVarintError

INT16 = struct.Struct(">h")


@given(st.integers(0, (1 << 32) - 1))
def test_varints_survive_the_way_through_bytes(value):
    raw = write_uvarint(value)
    assert read_uvarint(raw, 0) == (value, len(raw))


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        ("", BufferUnderflowError),
        ("80", BufferUnderflowError),
        ("8080808080", MalformedVarintError),
        ("ffffffffff", MalformedVarintError),
        ("ffffffff10", MalformedVarintError),
    ],
)
def test_varints_that_do_not_end_are_refused(raw, error):
    with pytest.raises(error):
        read_uvarint(bytes.fromhex(raw), 0)


@pytest.mark.parametrize("value", [-1, 1 << 32])
def test_numbers_of_other_sizes_are_no_varints(value):
    with pytest.raises(EncodeError, match="unsigned varint of 32 bits"):
        write_uvarint(value)


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 16383, 16384, 2**31 - 1])
def test_a_varint_has_seven_bits_a_byte(value):
    encoded = write_uvarint(value)
    assert sum((byte & 0x7F) << (7 * index) for index, byte in enumerate(encoded)) == value
    assert [byte >= 0x80 for byte in encoded] == [True] * (len(encoded) - 1) + [False]


@pytest.mark.parametrize("layout", [None, INT16])
@given(length=st.integers(-1, (1 << 15) - 1))
def test_lengths_survive_the_way_through_bytes(layout, length):
    raw = write_length(length, layout)
    assert read_length(b"?" + raw, 1, layout, True, "string") == (length, 1 + len(raw))


@pytest.mark.parametrize(
    ("raw", "layout", "nullable", "message"),
    [
        ("00", None, False, "the string at byte 0 is null, and the field has no null"),
        ("ffff", INT16, False, "the string at byte 0 is null, and the field has no null"),
        ("fffe", INT16, True, "the string at byte 0 has length -2"),
    ],
)
def test_lengths_that_are_negative_or_null_are_refused(raw, layout, nullable, message):
    with pytest.raises(InvalidLengthError, match=message):
        read_length(bytes.fromhex(raw), 0, layout, nullable, "string")


def test_a_length_that_its_layout_can_not_hold_is_refused():
    with pytest.raises(EncodeError, match="the length 32768 does not fit 2 bytes"):
        write_length(1 << 15, INT16)
