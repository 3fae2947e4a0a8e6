"""Reading in steps and within a budget; what values are read from which bytes is a matter of test_schema."""

import pytest

from state_model import schema
from state_model.codec.readers import UNBOUNDED
from state_model.codec.steps import STEP_ELEMENTS, StepCounter, run
from state_model.errors import BufferUnderflowError
from state_model.schema import ClassicArray, CompactArray, Field, Struct

GROUPS = Struct(Field(name="groups", kind=CompactArray(item=Struct(Field(name="name", kind=schema.STRING)))))


class Counted(StepCounter):
    """Counts the elements that are announced."""

    elements = 0

    def take(self, count, offset):
        self.elements += count


def test_a_large_array_is_read_in_steps_of_bounded_size():
    tree = {"groups": tuple({"name": "g"} for _ in range(3 * STEP_ELEMENTS))}
    raw, budget = GROUPS.write(tree), Counted()
    steps = GROUPS.reader.in_steps(raw, 0, budget)
    assert sum(1 for _ in steps) == 3
    assert run(GROUPS.reader.in_steps(raw, 0, Counted())) == (tree, len(raw))
    assert budget.elements == 3 * STEP_ELEMENTS


def test_structs_without_arrays_have_no_steps():
    assert Struct(Field(name="numbers", kind=CompactArray(item=schema.INT32))).reader.in_steps is None


def test_elements_are_counted_before_they_are_read():
    class Full(Exception):
        pass

    class Budget(StepCounter):
        def take(self, count, offset):
            raise Full(count, offset)

    for kind in (CompactArray(item=schema.INT8), CompactArray(item=schema.STRING)):
        with pytest.raises(Full, match=r"\(2, 1\)"):
            kind.reader.at_once(b"\x03\xff\xff", 0, Budget())


def test_elements_without_bytes_of_their_own_count_as_one_byte_each():
    empty = ClassicArray(item=Struct(flexible=False))
    with pytest.raises(BufferUnderflowError, match="5 bytes needed"):
        empty.reader.at_once(bytes.fromhex("00000005"), 0, UNBOUNDED)


def test_make_gets_the_fields_and_unknown_tags_are_dropped():
    pairs = Struct(Field(name="a", kind=schema.INT8), make=lambda **values: sorted(values.items()), keeps_tags=False)
    assert pairs.reader.at_once(bytes.fromhex("0501630178"), 0, UNBOUNDED) == ([("a", 5)], 5)
