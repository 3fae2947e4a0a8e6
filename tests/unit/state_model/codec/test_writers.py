"""Writing in steps, large pieces and absent fields; which bytes values have is a matter of test_schema."""

import pytest

from state_model import schema
from state_model.codec.steps import STEP_ELEMENTS
from state_model.codec.writers import LARGE_BYTES, Output
from state_model.errors import EncodeError
from state_model.schema import ClassicArray, ClassicBytes, CompactArray, CompactBytes, Field, Struct


def test_a_large_array_is_written_in_steps_of_bounded_size():
    layout = Struct(Field(name="groups", kind=CompactArray(item=Struct(Field(name="name", kind=schema.STRING)))))
    tree, out = {"groups": [{"name": "g"}] * (2 * STEP_ELEMENTS)}, Output()
    assert sum(1 for _ in layout.writer.in_steps(tree, out)) == 2
    assert bytes(out.buffer) == layout.write(tree)


def test_large_bytes_are_a_piece_of_their_own():
    large, out = bytes(LARGE_BYTES + 1), Output()
    CompactBytes().writer.at_once(large, out)
    CompactBytes().writer.at_once(b"small", out)
    assert out.pieces[1] is large
    assert out.size_bytes == 3 + len(large) + 6
    assert CompactBytes().read(CompactBytes().write(large), 0) == (large, 3 + len(large))


@pytest.mark.parametrize(
    ("kind", "value", "raw"),
    [
        (ClassicBytes(nullable=True), None, "ffffffff"),
        (ClassicBytes(), b"a", "0000000161"),
        (CompactBytes(nullable=True), None, "00"),
        (CompactBytes(), b"a", "0261"),
        (ClassicArray(item=schema.INT16, nullable=True), None, "ffffffff"),
        (ClassicArray(item=schema.INT16), (1, 2), "0000000200010002"),
        (ClassicArray(item=schema.CLASSIC_STRING), ("a",), "00000001000161"),
        (schema.ClassicString(nullable=True), None, "ffff"),
    ],
)
def test_forms_of_other_messages_than_records(kind, value, raw):
    assert kind.write(value).hex() == raw
    assert kind.read(bytes.fromhex(raw), 0) == (value, len(raw) // 2)


def test_absent_fields_have_their_bytes_or_are_required():
    run = Struct(Field(name="a", kind=schema.INT8, absent=b"\x07"), Field(name="b", kind=schema.INT8), flexible=False)
    assert run.write({"a": 1, "b": 2}).hex() == "0102"
    assert run.write({"b": 2}).hex() == "0702"
    with pytest.raises(EncodeError, match="the field b is missing"):
        run.write({"a": 1})
    with pytest.raises(EncodeError, match="300 is no int8"):
        run.write({"a": 300, "b": 2})


def test_a_tagged_field_with_the_bytes_of_its_default_is_not_written():
    tagged = Struct(Field(name="a", kind=schema.INT8, tag=0, default=0, absent=b"\x00"))
    assert [tagged.write({"a": value}).hex() for value in (None, 0, 1)] == ["00", "00", "01000101"]


def test_an_array_may_be_any_iterable_and_nothing_else():
    array = CompactArray(item=schema.INT8)
    assert array.write(iter([1, 2])).hex() == "030102"
    with pytest.raises(EncodeError, match="7 is no array"):
        array.write(7)
