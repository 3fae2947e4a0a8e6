"""Rows of share partitions as one row a group: sums, and the worst share partition."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from state_model.columnar.keys import SHARE_PARTITION_KEY


def worst_of_groups(rows: pa.Table, order: list[tuple[str, str]]) -> Iterator[tuple[dict[str, Any], int]]:
    """The first row of each group by an order, and the group's number of share partitions; the worst group first."""
    ordered = rows.sort_by([*order, *((name, "ascending") for name in SHARE_PARTITION_KEY)])
    partitions = rows.group_by(SHARE_PARTITION_KEY).aggregate([]).group_by("group_id").aggregate([([], "count_all")])
    counts = dict(
        zip(partitions.column("group_id").to_pylist(), partitions.column("count_all").to_pylist(), strict=True)
    )
    numbers = ordered.append_column("row", pa.array(range(ordered.num_rows), pa.int64()))
    firsts = numbers.group_by("group_id", use_threads=False).aggregate([("row", "min")]).column("row_min")
    for row in ordered.take(firsts.combine_chunks().sort()).to_pylist():
        yield row, counts[row["group_id"]]


def lag_of_groups(lags: pa.Table) -> list[dict[str, Any]]:
    """Each group with a lag above 0: `lag_sum`, `share_partitions`, the row of the largest; the largest sum first."""
    rows = lags.filter(pc.fill_null(pc.greater(lags.column("lag"), 0), False))
    sums = dict(_pairs(rows.group_by("group_id").aggregate([("lag", "sum")]), "lag_sum"))
    result = [
        row | {"lag_sum": sums[row["group_id"]], "share_partitions": count}
        for row, count in worst_of_groups(rows, [("lag", "descending")])
    ]
    return sorted(result, key=lambda row: (-row["lag_sum"], row["group_id"]))


def sums_of_groups(rows: pa.Table, column: str, first_ms: int) -> list[dict[str, Any]]:
    """Each group with a sum above 0: `size`, `since_ms`, `share_partitions`, the key of the largest; largest first.

    `rows` have SHARE_PARTITION_KEY, the column and hour_ms. `since_ms`: the first hour, at least `first_ms`.
    """
    sums = rows.group_by(SHARE_PARTITION_KEY).aggregate([(column, "sum"), ("hour_ms", "min")])
    sums = sums.rename_columns([*SHARE_PARTITION_KEY, "sum", "hour_ms"])
    sums = sums.filter(pc.greater(sums.column("sum"), 0))
    totals = sums.group_by("group_id").aggregate([("sum", "sum"), ("hour_ms", "min")])
    total, since = dict(_pairs(totals, "sum_sum")), dict(_pairs(totals, "hour_ms_min"))
    result = [
        row
        | {
            "size": total[row["group_id"]],
            "since_ms": max(first_ms, since[row["group_id"]] or 0),
            "share_partitions": count,
        }
        for row, count in worst_of_groups(sums, [("sum", "descending")])
    ]
    return sorted(result, key=lambda row: (-row["size"], row["group_id"]))


def _pairs(sums: pa.Table, column: str) -> Iterator[tuple[str, int]]:
    return zip(sums.column("group_id").to_pylist(), sums.column(column).to_pylist(), strict=True)
