"""Share partitions in state partitions, counted from their records."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from sharelens.measures.ranges.places import Ints, Places, places_of
from state_model.columnar.codes import BELOW_ALL, ints
from state_model.columnar.keys import PLACE_KEY, number_places

PLACED = pa.schema(
    [
        pa.field("group_id", pa.string()),
        pa.field("topic_id", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("state_partition", pa.int32()),
        pa.field("records", pa.int64()),
        pa.field("log_time_ms", pa.int64()),
        pa.field("start_offset", pa.int64()),
    ]
)
"""Share partitions in state partitions: about how many records, log time of the newest one, a start offset.

`start_offset`: the largest one of its records or a later one; null or negative: no record has any.
"""
COUNTED = [*PLACE_KEY, "log_time_ms", "start_offset"]
"""The columns that are read to count them, one row a record."""


def counted_places(parts: Iterable[pa.Table]) -> pa.Table:
    """PLACED rows from tables with COUNTED, one row a record, taken one at a time."""
    counted = PLACED.empty_table()
    for part in parts:
        ones = pa.repeat(pa.scalar(1, pa.int64()), part.num_rows)
        counted = _together(counted, part.append_column("records", ones))
    return counted


def _together(*tables: pa.Table) -> pa.Table:
    """PLACED rows, one for each place of tables with PLACED columns."""
    numbers, places = number_places(*tables)
    number = np.concatenate(numbers)
    records = np.concatenate([table.column("records").to_numpy() for table in tables])
    columns = {"records": pa.array(np.bincount(number, records, places.num_rows).astype(np.int64))}
    for name in ("log_time_ms", "start_offset"):
        values = np.concatenate([ints(table, name, BELOW_ALL) for table in tables])
        largest = np.full(places.num_rows, BELOW_ALL, np.int64)
        np.maximum.at(largest, number, values)
        columns[name] = pa.array(largest, mask=largest == BELOW_ALL)
    return pa.table({**{name: places.column(name) for name in PLACE_KEY}, **columns}).select(PLACED.names).cast(PLACED)


def of_places(rows: pa.Table, places: pa.Table) -> pa.Table:
    """The rows (with PLACE_KEY) of these places, in their order."""
    (of_rows, chosen), every_place = places_of(rows, places)
    flags = np.zeros(every_place.count, np.bool_)
    flags[chosen] = True
    is_chosen = flags[of_rows]
    return rows if is_chosen.all() else rows.filter(pa.array(is_chosen))


def numbered_rows(places: Places, rows: pa.Table) -> tuple[Ints, pa.Table]:
    """The rows that lie in one of the places, and the place of each."""
    of_rows = places.of(rows)
    is_inside = of_rows >= 0
    return (of_rows, rows) if is_inside.all() else (of_rows[is_inside], rows.filter(pa.array(is_inside)))
