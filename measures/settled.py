"""Settled offsets: for each life, the first time that an offset became ACKNOWLEDGED or ARCHIVED.

    0-9 AVAILABLE/1 @ 1   3-4 ACKNOWLEDGED/2 @ 2   4 ACKNOWLEDGED/3 @ 5   ->   3 acknowledged at 2, 2 deliveries
                                                                              4 acknowledged at 2, 3 deliveries

Ranges, never offsets: work and memory go by the number of ranges in the delivery history.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from measures.first_outcomes import COUNT, FIRST, LAST, ROW, pieces_of
from measures.grouped import grouped, in_order
from measures.inputs import Inputs
from measures.latency_schemas import ACKNOWLEDGED, ARCHIVED, OPEN
from measures.lives import BLIND, number_places
from measures.places import codes_in
from measures.steps import LAST_OFFSET, Flags, Ints
from state_model.columnar.values import Loss
from state_model.share_records import DeliveryState

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
NOT_KNOWN = -1
OUTCOME_NAMES = (ACKNOWLEDGED, ARCHIVED, OPEN)
"""Names of the numbers in `Settled.outcome`."""
NUMBERS = (
    "life_log_offset",
    "first_offset",
    "last_offset",
    "delivery_state",
    "delivery_count",
    "valid_from_log_offset",
    "valid_from_ms",
)
"""The columns of delivery history that this module reads."""
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

    `outcome`: place in OUTCOME_NAMES; `count`: largest delivery count in the life; `at`: log offset of the first
    outcome; `at_ms`: its log time, NOT_KNOWN where only a later snapshot shows the outcome. `open_…`: ranges
    that were delivered and are not settled at the end of the histories.
    """

    places: pa.Table
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


def settled(history: pa.Table, deliveries: pa.Table, losses: Mapping[int, Sequence[Loss]] | None = None) -> Settled:
    """Settled ranges in SHARE_PARTITION_HISTORY and DELIVERY_HISTORY; `losses`: missing records by state partition."""
    (of_history, of_deliveries), places = number_places(history, deliveries)
    columns = _numbers(deliveries)
    life, lives = numbered_lives(of_deliveries, columns["life_log_offset"])
    begin, end = np.clip(columns["first_offset"], 0, LAST_OFFSET), np.clip(columns["last_offset"], -1, LAST_OFFSET) + 1
    others = (columns[name] for name in ("delivery_state", "delivery_count", "valid_from_log_offset"))
    ranges = np.stack([begin, np.maximum(begin, end), *others], axis=1)
    rows, begins = grouped(life, lives)
    telling = _telling(columns)[rows]
    pieces = pieces_of(ranges, rows[telling], np.append(0, np.cumsum(telling))[begins])
    row = pieces[:, ROW]
    place, at = of_deliveries[row], columns["valid_from_log_offset"][row]
    unseen = _among(place, at, *_only_shows(history, of_history, losses or {}))
    still = _open(columns, deliveries)
    return Settled(
        places=places,
        place=place,
        first=pieces[:, FIRST],
        last=pieces[:, LAST],
        outcome=(columns["delivery_state"][row] == DeliveryState.ARCHIVED).astype(np.int64),
        count=pieces[:, COUNT],
        at=at,
        at_ms=np.where(unseen, NOT_KNOWN, np.clip(columns["valid_from_ms"][row], 0, LATEST_MS)),
        open_place=of_deliveries[still],
        open_first=begin[still],
        open_last=end[still] - 1,
        open_count=columns["delivery_count"][still],
    )


def settled_of(inputs: Inputs) -> Settled:
    """Settled ranges in the histories of some share partitions."""
    return inputs.once("settled", lambda: settled(inputs.history(), inputs.deliveries(), inputs.losses()))


def _in_blocks(first: Ints, last: Ints) -> tuple[Ints, Ints, Ints]:
    """For each part of a range the row of the range, the first and the last offset of the part."""
    whole = last - first >= LONG_OFFSETS
    counts = np.where(whole, 1, np.maximum((last >> BLOCK_BITS) - (first >> BLOCK_BITS), 0) + 1)
    row = np.repeat(np.arange(len(first)), counts)
    number = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    begin = ((first[row] >> BLOCK_BITS) + number) << BLOCK_BITS
    ends = np.where(whole[row], last[row], np.minimum(last[row], begin + BLOCK_OFFSETS - 1))
    return row, np.maximum(first[row], begin), ends


def _numbers(deliveries: pa.Table) -> dict[str, Ints]:
    return {name: deliveries.column(name).to_numpy().astype(np.int64, copy=False) for name in NUMBERS}


def numbered_lives(place: Ints, key: Ints) -> tuple[Ints, int]:
    """A number from 0 on for each combination of place and life, and how many there are."""
    codes = pa.array(key).dictionary_encode()
    both = pa.array((place << 32) | codes.indices.to_numpy()).dictionary_encode()
    return both.indices.to_numpy().astype(np.int64), len(both.dictionary)


def _is_done(columns: Mapping[str, Ints]) -> Flags:
    state = columns["delivery_state"]
    done: Flags = (state == DeliveryState.ACKNOWLEDGED) | (state == DeliveryState.ARCHIVED)
    return done


def _telling(columns: Mapping[str, Ints]) -> Flags:
    """Whether each range has an outcome, or a larger delivery count than a range with one."""
    done = _is_done(columns)
    least = columns["delivery_count"][done].min(initial=np.iinfo(np.int64).max)
    telling: Flags = done | (columns["delivery_count"] > least)
    return telling


def _open(columns: Mapping[str, Ints], deliveries: pa.Table) -> Flags:
    """Ranges at the end that were delivered and are neither acknowledged nor archived."""
    still: Flags = deliveries.column("is_open").to_numpy(zero_copy_only=False).astype(np.bool_)
    delivered: Flags = still & ~_is_done(columns) & (columns["delivery_count"] > 0)
    return delivered


def _among(place: Ints, at: Ints, places: Ints, offsets: Ints) -> Flags:
    """Whether each (place, log offset) is among the pairs of `places` and `offsets`, which are few."""
    result = np.isin(at, offsets)
    near = np.flatnonzero(result)
    pairs_to_match = set(zip(places.tolist(), offsets.tolist(), strict=True))
    pairs = zip(place[near].tolist(), at[near].tolist(), strict=True)
    result[near] = np.fromiter((pair in pairs_to_match for pair in pairs), np.bool_, len(near))
    return result


def _only_shows(history: pa.Table, place: Ints, losses: Mapping[int, Sequence[Loss]]) -> tuple[Ints, Ints]:
    """Place and log offset of snapshots that show outcomes of records missing from the evidence.

    Other snapshots add to the records before them only the write at which the coordinator took the snapshot.
    """
    offset = history.column("log_offset").to_numpy()
    order, _ = in_order(place, int(place.max(initial=-1)) + 1, offset)
    place, offset = place[order], offset[order]
    begins = np.append(True, np.diff(place) != 0)[: len(order)]
    blind = _is_in(history, "completeness", BLIND)[order]
    before_blind = np.append(False, blind[:-1])[: len(order)] & ~begins
    previous = np.append(NOT_KNOWN, offset[:-1])[: len(order)]
    state_partition = history.column("state_partition").to_numpy()[order]
    lost = np.zeros(len(order), np.bool_)
    for number, some in losses.items():
        at = np.sort(np.array([loss.first_offset for loss in some], np.int64))
        between = np.searchsorted(at, offset, "left") > np.searchsorted(at, previous, "right")
        lost |= (state_partition == number) & between
    is_blind = (begins | before_blind | lost) & _is_in(history, "record_type", ["snapshot"])[order]
    return place[is_blind], offset[is_blind]


def _is_in(rows: pa.Table, name: str, values: Sequence[str]) -> Flags:
    return codes_in(rows.column(name), pa.array(values)) >= 0
