"""Rows of share partitions as one row a group: sums, and the worst share partition."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.ranges.places import coded
from state_model.columnar.codes import ints
from state_model.columnar.keys import SHARE_PARTITION_KEY, Ints, number_keys


def worst_of_groups(rows: pa.Table, order: list[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    """The first row of each group by an order, with the group's number of `share_partitions`; the worst group first."""
    _, share_partitions = number_keys(rows)
    counts = {pair["values"]: pair["counts"] for pair in share_partitions.column("group_id").value_counts().to_pylist()}
    ordered = _leading(rows, order).sort_by([*order, *((name, "ascending") for name in SHARE_PARTITION_KEY)])
    numbers = ordered.append_column("row", pa.array(range(ordered.num_rows), pa.int64()))
    firsts = numbers.group_by("group_id", use_threads=False).aggregate([("row", "min")]).column("row_min")
    for row in ordered.take(firsts.combine_chunks().sort()).to_pylist():
        yield {**row, "share_partitions": counts[row["group_id"]]}


def _leading(rows: pa.Table, order: list[tuple[str, str]]) -> pa.Table:
    """The rows that no other one of their group comes before by the first columns of numbers in an order.

    Sorting compares text, so it gets few rows. Null comes last.
    """
    for name, direction in order:
        if rows.num_rows == 0 or not pa.types.is_integer(rows.schema.field(name).type):
            break
        _, group = coded(rows.column("group_id"))
        values = ints(rows, name, 0) * (-1 if direction == "descending" else 1)
        values = np.where(rows.column(name).is_null().to_numpy(), np.iinfo(np.int64).max, values)
        first = np.full(group.max() + 1, np.iinfo(np.int64).max)
        np.minimum.at(first, group, values)
        rows = rows.filter(pa.array(values == first[group]))
    return rows


def of_each(rows: pa.Table, column: str, value: Callable[[str], int]) -> Ints:
    """A number for each row by the text in a column without nulls; `value` is called once for each text."""
    texts, codes = coded(rows.column(column))
    numbers: Ints = np.array([value(text) for text in texts], np.int64)[codes]
    return numbers


def sums_of_groups(rows: pa.Table, column: str) -> list[dict[str, Any]]:
    """Each group with a sum above 0: `size` (the sum), `share_partitions`, the key of the largest; the largest first.

    `rows` have SHARE_PARTITION_KEY and the column; rows where it is null or below 0 do not count.
    """
    rows = rows.select([*SHARE_PARTITION_KEY, column]).filter(pc.field(column) > 0)
    sums = rows.group_by(SHARE_PARTITION_KEY).aggregate([(column, "sum")])
    totals = dict(_pairs(sums.group_by("group_id").aggregate([(f"{column}_sum", "sum")]), f"{column}_sum_sum"))
    result = [
        {**row, "size": totals[row["group_id"]]} for row in worst_of_groups(sums, [(f"{column}_sum", "descending")])
    ]
    return sorted(result, key=lambda row: (-row["size"], row["group_id"]))


def first_hours(rows: pa.Table, column: str) -> dict[str, int]:
    """The first `hour_ms` of each group in which the column is above 0."""
    rows = rows.filter(pc.field(column) > 0)
    return dict(_pairs(rows.group_by("group_id").aggregate([("hour_ms", "min")]), "hour_ms_min"))


def _pairs(sums: pa.Table, column: str) -> Iterator[tuple[str, int]]:
    return zip(sums.column("group_id").to_pylist(), sums.column(column).to_pylist(), strict=True)
