"""The record offsets that new records and headers reach, and what the histories say of them: read once for measures.

offsets         100        200        300
new records                ^ 240 reached
rows held       [150 - 260: a redelivered range]
read from       ^ 150, so that no row of a measure lies across it
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from jobs.measure_base import BY_OFFSET, PLACE
from jobs.measure_inputs import NOTHING, Inputs

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """What measures by record offset are made of.

    `since`: by table, for each place, the offset from which on its rows are made anew. `deliveries`: those of the
    delivery history that reach the lowest of them; `history`: all records from the first one on that `deliveries` name.
    """

    since: Mapping[str, Ints]
    deliveries: pa.Table
    history: pa.Table


def reached(inputs: Inputs) -> Reached:
    """What there is news of."""
    return inputs.once("reached", lambda: _reached(inputs))


def _reached(inputs: Inputs) -> Reached:
    since = {table: _row_begins(inputs, table, first) for table, (first, _) in BY_OFFSET.items()}
    deliveries = inputs.deliveries_from(np.minimum.reduce([*since.values()]))
    return Reached(since=since, deliveries=deliveries, history=inputs.history_from(deliveries))


def _row_begins(inputs: Inputs, table: str, first: str) -> Ints:
    """From which offset on, for each place, there is news, moved down so that no row of the table lies across it.

    Rows of several lives or kinds overlap: moved down for one of them, it may lie within another one.
    """
    result = inputs.new_offsets
    moved = not inputs.whole.all()
    while moved and (result < NOTHING).any():
        held = inputs.rows_of(table, [*PLACE, first, "last_offset"], ("last_offset", result))
        lower = result.copy()
        np.minimum.at(lower, inputs.places.of(held), held.column(first).to_numpy())
        moved, result = bool((lower < result).any()), lower
    return result
