"""Records of groups as numbers for the kernel: groups, members and values by their places."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from measures import group_kernels as kernels
from measures.group_arrays import Records

Ints = npt.NDArray[np.int64]
MEMBER_KINDS = (kernels.MEMBER, kernels.MEMBER_TARGET, kernels.ASSIGNMENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedRows:
    """GROUP_RECORD rows with numbers for their groups (by name) and members, and the values of each kind as JSON."""

    table: pa.Table
    group_names: pa.Array
    member_names: pa.Array
    records: Records
    texts: Sequence[pa.ChunkedArray]


def numbered(records: pa.Table, types: Sequence[int]) -> NumberedRows:
    """The rows with their numbers. Groups are numbered by name, members in the order in which they occur.

    `types`: the record type of each of the kernel's kinds; all rows are of these.
    """
    table = records.combine_chunks()
    group_names = pc.unique(table.column("group_id")).sort()
    groups = pc.index_in(table.column("group_id"), group_names).to_numpy().astype(np.int64)
    members, member_names = _members(groups, table.column("member_id"), len(group_names))
    partitions = table.column("partition").to_numpy().astype(np.int64)
    places = np.unique(groups << 32 | partitions, return_inverse=True)[1]
    kinds = pc.index_in(table.column("record_type"), pa.array(types, pa.int16())).to_numpy().astype(np.int64)
    is_tombstone = table.column("is_tombstone").to_numpy()
    has_value = table.column("value_json").is_valid().to_numpy() & ~is_tombstone
    values = np.full(len(kinds), kernels.NONE, np.int64)
    texts = []
    for kind in range(kernels.KINDS):
        mine = (kinds == kind) & has_value
        values[mine] = np.arange(mine.sum())
        texts.append(table.column("value_json").filter(pa.array(mine)))
    return NumberedRows(
        table=table,
        group_names=group_names,
        member_names=member_names,
        texts=texts,
        records=Records(
            kinds=kinds,
            groups=groups,
            members=np.where(np.isin(kinds, MEMBER_KINDS), members, kernels.NONE),
            places=places.astype(np.int64),
            values=values,
            is_tombstone=is_tombstone,
            log_offsets=table.column("log_offset").to_numpy().astype(np.int64),
            timestamps_ms=table.column("timestamp_ms").to_numpy().astype(np.int64),
        ),
    )


def _members(groups: Ints, names: pa.ChunkedArray, group_count: int) -> tuple[Ints, pa.Array]:
    """The number of each record's (group, member), and the member id of each number."""
    coded = names.fill_null("").combine_chunks().dictionary_encode()
    pairs = pa.array(coded.indices.to_numpy().astype(np.int64) * max(1, group_count) + groups).dictionary_encode()
    texts = coded.dictionary.take(pa.array(pairs.dictionary.to_numpy() // max(1, group_count)))
    return pairs.indices.to_numpy().astype(np.int64), texts


def ints(column: pa.ChunkedArray) -> Ints:
    """The numbers of a column without nulls; a copy."""
    return np.ascontiguousarray(column.to_numpy(), np.int64).copy()


def columns(entries: Sequence[tuple[int, ...]], count: int) -> list[Ints]:
    """Columns of numbers from rows."""
    return [np.array([entry[place] for entry in entries], np.int64) for place in range(count)]


def codes(values: Iterable[Hashable]) -> Ints:
    """Equal numbers for equal values."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], np.int64)
