"""Outcomes of deliveries: the new ranges of delivery history, without the results of splits and joins.

record 5   0-9 AVAILABLE/1                        new: 0-9 AVAILABLE/1
record 6   0-2 AVAILABLE/1   3-9 ACKNOWLEDGED/1   new: 3-9 ACKNOWLEDGED/1; 0-2 is a part of what ended there
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from measures.steps import LAST_OFFSET, Flags, Ints
from state_model.columnar.kernels import kernel
from state_model.columnar.ranges import grown

NEVER = -1
# Columns of the ranges that the kernel reads and writes.
(LIFE, AT, FIRST, LAST, STATE, COUNT) = range(6)
(PIECE_FIRST, PIECE_LAST, ROW) = range(3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """Outcomes of deliveries: one entry for each range that newly came to a state; splits and joins are left out."""

    life: Ints
    first: Ints
    last: Ints
    state: Ints
    count: Ints
    at: Ints


@kernel
def _is_before(earlier: np.ndarray, other: np.ndarray) -> bool:
    """Whether a range belongs to an earlier life, or to an earlier record of the same one."""
    return bool(earlier[LIFE] < other[LIFE] or (earlier[LIFE] == other[LIFE] and earlier[AT] < other[AT]))


@kernel
def _news(began: np.ndarray, ended: np.ndarray) -> np.ndarray:
    """The parts of ranges that began, less ranges that ended at the same record in the same state and count.

    Both are sorted by life, record and first offset; ranges of one life and record are disjoint.
    """
    out = np.empty((began.shape[0] + 1, 3), np.int64)
    made, low = 0, 0
    for row in range(began.shape[0]):
        at, last = began[row, FIRST], began[row, LAST]
        while low < ended.shape[0] and (
            _is_before(ended[low], began[row]) or (not _is_before(began[row], ended[low]) and ended[low, LAST] < at)
        ):
            low += 1
        against = low
        while against < ended.shape[0] and not _is_before(began[row], ended[against]) and ended[against, FIRST] <= last:
            if ended[against, STATE] == began[row, STATE] and ended[against, COUNT] == began[row, COUNT]:
                if ended[against, FIRST] > at:
                    out = grown(out, made + 1)
                    out[made, PIECE_FIRST], out[made, PIECE_LAST], out[made, ROW] = at, ended[against, FIRST] - 1, row
                    made += 1
                at = max(at, ended[against, LAST] + 1)
            against += 1
        if at <= last:
            out = grown(out, made + 1)
            out[made, PIECE_FIRST], out[made, PIECE_LAST], out[made, ROW] = at, last, row
            made += 1
    return out[:made]


def outcomes_of(deliveries: pa.Table, life: Ints) -> Outcomes:
    """The outcomes in DELIVERY_HISTORY rows; `life` numbers the life of each row.

    A range splits or joins when a neighbour changes. Offsets are new to a state only where no range of the same state
    and count ended at the record at which the range began.
    """
    state, count, first, last, since = (
        deliveries.column(name).to_numpy().astype(np.int64)
        for name in ("delivery_state", "delivery_count", "first_offset", "last_offset", "valid_from_log_offset")
    )
    until = pc.fill_null(deliveries.column("valid_to_log_offset"), NEVER).to_numpy()
    first, last = np.clip(first, 0, LAST_OFFSET), np.clip(last, -1, LAST_OFFSET)
    there = first <= last
    began = _in_order([life, since, first, last, state, count], there)
    ended = _in_order([life, until, first, last, state, count], there & (until != NEVER))
    news = _news(began, ended)
    rows = began[news[:, ROW]]
    return Outcomes(
        life=rows[:, LIFE],
        first=news[:, PIECE_FIRST],
        last=news[:, PIECE_LAST],
        state=rows[:, STATE],
        count=rows[:, COUNT],
        at=rows[:, AT],
    )


def _in_order(columns: Sequence[Ints], chosen: Flags) -> Ints:
    """The chosen rows by life, record and first offset."""
    rows = np.stack(columns, axis=1)[chosen]
    ordered: Ints = rows[np.lexsort((rows[:, FIRST], rows[:, AT], rows[:, LIFE]))]
    return ordered
