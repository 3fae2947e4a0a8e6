"""Poison rows with the causes from dead letters: a dead letter has the cause that the state log only implies.

poison     5-9 ARCHIVED  unknown                        a run of equal records
letters    6: rejected · 7: rejected · 9: delivery_limit
result     5 unknown · 6-7 rejected by dead_letter · 8 unknown · 9 delivery_limit by dead_letter

Rows with causes from dead letters give back the rows without them, so that a lake can keep the former: a later letter,
or one that turns out to belong to another life, starts from the latter.
"""

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.poison import DEAD_LETTER, ORDER, causes_of_rows
from sharelens.measures.ranges.steps import Flags, Ints, numbered
from sharelens.measures.topics.extents import TopicPartition, topic_partitions
from sharelens.measures.topics.headers import NoRecords
from state_model.columnar.keys import SHARE_PARTITION_KEY, number_keys

LIFE = [*SHARE_PARTITION_KEY, "state_partition", "life_log_offset"]
CAUSE_COLUMNS = ["cause", "cause_source"]
OF_THE_RUN = ("run_id", "is_final")
"""Columns of a lake's rows that say which run wrote them, and whether later ones look at them."""
NO_LETTER = -1
Headers = Callable[[Mapping[TopicPartition, int]], NoRecords]
"""The offsets without a record from an offset of each user partition on."""


def with_letter_causes(given_up: pa.Table, reconciled: pa.Table) -> pa.Table:
    """The rows in key order, cut into runs with one cause from dead letters.

    Args:
        given_up: POISON_RECORD rows, perhaps with more columns; those of a life are disjoint.
        reconciled: DLQ_RECONCILIATION rows of the same records; rows with a cause from a dead letter are used.
    """
    telling = reconciled.filter(pc.equal(reconciled.column("cause_source"), DEAD_LETTER))
    telling = telling.filter(pc.is_valid(telling.column("dlq_offset")))
    row_life, letter_life = _lives(given_up, telling)
    has_letter = np.isin(row_life, letter_life)
    if not has_letter.any():
        return given_up
    in_lives = given_up.filter(pa.array(has_letter))
    letters = telling.column("cause").combine_chunks().dictionary_encode()
    row, offset, cause = _in_rows(
        in_lives,
        row_life[has_letter],
        letter_life,
        telling.column("first_offset").to_numpy(),
        letters.indices.to_numpy(),
    )
    cut = _joined(_cut(in_lives, row, offset, cause, letters.dictionary))
    return pa.concat_tables([given_up.filter(pa.array(~has_letter)), cut]).sort_by(ORDER)


def without_letter_causes(given_up: pa.Table, headers: Headers) -> pa.Table:
    """The rows in key order, with the causes that state log, headers and settings imply; runs of equal ones are joined.

    Args:
        given_up: as in `with_letter_causes`, with any causes.
        headers: asked where the state log does not show that the record was on its way to a dead letter.
    """
    is_of_letter = pc.fill_null(pc.equal(given_up.column("cause_source"), DEAD_LETTER), False)
    if not pc.any(is_of_letter).as_py():
        return given_up
    lettered, other_rows = given_up.filter(is_of_letter), given_up.filter(pc.invert(is_of_letter))
    unseen = lettered.filter(pc.is_null(lettered.column("archiving_ms")))
    begins: dict[TopicPartition, int] = {}
    for place, offset in zip(topic_partitions(unseen), unseen.column("first_offset").to_pylist(), strict=True):
        begins[place] = min(offset, begins.get(place, offset))
    implied = dict(
        zip(CAUSE_COLUMNS, causes_of_rows(lettered, headers(begins) if begins else NoRecords()), strict=True)
    )
    same_causes = [_equal(lettered.column(name), pa.chunked_array([column])) for name, column in implied.items()]
    if np.logical_and(*same_causes).all():
        return given_up
    for name, column in implied.items():
        lettered = lettered.set_column(lettered.schema.get_field_index(name), lettered.schema.field(name), column)
    row_life, letter_row_life = _lives(other_rows, lettered)
    unlettered = ~np.isin(row_life, letter_row_life)
    joined_rows = _joined(pa.concat_tables([other_rows.filter(pa.array(~unlettered)), lettered]))
    return pa.concat_tables([other_rows.filter(pa.array(unlettered)), joined_rows]).sort_by(ORDER)


def _lives(*tables: pa.Table) -> list[Ints]:
    """The number of the life of each row, for each table, in one numbering."""
    keys, _ = number_keys(*tables)
    parts = [
        np.concatenate([pc.fill_null(table.column(name), -1).to_numpy().astype(np.int64) for table in tables])
        for name in LIFE[len(SHARE_PARTITION_KEY) :]
    ]
    number, _ = numbered(np.concatenate(keys), *parts)
    return np.split(number, np.cumsum([table.num_rows for table in tables])[:-1])


def _joined(rows: pa.Table) -> pa.Table:
    """The rows by life and offset, neighbours as one where they differ in nothing else but OF_THE_RUN."""
    (life,) = _lives(rows)
    order = np.lexsort((rows.column("first_offset").to_numpy(), life))
    rows, life = rows.take(pa.array(order)).combine_chunks(), life[order]
    first, last = (rows.column(name).to_numpy() for name in ("first_offset", "last_offset"))
    goes_on = (life[1:] == life[:-1]) & (first[1:] - 1 == last[:-1])
    for name in rows.column_names:
        if name not in ("first_offset", "last_offset", *OF_THE_RUN):
            column = rows.column(name)
            goes_on &= _equal(column.slice(0, max(0, rows.num_rows - 1)), column.slice(1))
    begins = np.flatnonzero(np.append(True, ~goes_on)[: rows.num_rows])
    if len(begins) == rows.num_rows:
        return rows
    result = rows.take(pa.array(begins))
    ends = np.append(begins[1:], rows.num_rows) - 1
    changed = {"last_offset": pa.array(last[ends])}
    for name, function in zip(OF_THE_RUN, (np.maximum, np.logical_and), strict=True):
        if name in rows.column_names:
            values = rows.column(name).to_numpy()
            changed[name] = pa.array(function.reduceat(values, begins))
    for name, column in changed.items():
        result = result.set_column(result.schema.get_field_index(name), result.schema.field(name), column)
    return result


def _equal(values: pa.ChunkedArray, other_values: pa.ChunkedArray) -> Flags:
    """Whether two columns have the same value, row by row; null is null."""
    same = pc.fill_null(pc.equal(values, other_values), False)
    flags: Flags = pc.or_(same, pc.and_(pc.is_null(values), pc.is_null(other_values))).to_numpy()
    return flags


def _in_rows(rows: pa.Table, row_life: Ints, letter_life: Ints, offsets: Ints, causes: Ints) -> tuple[Ints, Ints, Ints]:
    """(row, offset, cause) of the letters inside a row, by row and offset; of several of an offset the last one."""
    firsts = rows.column("first_offset").to_numpy()
    is_letter = np.arange(len(firsts) + len(offsets)) >= len(firsts)
    # Rows of a life are disjoint, so the last row that begins at or below a letter's offset is the only one to compare.
    order = np.lexsort((is_letter, np.concatenate([firsts, offsets]), np.concatenate([row_life, letter_life])))
    before = np.empty(len(order), np.int64)
    before[order] = np.cumsum(~is_letter[order]) - 1
    row = np.append(order[~is_letter[order]], 0)[before[len(firsts) :]]
    inside = (before[len(firsts) :] >= 0) & (row_life[row] == letter_life)
    inside &= (firsts[row] <= offsets) & (offsets <= rows.column("last_offset").to_numpy()[row])
    row, offsets, causes = row[inside], offsets[inside], causes[inside]
    order = np.lexsort((np.arange(len(row)), offsets, row))
    is_last = np.append((np.diff(row[order]) != 0) | (np.diff(offsets[order]) != 0), True)[: len(order)]
    order = order[is_last]
    return row[order], offsets[order], causes[order]


def _cut(rows: pa.Table, row: Ints, offset: Ints, cause: Ints, causes: pa.Array) -> pa.Table:
    """The rows as runs of one cause; `row`, `offset`, `cause`: of letters by row and offset, each offset once."""
    firsts, lasts = (rows.column(name).to_numpy() for name in ("first_offset", "last_offset"))
    breaks = (np.diff(row) != 0) | (np.diff(offset) != 1) | (np.diff(cause) != 0)
    begins = np.append(True, breaks)[: len(row)]
    ends = np.append(breaks, True)[: len(row)]
    run_row, first, last = row[begins], offset[begins], offset[ends]
    # Around the runs of letters of a row lie offsets without one: before each run, and behind the last one.
    new_row = np.append(True, np.diff(run_row) != 0)[: len(run_row)]
    gap_first = np.where(new_row, firsts[run_row], np.append(0, last[:-1])[: len(run_row)] + 1)
    has_gap = gap_first < first
    is_tail = np.append(np.diff(run_row) != 0, True)[: len(run_row)] & (last < lasts[run_row])
    unlettered = np.setdiff1d(np.arange(rows.num_rows), run_row)
    pieces = [
        (run_row, first, last, cause[begins]),
        *((of, low, high, np.full(len(of), NO_LETTER)) for of, low, high in (
            (run_row[has_gap], gap_first[has_gap], first[has_gap] - 1),
            (run_row[is_tail], last[is_tail] + 1, lasts[run_row[is_tail]]),
            (unlettered, firsts[unlettered], lasts[unlettered]),
        )),
    ]  # fmt: skip
    of_row, low, high, code = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    table = rows.take(pa.array(of_row))
    lettered = pa.array(code != NO_LETTER)
    letter_cause = causes.take(pa.array(code, mask=code == NO_LETTER))
    columns = {
        "first_offset": pa.array(low),
        "last_offset": pa.array(high),
        "cause": pc.if_else(lettered, letter_cause, table.column("cause")),
        "cause_source": pc.if_else(lettered, pa.scalar(DEAD_LETTER), table.column("cause_source")),
    }
    for name, column in columns.items():
        table = table.set_column(table.schema.get_field_index(name), table.schema.field(name), column)
    return table
