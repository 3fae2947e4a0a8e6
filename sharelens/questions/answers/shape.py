"""Arrow columns that several answers share."""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.lake.tables import CLUSTER
from sharelens.measures.topics.extents import names_of_topics
from sharelens.output import UNKNOWN, Column, Row, number_text, shortened
from state_model.columnar.schemas import COMPLETENESS, SHARE_PARTITION, column
from state_model.columnar.values import state_names

CLUSTER_ID = CLUSTER.with_nullable(True)
TOPIC = column("topic", pa.string(), "name of the topic; null = unknown")

NAMED_BATCH = pa.struct(
    [
        pa.field("first_offset", pa.int64()),
        pa.field("last_offset", pa.int64()),
        pa.field("delivery_state", pa.int8()),
        pa.field("delivery_state_name", pa.string()),
        pa.field("delivery_count", pa.int16()),
    ]
)
RANGES_SHOWN = 4
FIRST_OFFSET_NAMES = {"first_offset": "offset"}
"""Names that answers, plans and evidence folders keep for columns of tables whose name is another one."""


def answer_schema(schema: pa.Schema, names: Mapping[str, str] | None = None, *, has_marks: bool = True) -> pa.Schema:
    """The schema with what answers add: cluster_id in front, `topic` behind topic_id, and marks at the end.

    `names`: by column its name in answers, where that is another one.
    """
    fields = [CLUSTER_ID]
    for field in schema:
        fields.append(field.with_name((names or {}).get(field.name, field.name)))
        if field.name == "topic_id" and "topic" not in schema.names:
            fields.append(TOPIC)
    marks = COMPLETENESS if has_marks and "completeness" not in schema.names else ()
    return pa.schema([*fields, *marks])


def in_answer(rows: pa.Table, names: Mapping[str, str]) -> pa.Table:
    """The rows of a table with the names that columns have in answers, as far as they are there."""
    return rows.rename_columns([names.get(name, name) for name in rows.column_names])


ABOUT = tuple(field.with_nullable(True) for field in answer_schema(pa.schema(SHARE_PARTITION), has_marks=False))
"""Cluster, group, topic and partition."""
MARKS = tuple(field.with_nullable(True) for field in COMPLETENESS)


def with_names(rows: pa.Table, names: Mapping[str, str]) -> pa.Table:
    """The rows with the known names in their column `topic`."""
    at = rows.schema.get_field_index("topic")
    named = pc.coalesce(names_of_topics(rows.column("topic_id"), names), rows.column("topic"))
    return rows.set_column(at, rows.schema.field(at), named)


def named_batches(column: pa.ChunkedArray) -> pa.ListArray:
    """State batches with the name of the delivery state beside its number; null lists stay null."""
    lists = column.combine_chunks()
    lists = lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    ends = pc.cumulative_sum(pc.cast(lengths, pa.int32()))
    offsets = pa.concat_arrays(
        [pa.array([0], pa.int32()), ends.combine_chunks() if isinstance(ends, pa.ChunkedArray) else ends]
    )
    flat = pc.list_flatten(lists)
    state = flat.field("delivery_state")
    parts = [
        flat.field("first_offset"),
        flat.field("last_offset"),
        state,
        state_names(state),
        flat.field("delivery_count"),
    ]
    values = pa.StructArray.from_arrays(parts, fields=list(NAMED_BATCH))
    return pa.ListArray.from_arrays(offsets, values, mask=pc.is_null(lists))


def constant(value: object, rows: int, kind: pa.DataType) -> pa.Array:
    """A column that holds one value throughout."""
    return pa.nulls(rows, kind) if value is None else pa.repeat(pa.scalar(value, kind), rows)


def pair_column(heading: str, name: str, fields: tuple[str, ...] = ()) -> Column:
    """`4>5`: a number before and after (`name_before`, `name_after`), once if both are equal; `fields` come first."""

    def cell(row: Row) -> str:
        before, after = number_text(row[f"{name}_before"]), number_text(row[f"{name}_after"])
        return after if before == after else f"{before}>{after}"

    return Column(heading=heading, cell=cell, right=True, fields=(*fields, f"{name}_after", f"{name}_before"))


def ranges_column(*, verbose: bool) -> Column:
    """RECORD-OFFSETS: the first ranges of state_batches, or all of them."""
    return Column(
        heading="RECORD-OFFSETS",
        cell=all_ranges_cell if verbose else ranges_cell,
        fields=("state_batches",),
        short=_short_ranges,
    )


def _short_ranges(row: Row, width: int) -> str:
    batches = row["state_batches"]
    return shortened(batches, range_text, width) if isinstance(batches, list) else UNKNOWN


def ranges_cell(row: Row) -> str:
    """`100-104 ACKNOWLEDGED/1, ...`: the first ranges of state_batches, and how many more there are."""
    return _ranges(row, RANGES_SHOWN)


def all_ranges_cell(row: Row) -> str:
    """Every range of state_batches."""
    return _ranges(row, None)


def _ranges(row: Row, range_limit: int | None) -> str:
    batches = row["state_batches"]
    if not isinstance(batches, list) or not batches:
        return UNKNOWN
    remainder_text = (
        f", ... {len(batches) - range_limit} more" if range_limit is not None and len(batches) > range_limit else ""
    )
    return ", ".join(map(range_text, batches[:range_limit])) + remainder_text


def range_text(batch: Mapping[str, object]) -> str:
    """One range: offsets, name of the state, delivery count."""
    first, last = batch["first_offset"], batch["last_offset"]
    offsets = f"{first}" if first == last else f"{first}-{last}"
    return f"{offsets} {batch['delivery_state_name']}/{batch['delivery_count']}"
