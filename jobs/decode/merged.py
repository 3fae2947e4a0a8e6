"""Small tables with one row for each key: the row with the least value over all runs."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.lake.lake import Lake
from sharelens.lake.parquet import DataFile, write_rows
from sharelens.lake.tables import TABLES

LEAST = {"silver.name": "valid_from_ms", "silver.topic_start": "start_offset"}
"""The column that decides between rows of one key; null counts as the greatest."""


def merged(
    lake: Lake, name: str, fresh: pa.Table, run: int, drop: pc.Expression | None = None
) -> tuple[list[DataFile], list[str]]:
    """Files with all rows of a table and of `fresh` (without run_id), and the replaced files; both empty: no change.

    Rows matching `drop` are left out first. Equal values keep the row of the earlier run.
    """
    table = TABLES[name]
    existing = lake.snapshot(name).rows()
    kept_rows = existing if drop is None else existing.filter(~drop)
    new = fresh.append_column("run_id", pa.repeat(run, fresh.num_rows)).select(table.schema.names).cast(table.schema)
    order = [(column, "ascending") for column in (*table.key, LEAST[name], "run_id")]
    rows = pa.concat_tables([kept_rows.cast(table.schema), new]).combine_chunks()
    at = pc.sort_indices(rows, sort_keys=order).to_numpy()
    place = np.empty(len(at), np.int64)
    place[at] = np.arange(len(at))
    keys = rows.select(list(table.key)).append_column("place", pa.array(place)).group_by(list(table.key))
    chosen = at[np.sort(keys.aggregate([("place", "min")]).column("place_min").to_numpy())]
    if len(chosen) == existing.num_rows and (chosen < kept_rows.num_rows).all():
        return [], []
    removes = lake.snapshot(name).paths
    return write_rows(lake, table, rows.take(pa.array(chosen)), {}), removes
