"""Another number of updates between snapshots: records, bytes, snapshots, and what a load of the state replays.

The operations of the history are replayed under the rule of the share coordinator with another limit
(`share.coordinator.snapshot.update.records.per.snapshot`). The history itself tests the replay: with the limit in force
it must give the records that the log has.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.histories.lives import BLIND, number_places
from sharelens.measures.ranges.steps import Flags, Ints
from sharelens.measures.ranges.sums import any_by, sums_by
from sharelens.measures.what_if.appends import MARKS, SNAPSHOT_RECORD, UPDATE_RECORD
from sharelens.measures.what_if.cold_rounds import ColdRounds, other_rounds
from sharelens.measures.what_if.schema import BOUND, EXACT, INFERRED, figure_rows, together_in_order
from sharelens.measures.what_if.snapshot_kernel import (
    BYTES,
    COLD_SNAPSHOT,
    COLD_SNAPSHOTS,
    FIGURES,
    FIRST_COLD_SNAPSHOT,
    INITIALIZE,
    MOST_BYTES,
    MOST_TO_REPLAY,
    OLDEST_MS,
    RECORDS,
    SNAPSHOTS,
    TO_REPLAY,
    UPDATES,
    WRITE,
    Operations,
    replay_operations,
)
from state_model.machine import SNAPSHOT_UPDATE_LIMIT

RANGE = (0, 500)
"""The smallest and the largest limit that a broker takes (ShareCoordinatorConfig)."""


def snapshot_rows(appends: pa.Table, rounds: ColdRounds, limit: int, interval_ms: int) -> pa.Table:
    """WHAT_IF rows of the share partitions of one state partition; none of incomplete ones.

    Args:
        appends: APPENDS rows of all share partitions of the state partition, by log offset.
        rounds: those of the cold snapshot job.
        limit: updates between snapshots, in RANGE.
        interval_ms: age at which a snapshot is cold.
    """
    (place,), places = number_places(appends)
    blind = pc.is_in(appends.column("completeness"), value_set=pa.array(BLIND)).to_numpy(zero_copy_only=False)
    is_blind = any_by(place, blind, places.num_rows)
    created = any_by(place, appends.column("is_created").to_numpy(zero_copy_only=False), places.num_rows)
    in_force = limit_in_force(appends)
    operation = _operations(appends, in_force)
    none, full = np.zeros(places.num_rows, np.int64), np.where(created, 0, max(0, limit - 1))
    logged = _logged(appends, place, places.num_rows)

    def replayed(rounds: ColdRounds, counts: Ints, limit: int) -> Ints:
        return _replay(appends, place, operation, rounds, counts, limit, interval_ms)

    def differs(rounds: ColdRounds) -> bool:
        again = replayed(rounds, none, in_force)
        return bool((again[created, :BYTES] != logged[created, :BYTES]).any())

    tried = [replayed(rounds, none, limit)]
    tried += [] if created.all() else [replayed(rounds, full, limit)]
    may_miss_rounds = not rounds.is_known and any((candidate[:, OLDEST_MS] >= interval_ms).any() for candidate in tried)
    if may_miss_rounds:
        times_ms = appends.column("time_ms").to_numpy()
        candidates = other_rounds(rounds, times_ms, places.num_rows, interval_ms)
        possible_rounds = [candidate for candidate in candidates if not differs(candidate)]
        tried += [replayed(candidate, none, limit) for candidate in possible_rounds]
    low, high = np.min(tried, axis=0), np.max(tried, axis=0)
    is_doubtful = differs(rounds) or is_blind.any() or may_miss_rounds
    sizes_doubtful = any_by(place, ~appends.column("is_as_computed").to_numpy(zero_copy_only=False), places.num_rows)
    marks = _marks(appends, place)
    chosen = pa.array(~is_blind)
    tables = []
    for number, name in enumerate(FIGURES):
        max_column = MOST_BYTES if number == BYTES else number
        at_least, at_most = low[:, number], high[:, max_column]
        certainty = np.where(created & (at_least == at_most), EXACT, BOUND)
        inferred = np.full(places.num_rows, bool(is_doubtful))
        if number == BYTES:
            inferred |= (sizes_doubtful & (limit != in_force)) | ~created
        certainty = np.where(inferred, INFERRED, certainty)
        rows = figure_rows(places, marks, name, logged[:, number], at_least, at_most, certainty)
        tables.append(rows.filter(chosen))
    return together_in_order(tables)


def limit_in_force(appends: pa.Table) -> int:
    """The limit by which the coordinator wrote: updates before the snapshots that only writes can have made.

    Kafka's default, or the largest number of updates without a snapshot, where no write made a snapshot.
    """
    is_limit_snapshot = _snapshots_of_writes(appends) & appends.column("is_created").to_numpy(zero_copy_only=False)
    is_limit_snapshot &= ~appends.column("is_blank").to_numpy(zero_copy_only=False)
    before = appends.column("updates_before").to_numpy()
    if is_limit_snapshot.any():
        return int(before[is_limit_snapshot].min())
    updates = before[appends.column("record").to_numpy() == UPDATE_RECORD]
    return max(SNAPSHOT_UPDATE_LIMIT, int(updates.max(initial=-1)) + 1)


def _snapshots_of_writes(appends: pa.Table) -> Flags:
    operation, record = appends.column("operation").to_numpy(), appends.column("record").to_numpy()
    return np.asarray((operation == WRITE) & (record == SNAPSHOT_RECORD), np.bool_)


def _operations(appends: pa.Table, in_force: int) -> Ints:
    """The operation of each record: a blank snapshot before the counter reached the limit was an Initialize."""
    early = appends.column("updates_before").to_numpy() < in_force
    blank = appends.column("is_blank").to_numpy(zero_copy_only=False)
    operation = appends.column("operation").to_numpy().astype(np.int64)
    return np.where(_snapshots_of_writes(appends) & blank & early, INITIALIZE, operation)


def _replay(
    appends: pa.Table, place: Ints, operation: Ints, rounds: ColdRounds, counts: Ints, limit: int, interval_ms: int
) -> Ints:
    names = ("update_bytes", "snapshot_bytes", "most_snapshot_bytes", "record_bytes")
    sizes = np.stack([appends.column(name).to_numpy() for name in names], axis=1)
    operations = Operations(place, operation, appends.column("time_ms").to_numpy(), sizes)
    figures: Ints = replay_operations(operations, counts, limit, rounds.times_ms, interval_ms, rounds.last_ms)
    return figures


def _logged(appends: pa.Table, place: Ints, places: int) -> Ints:
    """FIGURES of each share partition as the log has them, without another limit."""
    record, operation = appends.column("record").to_numpy(), appends.column("operation").to_numpy()
    figures = np.zeros((places, len(FIGURES)), np.int64)
    figures[:, RECORDS] = np.bincount(place, minlength=places)
    figures[:, SNAPSHOTS] = np.bincount(place[record == SNAPSHOT_RECORD], minlength=places)
    figures[:, COLD_SNAPSHOTS] = np.bincount(place[_is_cold(operation)], minlength=places)
    figures[:, UPDATES] = np.bincount(place[record == UPDATE_RECORD], minlength=places)
    figures[:, BYTES] = sums_by(place, appends.column("record_bytes").to_numpy(), places)
    to_replay = _to_replay(record, place)
    np.maximum.at(figures[:, MOST_TO_REPLAY], place, to_replay)
    figures[place, TO_REPLAY] = to_replay
    return figures


def _is_cold(operation: Ints) -> Flags:
    return np.isin(operation, (COLD_SNAPSHOT, FIRST_COLD_SNAPSHOT))


def _to_replay(record: Ints, place: Ints) -> Ints:
    """After each record the records of its share partition from its newest snapshot on."""
    order = np.argsort(place, kind="stable")
    of, kind = place[order], record[order]
    rows = np.arange(len(of))
    begins = (kind != UPDATE_RECORD) | np.append(True, np.diff(of) != 0)[: len(of)]
    begin = np.maximum.accumulate(np.where(begins, rows, 0))
    length = rows - begin + 1
    length[kind[begin] > SNAPSHOT_RECORD] -= 1  # a tombstone leaves nothing to replay
    result = np.empty(len(of), np.int64)
    result[order] = length
    return result


def _marks(appends: pa.Table, place: Ints) -> pa.Table:
    """The completeness of the newest record of each share partition."""
    newest = np.zeros(int(place.max(initial=-1)) + 1, np.int64)
    newest[place] = np.arange(len(place))
    return appends.select(MARKS).take(pa.array(newest))
