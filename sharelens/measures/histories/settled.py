"""Settled offsets: for each life, the first time that an offset became ACKNOWLEDGED or ARCHIVED.

    0-9 AVAILABLE/1 @ 1   3-4 ACKNOWLEDGED/2 @ 2   4 ACKNOWLEDGED/3 @ 5   ->   3 acknowledged at 2, 2 deliveries
                                                                              4 acknowledged at 2, 3 deliveries

Ranges, never offsets: work and memory go by the number of ranges in the delivery history.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from sharelens.measures.histories.first_outcomes import COUNT, FIRST, LAST, ROW, pieces_of
from sharelens.measures.histories.lives import BLIND
from sharelens.measures.histories.numbers import (
    RANGE_COUNT,
    RANGE_FIRST,
    RANGE_FROM,
    RANGE_LAST,
    RANGE_MS,
    RANGE_STATE,
    RANGE_TO,
    UNKNOWN,
    Histories,
)
from sharelens.measures.inputs import Inputs
from sharelens.measures.ranges.places import codes_in
from sharelens.measures.ranges.steps import LAST_OFFSET, Flags, Ints
from state_model.columnar.values import Loss
from state_model.share_records import DeliveryState

MARKS = ["completeness", "completeness_reason"]
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
NOT_KNOWN = -1
BLOCK_BITS = 12
BLOCK_OFFSETS = 1 << BLOCK_BITS
"""Record offsets of a block; contributions to latency and attempts are grouped by block and hour."""
LONG_OFFSETS = BLOCK_OFFSETS << 6
"""A range of more offsets is not cut into blocks: a record may claim 2^62 offsets."""
LATEST_MS = 1 << 61
"""Times beyond are cut off, so that differences fit 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """Ranges of settled offsets, disjoint within a life; `places` has the columns FULL_PLACE_KEY of each `place`.

    `outcome`: place in latency_schemas.OUTCOMES; `count`: largest delivery count in the life; `at`: log offset of the
    first outcome; `at_ms`: its log time, NOT_KNOWN where only a later snapshot shows the outcome. `open_…`: ranges that
    were delivered and are not settled at the end of the histories. `newest`: FULL_PLACE_KEY and MARKS of the newest
    record of each share partition.
    """

    places: pa.Table
    newest: pa.Table
    place: Ints
    first: Ints
    last: Ints
    outcome: Ints
    count: Ints
    at: Ints
    at_ms: Ints
    open_place: Ints
    open_first: Ints
    open_last: Ints
    open_count: Ints

    @property
    def size(self) -> Ints:
        """Offsets of each range."""
        return self.last - self.first + 1

    @property
    def open_size(self) -> Ints:
        """Offsets of each range that is open."""
        sizes: Ints = np.maximum(self.open_last - self.open_first + 1, 0)
        return sizes

    def from_offsets(self, offsets: Ints) -> "Settled":
        """The parts of the ranges at or above a record offset, one for each place."""
        least, open_least = offsets[self.place], offsets[self.open_place]
        cut = replace(self, first=np.maximum(self.first, least), open_first=np.maximum(self.open_first, open_least))
        return cut.where(self.last >= least).where_open(self.open_last >= open_least)

    def in_blocks(self) -> "Settled":
        """The ranges cut where a block begins; ranges of more than LONG_OFFSETS stay whole."""
        row, first, last = _in_blocks(self.first, self.last)
        names = ("place", "outcome", "count", "at", "at_ms")
        columns = {name: getattr(self, name)[row] for name in names} | {"first": first, "last": last}
        row, first, last = _in_blocks(self.open_first, self.open_last)
        columns |= {"open_place": self.open_place[row], "open_count": self.open_count[row]}
        return replace(self, **columns, open_first=first, open_last=last)

    def within(self, from_ms: int | None, to_ms: int | None) -> "Settled":
        """The ranges settled at log times in [from_ms, to_ms); with a bound, ranges of unknown time are left out."""
        if from_ms is None and to_ms is None:
            return self
        is_inside = self.at_ms != NOT_KNOWN
        if from_ms is not None:
            is_inside &= self.at_ms >= from_ms
        if to_ms is not None:
            is_inside &= self.at_ms < to_ms
        return self.where(is_inside)

    def where(self, selected: Flags) -> "Settled":
        """The selected settled ranges, with all open ones."""
        names = ("place", "first", "last", "outcome", "count", "at", "at_ms")
        return replace(self, **{name: getattr(self, name)[selected] for name in names})

    def where_open(self, selected: Flags) -> "Settled":
        """All settled ranges, with the selected open ones."""
        names = ("open_place", "open_first", "open_last", "open_count")
        return replace(self, **{name: getattr(self, name)[selected] for name in names})

    @property
    def hour_ms(self) -> Ints:
        """Beginning of the hour of each outcome; NOT_KNOWN like its time."""
        return np.where(self.at_ms == NOT_KNOWN, NOT_KNOWN, self.at_ms - self.at_ms % HOUR_MS)


def settled(histories: Histories, losses: Mapping[int, Sequence[Loss]] | None = None) -> Settled:
    """Settled ranges in the histories; `losses`: missing records by state partition."""
    ranges, of_range = histories.ranges, histories.place_of_range
    pieces = pieces_of(ranges, _decides(ranges), histories.life_begins)
    row = pieces[:, ROW]
    place, at = of_range[row], ranges[row, RANGE_FROM]
    unseen = _among(place, at, *_only_shows(histories, losses or {}))
    still = _open(ranges)
    return Settled(
        places=histories.places,
        newest=_newest(histories),
        place=place,
        first=pieces[:, FIRST],
        last=pieces[:, LAST],
        outcome=(ranges[row, RANGE_STATE] == DeliveryState.ARCHIVED).astype(np.int64),
        count=pieces[:, COUNT],
        at=at,
        at_ms=np.where(unseen, NOT_KNOWN, np.clip(ranges[row, RANGE_MS], 0, LATEST_MS)),
        open_place=of_range[still],
        open_first=np.clip(ranges[still, RANGE_FIRST], 0, LAST_OFFSET),
        open_last=np.clip(ranges[still, RANGE_LAST], -1, LAST_OFFSET),
        open_count=ranges[still, RANGE_COUNT],
    )


def settled_of(inputs: Inputs) -> Settled:
    """Settled ranges in the histories of some share partitions."""
    return inputs.once("settled", lambda: settled(inputs.histories(), inputs.losses()))


def _newest(histories: Histories) -> pa.Table:
    """FULL_PLACE_KEY and MARKS of the newest record of each share partition."""
    rows = histories.newest_rows
    places, marks = histories.places.take(pa.array(histories.place[rows])), histories.history.take(pa.array(rows))
    for name in MARKS:
        places = places.append_column(name, marks.column(name).cast(pa.string()))
    return places


def _in_blocks(first: Ints, last: Ints) -> tuple[Ints, Ints, Ints]:
    """For each part of a range the row of the range, the first and the last offset of the part."""
    # Without this bound, a record that claims 2^62 offsets would make a part for each block of them.
    is_long = last - first >= LONG_OFFSETS
    counts = np.where(is_long, 1, np.maximum((last >> BLOCK_BITS) - (first >> BLOCK_BITS), 0) + 1)
    row = np.repeat(np.arange(len(first)), counts)
    number = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    begin = ((first[row] >> BLOCK_BITS) + number) << BLOCK_BITS
    ends = np.where(is_long[row], last[row], np.minimum(last[row], begin + BLOCK_OFFSETS - 1))
    return row, np.maximum(first[row], begin), ends


def _is_done(ranges: Ints) -> Flags:
    state = ranges[:, RANGE_STATE]
    done: Flags = (state == DeliveryState.ACKNOWLEDGED) | (state == DeliveryState.ARCHIVED)
    return done


def _decides(ranges: Ints) -> Flags:
    """Whether each range has an outcome, or a larger delivery count than a range with one."""
    done, count = _is_done(ranges), ranges[:, RANGE_COUNT]
    decides: Flags = done | (count > count[done].min(initial=np.iinfo(np.int64).max))
    return decides


def _open(ranges: Ints) -> Flags:
    """Ranges at the end that were delivered and are neither acknowledged nor archived."""
    still: Flags = (ranges[:, RANGE_TO] == UNKNOWN) & ~_is_done(ranges) & (ranges[:, RANGE_COUNT] > 0)
    return still


def _among(place: Ints, at: Ints, places: Ints, offsets: Ints) -> Flags:
    """Whether each (place, log offset) is among the pairs of `places` and `offsets`, which are few."""
    # Most rows fail the test by offset alone; only the others are compared as pairs.
    result = np.isin(at, offsets)
    near = np.flatnonzero(result)
    pairs_to_match = set(zip(places.tolist(), offsets.tolist(), strict=True))
    pairs = zip(place[near].tolist(), at[near].tolist(), strict=True)
    result[near] = np.fromiter((pair in pairs_to_match for pair in pairs), np.bool_, len(near))
    return result


def _only_shows(histories: Histories, losses: Mapping[int, Sequence[Loss]]) -> tuple[Ints, Ints]:
    """Place and log offset of snapshots that show outcomes of records missing from the evidence.

    Other snapshots add to the records before them only the write at which the coordinator took the snapshot.
    """
    history, place = histories.history, histories.place
    offset = history.column("log_offset").to_numpy()
    begins = np.append(True, np.diff(place) != 0)[: len(place)]
    blind = _is_in(history, "completeness", BLIND)
    before_blind = np.append(False, blind[:-1])[: len(place)] & ~begins
    previous = np.append(NOT_KNOWN, offset[:-1])[: len(place)]
    state_partition = history.column("state_partition").to_numpy()
    lost = np.zeros(len(place), np.bool_)
    for number, partition_losses in losses.items():
        # Whether a loss begins behind the previous row and before this one: both counts are of sorted offsets.
        at = np.sort(np.array([loss.first_offset for loss in partition_losses], np.int64))
        between = np.searchsorted(at, offset, "left") > np.searchsorted(at, previous, "right")
        lost |= (state_partition == number) & between
    is_blind = (begins | before_blind | lost) & _is_in(history, "record_type", ["snapshot"])
    return place[is_blind], offset[is_blind]


def _is_in(rows: pa.Table, name: str, values: Sequence[str]) -> Flags:
    return codes_in(rows.column(name), pa.array(values)) >= 0
