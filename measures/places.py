"""Share partitions in state partitions as numbers, without comparing text row by row, and without kernels."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from state_model.columnar.keys import KEY, number_keys, place_of_keys

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Share partitions in state partitions, numbered by group, topic id, partition and state partition.

    `keys`: their KEY and state_partition columns, one row each, in that order.
    """

    keys: pa.Table

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self.keys.num_rows)

    def of(self, rows: pa.Table) -> Ints:
        """The place of each row of a table with KEY and state_partition; -1 for others."""
        (own, theirs), both = places_of(self.keys, rows)
        here = np.full(both.count, -1, np.int64)
        here[own] = np.arange(self.count)
        return here[theirs]


def places_of(*tables: pa.Table) -> tuple[list[Ints], Places]:
    """For each table the place of each row, in one numbering; they have KEY and state_partition. Text may be coded."""
    keys, names = number_keys(*tables)
    rank = place_of_keys(names)
    state_partitions = [table.column("state_partition").to_numpy().astype(np.int64) for table in tables]
    both = [(rank[key] << 32) | (number & 0xFFFFFFFF) for key, number in zip(keys, state_partitions, strict=True)]
    coded = pa.array(np.concatenate(both)).dictionary_encode()
    known = coded.dictionary.to_numpy()
    order = np.argsort(known)
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    found = number[coded.indices.to_numpy()]
    of_rank = np.empty(len(rank), np.int64)
    of_rank[rank] = np.arange(len(rank))
    table = names.select(KEY).take(pa.array(of_rank[known[order] >> 32]))
    numbers = pa.array((known[order] & 0xFFFFFFFF).astype(np.int32))
    ends = np.cumsum([rows.num_rows for rows in tables])[:-1]
    return np.split(found, ends), Places(keys=table.append_column("state_partition", numbers))


def coded(texts: pa.ChunkedArray) -> tuple[list[str], Ints]:
    """The different texts of a column without nulls, and the place of each row's among them."""
    one = texts.combine_chunks()
    one = one if pa.types.is_dictionary(one.type) else one.dictionary_encode()
    return one.dictionary.to_pylist(), one.indices.to_numpy().astype(np.int64)


def codes_in(values: pa.ChunkedArray, wanted: pa.Array) -> Ints:
    """The place of each value in `wanted` (distinct); -1 where it is not there or null."""
    coded = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if not pa.types.is_dictionary(coded.type):
        found: Ints = pc.fill_null(pc.index_in(coded, value_set=wanted), -1).to_numpy().astype(np.int64)
        return found
    of_code = np.append(pc.fill_null(pc.index_in(coded.dictionary, value_set=wanted), -1).to_numpy(), -1)
    codes: Ints = pc.fill_null(coded.indices, len(coded.dictionary)).to_numpy()
    place: Ints = of_code[codes].astype(np.int64)
    return place
