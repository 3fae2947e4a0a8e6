"""Arrow columns of values that `silver.group_record` has as JSON; their types come from the schemas of the records."""

import json

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from state_model.group_records import camel_case
from state_model.schema import CompactArray, CompactString, Int, Kind, NullableStruct, Struct, Uuid

LEAST_BLOCK_BYTES = 16 << 20
INTEGERS = {"b": pa.int8(), "h": pa.int16(), "i": pa.int32(), "q": pa.int64(), "H": pa.uint16()}


def columns_of(texts: pa.ChunkedArray, layout: Struct) -> pa.Table:
    """One row for each JSON text, with the fields of a value's schema; a field that the text lacks is null."""
    schema = pa.schema(list(arrow_type(layout)))
    if not len(texts):
        return schema.empty_table()
    try:
        return _read_lines(texts, schema)
    except pa.ArrowInvalid:  # text that Kafka's formatter would not write, with line breaks say
        return pa.Table.from_pylist([json.loads(text) for text in texts.to_pylist()], schema=schema)


def _read_lines(texts: pa.ChunkedArray, schema: pa.Schema) -> pa.Table:
    lines = pa.concat_arrays([chunk.cast(pa.large_string()) for chunk in texts.chunks])
    empty, line_break = (pa.scalar(text, pa.large_string()) for text in ("", "\n"))
    data = pc.binary_join_element_wise(lines, empty, line_break).buffers()[2]
    longest = pc.max(pc.binary_length(lines)).as_py()
    table = pj.read_json(
        pa.BufferReader(data),
        read_options=pj.ReadOptions(use_threads=False, block_size=max(LEAST_BLOCK_BYTES, 2 * longest)),
        parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    )
    if table.num_rows != len(texts):
        raise pa.ArrowInvalid(f"{len(texts)} texts are {table.num_rows} lines")
    return table


def arrow_type(kind: Kind) -> pa.DataType:
    """The Arrow type of a field; names are those of the JSON."""
    match kind:
        case Int():
            return INTEGERS[kind.code]
        case CompactString() | Uuid():
            return pa.string()
        case CompactArray():
            return pa.list_(arrow_type(kind.item))
        case NullableStruct():
            return arrow_type(kind.struct)
        case Struct():
            return pa.struct([pa.field(camel_case(field.name), arrow_type(field.kind)) for field in kind.fields])
    raise TypeError(f"{kind!r} has no Arrow type")
