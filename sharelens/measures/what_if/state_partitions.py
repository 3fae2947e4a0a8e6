"""Another number of state partitions: where each share partition's state would lie, and how even that is.

A share partition lies in the state partition that its name hashes to (ShareCoordinatorService.partitionFor), so its
place under another number is certain. Its records are those of the history, but for the cold snapshot job: that one
looks at all share partitions of a state partition together.
"""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.ranges.sums import sums_by
from sharelens.measures.what_if.schema import CERTAINTIES, EXACT, INFERRED
from state_model.columnar.keys import FULL_PLACE_KEY, SHARE_PARTITION_KEY
from state_model.columnar.schemas import SHARE_PARTITION, column
from state_model.java import partition_for

RANGE = (1, (1 << 31) - 1)
"""The smallest and the largest number that a broker takes (ShareCoordinatorConfig)."""
READ = [*FULL_PLACE_KEY, "create_timestamp_ms", "write_timestamp_ms", "record_bytes"]
"""The columns of SHARE_RECORD from which placement is computed."""
READ_AT = [*READ, "log_offset", "log_time_ms"]
"""The same, with the columns of a cut."""
SUMS = ("records", "bytes", "cold_snapshots")
SUM_OF_PLACE = pa.schema(
    [(name, pa.int32() if name in ("state_partition", "partition") else pa.string()) for name in FULL_PLACE_KEY]
    + [(name, pa.int64()) for name in SUMS]
)
"""One row a share partition and state partition: its records, bytes and cold snapshots."""

PLACEMENT = pa.schema(
    [
        *SHARE_PARTITION,
        column("in_history", pa.int64(), "its state partition in the history", nullable=False),
        column("what_if", pa.int64(), "its state partition under the other number", nullable=False),
        column("records", pa.int64(), "its records in the history", nullable=False),
        column("bytes", pa.int64(), "bytes of their keys and values", nullable=False),
        column("certainty", pa.string(), "exact", nullable=False),
    ]
)
"""One row a share partition and state partition that has records of it."""
BALANCE = pa.schema(
    [
        column("state_partition", pa.int64(), "number of the state partition", nullable=False),
        column("figure", pa.string(), "share_partitions, records or bytes", nullable=False),
        column("in_history", pa.int64(), "the figure in the history", nullable=False),
        column("what_if", pa.int64(), "the figure under the other number", nullable=False),
        column("certainty", pa.string(), "exact, or inferred: cold snapshots would have come at other times"),
    ]
)
"""One row a state partition, old or new, and figure."""


def placement(records: Iterable[pa.Table], number: int) -> pa.Table:
    """PLACEMENT rows by share partition from all SHARE_RECORD rows (READ), in bounded tables, in any order."""
    return placement_of(sums_of(records), number)


def placement_of(sums: pa.Table, number: int) -> pa.Table:
    """PLACEMENT rows of the sums of all places (SUM_OF_PLACE)."""
    return _placed(sums, number).select(PLACEMENT.names).cast(PLACEMENT)


def balance(records: Iterable[pa.Table], number: int) -> pa.Table:
    """BALANCE rows by state partition and figure; `records` as in `placement`."""
    return balance_of(sums_of(records), number)


def balance_of(sums: pa.Table, number: int) -> pa.Table:
    """BALANCE rows of the sums of all places (SUM_OF_PLACE)."""
    placed = _placed(sums, number)
    is_cold = (pc.max(placed.column("cold_snapshots")).as_py() or 0) > 0
    before, after = (placed.column(name).to_numpy() for name in ("in_history", "what_if"))
    numbers = np.unique(np.append(before, after))
    tables = []
    for figure in ("share_partitions", "records", "bytes"):
        weights = (
            np.ones(placed.num_rows, np.int64) if figure == "share_partitions" else placed.column(figure).to_numpy()
        )
        certainty = EXACT if figure == "share_partitions" or not is_cold else INFERRED
        sums = (sums_by(np.searchsorted(numbers, of), weights, len(numbers)) for of in (before, after))
        columns = (numbers, [figure] * len(numbers), *sums)
        arrays = [pa.array(values, field.type) for values, field in zip(columns, BALANCE, strict=False)]
        tables.append(pa.Table.from_arrays([*arrays, pa.repeat(CERTAINTIES[certainty], len(numbers))], schema=BALANCE))
    return pa.concat_tables(tables).sort_by("state_partition")


def _placed(sums: pa.Table, number: int) -> pa.Table:
    groups, topics, partitions = (sums.column(name).to_pylist() for name in SHARE_PARTITION_KEY)
    keys = zip(groups, topics, partitions, strict=True)
    target = pa.array([partition_for(group, topic, partition, number) for group, topic, partition in keys], pa.int64())
    rows = sums.append_column("in_history", sums.column("state_partition").cast(pa.int64()))
    rows = rows.append_column("what_if", target).append_column(
        "certainty", pa.repeat(CERTAINTIES[EXACT], sums.num_rows)
    )
    return rows.sort_by([(name, "ascending") for name in (*SHARE_PARTITION_KEY, "in_history")])


def sums_of(records: Iterable[pa.Table]) -> pa.Table:
    """SUM_OF_PLACE rows."""
    sums: pa.Table | None = None
    for table in records:
        again = pc.not_equal(table.column("create_timestamp_ms"), table.column("write_timestamp_ms"))
        columns = {name: table.column(name) for name in FULL_PLACE_KEY}
        columns["records"] = pa.repeat(pa.scalar(1, pa.int64()), table.num_rows)
        columns["bytes"] = table.column("record_bytes").cast(pa.int64())
        columns["cold_snapshots"] = pc.fill_null(again, False).cast(pa.int64())
        rows = pa.table(columns)
        combined_rows = rows if sums is None else pa.concat_tables([sums, rows])
        sums = combined_rows.group_by(FULL_PLACE_KEY, use_threads=False).aggregate([(name, "sum") for name in SUMS])
        sums = sums.rename_columns([*FULL_PLACE_KEY, *SUMS])
    if sums is None:
        raise ValueError("records gives no table, not even an empty one")
    return sums
