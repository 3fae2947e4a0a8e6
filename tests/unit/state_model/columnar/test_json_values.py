"""Values that the kernel prints are those that the reference decoder decodes, in the JSON of Kafka's formatter."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_model import schema
from state_model.columnar.json_values import WITHOUT_PROGRAM, print_values
from state_model.group_records import GroupRecord, decode_record, encode_record, to_formatter_json
from state_model.group_schemas import RECORD_TYPES, TABLE_TYPES
from tests.consumer_group_vectors import CONSUMER_VECTORS
from tests.record_trees import trees

NUMBERS = sorted(number for number in TABLE_TYPES if number not in WITHOUT_PROGRAM)


@st.composite
def records(draw: st.DrawFn) -> tuple[int, bytes]:
    """A record type and a value in bytes."""
    record_type = RECORD_TYPES[draw(st.sampled_from(NUMBERS))]
    tree = draw(trees(record_type.values[0]))
    assert isinstance(tree, dict)
    record = GroupRecord(
        record_type=record_type.number, name=record_type.name, key=KEYS[record_type.number], version=0, value=tree
    )
    value = encode_record(record)[1]
    assert value is not None
    return record_type.number, value


KEYS = {number: {field.name: "k" for field in RECORD_TYPES[number].key.fields} for number in NUMBERS}


def reference(number: int, value: bytes) -> str:
    key = schema.INT16.write(number) + RECORD_TYPES[number].key.write(KEYS[number])
    record = decode_record(key, value)
    assert isinstance(record, GroupRecord)
    printed = to_formatter_json(record)["value"]
    assert isinstance(printed, dict)
    return json.dumps(printed["data"], ensure_ascii=False)


def printed(rows: list[tuple[int, bytes | None]]) -> list[str | None]:
    texts, is_printed = print_values(
        np.array([number for number, _ in rows], np.int64), pa.array([value for _, value in rows], pa.binary())
    )
    assert [text is not None for text in texts.to_pylist()] == is_printed.tolist()
    return list(texts.to_pylist())


@pytest.mark.slow
@given(st.lists(records(), min_size=1, max_size=5))
def test_values_are_printed_as_the_reference_decoder_has_them(rows: list[tuple[int, bytes | None]]) -> None:
    for (number, value), text in zip(rows, printed(rows), strict=True):
        assert value is not None
        expected = reference(number, value)
        is_plain = expected.isascii() and "\\" not in expected
        assert text == (expected if is_plain else None)


@given(records(), st.data())
def test_what_is_damaged_is_printed_only_as_the_reference_decoder_has_it(
    record: tuple[int, bytes], data: st.DataObject
) -> None:
    number, value = record
    cut = value[: data.draw(st.integers(0, len(value)))]
    at = data.draw(st.integers(0, len(value) - 1))
    flipped = value[:at] + bytes([data.draw(st.integers(0, 255))]) + value[at + 1 :]
    for damaged in (cut, flipped, cut + b"\xff\xff\xff\xff\x7f", value + b"\0\1"):
        (text,) = printed([(number, damaged)])
        assert text is None or text == reference(number, damaged)


def test_tombstones_other_versions_and_types_without_a_program_are_left_out() -> None:
    assert printed([(11, None), (11, b"\0\1" + bytes(20)), (15, bytes(6)), (1, bytes(6)), (99, bytes(6))]) == [None] * 5


def test_values_of_consumer_groups_are_printed_as_kafka_does_but_for_names_and_tagged_structs() -> None:
    of_consumer_groups: list[tuple[int, bytes | None]] = [
        (number, bytes.fromhex(value)) for number, _, value, _ in CONSUMER_VECTORS
    ]
    expected = [None if number in WITHOUT_PROGRAM else json.dumps(value) for number, *_, value in CONSUMER_VECTORS]
    assert printed(of_consumer_groups) == expected


@pytest.mark.parametrize("output_bytes", [64, 200])
def test_values_are_printed_in_many_pieces(output_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("state_model.columnar.json_values.OUTPUT_BYTES", output_bytes)
    epochs: list[tuple[int, bytes | None]] = [(11, bytes(2) + bytes([0, 0, 0, n]) + bytes(9)) for n in range(9)]
    texts = printed([*epochs[:4], (11, None), *epochs[4:]])
    expected = [f'{{"epoch": {number}, "metadataHash": 0}}' for number in range(9)]
    is_room = output_bytes == 200
    assert texts == [*expected[:4], None, *expected[4:]] if is_room else [None] * 10
