"""Rows by share partition."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from state_model.columnar.keys import SHARE_PARTITION_KEY

Key = tuple[str, str, int]
Row = Mapping[str, Any]


def key_of(row: Row) -> Key:
    """(group, topic id, partition) of a row."""
    return row["group_id"], row["topic_id"], row["partition"]


def rows_of_keys(table: pa.Table, keys: Sequence[Key]) -> pa.Table:
    """The rows of share partitions, in their order."""
    columns = [pa.array(column) for column in zip(*keys, strict=True)] if keys else [pa.array([])] * 3
    key_rows = pa.table(columns, names=SHARE_PARTITION_KEY).cast(
        pa.schema([table.schema.field(name) for name in SHARE_PARTITION_KEY])
    )
    number = pa.array(range(table.num_rows), pa.int64())
    kept = (
        table.select(SHARE_PARTITION_KEY)
        .append_column("row", number)
        .join(key_rows, keys=SHARE_PARTITION_KEY, join_type="left semi")
    )
    return table.take(kept.column("row").sort())
