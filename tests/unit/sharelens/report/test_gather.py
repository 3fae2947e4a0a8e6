"""Which share partitions a report shows first."""

from typing import Any

import pyarrow as pa

from measures.schemas import LAG, POISON_RECORD, REDELIVERED, STALL
from sharelens.report.digests import PoisonReading, StallDigest, redelivery_sums
from sharelens.report.gather import ranked
from sharelens.report.share_partitions import Key


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
    reading = PoisonReading()
    reading.add(given_up)
    found = ranked(
        lags,
        StallDigest.of([stalls]),
        reading.digest(),
        redelivery_sums([again]),
    )
    assert order(tuple(found)) == ["pinned", "was pinned", "poisoned", "behind", "retried", "quiet-a", "quiet-b"]
