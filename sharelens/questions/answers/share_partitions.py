"""Rows by share partition."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from state_model.columnar.keys import SHARE_PARTITION_KEY

Key = tuple[str, str, int]
Row = Mapping[str, Any]


def key_of(row: Row) -> Key:
    """(group, topic id, partition) of a row."""
    return row["group_id"], row["topic_id"], row["partition"]


def rows_of_keys(table: pa.Table, keys: Sequence[Key]) -> pa.Table:
    """The rows of share partitions, in their order."""
    if len(keys) == 1:
        named = [pc.field(name) == value for name, value in zip(SHARE_PARTITION_KEY, keys[0], strict=True)]
        return table.filter(named[0] & named[1] & named[2])
    columns = [pa.array(column) for column in zip(*keys, strict=True)] if keys else [pa.array([])] * 3
    key_rows = pa.table(columns, names=SHARE_PARTITION_KEY).cast(
        pa.schema([table.schema.field(name) for name in SHARE_PARTITION_KEY])
    )
    number = pa.array(range(table.num_rows), pa.int64())
    matching_rows = (
        table.select(SHARE_PARTITION_KEY)
        .append_column("row", number)
        .join(key_rows, keys=SHARE_PARTITION_KEY, join_type="left semi")
    )
    return table.take(matching_rows.column("row").sort())
