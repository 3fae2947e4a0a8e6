"""Offset commits by group, with the markers of their transactions."""

import pyarrow as pa

from sharelens.evidence.offset_commit_rows import COMMIT_COLUMNS, commits_by_group
from state_model.group_schemas import OFFSET_KEY

MARKER = b"\x00\x00\x00\x01"


def key(group: str, partition: int) -> bytes:
    return b"\x00\x01" + OFFSET_KEY.write({"group": group, "topic": "orders", "partition": partition})


def rows(*records: tuple[bytes, int]) -> pa.Table:
    """Rows of keys and producers at offsets from 0 on; -1: no producer."""
    columns = {name: [None] * len(records) for name in COMMIT_COLUMNS}
    columns |= {
        "partition": [0] * len(records),
        "offset": list(range(len(records))),
        "key": [key for key, _ in records],
        "producer_id": [producer_id for _, producer_id in records],
        "is_control": [key == MARKER for key, _ in records],
    }
    types = {"key": pa.binary(), "is_control": pa.bool_(), "offset": pa.int64(), "producer_id": pa.int64()}
    return pa.table({name: pa.array(column, types.get(name)) for name, column in columns.items()})


def test_each_group_has_its_commits_in_order_and_the_markers_of_its_producers() -> None:
    table = rows(
        *((key("b", 0), -1), (key("a", 0), -1), (key("b", 1), 7), (key("aa", 0), 8), (MARKER, 7), (MARKER, 9)),
        *((key("b", 0), -1), (MARKER, 8), (key("é", 0), -1)),
    )
    of_groups = {name: of.column("offset").to_pylist() for name, of in commits_by_group(table).items()}
    assert of_groups == {"a": [1], "aa": [3, 7], "b": [0, 2, 4, 6], "é": [8]}


def test_markers_alone_are_of_no_group() -> None:
    assert commits_by_group(rows((MARKER, 7))) == {}
    assert commits_by_group(rows()) == {}
