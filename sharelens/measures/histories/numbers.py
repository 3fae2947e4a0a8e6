"""The histories of some share partitions in order and as numbers: what several measures compute from.

history   by place and log offset
ranges    by place, life, the record that began them, and first offset
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.histories.lives import Lives, lives_of, number_places
from sharelens.measures.ranges.places import Places
from sharelens.measures.ranges.searching import position
from sharelens.measures.ranges.steps import Ints
from state_model.columnar.kernels import kernel, leaf
from state_model.columnar.keys import PLACE_KEY, SHARE_PARTITION_KEY
from state_model.columnar.ordering import order_by

UNKNOWN = -1
# Columns of a range, in every kernel that reads ranges (a kernel's machine code contains them). RANGE_FROM, RANGE_TO:
# log offsets of the records that began and ended it (UNKNOWN: it is open); RANGE_MS: the log time of the first;
# RANGE_LIFE: life_log_offset.
(RANGE_FIRST, RANGE_LAST, RANGE_STATE, RANGE_COUNT, RANGE_FROM, RANGE_TO, RANGE_MS, RANGE_LIFE) = range(8)
RANGE_COLUMNS = (
    "first_offset",
    "last_offset",
    "delivery_state",
    "delivery_count",
    "valid_from_log_offset",
    "valid_to_log_offset",
    "valid_from_ms",
    "life_log_offset",
)
HISTORY_COLUMNS = [
    "state_partition",
    *SHARE_PARTITION_KEY,
    "log_offset",
    "log_time_ms",
    "record_type",
    "snapshot_epoch",
    "state_epoch",
    "leader_epoch",
    "start_offset",
    "delivery_complete_count",
    "create_timestamp_ms",
    "write_timestamp_ms",
    "life_log_offset",
    "completeness",
    "completeness_reason",
]
DELIVERY_COLUMNS = [
    "state_partition",
    *SHARE_PARTITION_KEY,
    "life_log_offset",
    "first_offset",
    "last_offset",
    "delivery_state",
    "delivery_count",
    "valid_from_log_offset",
    "valid_from_ms",
    "valid_to_log_offset",
]
"""The columns of SHARE_PARTITION_HISTORY and DELIVERY_HISTORY that measures read."""


@kernel
def _rows_at(offsets: np.ndarray, begins: np.ndarray, place: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The row with each log offset (`at`) of each place; UNKNOWN for none."""
    # Offsets ascend within a place, so each look-up is a binary search in the slice of its place.
    rows = np.full(place.shape[0], UNKNOWN, np.int64)
    for i in range(place.shape[0]):
        begin, end = begins[place[i]], begins[place[i] + 1]
        row = begin + np.searchsorted(offsets[begin:end], at[i])
        if row < end and offsets[row] == at[i]:
            rows[i] = row
    return rows


MANY = 32
"""Up to so many ranges are sorted by insertion."""


@leaf
def _comes_later(values: np.ndarray, columns: tuple[int, ...], row: int, other: int) -> bool:
    for column in columns:
        if values[row, column] != values[other, column]:
            return bool(values[row, column] > values[other, column])
    return False


@kernel
def _sort(values: np.ndarray, columns: tuple[int, ...], rows: np.ndarray) -> None:
    """Sorts row numbers by columns of `values`, the first column before the others; stable."""
    # Few ranges mostly begin or end at one record: insertion needs no memory for them. Many are sorted by the last
    # column first.
    if rows.shape[0] > MANY:
        for i in range(len(columns) - 1, -1, -1):
            rows[:] = rows[np.argsort(values[rows, columns[i]], kind="mergesort")]
        return
    for i in range(1, rows.shape[0]):
        row, j = rows[i], i
        while j > 0 and _comes_later(values, columns, rows[j - 1], row):
            rows[j] = rows[j - 1]
            j -= 1
        rows[j] = row


BY_BEGIN, BY_END = (RANGE_LIFE, RANGE_FROM, RANGE_FIRST), (RANGE_TO, RANGE_FIRST)


@kernel
def _by_begin(ranges: np.ndarray, places: np.ndarray, begins: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The ranges by place, life, record that began them and first offset: counting sort by that record, O(n).

    `places`: of the ranges. `begins`, `offsets`: where the history rows of each place begin, and their log offsets.
    """
    # A bucket for each record of a place, and one behind its last. A life begins behind all ranges of the lives before
    # it, so the record decides before the life does, but for the first bucket, which has all that began earlier.
    count = ranges.shape[0]
    bucket, near = np.empty(count, np.int64), np.zeros(begins.shape[0] - 1, np.int64)
    bucket_begins = np.zeros(offsets.shape[0] + begins.shape[0], np.int64)
    for i in range(count):
        place = places[i]
        begin, end = begins[place], begins[place + 1]
        near[place] = position(offsets[begin:end], ranges[i, RANGE_FROM], near[place])
        bucket[i] = begin + place + near[place]
        bucket_begins[bucket[i] + 1] += 1
    for i in range(bucket_begins.shape[0] - 1):
        bucket_begins[i + 1] += bucket_begins[i]
    order, filled = np.empty(count, np.int64), bucket_begins.copy()
    for i in range(count):
        order[filled[bucket[i]]] = i
        filled[bucket[i]] += 1
    for i in range(bucket_begins.shape[0] - 1):
        if bucket_begins[i + 1] - bucket_begins[i] > 1:
            _sort(ranges, BY_BEGIN, order[bucket_begins[i] : bucket_begins[i + 1]])
    return order


@kernel
def _by_end(
    ranges: np.ndarray, life_begins: np.ndarray, place: np.ndarray, begins: np.ndarray, offsets: np.ndarray
) -> np.ndarray:
    """The ranges that have ended, by life, RANGE_TO and RANGE_FIRST: counting sort by the record that ended them, O(n).

    `place`: of each life. `begins`, `offsets`: where the history rows of each place begin, and their log offsets.
    """
    # Every range that ended did so at a record of its place, so the records are the buckets. A life touches only the
    # buckets from `low` to `high` and sets them back to 0 for the next one: no array for each life.
    order, bucket = np.empty(ranges.shape[0], np.int64), np.empty(ranges.shape[0], np.int64)
    ends = np.zeros(offsets.shape[0] + 1, np.int64)
    ended_count = 0
    for life in range(place.shape[0]):
        place_offsets = offsets[begins[place[life]] : begins[place[life] + 1]]
        low, high, near = place_offsets.shape[0], -1, 0
        for i in range(life_begins[life], life_begins[life + 1]):
            if ranges[i, RANGE_TO] != UNKNOWN:
                near = position(place_offsets, ranges[i, RANGE_TO], near)
                bucket[i] = near
                ends[near] += 1
                low, high = min(low, near), max(high, near)
        begin, end = ended_count, ended_count
        for at in range(low, high + 1):
            end, ends[at] = end + ends[at], end
        for i in range(life_begins[life], life_begins[life + 1]):
            if ranges[i, RANGE_TO] != UNKNOWN:
                order[ends[bucket[i]]] = i
                ends[bucket[i]] += 1
        ended_count = end
        for at in range(low, high + 1):
            if ends[at] - begin > 1:
                _sort(ranges, BY_END, order[begin : ends[at]])
            begin, ends[at] = ends[at], 0
    return order[:ended_count]


@dataclass(frozen=True, kw_only=True, eq=False)
class Histories:
    """SHARE_PARTITION_HISTORY and DELIVERY_HISTORY rows of some share partitions, in order.

    `places`: FULL_PLACE_KEY of each place. `history`: by place and log offset; `place`: of each of its rows; `begins`:
    where the rows of each place begin, with the end as last value. `ranges`: the delivery history (RANGE_FIRST to
    RANGE_LIFE) by place, life_log_offset, RANGE_FROM and RANGE_FIRST; `rows`: the row of `deliveries` of each range;
    `life_begins`: where the ranges of each life begin, with the end; `life_place`, `life_key`: its place and its
    life_log_offset.
    """

    places: pa.Table
    history: pa.Table
    place: Ints
    begins: Ints
    ranges: Ints
    rows: Ints
    life_begins: Ints
    life_place: Ints
    life_key: Ints

    @classmethod
    def of(cls, history: pa.Table, deliveries: pa.Table) -> "Histories":
        """The histories in order; both tables come in any order and are of one state topic."""
        return cls.in_places(history, deliveries, *number_places(history, deliveries))

    @classmethod
    def in_places(
        cls, history: pa.Table, deliveries: pa.Table, numbers: Sequence[Ints], places: pa.Table
    ) -> "Histories":
        """The histories in order, with known places, some perhaps without rows; `numbers`: of both tables' rows."""
        place, of_range = (number.astype(np.int64) for number in numbers)  # of one type, also where they are Arrow's
        offsets = history.column("log_offset").to_numpy()
        order = order_by(place, offsets)
        begins = np.append(0, np.cumsum(np.bincount(place, minlength=places.num_rows)))
        ranges = np.empty((deliveries.num_rows, len(RANGE_COLUMNS)), np.int64)
        for number, name in enumerate(RANGE_COLUMNS):
            ranges[:, number] = pc.fill_null(deliveries.column(name), UNKNOWN).to_numpy()
        rows = _by_begin(ranges, of_range, begins, offsets[order])
        of_range, ranges = of_range[rows], ranges.take(rows, axis=0)
        key = ranges[:, RANGE_LIFE]
        is_new = np.append(True, (np.diff(of_range) != 0) | (np.diff(key) != 0))[: len(rows)]
        life_begins = np.append(np.flatnonzero(is_new), len(rows))
        return cls(
            places=places,
            history=history if (np.diff(order) == 1).all() else history.take(pa.array(order)),
            place=place[order],
            begins=begins,
            ranges=ranges,
            rows=rows,
            life_begins=life_begins,
            life_place=of_range[life_begins[:-1]],
            life_key=key[life_begins[:-1]],
        )

    @property
    def lookup(self) -> Places:
        """The numbers of the places by their keys."""
        return Places(keys=self.places.select(PLACE_KEY))

    @property
    def range_begins(self) -> Ints:
        """Where the ranges of each place begin, with the end as last value."""
        return self.life_begins[np.searchsorted(self.life_place, np.arange(self.places.num_rows + 1))]

    @property
    def life_number(self) -> Ints:
        """The position of the life of each range in `life_place`."""
        return np.repeat(np.arange(len(self.life_place)), np.diff(self.life_begins))

    @cached_property
    def place_of_range(self) -> Ints:
        """The place of each range."""
        return self.life_place[self.life_number]

    @cached_property
    def ended(self) -> Ints:
        """The rows of `ranges` that have ended, by life, RANGE_TO and RANGE_FIRST."""
        offsets = self.history.column("log_offset").to_numpy()
        return _by_end(self.ranges, self.life_begins, self.life_place, self.begins, offsets)

    @cached_property
    def lives(self) -> Lives:
        """The lives in the history."""
        return lives_of(self.history, self.place)

    @cached_property
    def life(self) -> Ints:
        """The position of the life of each range in `lives`; UNKNOWN where the history lacks its records."""
        return self.lives.of(self.life_place, self.life_key)[self.life_number]

    @property
    def first_rows(self) -> Ints:
        """The row of the first record of each place that has records."""
        return self.begins[:-1][np.diff(self.begins) > 0]

    @property
    def newest_rows(self) -> Ints:
        """The row of the newest record of each place that has records."""
        return self.begins[1:][np.diff(self.begins) > 0] - 1

    def rows_at(self, place: Ints, log_offset: Ints) -> pa.Array:
        """The row of `history` with each log offset of a place; null where it has none."""
        rows = _rows_at(self.history.column("log_offset").to_numpy(), self.begins, place, log_offset)
        return pa.array(rows, mask=rows == UNKNOWN)
