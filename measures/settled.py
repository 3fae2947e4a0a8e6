"""What was settled: for each life, each offset once, when it first became ACKNOWLEDGED or ARCHIVED.

    0-9 AVAILABLE/1 @ 1   3-4 ACKNOWLEDGED/2 @ 2   4 ACKNOWLEDGED/3 @ 5   ->   3 acknowledged at 2, 2 deliveries
                                                                              4 acknowledged at 2, 3 deliveries

Ranges, never offsets: work and memory go by the number of ranges in the delivery history.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from measures.latency_schemas import ACKNOWLEDGED, ARCHIVED, OPEN
from measures.lives import BLIND, lives_of, number_places
from measures.newly import outcomes_of
from measures.redelivered import rows_at
from measures.steps import Cells, Flags, Ints
from state_model.columnar.values import Loss
from state_model.share_records import DeliveryState

HOUR_MS = 3_600_000
NOT_KNOWN = -1
OUTCOME_NAMES = (ACKNOWLEDGED, ARCHIVED, OPEN)
"""Names of the numbers in `Settled.outcome`."""
LATEST_MS = 1 << 61
"""Times beyond are cut off, so that differences fit 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """Ranges of settled offsets, disjoint within a life; `places` has the PLACE columns of each `place`.

    `outcome`: place in OUTCOME_NAMES; `count`: largest delivery count in the life; `at`: log offset of the first
    outcome; `at_ms`: its log time, NOT_KNOWN where only a later snapshot shows the outcome. `open_…`: what was
    delivered and is not settled, at the end of the histories.
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
    open_size: Ints
    open_count: Ints

    @property
    def size(self) -> Ints:
        """Offsets of each range."""
        return self.last - self.first + 1

    def within(self, from_ms: int | None, to_ms: int | None) -> "Settled":
        """Only what was settled from one log time on and before another; with a bound, nothing of an unknown time."""
        if from_ms is None and to_ms is None:
            return self
        wanted = self.at_ms != NOT_KNOWN
        if from_ms is not None:
            wanted &= self.at_ms >= from_ms
        if to_ms is not None:
            wanted &= self.at_ms < to_ms
        names = ("place", "first", "last", "outcome", "count", "at", "at_ms")
        return replace(self, **{name: getattr(self, name)[wanted] for name in names})

    @property
    def hour_ms(self) -> Ints:
        """Beginning of the hour of each outcome; NOT_KNOWN like its time."""
        return np.where(self.at_ms == NOT_KNOWN, NOT_KNOWN, self.at_ms - self.at_ms % HOUR_MS)


def settled(history: pa.Table, deliveries: pa.Table, losses: Mapping[int, Sequence[Loss]] | None = None) -> Settled:
    """What SHARE_PARTITION_HISTORY and DELIVERY_HISTORY rows tell; `losses`: what is missing, by state partition."""
    (of_history, of_deliveries), places = number_places(history, deliveries)
    lives = lives_of(history, of_history)
    life = lives.of(of_deliveries, deliveries.column("life_log_offset").to_numpy())
    deliveries, life, of_deliveries = deliveries.filter(pa.array(life >= 0)), life[life >= 0], of_deliveries[life >= 0]
    outcomes = outcomes_of(deliveries, life)
    done = (outcomes.state == DeliveryState.ACKNOWLEDGED) | (outcomes.state == DeliveryState.ARCHIVED)
    cells = Cells(outcomes.life, outcomes.first, outcomes.last)
    order = np.argsort(outcomes.at, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    covered = cells.covered(done)
    earliest = np.append(order, 0)[np.where(covered, cells.lowest(rank, done), len(order))]
    told = {"at": outcomes.at, "state": outcomes.state}
    values = {name: np.append(column, 0)[earliest] for name, column in told.items()}
    ranges = cells.ranges(covered, values | {"count": cells.highest(outcomes.count)})
    place, at = lives.place[ranges.group], ranges.values["at"]
    still = _open(deliveries)
    return Settled(
        places=places,
        place=place,
        first=ranges.first,
        last=ranges.last,
        outcome=(ranges.values["state"] == DeliveryState.ARCHIVED).astype(np.int64),
        count=ranges.values["count"],
        at=at,
        at_ms=_times(history, of_history, places, place, at, losses or {}),
        open_place=of_deliveries[still],
        open_size=_sizes(deliveries)[still],
        open_count=deliveries.column("delivery_count").to_numpy().astype(np.int64)[still],
    )


def _open(deliveries: pa.Table) -> Flags:
    """Ranges at the end that were delivered and are neither acknowledged nor archived."""
    state, count = (deliveries.column(name).to_numpy() for name in ("delivery_state", "delivery_count"))
    done = (state == DeliveryState.ACKNOWLEDGED) | (state == DeliveryState.ARCHIVED)
    still: Flags = deliveries.column("is_open").to_numpy(zero_copy_only=False).astype(np.bool_)
    wanted: Flags = still & ~done & (count > 0)
    return wanted


def _sizes(deliveries: pa.Table) -> Ints:
    first, last = (deliveries.column(name).to_numpy() for name in ("first_offset", "last_offset"))
    sizes: Ints = np.maximum(last - np.maximum(first, 0) + 1, 0)
    return sizes


def _times(
    history: pa.Table, of_history: Ints, places: pa.Table, place: Ints, at: Ints, losses: Mapping[int, Sequence[Loss]]
) -> Ints:
    """The log time of each outcome; NOT_KNOWN where the record that shows it is a snapshot that nothing led up to."""
    times = np.clip(history.column("log_time_ms").to_numpy(), 0, LATEST_MS)
    times = np.where(_only_shows(history, of_history, losses), NOT_KNOWN, times)
    row = rows_at(history, places.column("state_partition").to_numpy()[place], at)
    found: Ints = np.append(times, NOT_KNOWN)[pc.fill_null(row, len(times)).to_numpy(zero_copy_only=False)]
    return found


def _only_shows(history: pa.Table, place: Ints, losses: Mapping[int, Sequence[Loss]]) -> Flags:
    """Rows of snapshots that show what came before them and is not held.

    A snapshot otherwise holds, beside what was logged before, just the write that made the coordinator take it.
    """
    offset = history.column("log_offset").to_numpy()
    order = np.lexsort((offset, place))
    begins = np.append(True, np.diff(place[order]) != 0)[: len(order)]
    blind = (
        pc.is_in(history.column("completeness"), value_set=pa.array(BLIND))
        .to_numpy(zero_copy_only=False)
        .astype(np.bool_)
    )
    before_blind = np.append(False, blind[order][:-1])[: len(order)] & ~begins
    previous = np.append(NOT_KNOWN, offset[order][:-1])[: len(order)]
    state_partition = history.column("state_partition").to_numpy()[order]
    lost = np.zeros(len(order), np.bool_)
    for number, some in losses.items():
        at = np.sort(np.array([loss.first_offset for loss in some], np.int64))
        between = np.searchsorted(at, offset[order], "left") > np.searchsorted(at, previous, "right")
        lost |= (state_partition == number) & between
    sudden = np.empty(len(order), np.bool_)
    sudden[order] = begins | before_blind | lost
    snapshot: Flags = pc.equal(history.column("record_type"), "snapshot").to_numpy(zero_copy_only=False)
    return sudden & snapshot.astype(np.bool_)
