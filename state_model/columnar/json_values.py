"""Values of group records as the JSON of Kafka's formatter, a column at a time: a short form of the reference decoder.

The program that the kernel runs comes from the schemas of `state_model.group_schemas`.
"""

import json
from functools import lru_cache
from typing import Final, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from state_model.columnar import buffers
from state_model.columnar import json_kernels as kernels
from state_model.group_records import camel_case
from state_model.group_schemas import RECORD_TYPES, TABLE_TYPES
from state_model.schema import CompactArray, CompactString, Int, Kind, NullableStruct, Struct, Uuid

OUTPUT_BYTES: Final = 64 << 20
"""The most bytes of JSON that the kernel prints at once."""
LEAST_OUTPUT_BYTES: Final = 1 << 16
JSON_PER_BYTE: Final = 12
CODES: Final = {"b": kernels.INT8, "h": kernels.INT16, "i": kernels.INT32, "q": kernels.INT64, "H": kernels.UINT16}
"""Codes of integer types by their format character."""
WITHOUT_PROGRAM: Final = frozenset({4, 5, 15})
"""ConsumerGroupPartitionMetadata and ShareGroupStatePartitionMetadata, whose topic names are read from the reference
decoder's values, and ConsumerGroupMemberMetadata, which has a tagged struct."""
Bools = npt.NDArray[np.bool_]


def print_values(kinds: npt.NDArray[np.int64], values: pa.Array) -> tuple[pa.ChunkedArray, Bools]:
    """JSON of the values (binary) of record types, null where it is not printed; and whether each is printed.

    What is not printed needs the reference decoder: tombstones, unknown versions, what is malformed or unusual.
    """
    view = buffers.binary_view(values)
    is_printed = np.zeros(len(kinds), np.bool_)
    program = _program()
    row, chunks = 0, []
    while row < len(kinds):
        estimated_bytes = JSON_PER_BYTE * int(view.at[-1] - view.at[row])
        out = np.empty(min(max(estimated_bytes, LEAST_OUTPUT_BYTES), OUTPUT_BYTES), np.uint8)
        ends = np.zeros(len(kinds) - row + 1, np.int32)
        begin = row
        row = kernels.put_values(view, kinds, program, begin, out, ends, is_printed)
        ends = ends[: row - begin + 1]
        chunks.append(buffers.texts(pa.string(), ends, out[: ends[-1]].copy(), is_printed[begin:row]))
    return pa.chunked_array(chunks, pa.string()), is_printed


@lru_cache(1)
def _program() -> kernels.Program:
    compiler = _Compiler()
    first_steps = np.full(max(RECORD_TYPES) + 1, -1, np.int64)
    for number in TABLE_TYPES:
        if number not in WITHOUT_PROGRAM:
            first_steps[number] = len(compiler.steps)
            compiler.struct(RECORD_TYPES[number].values[0])
            compiler.add(kernels.DONE)
    return kernels.Program(
        steps=np.array(compiler.steps, np.int64),
        texts=np.frombuffer(bytes(compiler.texts), np.uint8),
        first_steps=first_steps,
    )


class _Compiler:
    """Writes the steps of structs."""

    def __init__(self) -> None:
        self.steps: list[list[int]] = []
        self.texts = bytearray()

    def add(self, operation: int, *numbers: int) -> int:
        """Adds a step; its number."""
        step = [operation, *numbers]
        self.steps.append(step + [0] * (kernels.STEP_COLUMNS - len(step)))
        return len(self.steps) - 1

    def text(self, text: str) -> None:
        """Adds a step that prints a text."""
        self.add(kernels.TEXT, len(self.texts), len(text))
        self.texts += text.encode("ascii")

    def struct(self, layout: Struct) -> None:
        """Adds the steps of a struct: its fields, then the tagged ones, which must be declared in this order."""
        assert layout.fields == (*layout.plain, *layout.tagged.values())
        assert layout.plain
        assert layout.flexible
        for number, field in enumerate(layout.plain):
            self.text(f"{', ' if number else '{'}{json.dumps(camel_case(field.name))}: ")
            self.kind(field.kind)
        self._tags(layout)
        self.text("}")

    def _tags(self, layout: Struct) -> None:
        assert list(layout.tagged) == sorted(layout.tagged)
        tags = self.add(kernels.TAGS, len(layout.tagged))
        cases = [self.add(kernels.CASE, tag) for tag in layout.tagged]
        for case, field in zip(cases, layout.tagged.values(), strict=True):
            if isinstance(field.kind, Int):
                default = CODES[field.kind.code], cast(int, field.default)
            else:
                assert field.default == ()
                default = kernels.EMPTY_ARRAY, 0
            self.steps[case][2:5] = [len(self.steps), *default]
            self.text(f", {json.dumps(camel_case(field.name))}: ")
            self.kind(field.kind)
            self.add(kernels.TAG_END)
        self.steps[tags][2] = len(self.steps)

    def kind(self, kind: Kind) -> None:
        """Adds the steps of a field's value."""
        match kind:
            case Int():
                self.add(kernels.INTEGER, CODES[kind.code])
            case CompactString():
                self.add(kernels.STRING, kind.nullable)
            case Uuid():
                self.add(kernels.ID)
            case CompactArray(item=Int() as item):
                self.add(kernels.INTEGERS, CODES[item.code], kind.nullable)
            case CompactArray():
                array = self.add(kernels.ARRAY, 0, kind.nullable, kind.item.min_bytes)
                self.kind(kind.item)
                self.add(kernels.ITEM_END)
                self.steps[array][1] = len(self.steps)
            case NullableStruct(is_tagged=False):
                marker = self.add(kernels.MARKER)
                self.struct(kind.struct)
                self.steps[marker][1] = len(self.steps)
            case Struct():
                self.struct(kind)
            case _:
                raise TypeError(f"{kind!r} has no step")
