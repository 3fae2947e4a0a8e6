"""Infers the state partition of a share partition from the places of its records.

A coordinator hashes the share partition's key modulo the number of state partitions (share-group-state-log §1). That
number must never change, and the log does not have it. A candidate is any number above the largest index that puts all
share partitions where their records lie. A share partition in two places leaves no candidate: the number was changed,
or copies of two logs were mixed. Then the newest records decide.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from state_model.columnar.keys import KEY, ORDER, Ints, number_keys
from state_model.columnar.schemas import PLACED_STATE, SHARE_PARTITION_STATE
from state_model.java import coordinator_key, magnitude, string_hash

LARGEST_COUNT = 10_000
"""Kafka's default is 50 and a broker carries a few thousand partitions of all topics; no coordinator needs more."""
ABOVE_LARGEST_INDEX = 1000
"""Minimum number of candidates when an index lies near or above `LARGEST_COUNT`: an absurd index costs no memory."""
NARROWED_BY = 1000
"""Maximum number of share partitions that narrow the candidates; a few usually leave a single candidate."""
Mask = npt.NDArray[np.bool_]


def possible_counts(largest_index: int) -> Ints:
    """The numbers of state partitions that an index up to `largest_index` allows, ascending."""
    lowest = largest_index + 1
    return np.arange(lowest, max(LARGEST_COUNT + 1, lowest + ABOVE_LARGEST_INDEX), dtype=np.int64)


def fitting_counts(counts: Ints, key: tuple[str, str, int], state_partition: int) -> Ints:
    """Those of `counts` that put the share partition (group id, topic id, partition) into the state partition."""
    fitting: Ints = counts[magnitude(string_hash(coordinator_key(*key))) % counts == state_partition]
    return fitting


def is_ambiguous(state: pa.Table) -> bool:
    """Whether a share partition has several rows."""
    (number,), names = number_keys(state)
    return len(number) > int(names.num_rows)


def placed(state: pa.Table) -> pa.Table:
    """PLACED_STATE from all SHARE_PARTITION_STATE rows of a cluster, in their order.

    Of several rows of a share partition, its state is the row in the newest incarnation of the state topic, in the
    state partition that the newest records hash to; without such a row, the row that changed last. The others are
    misplaced.
    """
    columns = [state.column(name) for name in SHARE_PARTITION_STATE.names]
    return pa.Table.from_arrays([*columns, pa.chunked_array([_misplaced(state)], pa.bool_())], schema=PLACED_STATE)


def _misplaced(state: pa.Table) -> Mask:
    (number,), names = number_keys(state)
    marks: Mask = np.zeros(len(number), np.bool_)
    if len(number) == names.num_rows:
        return marks
    seen: Mask = np.zeros(names.num_rows, np.bool_)
    for rows in _incarnations(state):
        inside = _misplaced_in_one(state.take(pa.array(rows)), number[rows])
        marks[rows] = inside | seen[number[rows]]
        seen[number[rows]] = True
    return marks


def _incarnations(state: pa.Table) -> list[Ints]:
    """The indices of the rows of each incarnation of the state topic, the newest first."""
    topics = state.select(["log_topic_id", "log_time_ms"]).group_by("log_topic_id").aggregate([("log_time_ms", "max")])
    order = [("log_time_ms_max", "descending"), ("log_topic_id", "ascending")]
    names = topics.sort_by(order).column("log_topic_id")
    place = pc.index_in(state.column("log_topic_id"), value_set=names.combine_chunks()).to_numpy()
    return [np.flatnonzero(place == rank) for rank in range(len(names))]


def _misplaced_in_one(state: pa.Table, number: Ints) -> Mask:
    """The mask for rows of one incarnation; `number` tells share partitions apart."""
    newest_first = _newest_first(state)
    has_several = np.bincount(number)[number] > 1
    fits = _fits(state, newest_first, has_several)
    age = np.empty(len(number), np.int64)
    age[newest_first] = np.arange(len(number))
    ranked = np.lexsort((age, ~fits, number))
    placed_rows = ranked[np.flatnonzero(np.diff(number[ranked], prepend=-1))]
    marks = np.ones(len(number), np.bool_)
    marks[placed_rows] = False
    return marks


def _newest_first(state: pa.Table) -> Ints:
    """Rows by the time of their last change, the newest first.

    The time is the log time of the last record; for a state that is a bare snapshot, the time of its content: the
    coordinator repeats snapshots of idle share partitions, in an abandoned state partition too
    (share-group-state-log §6).
    """
    log_time = state.column("log_time_ms").to_numpy()
    created = pc.fill_null(state.column("create_timestamp_ms"), 0).to_numpy()
    at_snapshot = pc.equal(state.column("snapshot_log_offset"), state.column("log_offset"))
    rests = pc.fill_null(at_snapshot, False).to_numpy()
    changed = np.where(rests, np.minimum(created, log_time), log_time)
    by_name = pc.sort_indices(state, sort_keys=[*ORDER, ("state_partition", "descending")]).to_numpy()
    newest: Ints = by_name[np.lexsort((log_time[by_name], changed[by_name]))[::-1]].astype(np.int64)
    return newest


def _fits(state: pa.Table, newest_first: Ints, needed: Mask) -> Mask:
    """The `needed` rows that lie in the state partition that the newest records hash to.

    From the newest row on, each row keeps the candidate numbers of state partitions that put it where it lies; a row
    that fits no remaining candidate is skipped.
    """
    places = state.column("state_partition").to_numpy()
    counts = possible_counts(int(places.max()))
    fits: Mask = np.zeros(len(places), np.bool_)
    keys = state.select(KEY)
    for rank, row in enumerate(newest_first):
        narrowing = len(counts) > 1 and rank < NARROWED_BY
        if not (narrowing or needed[row]):
            continue
        group_id, topic_id, partition = (keys.column(name)[row].as_py() for name in KEY)
        fitting = fitting_counts(counts, (group_id, topic_id, partition), int(places[row]))
        fits[row] = len(fitting) > 0
        if narrowing and len(fitting):
            counts = fitting
    return fits
