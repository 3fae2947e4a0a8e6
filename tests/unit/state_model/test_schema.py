import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_model import schema
from state_model.codec.primitives import UnknownTag, write_uvarint
from state_model.errors import (
    BufferUnderflowError,
    DecodeError,
    EncodeError,
    InvalidLengthError,
    InvalidTextError,
)
from state_model.schema import CompactArray, Field, NullableStruct, Struct

PAIR = Struct(Field(name="left", kind=schema.INT16), Field(name="right", kind=schema.STRING))
ALL_KINDS = Struct(
    Field(name="tiny", kind=schema.INT8),
    Field(name="port", kind=schema.UINT16),
    Field(name="wide", kind=schema.INT64),
    Field(name="text", kind=schema.STRING),
    Field(name="maybe_text", kind=schema.NULLABLE_STRING),
    Field(name="id", kind=schema.UUID),
    Field(name="pairs", kind=CompactArray(item=PAIR)),
    Field(name="maybe", kind=NullableStruct(Field(name="inner", kind=schema.INT32))),
    Field(name="raw", kind=schema.CompactBytes()),
    Field(name="count", kind=schema.INT32, tag=0, default=-1),
    Field(name="options", kind=CompactArray(item=schema.INT32, nullable=True), tag=3, default=()),
    Field(
        name="tagged_maybe",
        kind=NullableStruct(Field(name="inner", kind=schema.INT8), is_tagged=True),
        tag=5,
        default={"inner": 0},
    ),
)
SURROGATE_FREE = st.text(st.characters(codec="utf-8"), max_size=12)
UUIDS = st.binary(min_size=16, max_size=16).map(schema.uuid_text)
TREES = st.fixed_dictionaries(
    {
        "tiny": st.integers(-128, 127),
        "port": st.integers(0, 65535),
        "wide": st.integers(-(1 << 63), (1 << 63) - 1),
        "text": SURROGATE_FREE,
        "maybe_text": st.none() | SURROGATE_FREE,
        "id": UUIDS,
        "pairs": st.lists(
            st.fixed_dictionaries({"left": st.integers(-(1 << 15), (1 << 15) - 1), "right": SURROGATE_FREE}), max_size=4
        ).map(tuple),
        "maybe": st.none() | st.fixed_dictionaries({"inner": st.integers(-(1 << 31), (1 << 31) - 1)}),
        "raw": st.binary(max_size=5),
        "count": st.integers(-(1 << 31), (1 << 31) - 1),
        "options": st.none() | st.lists(st.integers(0, 9), max_size=3).map(tuple),
        "tagged_maybe": st.none() | st.fixed_dictionaries({"inner": st.integers(-1, 1)}),
    },
    optional={
        "unknown_tags": st.lists(
            st.builds(UnknownTag, tag=st.sampled_from([1, 2, 4, 300, (1 << 32) - 1]), data=st.binary(max_size=5)),
            min_size=1,
            max_size=3,
            unique_by=lambda unknown_tag: unknown_tag.tag,
        ).map(lambda tags: tuple(sorted(tags, key=lambda unknown_tag: unknown_tag.tag)))
    },
)


@given(TREES)
def test_what_is_written_is_read_back_with_its_unknown_tags(tree):
    raw = ALL_KINDS.write(tree)
    assert ALL_KINDS.read(b"??" + raw + b"more", 2) == (tree, 2 + len(raw))


@given(TREES, st.data())
def test_every_cut_is_an_underflow_or_a_malformed_field_and_never_a_value(tree, data):
    raw = ALL_KINDS.write(tree)
    cut = data.draw(st.integers(0, len(raw) - 1))
    with pytest.raises(DecodeError):
        ALL_KINDS.read(raw[:cut], 0)


@given(st.binary(max_size=80))
def test_arbitrary_bytes_are_read_or_refused(raw):
    try:
        tree, end = ALL_KINDS.read(raw, 0)
    except DecodeError as error:
        reason = error.reason
    else:
        reason = None
        assert end <= len(raw)
        assert ALL_KINDS.read(ALL_KINDS.write(tree), 0)[0] == tree
    assert reason in {None, "malformed_varint", "invalid_length", "truncated_value", "invalid_utf8"}


def test_a_claimed_count_allocates_nothing():
    array = CompactArray(item=schema.INT8)
    with pytest.raises(BufferUnderflowError, match="4294967294 bytes needed"):
        array.read(write_uvarint((1 << 32) - 1) + b"\0" * 10, 0)


def test_a_claimed_number_of_tags_is_checked_before_it_is_followed():
    with pytest.raises(BufferUnderflowError):
        Struct().read(write_uvarint((1 << 32) - 1) + b"\0" * 10, 0)


@pytest.mark.parametrize(
    ("kind", "raw", "error"),
    [
        (schema.STRING, "00", InvalidLengthError),
        (schema.STRING, "02ff", InvalidTextError),
        (schema.STRING, "04eda080", InvalidTextError),  # a surrogate in UTF-8
        (schema.STRING, "0361", BufferUnderflowError),
        (schema.STRING, "818002" + "61" * 32768, InvalidLengthError),
        (schema.CLASSIC_STRING, "ffff", InvalidLengthError),
        (schema.CLASSIC_STRING, "00", BufferUnderflowError),
        (schema.CLASSIC_STRING, "000261", BufferUnderflowError),
        (CompactArray(item=schema.INT8), "00", InvalidLengthError),
        (schema.UUID, "00" * 15, BufferUnderflowError),
        (schema.INT64, "00" * 7, BufferUnderflowError),
        (NullableStruct(Field(name="inner", kind=schema.INT32)), "01000000", BufferUnderflowError),
    ],
)
def test_malformed_fields_are_refused(kind, raw, error):
    with pytest.raises(error):
        kind.read(bytes.fromhex(raw), 0)


@pytest.mark.parametrize("marker", ["80", "ff", "fe"])
def test_every_negative_marker_is_a_null_struct(marker):
    assert NullableStruct(Field(name="inner", kind=schema.INT32)).read(bytes.fromhex(marker), 0) == (None, 1)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("00", None),
        ("8000", None),
        ("8080808008", None),
        ("ffffffff0f", None),
        ("010700", {"inner": 7}),
        ("020700", {"inner": 7}),
        ("81000700", {"inner": 7}),
        ("ffffffff070700", {"inner": 7}),
    ],
)
def test_the_marker_of_a_tagged_struct_is_a_varint_that_is_null_unless_it_is_positive_as_an_int32(raw, value):
    kind = NullableStruct(Field(name="inner", kind=schema.INT8), is_tagged=True)
    assert kind.read(bytes.fromhex(raw), 0) == (value, len(raw) // 2)


@pytest.mark.parametrize(
    ("value", "raw"),
    [({"inner": 0}, "00"), (None, "01050100"), ({"inner": 7}, "010503010700")],
    ids=["the default is not written", "null is written", "another struct is written"],
)
def test_absent_is_the_default_struct_and_null_is_explicit(value, raw):
    layout = Struct(ALL_KINDS.tagged[5])
    assert layout.write({"tagged_maybe": value}).hex() == raw
    assert layout.read(bytes.fromhex(raw), 0)[0] == {"tagged_maybe": value}


@pytest.mark.parametrize(
    ("options", "raw"),
    [((), "00"), (None, "01030100"), ((7,), "0103050200000007")],
    ids=["empty is not written", "null is written", "items are written"],
)
def test_absent_is_empty_where_the_default_is_the_empty_array_and_null_is_explicit(options, raw):
    layout = Struct(ALL_KINDS.tagged[3])
    assert layout.write({"options": options}).hex() == raw
    assert layout.read(bytes.fromhex(raw), 0)[0] == {"options": options}
    assert layout.write({}).hex() == "00"


@pytest.mark.parametrize("raw", ["01000300000001", "0100050000000100"], ids=["too short", "too long"])
def test_a_known_tagged_field_must_fill_its_size(raw):
    with pytest.raises(InvalidLengthError, match="count"):
        Struct(ALL_KINDS.tagged[0]).read(bytes.fromhex(raw), 0)


def test_tagged_fields_are_written_in_the_order_of_their_tags():
    layout = Struct(ALL_KINDS.tagged[3])
    tree = {"options": None, "unknown_tags": (UnknownTag(tag=1, data=b"a"), UnknownTag(tag=9, data=b""))}
    assert layout.write(tree).hex() == "03" + "010161" + "030100" + "0900"


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (schema.INT8, 128),
        (schema.UINT16, -1),
        (schema.INT32, "1"),
        (schema.STRING, None),
        (schema.STRING, "a" * 32768),
        (schema.UUID, "short"),
        (CompactArray(item=schema.INT8), None),
        (PAIR, {"left": 1}),
        (PAIR, 7),
    ],
)
def test_values_that_do_not_fit_are_refused(kind, value):
    with pytest.raises(EncodeError):
        kind.write(value)


def test_a_lone_surrogate_is_written_as_java_writes_it():
    assert schema.STRING.write("a\ud800") == b"\x03a?"
