"""Which share partitions a report shows first."""

from typing import Any

import pyarrow as pa

from measures.schemas import LAG, POISON_RECORD, REDELIVERED, STALL
from sharelens.report.gather import Key, ranked, rows_of_keys


def rows(schema: pa.Schema, *found: dict[str, Any]) -> pa.Table:
    """Rows of which only what the ranking reads is told."""
    nullable = pa.schema([field.with_nullable(True) for field in schema])
    return pa.Table.from_pylist(list(found), schema=nullable)


def key(group: str, partition: int = 0) -> dict[str, Any]:
    return {"group_id": group, "topic_id": "t", "partition": partition}


def order(found: tuple[Key, ...]) -> list[str]:
    return [group for group, _, _ in found]


def test_what_stands_still_goes_before_all_and_the_quiet_come_last_by_name() -> None:
    lags = rows(LAG, key("quiet-b"), key("quiet-a") | {"lag": 0}, key("behind") | {"lag": 1_000_000}, key("pinned"))
    stalls = rows(
        STALL,
        key("pinned") | {"duration_ms": 60_000},
        key("was pinned") | {"duration_ms": 900_000, "until_ms": 5},
    )
    given_up = rows(POISON_RECORD, key("poisoned") | {"offset": 3, "last_offset": 3})
    again = rows(REDELIVERED, key("retried") | {"first_offset": 0, "last_offset": 99})
    found = ranked(lags, stalls, given_up, again)
    assert order(tuple(found)) == ["pinned", "was pinned", "poisoned", "behind", "retried", "quiet-a", "quiet-b"]


def test_rows_of_share_partitions_keep_their_order() -> None:
    table = rows(LAG, key("a", 1), key("b"), key("a", 0), key("a", 1))
    table = table.append_column("place", pa.array([0, 1, 2, 3]))
    assert rows_of_keys(table, [("b", "t", 0), ("a", "t", 1)]).column("place").to_pylist() == [0, 1, 3]
    assert rows_of_keys(table, []).num_rows == 0
