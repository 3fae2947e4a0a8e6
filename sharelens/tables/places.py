"""Share partitions in state partitions, counted from their records."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from sharelens.measures.ranges.places import Ints, Places, places_of
from state_model.columnar.keys import PLACE_KEY

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
        rows = part.append_column("records", pa.repeat(pa.scalar(1, pa.int64()), part.num_rows))
        united_rows = pa.concat_tables([counted, rows.select(PLACED.names).cast(PLACED)])
        largest = [(name, "max") for name in ("log_time_ms", "start_offset")]
        largest_of = united_rows.group_by(PLACE_KEY).aggregate([("records", "sum"), *largest])
        counted = largest_of.rename_columns(
            [name.removesuffix("_sum").removesuffix("_max") for name in largest_of.column_names]
        )
        counted = counted.select(PLACED.names).cast(PLACED)
    return counted


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
