"""Records of groups as numbers for the kernel: groups, members and values by their places."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.groups import kernels
from sharelens.groups.arrays import Records

Ints = npt.NDArray[np.int64]
MEMBER_KINDS = (kernels.MEMBER, kernels.MEMBER_TARGET, kernels.ASSIGNMENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedRows:
    """GROUP_RECORD rows with numbers for their groups (by name) and members."""

    table: pa.Table
    group_names: pa.Array
    member_names: pa.Array
    records: Records

    def rows_of(self, kind: int) -> Ints:
        """The rows with the values of a kind, in order."""
        return np.flatnonzero((self.records.kinds == kind) & (self.records.values >= 0))

    def texts(self, kind: int) -> list[str]:
        """The JSON of the values of a kind."""
        texts: list[str] = self.table.column("value_json").take(pa.array(self.rows_of(kind))).to_pylist()
        return texts


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
    for kind in range(kernels.KINDS):
        has_value_of_kind = (kinds == kind) & has_value
        values[has_value_of_kind] = np.arange(has_value_of_kind.sum())
    return NumberedRows(
        table=table,
        group_names=group_names,
        member_names=member_names,
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


def columns(entries: Sequence[tuple[int, ...]], count: int) -> list[Ints]:
    """Columns of numbers from rows."""
    return [np.array([entry[place] for entry in entries], np.int64) for place in range(count)]


def codes(values: Iterable[Hashable]) -> Ints:
    """A number for each value; equal values have equal numbers."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], np.int64)
