"""Rows by share partition."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from state_model.columnar.keys import SHARE_PARTITION_KEY, only_keys_of
from state_model.columnar.schemas import SHARE_PARTITION, plain

Key = tuple[str, str, int]
Row = Mapping[str, Any]


def key_of(row: Row) -> Key:
    """(group, topic id, partition) of a row."""
    return row["group_id"], row["topic_id"], row["partition"]


def rows_of_keys(table: pa.Table, keys: Sequence[Key]) -> pa.Table:
    """The rows of share partitions, in their order; text as text."""
    rows = [dict(zip(SHARE_PARTITION_KEY, key, strict=True)) for key in keys]
    return plain(only_keys_of(table, pa.Table.from_pylist(rows, schema=pa.schema(SHARE_PARTITION))))
