"""States at the boundaries of chunks: what lets the chunks of one state partition be replayed at the same time.

A log falls into chunks of offsets. `ChunkReducer` reduces a chunk, without any state before it, to little: of each
share partition the records up to its first snapshot or tombstone (the head), few of those behind it (the thinned
records) and its ranges at the end. `BoundaryStates` folds the summaries in a row, and says of each chunk the state
before it. Then every chunk is replayed on its own, with nothing to fill in afterwards.

    chunk 0        | chunk 1          | chunk 2
    S--u--u--u--u--|--u--S--u--u--u---|--u--u--S--u
    head:  S       |  u  S            |  u  u  S
    thin:   few u  |       few u      |          u
    end:   ranges  |  ranges          |  ranges

A snapshot carries the whole state, so ranges at the end of a chunk rest on the chunk alone; only those that are there
since its first snapshot may have begun before (share-group-state-log §8-9).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from state_model.columnar import replay, schemas
from state_model.columnar.codes import ints, kinds_of
from state_model.columnar.kernels import kernel
from state_model.columnar.keys import (
    SHARE_PARTITION_KEY,
    SHARE_PARTITION_ORDER,
    Ints,
    number_keys,
    only_keys_of,
    without_keys_of,
)
from state_model.columnar.soft_state import SNAPSHOT, TOMBSTONE, UPDATE
from state_model.columnar.values import Loss, has_unknown_state, is_unknown_state, losses_until

Flags = npt.NDArray[np.bool_]
WEIGHT = "updates_represented"
"""Column of thinned records: number of updates that a record replaces, itself included."""
NO_BOUNDARY = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkSummary:
    """A chunk of records, reduced: its head, its thinned records (with WEIGHT), and the states that its ends rest on.

    `ends`: SHARE_PARTITION_STATE of the live share partitions with a snapshot in the chunk; of it the ranges hold.
    """

    head: pa.Table
    thin: pa.Table
    ends: pa.Table


class ChunkReducer:
    """Reduces the records of one chunk, which come in log order; memory depends on its share partitions' states."""

    def __init__(self) -> None:
        self._begun = schemas.SHARE_PARTITION_STATE.empty_table().select(SHARE_PARTITION_KEY)
        self.ends = schemas.SHARE_PARTITION_STATE.empty_table()
        """As in ChunkSummary, after the records so far."""

    def take(self, records: pa.Table) -> tuple[pa.Table, pa.Table]:
        """The head and the thinned records (with WEIGHT) among the next `records` (schemas.REPLAYED)."""
        (begun, number), keys = number_keys(self._begun, records)
        has_begun = np.zeros(keys.num_rows, np.bool_)
        has_begun[begun] = True
        offsets = records.column("log_offset").to_numpy()
        is_boundary = np.isin(kinds_of(records), (SNAPSHOT, TOMBSTONE))
        first = np.full(keys.num_rows, NO_BOUNDARY, np.int64)
        np.minimum.at(first, number[is_boundary], offsets[is_boundary])
        first[has_begun] = -1
        is_behind = offsets > first[number]
        self.ends = replay.replay_states(_rows(records, offsets >= first[number]), seed=self.ends)
        new = keys.filter(pa.array(~has_begun & (first < NO_BOUNDARY))).cast(self._begun.schema)
        self._begun = pa.concat_tables([self._begun, new])
        return _rows(records, ~is_behind), thinned(_rows(records, is_behind))


def summary_of(tables: Iterable[pa.Table]) -> ChunkSummary:
    """The summary of a chunk whose records (schemas.REPLAYED, at least one table) come in log order."""
    reducer = ChunkReducer()
    parts = [reducer.take(records) for records in tables]
    head, thin = (pa.concat_tables(part) for part in zip(*parts, strict=True))
    return ChunkSummary(head=head, thin=thin, ends=reducer.ends)


class BoundaryStates:
    """The state between chunks, folded over their summaries in log order. `state`: after the chunks so far."""

    def __init__(self, seed: pa.Table, losses: Sequence[Loss], *, update_limit: int = replay.UPDATE_LIMIT) -> None:
        self.state = seed
        self._losses = losses
        self._update_limit = update_limit

    def advance(self, chunk: ChunkSummary) -> pa.Table:
        """Folds the next chunk; returns the states before it of the share partitions with records in it."""
        before = only_keys_of(self.state, chunk.head)
        losses = losses_until(self._losses, chunk.head, chunk.thin)
        after_head = replay.replay_states(chunk.head, seed=self.state, losses=losses, update_limit=self._update_limit)
        counts = _update_counts(after_head, chunk.thin, self._update_limit)
        thin = chunk.thin.select(schemas.REPLAYED.names)
        scalars = replay.replay_states(
            thin, seed=after_head, losses=losses, update_limit=self._update_limit, with_ranges=False
        )
        scalars = _with_counts(scalars, *counts)
        ranges = pa.concat_tables([without_keys_of(after_head, chunk.ends), _begun_ranges(chunk.ends, after_head)])
        self.state = _with_ranges(scalars, ranges)
        return before

    def settled(self, log_start_offset: int) -> pa.Table:
        """The state at the end of the log: every loss is known, and where the log starts."""
        return settled(self.state, self._losses, log_start_offset)


def settled(state: pa.Table, losses: Sequence[Loss], log_start_offset: int) -> pa.Table:
    """`state` at the end of its log: every loss counts, and the log starts at `log_start_offset`."""
    none = schemas.SHARE_RECORD.empty_table()
    return replay.replay_states(none, seed=state, losses=losses, log_start_offset=log_start_offset)


def _rows(records: pa.Table, is_chosen: Flags) -> pa.Table:
    """The chosen rows; without a copy when these are all."""
    return records if is_chosen.all() else records.filter(pa.array(is_chosen))


def thinned(records: pa.Table) -> pa.Table:
    """The records that the scalars after `records` depend on, with WEIGHT, in log order.

    All snapshots, tombstones and records of unknown type; of the updates between two of them the first, the last, the
    last with a leader epoch, the last with a start offset, one with the largest leader epoch, the first uncommitted one
    and the first with an unknown delivery state. At most one state batch of each is left, which says that there were
    some: the first unknown one, else the first.
    """
    (number,), _ = number_keys(records)
    order = np.argsort(number, kind="stable")
    is_update = (kinds_of(records) == UPDATE)[order]
    unknown = has_unknown_state(records.column("state_batches").combine_chunks())[order]
    key = number[order]
    span = np.cumsum(~is_update | (np.diff(key, prepend=-1) != 0))
    leader, start = (ints(records, name)[order] for name in ("leader_epoch", "start_offset"))
    uncommitted = records.column("uncommitted").to_numpy().astype(np.bool_)[order]
    is_kept = ~is_update
    is_kept[_ends_of(span, np.flatnonzero(is_update), first=True)] = True
    is_kept[_ends_of(span, np.arange(len(span)), first=False)] = True
    is_kept[_ends_of(span, np.flatnonzero(is_update & (leader != -1)), first=False)] = True
    is_kept[_ends_of(span, np.flatnonzero(is_update & (start != -1)), first=False)] = True
    is_kept[_ends_of(span, np.flatnonzero(is_update & uncommitted), first=True)] = True
    is_kept[_ends_of(span, np.flatnonzero(is_update & unknown), first=True)] = True
    updates = np.flatnonzero(is_update)
    by_leader = updates[np.lexsort((leader[updates], span[updates]))]
    is_kept[_ends_of(span, by_leader, first=False)] = True
    chosen = np.flatnonzero(is_kept)
    weights = np.diff(np.cumsum(is_update)[chosen], prepend=0)
    log_order = np.argsort(order[chosen], kind="stable")
    rows = records.take(pa.array(order[chosen][log_order]))
    index = rows.schema.get_field_index("state_batches")
    rows = rows.set_column(index, rows.schema.field(index), _shortened(rows.column(index)))
    return rows.append_column(WEIGHT, pa.array(weights[log_order], pa.int64()))


def _shortened(state_batches: pa.ChunkedArray) -> pa.ListArray:
    """Lists cut to one batch: the first one with an unknown delivery state, else the first."""
    lists = state_batches.combine_chunks()
    if not has_unknown_state(lists).any():
        return pc.list_slice(lists, 0, 1).cast(lists.type)
    flat, owner = pc.list_flatten(lists), pc.list_parent_indices(lists).to_numpy()
    is_known = ~is_unknown_state(flat.field("delivery_state").to_numpy())
    by_list = np.lexsort((is_known, owner))
    chosen = by_list[np.diff(owner, prepend=-1) != 0]
    ends = np.cumsum(np.isin(np.arange(len(lists)), owner), dtype=np.int32)
    at = pa.array(np.concatenate([np.zeros(1, np.int32), ends]))
    return pa.ListArray.from_arrays(at, flat.take(pa.array(chosen)), type=lists.type, mask=pc.is_null(lists))


def _ends_of(span: Ints, rows: Ints, *, first: bool) -> Ints:
    """The first or the last of `rows` in each span; `rows` come by span."""
    spans = span[rows]
    marks = np.ones(len(rows), np.bool_)
    if first:
        marks[1:] = spans[1:] != spans[:-1]
    else:
        marks[:-1] = spans[1:] != spans[:-1]
    return rows[marks]


@kernel
def count_updates(kinds: np.ndarray, keys: np.ndarray, weights: np.ndarray, limit: int, counts: np.ndarray) -> None:
    """The coordinator's update counters after thinned records (fold.fold_scalars has the rule); changes `counts`."""
    # Records come in log order. All snapshots and tombstones are among them, so between two of these only the sum of
    # the weights counts, not which updates were kept.
    for row in range(len(kinds)):
        key = keys[row]
        if kinds[row] == UPDATE:
            counts[key] += weights[row]
        elif kinds[row] == TOMBSTONE or (kinds[row] == SNAPSHOT and counts[key] >= limit):
            counts[key] = 0


def _update_counts(state: pa.Table, thin: pa.Table, limit: int) -> tuple[pa.Table, Ints]:
    """Share partitions of `thin`, and their update counters after it."""
    (of_state, of_thin), keys = number_keys(state, thin)
    counts = np.zeros(keys.num_rows, np.int64)
    counts[of_state] = state.column("update_count_from_log").to_numpy()
    count_updates(kinds_of(thin), of_thin, thin.column(WEIGHT).to_numpy(), limit, counts)
    touched = np.unique(of_thin)
    return keys.take(pa.array(touched)), counts[touched]


def _with_counts(scalars: pa.Table, keys: pa.Table, counts: Ints) -> pa.Table:
    """`scalars` with other update counters for the share partitions `keys`."""
    (of_scalars, of_keys), names = number_keys(scalars, keys)
    index = scalars.schema.get_field_index("update_count_from_log")
    update_counts = np.zeros(names.num_rows, np.int64)
    update_counts[of_scalars] = scalars.column(index).to_numpy()
    update_counts[of_keys] = counts
    return scalars.set_column(index, scalars.schema.field(index), pa.array(update_counts[of_scalars], pa.int32()))


def _begun_ranges(ends: pa.Table, after_head: pa.Table) -> pa.Table:
    """`ends` with the true beginnings of the ranges that were there after the head already."""
    begun = replay.open_ranges(after_head)
    batches = ends.column("state_batches").combine_chunks()
    owner = pc.list_parent_indices(batches).to_numpy()
    flat = pc.list_flatten(batches)
    (of_ends, of_head, of_begun), names = number_keys(ends, after_head, begun)
    head_at = np.full(names.num_rows, -1, np.int64)
    head_at[of_head] = after_head.column("log_offset").to_numpy()
    columns = {name: flat.field(name) for name in schemas.DATED_BATCH.names}
    begin_at = columns["valid_from_log_offset"].to_numpy()
    earlier = np.flatnonzero(begin_at == head_at[of_ends[owner]])
    if len(earlier):
        begun_rows = _matching(
            of_begun, begun.column("first_offset").to_numpy(),
            of_ends[owner[earlier]], columns["first_offset"].to_numpy()[earlier],
        )  # fmt: skip
        for name in ("valid_from_log_offset", "valid_from_ms"):
            values = columns[name].to_numpy().copy()
            values[earlier] = begun.column(name).to_numpy()[begun_rows]
            columns[name] = pa.array(values)
    flat = pa.StructArray.from_arrays(list(columns.values()), fields=list(schemas.DATED_BATCH))
    lengths = pc.list_value_length(batches).to_numpy()
    at = pa.array(np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]).astype(np.int32))
    column = pa.ListArray.from_arrays(at, flat, type=batches.type)
    index = ends.schema.get_field_index("state_batches")
    return ends.set_column(index, ends.schema.field(index), column)


def _matching(keys: Ints, firsts: Ints, keys_sought: Ints, firsts_sought: Ints) -> Ints:
    """The row of each sought (key, first offset) among `keys` and `firsts`, whose pairs are distinct."""
    pairs = np.stack([np.concatenate([keys, keys_sought]), np.concatenate([firsts, firsts_sought])])
    place = np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1)
    row_at = np.full(int(place.max()) + 1, -1, np.int64)
    row_at[place[: len(keys)]] = np.arange(len(keys))
    rows: Ints = row_at[place[len(keys) :]]
    if (rows < 0).any():
        raise ValueError("a range since a chunk's first snapshot is not in the state after that snapshot")
    return rows


def _with_ranges(scalars: pa.Table, ranges: pa.Table) -> pa.Table:
    """Rows of `scalars` with the state_batches of the same share partitions in `ranges`."""
    scalars = scalars.sort_by(SHARE_PARTITION_ORDER)
    ranges = only_keys_of(ranges, scalars).sort_by(SHARE_PARTITION_ORDER)
    if not scalars.select(SHARE_PARTITION_KEY).equals(ranges.select(SHARE_PARTITION_KEY)):
        raise ValueError("summaries of one chunk contradict each other about the live share partitions")
    index = scalars.schema.get_field_index("state_batches")
    return scalars.set_column(index, scalars.schema.field(index), ranges.column("state_batches"))
