"""Poison rows with the causes from dead letters: a dead letter has the cause that the state log only implies.

poison     5-9 ARCHIVED  unknown                        a run of equal records
letters    6: rejected · 7: rejected · 9: delivery_limit
result     5 unknown · 6-7 rejected by dead_letter · 8 unknown · 9 delivery_limit by dead_letter
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.poison import DEAD_LETTER, ORDER
from sharelens.measures.schemas import POISON_RECORD
from state_model.columnar.keys import SHARE_PARTITION_KEY

LIFE = [*SHARE_PARTITION_KEY, "state_partition", "life_log_offset"]
Place = tuple[object, ...]
Row = dict[str, Any]
Letter = tuple[int, str]
"""Record offset, cause."""


def with_letter_causes(given_up: pa.Table, reconciled: pa.Table) -> pa.Table:
    """POISON_RECORD rows in key order, cut into runs with one cause from dead letters.

    Args:
        given_up: POISON_RECORD rows.
        reconciled: DLQ_RECONCILIATION rows of the same records; rows with a cause from a dead letter are used.
    """
    telling = reconciled.filter(pc.equal(reconciled.column("cause_source"), DEAD_LETTER))
    telling = telling.filter(pc.is_valid(telling.column("dlq_offset")))
    by_life: dict[Place, dict[int, str]] = {}
    for row in telling.select([*LIFE, "offset", "cause"]).to_pylist():
        by_life.setdefault(_place(row), {})[row["offset"]] = row["cause"]
    if not by_life:
        return given_up
    letters_by_life = {life: sorted(letters.items()) for life, letters in by_life.items()}
    in_letter_group = pc.is_in(given_up.column("group_id"), value_set=telling.column("group_id").unique())
    rows = given_up.filter(in_letter_group).to_pylist()
    pieces = [piece for row in rows for piece in _pieces(row, letters_by_life.get(_place(row), []))]
    cut = pa.Table.from_pylist(pieces, schema=POISON_RECORD)
    return pa.concat_tables([given_up.filter(pc.invert(in_letter_group)), cut]).sort_by(ORDER)


def _place(row: Row) -> Place:
    return tuple(row[name] for name in LIFE)


def _pieces(row: Row, letters: Sequence[Letter]) -> Iterator[Row]:
    """The row, split into ranges of one cause by the dead letters inside it."""
    first, last = row["offset"], row["last_offset"]
    for begin, end, cause in _runs(first, last, [letter for letter in letters if first <= letter[0] <= last]):
        cause_columns = {} if cause is None else {"cause": cause, "cause_source": DEAD_LETTER}
        yield row | {"offset": begin, "last_offset": end} | cause_columns


def _runs(first: int, last: int, letters: Sequence[Letter]) -> Iterator[tuple[int, int, str | None]]:
    """(first, last, cause) of neighbouring offsets with one cause, ascending; None: no letter has a cause."""
    begin, end, run_cause = first, first - 1, None
    for offset, cause in letters:
        if offset > end + 1:
            if end >= begin and run_cause is not None:
                yield begin, end, run_cause
                begin = end + 1
            yield begin, offset - 1, None
            begin, run_cause = offset, cause
        elif cause != run_cause:
            if end >= begin:
                yield begin, end, run_cause
            begin, run_cause = offset, cause
        end = offset
    if end >= begin and end < last and run_cause is not None:
        yield begin, end, run_cause
        begin, run_cause = end + 1, None
    yield begin, last, run_cause
