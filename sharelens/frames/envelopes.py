"""Rows of different kinds in one group: records, states, and facts about a whole state partition.

A group of Spark has rows of one schema. An ENVELOPE row says in `kind` which of its structs it carries; the kinds
come in the order in which the reader of the group needs them.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from sharelens.frames.shapes import blanks, checked, in_envelope, nullable_struct
from state_model.columnar import schemas
from state_model.columnar.keys import SHARE_PARTITION_KEY, STATE_PARTITION_KEY
from state_model.columnar.schemas import column
from state_model.columnar.values import Loss

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

CHUNK_BITS = 15
"""A chunk is 32,768 offsets of a state partition."""
BUCKETS = 8
"""Into how many groups the share partitions of a state partition are put while the states between chunks are folded."""
CONTEXT, STATE, HEAD, THIN, END, RECORD = range(6)
BEFORE_ALL, AT_END = -2, -1
"""Numbers outside chunks: rows before the first record, and the states at the end."""

LOSS = pa.schema(
    [
        *schemas.LOG_POSITION[:2],
        column("first_offset", pa.int64(), "first offset of the state partition that is lost", nullable=False),
        column("last_offset", pa.int64(), "last one (inclusive)", nullable=False),
        column("reason", pa.string(), "why, as completeness_reason has it", nullable=False),
        *(field.with_nullable(True) for field in schemas.SHARE_PARTITION),
    ]
)
"""A range of log offsets that the evidence lacks; with a share partition named, only that one lost something."""
LOG_START = pa.schema(
    [*schemas.LOG_POSITION[:2], column("log_start_offset", pa.int64(), "first offset that Kafka still serves")]
)
PLAIN_REPLAYED = schemas.plain(schemas.REPLAYED.empty_table()).schema
"""schemas.REPLAYED as Spark has it: text as text."""
_LOSS_FIELDS = [field.with_nullable(True) for field in LOSS if field.name not in STATE_PARTITION_KEY]
ENVELOPE = pa.schema(
    [
        *schemas.LOG_POSITION[:2],
        pa.field("bucket", pa.int32()),
        pa.field("chunk", pa.int64()),
        pa.field("kind", pa.int32()),
        pa.field("place", pa.int64()),
        pa.field("weight", pa.int64()),
        pa.field("record", nullable_struct(PLAIN_REPLAYED)),
        pa.field("state", nullable_struct(schemas.SHARE_PARTITION_STATE)),
        pa.field("losses", pa.list_(pa.struct(_LOSS_FIELDS))),
        pa.field("log_start_offset", pa.int64()),
    ]
)
"""What a row does not carry is blank, not null (`shapes.blank`).

`place` orders rows of one kind by log offset; `log_start_offset`: the log starts there or above.
"""


@dataclass(slots=True)
class Context:
    """Facts about a whole state partition, collected from its rows."""

    losses: list[Loss]
    log_start_offset: int = 0

    def take(self, rows: pa.Table) -> None:
        """Notes what ENVELOPE rows say."""
        start = pc.max(rows.column("log_start_offset")).as_py()
        self.log_start_offset = max(self.log_start_offset, start or 0)
        lists = rows.column("losses")
        lists = lists.filter(pc.greater(pc.list_value_length(lists), 0))
        if len(lists) and not self.losses:
            self.losses = sorted(
                (Loss(**loss) for loss in lists[0].as_py()),
                key=lambda loss: (loss.first_offset, loss.last_offset, loss.reason),
            )

    def row(self, position: pa.Table, chunk: int) -> Iterator[pa.RecordBatch]:
        """A CONTEXT row with the losses, for the state partition of `position`; none where nothing is lost."""
        if self.losses:
            lost = [{field.name: getattr(loss, field.name) for field in _LOSS_FIELDS} for loss in self.losses]
            yield from packed(CONTEXT, chunk, position.slice(0, 1), losses=pa.array([lost]))


def packed(kind: int, chunk: int, rows: pa.Table, **columns: Any) -> Iterator[pa.RecordBatch]:
    """ENVELOPE rows around `rows`, which have the columns of STATE_PARTITION_KEY; `columns`: their columns."""
    count = rows.num_rows
    if count == 0:
        return
    place = rows.column("log_offset") if "log_offset" in rows.column_names else pa.repeat(-1, count)
    value_by_name = {name: rows.column(name) for name in STATE_PARTITION_KEY} | {
        "chunk": pa.repeat(chunk, count),
        "kind": pa.repeat(kind, count),
        "place": place,
        **{name: structs(value) if isinstance(value, pa.Table) else value for name, value in columns.items()},
    }
    arrays = [
        _array(value_by_name[field.name], field.type) if field.name in value_by_name else blanks(count, field.type)
        for field in ENVELOPE
    ]
    yield pa.RecordBatch.from_arrays(arrays, schema=pa.schema([field.with_nullable(True) for field in ENVELOPE]))


def structs(rows: pa.Table) -> pa.StructArray:
    """Rows as structs."""
    batch = rows.combine_chunks()
    arrays = [_array(batch.column(field.name), field.type) for field in batch.schema]
    return pa.StructArray.from_arrays(arrays, fields=list(batch.schema))


def unpacked(rows: pa.Table, name: str, schema: pa.Schema) -> pa.Table:
    """The rows of `schema` in the structs of a column."""
    column = _array(rows.column(name), rows.schema.field(name).type)
    fields = {field.name: value for field, value in zip(column.type, column.flatten(), strict=True)}
    return pa.table({name: fields[name] for name in schema.names}).cast(schema)


def _array(values: Any, kind: pa.DataType) -> pa.Array:
    single_array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if isinstance(single_array, pa.ChunkedArray):
        single_array = single_array.chunk(0) if single_array.num_chunks else pa.array([], single_array.type)
    return single_array if single_array.type == kind else single_array.cast(kind)


def of_kind(rows: pa.Table, kind: int) -> pa.Table:
    """The rows of one kind."""
    return rows.filter(pa.array(rows.column("kind").to_numpy() == kind))


def chunks_of(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each chunk, of batches that come by chunk."""
    pending: list[pa.RecordBatch] = []
    current = BEFORE_ALL
    for batch in batches:
        chunks = batch.column("chunk").to_numpy()
        bounds = [0, *(np.flatnonzero(np.diff(chunks)) + 1).tolist(), len(chunks)] if len(chunks) else []
        for first, end in itertools.pairwise(bounds):
            if pending and chunks[first] != current:
                yield current, pa.Table.from_batches(pending)
                pending = []
            current = int(chunks[first])
            pending.append(batch.slice(first, end - first))
    if pending:
        yield current, pa.Table.from_batches(pending)


def enveloped(rows: "DataFrame", columns: "dict[str, Column]") -> "DataFrame":
    """ENVELOPE rows with `columns` around rows with STATE_PARTITION_KEY; others are null, or before all records."""
    columns = (
        {name: F.col(name) for name in STATE_PARTITION_KEY} | {"chunk": F.lit(BEFORE_ALL), "place": F.lit(-1)} | columns
    )
    return in_envelope(rows, columns, ENVELOPE)


def bucket_of(*places: str) -> "Column":
    """The bucket of a share partition, whose key is in the first of these structs that is there; "": in columns."""
    columns = ([f"{place}.{name}" if place else name for place in places] for name in SHARE_PARTITION_KEY)
    return F.pmod(F.xxhash64(*(F.coalesce(*names) for names in columns)), F.lit(BUCKETS)).cast("int")


def contexts(losses: "DataFrame | None", log_starts: "DataFrame | None", function: str) -> "Iterator[DataFrame]":
    """CONTEXT rows for every bucket: losses of a state partition, and its log start offset."""
    buckets = F.explode(F.array(*(F.lit(bucket) for bucket in range(BUCKETS)))).alias("bucket")
    other_columns = [name for name in ENVELOPE.names if name != "bucket"]
    if losses is not None:
        rows = checked(losses, LOSS, function, "losses")
        loss = F.struct(*(field.name for field in _LOSS_FIELDS))
        lists = rows.groupBy(*STATE_PARTITION_KEY).agg(F.collect_list(loss).alias("losses"))
        context = enveloped(lists, {"kind": F.lit(CONTEXT), "losses": F.col("losses")})
        yield context.select(*other_columns, buckets).select(*ENVELOPE.names)
    if log_starts is not None:
        rows = checked(log_starts, LOG_START, function, "log_starts")
        starts = rows.groupBy(*STATE_PARTITION_KEY).agg(F.max("log_start_offset").alias("log_start_offset"))
        context = enveloped(starts, {"kind": F.lit(CONTEXT), "log_start_offset": F.col("log_start_offset")})
        yield context.select(*other_columns, buckets).select(*ENVELOPE.names)
