"""Numbers of state partitions that a history suggests, where one of them has far more records than the others."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.settings.over_time import STATE_PARTITIONS
from sharelens.measures.what_if.advice_rows import ADVICE, Row, advice
from sharelens.measures.what_if.schema import EXACT, INFERRED
from sharelens.measures.what_if.state_partitions import balance_of, placement_of

NUMBERS = (10, 25, 50, 100, 200)
"""Numbers of state partitions that are tried."""
SKEWED = 2.0
"""The largest state partition has so many times the mean before another number is tried."""
HALF = 0.5
"""Another number is suggested where it leaves the largest state partition no more than this part."""


def about_state_partitions(sums: pa.Table, number: int) -> pa.Table:
    """ADVICE rows, at most one, from SUM_OF_PLACE rows; `number`: state partitions in force.

    No row where share partitions do not lie where their names hash to: the number is another one then.
    """
    placed = placement_of(sums, number)
    if placed.num_rows == 0 or pc.any(pc.not_equal(placed.column("in_history"), placed.column("what_if"))).as_py():
        return ADVICE.empty_table()
    total, largest = pc.sum(placed.column("records")).as_py(), _largest(sums, number)
    if largest * number < SKEWED * total:
        return ADVICE.empty_table()
    tried = [(other, _largest(sums, other)) for other in NUMBERS if other > number]
    better = [(other, most_records) for other, most_records in tried if most_records <= HALF * largest]
    if not better:
        return ADVICE.empty_table()
    other, most_records = better[0]
    is_cold = (pc.max(sums.column("cold_snapshots")).as_py() or 0) > 0
    times = f"{largest * number / total:.1f} times the mean"
    evidence = f"the largest of {number} state partitions has {largest} of {total} records, {times}"
    row: Row = {"group_id": None, "setting": STATE_PARTITIONS, "in_force": str(number)}
    effect = f"{most_records} records in the largest state partition; the topic can't be changed, only created again"
    return pa.Table.from_pylist([advice(row, other, evidence, effect, INFERRED if is_cold else EXACT)], schema=ADVICE)


def _largest(sums: pa.Table, number: int) -> int:
    """Records in the largest state partition under a number of them."""
    rows = balance_of(sums, number)
    records = rows.filter(pc.equal(rows.column("figure"), "records")).column("what_if").to_numpy()
    return int(np.max(records, initial=0))
