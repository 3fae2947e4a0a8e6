"""Share partitions in state partitions as numbers, without comparing text row by row, and without kernels."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from state_model.columnar.codes import ABOVE_ALL, ints
from state_model.columnar.keys import SHARE_PARTITION_KEY, number_keys, place_of_keys

Ints = npt.NDArray[np.int64]


MOST_CELLS = 1 << 22
"""The largest array over all combinations of two numbers; larger sets of combinations are searched."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Places:
    """Share partitions in state partitions, numbered by group, topic id, partition and state partition.

    `keys`: their SHARE_PARTITION_KEY and state_partition columns, one row each, in that order.
    """

    keys: pa.Table

    @property
    def count(self) -> int:
        """The number of places."""
        return int(self.keys.num_rows)

    def of(self, rows: pa.Table) -> Ints:
        """The place of each row of a table with SHARE_PARTITION_KEY and state_partition; -1 for unknown places."""
        if self._lookup is not None:
            return self._lookup.of(rows)
        (key_numbers, theirs), all_places = places_of(self.keys, rows)
        place_by_number = np.full(all_places.count, -1, np.int64)
        place_by_number[key_numbers] = np.arange(self.count)
        return place_by_number[theirs]

    def values(self, rows: pa.Table, name: str, *, null: int, missing: int) -> Ints:
        """A column of integers by place: `null` where it is null, `missing` for a place without a row.

        Of each place `rows` has one row at most; rows of unknown places are left out.
        """
        result = np.full(self.count + 1, missing, np.int64)
        result[self.of(rows)] = ints(rows, name, null)
        return result[:-1]

    def lowest(self, place: Ints, values: Ints) -> Ints:
        """The lowest of the values of each place, by place; ABOVE_ALL for a place without a value."""
        result = np.full(self.count, ABOVE_ALL, np.int64)
        np.minimum.at(result, place, values)
        return result

    @cached_property
    def _lookup(self) -> "_Lookup | None":
        return _Lookup.of_keys(self.keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lookup:
    """Places by arrays over all combinations: groups with topics, and those pairs with partitions; -1 for none.

    Unknown groups, topics and pairs have the first entry, unknown partitions the last one. `codes`: the pairs that
    occur, ascending; `pairs`: their numbers over all combinations, None where these are too many.
    """

    groups: pa.Array
    topics: pa.Array
    codes: Ints
    pairs: Ints | None
    places: Ints
    width: int
    state_partitions: Ints

    @staticmethod
    def of_keys(keys: pa.Table) -> "_Lookup | None":
        """The look-up; None where its array would be large, or share partitions lie in several state partitions."""
        if keys.num_rows == 0:
            return None
        groups, topics = (pc.unique(keys.column(name)).cast(pa.string()) for name in SHARE_PARTITION_KEY[:2])
        partitions = keys.column("partition").to_numpy().astype(np.int64)
        width = int(partitions.max()) + 2
        if partitions.min() < 0:
            return None
        group, topic = codes_in(keys.column("group_id"), groups), codes_in(keys.column("topic_id"), topics)
        different, rank = np.unique((group + 1) * (len(topics) + 1) + topic + 1, return_inverse=True)
        cell = (rank + 1) * width + partitions
        # The array has an entry for each combination: hostile partition numbers would make it huge, so it is bounded.
        # Two places in one cell (several state partitions) can't be told apart by it.
        if (len(different) + 1) * width > MOST_CELLS or len(np.unique(cell)) < len(cell):
            return None
        cells = (len(groups) + 1) * (len(topics) + 1)
        pairs = np.zeros(cells, np.int64) if cells <= MOST_CELLS else None
        if pairs is not None:
            pairs[different] = np.arange(len(different)) + 1
        places = np.full((len(different) + 1) * width, -1, np.int64)
        places[cell] = np.arange(len(cell))
        return _Lookup(
            groups=groups,
            topics=topics,
            codes=different,
            pairs=pairs,
            places=places,
            width=width,
            state_partitions=keys.column("state_partition").to_numpy().astype(np.int64),
        )

    def of(self, rows: pa.Table) -> Ints:
        """The place of each row of a table, -1 for unknown places, as `Places.of` gives it."""
        group, topic = codes_in(rows.column("group_id"), self.groups), codes_in(rows.column("topic_id"), self.topics)
        pair = self._numbers_of((group + 1) * (len(self.topics) + 1) + topic + 1)
        # As numbers without a sign, negative ones are large.
        partition = np.minimum(rows.column("partition").to_numpy().astype(np.uint32), self.width - 1)
        place = self.places[pair * self.width + partition]
        numbers: Ints = np.where(self.state_partitions[place] == rows.column("state_partition").to_numpy(), place, -1)
        return numbers

    def _numbers_of(self, codes: Ints) -> Ints:
        """The number of each pair; 0 for unknown ones."""
        if self.pairs is not None:
            pair_numbers: Ints = self.pairs[codes]
            return pair_numbers
        # A place behind the last code is cut to it and fails the comparison.
        at = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        numbers: Ints = np.where(self.codes[at] == codes, at + 1, 0)
        return numbers


def places_of(*tables: pa.Table) -> tuple[list[Ints], Places]:
    """The places of each table's rows, in one numbering; tables have PLACE_KEY, text in any encoding."""
    keys, names = number_keys(*tables)
    rank = place_of_keys(names)
    state_partitions = [table.column("state_partition").to_numpy().astype(np.int64) for table in tables]
    # Rank and state partition in one integer: distinct places are found without comparing text.
    place_codes = [
        (rank[key] << 32) | (number & 0xFFFFFFFF) for key, number in zip(keys, state_partitions, strict=True)
    ]
    coded = pa.array(np.concatenate(place_codes)).dictionary_encode()
    distinct_codes = coded.dictionary.to_numpy()
    order = np.argsort(distinct_codes)
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    place_numbers = number[coded.indices.to_numpy()]
    of_rank = np.empty(len(rank), np.int64)
    of_rank[rank] = np.arange(len(rank))
    table = names.select(SHARE_PARTITION_KEY).take(pa.array(of_rank[distinct_codes[order] >> 32]))
    numbers = pa.array((distinct_codes[order] & 0xFFFFFFFF).astype(np.int32))
    ends = np.cumsum([rows.num_rows for rows in tables])[:-1]
    return np.split(place_numbers, ends), Places(keys=table.append_column("state_partition", numbers))


def coded(texts: pa.ChunkedArray) -> tuple[list[str], Ints]:
    """The distinct texts of a column without nulls, and the index of each row's text."""
    codes = texts.combine_chunks()
    codes = codes if pa.types.is_dictionary(codes.type) else codes.dictionary_encode()
    return codes.dictionary.to_pylist(), codes.indices.to_numpy().astype(np.int64)


def codes_in(values: pa.ChunkedArray, vocabulary: pa.Array) -> Ints:
    """The index of each value in `vocabulary` (distinct values); -1 for nulls and values that it lacks."""
    coded = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if not pa.types.is_dictionary(coded.type):
        plain_codes: Ints = pc.fill_null(pc.index_in(coded, value_set=vocabulary), -1).to_numpy().astype(np.int64)
        return plain_codes
    of_code = pc.fill_null(pc.index_in(coded.dictionary, value_set=vocabulary), -1).to_numpy()
    codes: Ints = pc.fill_null(coded.indices, len(coded.dictionary)).to_numpy()
    places: Ints = np.append(of_code, -1).astype(np.int64)[codes]
    return places
