"""The state partition of a share partition, inferred from the state partitions of its records.

A coordinator hashes the share partition's name and takes the remainder by the number of state partitions
(share-group-state-log §1), and that number must never change. It is not in the log. A number fits when it lies above
the largest index and puts every share partition where its records lie. None fits a share partition with records in two
state partitions: the number was changed, or copies of two logs were mixed. Then the newest records show which number is
in use now, and rows elsewhere are misplaced.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.incarnations import newest_first
from state_model.columnar.keys import PLACE_KEY, SHARE_PARTITION_KEY, SHARE_PARTITION_ORDER, Ints, number_keys
from state_model.columnar.schemas import PLACED_STATE, SHARE_PARTITION_STATE
from state_model.java import coordinator_key, magnitude, string_hash

LARGEST_COUNT = 10_000
"""Kafka's default is 50 and a broker carries a few thousand partitions of all topics; no coordinator needs more."""
ABOVE_LARGEST_INDEX = 1000
"""Candidates at least, where an index lies near or above `LARGEST_COUNT`: an absurd index costs no memory."""
NARROWED_BY = 1000
"""Share partitions that narrow the candidates at most; a handful leaves one."""
Mask = npt.NDArray[np.bool_]


def possible_counts(largest_index: int) -> Ints:
    """The numbers of state partitions that an index up to `largest_index` allows, ascending."""
    lowest = largest_index + 1
    return np.arange(lowest, max(LARGEST_COUNT + 1, lowest + ABOVE_LARGEST_INDEX), dtype=np.int64)


def fitting_counts(counts: Ints, key: tuple[str, str, int], state_partition: int) -> Ints:
    """The numbers in `counts` that put the share partition (group id, topic id, partition) into the state partition."""
    fitting: Ints = counts[magnitude(string_hash(coordinator_key(*key))) % counts == state_partition]
    return fitting


def is_ambiguous(state: pa.Table) -> bool:
    """Whether a share partition has several rows."""
    (number,), names = number_keys(state)
    return len(number) > int(names.num_rows)


def placed(state: pa.Table) -> pa.Table:
    """PLACED_STATE from all SHARE_PARTITION_STATE rows of a cluster, in their order.

    Of several rows of a share partition one is its state: in the newest incarnation of the state topic, in the state
    partition that the newest records hash to, or where that one holds no row of it, the row that changed last. The
    others are misplaced.
    """
    columns = [state.column(name) for name in SHARE_PARTITION_STATE.names]
    return pa.Table.from_arrays([*columns, pa.chunked_array([_misplaced(state)], pa.bool_())], schema=PLACED_STATE)


def _misplaced(state: pa.Table) -> Mask:
    (number,), names = number_keys(state)
    marks: Mask = np.zeros(len(number), np.bool_)
    if len(number) == names.num_rows:
        return marks
    is_seen: Mask = np.zeros(names.num_rows, np.bool_)
    for rows in _incarnations(state):
        inside = _misplaced_in_one(state.take(pa.array(rows)), number[rows])
        marks[rows] = inside | is_seen[number[rows]]
        is_seen[number[rows]] = True
    return marks


def _incarnations(state: pa.Table) -> list[Ints]:
    """The indices of the rows of each incarnation of the state topic, the newest first."""
    topics = state.select(["log_topic_id", "log_time_ms"]).group_by("log_topic_id").aggregate([("log_time_ms", "max")])
    times = zip(topics.column("log_topic_id").to_pylist(), topics.column("log_time_ms_max").to_pylist(), strict=True)
    topic_ids = pa.array(newest_first(times), pa.string())
    number = pc.index_in(state.column("log_topic_id").cast(pa.string()), value_set=topic_ids).to_numpy()
    return [np.flatnonzero(number == incarnation) for incarnation in range(len(topic_ids))]


def _misplaced_in_one(state: pa.Table, number: Ints) -> Mask:
    """The mask for rows of one incarnation; `number`: of the share partition of each row."""
    newest_first = _newest_first(state)
    several = np.bincount(number)[number] > 1
    fits = _fits(state, newest_first, several)
    age = np.empty(len(number), np.int64)
    age[newest_first] = np.arange(len(number))
    ranked = np.lexsort((age, ~fits, number))
    shown = ranked[np.flatnonzero(np.diff(number[ranked], prepend=-1))]
    marks = np.ones(len(number), np.bool_)
    marks[shown] = False
    return marks


def _newest_first(state: pa.Table) -> Ints:
    """Rows by the time of their last change, the newest first.

    That is the log time of the last record, or the creation time of a snapshot's content if the state consists of the
    snapshot: the coordinator writes snapshots of share partitions at rest over and over, also in
    state partitions that no leader reads any more (share-group-state-log §6).
    """
    log_time = state.column("log_time_ms").to_numpy()
    created = pc.fill_null(state.column("create_timestamp_ms"), 0).to_numpy()
    at_snapshot = pc.equal(state.column("snapshot_log_offset"), state.column("log_offset"))
    rests = pc.fill_null(at_snapshot, False).to_numpy()
    changed = np.where(rests, np.minimum(created, log_time), log_time)
    by_name = pc.sort_indices(state, sort_keys=[*SHARE_PARTITION_ORDER, ("state_partition", "descending")]).to_numpy()
    newest: Ints = by_name[np.lexsort((log_time[by_name], changed[by_name]))[::-1]].astype(np.int64)
    return newest


def _fits(state: pa.Table, newest_first: Ints, candidates: Mask) -> Mask:
    """Whether each of the `candidates` rows lies in the state partition that the newest records imply.

    From the newest row on, each row narrows the possible numbers of state partitions to those that put it where it
    is; a row that no remaining number would put there is skipped.
    """
    places = state.column("state_partition").to_numpy()
    counts = possible_counts(int(places.max()))
    fits: Mask = np.zeros(len(places), np.bool_)
    keys = state.select(SHARE_PARTITION_KEY)
    for rank, row in enumerate(newest_first):
        narrowing = len(counts) > 1 and rank < NARROWED_BY
        if not (narrowing or candidates[row]):
            continue
        group_id, topic_id, partition = (keys.column(name)[row].as_py() for name in SHARE_PARTITION_KEY)
        fitting = fitting_counts(counts, (group_id, topic_id, partition), int(places[row]))
        fits[row] = len(fitting) > 0
        if narrowing and len(fitting):
            counts = fitting
    return fits


def misplaced_places_of(places: pa.Table, states: pa.Table) -> pa.Table:
    """The misplaced rows of `places`, in their order: another place has the state of their share partition.

    The state of a share partition without a row in `states` lies at the place with the newest record, of several at the
    one with the highest state partition.

    Args:
        places: PLACE_KEY and log_time_ms_max, the log time of the newest record; one row each, in any order.
        states: SHARE_PARTITION_STATE rows that are not misplaced.
    """
    newest_last = [("log_time_ms_max", "ascending"), ("state_partition", "ascending")]
    holder = {place[:-1]: place for place in _keys(places.sort_by(newest_last))}
    holder |= {place[:-1]: place for place in _keys(states)}
    holders = set(holder.values())
    return places.filter(pa.array([place not in holders for place in _keys(places)], pa.bool_()))


def _keys(rows: pa.Table) -> list[tuple[object, ...]]:
    return list(zip(*(rows.column(name).to_pylist() for name in PLACE_KEY), strict=True))
