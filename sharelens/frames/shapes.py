"""What the functions of this package share: columns that they check, schemas of what they return, groups in order."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses
from pyspark.sql.pandas.types import from_arrow_schema

from sharelens.frames.refusals import Argument, is_key, spark_frame, without_nulls
from sharelens.lake.tables import with_times
from state_model.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

Batches = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""A function in the iterator form of applyInArrow: rows of one group come and go in batches."""
"""Columns that name a partition of the state topic."""


def spark_schema(schema: pa.Schema) -> "StructType":
    """An Arrow schema as Spark's."""
    return from_arrow_schema(schema)


def timed_schema(schema: pa.Schema) -> pa.Schema:
    """`schema` with a TIMESTAMP column beside each moment in milliseconds, as the gold tables have it."""
    return pa.schema(with_times(list(schema)))


def nullable_struct(schema: pa.Schema) -> pa.StructType:
    """A struct with the fields of `schema`, each of which may be null."""
    return pa.struct([field.with_nullable(True) for field in schema])


def blank(kind: pa.DataType) -> "Column":
    """A column that says nothing: structs of nulls, and empty lists.

    Spark 4.1 measures a batch for Arrow after each row, and goes over all null lists of the batch for it: 10,000 rows
    with a null list, inside a null struct too, cost 50 million steps. An empty list costs one.
    """
    if pa.types.is_struct(kind):
        return F.struct(*(blank(field.type).alias(field.name) for field in kind))
    return F.array() if pa.types.is_list(kind) else F.lit(None)


def in_envelope(rows: "DataFrame", columns: Mapping[str, "Column"], envelope: pa.Schema) -> "DataFrame":
    """Rows of an envelope: those of several DataFrames, of one schema; what `columns` does not name is blank."""
    fields = zip(envelope, spark_schema(envelope).fields, strict=True)
    return rows.select(
        *(
            columns.get(envelope_field.name, blank(envelope_field.type)).cast(field.dataType).alias(envelope_field.name)
            for envelope_field, field in fields
        )
    )


def together(parts: "Iterable[DataFrame]") -> "DataFrame":
    """The rows of DataFrames of one schema, at least one."""
    rows, *other_parts = parts
    for other in other_parts:
        rows = rows.unionByName(other)
    return rows


def blanks(count: int, kind: pa.DataType) -> pa.Array:
    """The same as an array."""
    if pa.types.is_struct(kind):
        return pa.StructArray.from_arrays([blanks(count, field.type) for field in kind], fields=list(kind))
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(
            pa.array([0] * (count + 1), pa.int32()), pa.nulls(0, kind.value_type), type=kind
        )
    return pa.nulls(count, kind)


def checked(rows: "DataFrame | None", schema: pa.Schema, function: str, argument: str) -> "DataFrame":
    """The columns of `schema` of a DataFrame that was passed to a function.

    A task that reads a null in a key or an offset fails (`refusals.without_nulls`).

    Raises:
        UsageError: it is no DataFrame of Spark; or columns are missing or have another type; the message names them
            all.
    """
    source = Argument(function, argument)
    frame = spark_frame(rows, source)
    present = {field.name: field.dataType for field in frame.schema.fields}
    missing = [name for name in schema.names if name not in present]
    wrong = [
        f"{field.name} is {present[field.name].simpleString()}, not {field.dataType.simpleString()}"
        for field in spark_schema(schema).fields
        if field.name in present and present[field.name].simpleString() != field.dataType.simpleString()
    ]
    if missing or wrong:
        faults = [f"it lacks {', '.join(missing)}"] if missing else []
        raise UsageError(f"{source} does not fit: {'; '.join([*faults, *wrong])}")
    may_be_null = {field.name for field in frame.schema.fields if field.nullable}
    return frame.select(
        *(
            without_nulls(field.name, source) if field.name in may_be_null and is_key(field) else field.name
            for field in schema
        )
    )


def in_groups(
    rows: "DataFrame", keys: Sequence[str], order: Sequence[str], function: Batches, schema: pa.Schema
) -> "DataFrame":
    """What `function` makes of each group of rows with equal `keys`, which come to it in `order`.

    One exchange and one sort; a task holds a batch of a group at a time, and what the function keeps.
    """
    ordered = rows.repartition(*keys).sortWithinPartitions(*keys, *order)
    return ordered.groupBy(*keys).applyInArrow(function, spark_schema(schema))


def typed_rows(batch: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    """The columns of `schema` in a batch from Spark, in one chunk each."""
    return pa.Table.from_batches([batch]).select(schema.names).cast(schema).combine_chunks()
