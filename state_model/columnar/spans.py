"""Span-parallel replay: folds chunks of one state partition independently of each other and stitches the results.

A snapshot has the whole state of its share partition, so a chunk needs only the earlier records from each share
partition's last snapshot on. Two small results cross chunks: the scalars, from a pass without ranges
(`replay.replay_scalars`), and the beginnings of ranges in a chunk's seed, which `stitch` fills in.

    chunk 0        | chunk 1          | chunk 2
    S--u--u--u--u--|--u--S--u--u--u---|--u--u--S--u
                   |     ^            |
                   |     chunk 2 is seeded from here; its scalars come from the pass without ranges
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from state_model.columnar import replay, schemas
from state_model.columnar.keys import (
    SHARE_PARTITION_KEY,
    SHARE_PARTITION_ORDER,
    number_keys,
    only_keys_of,
    without_keys_of,
)
from state_model.columnar.replay import Replayed
from state_model.columnar.values import Loss


def chunk_seed(earlier: pa.Table, seed: pa.Table | None, scalars: pa.Table) -> pa.Table:
    """The state at the beginning of a chunk, with range beginnings unknown.

    `earlier`: SHARE_RECORD rows of the run before the chunk, at least from `span_begin` on; `seed`: the state before
    the run; `scalars`: the state at the chunk's beginning without ranges (`replay.replay_scalars`). Only share
    partitions named in `scalars` are returned.
    """
    (seeded, logged), names = number_keys(scalars, earlier)
    threshold = np.full(names.num_rows, np.iinfo(np.int64).max)
    threshold[seeded] = pc.fill_null(scalars.column("snapshot_log_offset"), -1).to_numpy()
    records = earlier.filter(pa.array(earlier.column("log_offset").to_numpy() >= threshold[logged]))
    base = None if seed is None else only_keys_of(seed, scalars)
    ranges = replay.replay_records(records, seed=base).state
    return _with_ranges(scalars, _unknown_begin(ranges))


def span_begin(scalars: pa.Table, run_begin: int) -> int:
    """The lowest log offset that `chunk_seed` needs for the share partitions of `scalars`."""
    offsets = pc.fill_null(scalars.column("snapshot_log_offset"), run_begin)
    lowest = pc.min(offsets).as_py()
    return run_begin if lowest is None else max(run_begin, lowest)


def stitch(seed: pa.Table | None, chunks: Sequence[Replayed]) -> tuple[list[pa.Table], pa.Table]:
    """The closed rows of each chunk and the last state, with the beginnings that the chunks did not know."""
    state = schemas.SHARE_PARTITION_STATE.empty_table() if seed is None else seed
    closed = []
    for chunk in chunks:
        begun = replay.open_ranges(state).select(
            [*SHARE_PARTITION_KEY, "first_offset", "valid_from_log_offset", "valid_from_ms"]
        )
        closed.append(_known_begin(chunk.closed, begun).select(schemas.DELIVERY_HISTORY.names))
        state = _succeed(state, chunk, begun)
    return closed, state.sort_by(SHARE_PARTITION_ORDER)


def replay_chunks(
    chunks: Sequence[pa.Table],
    *,
    seed: pa.Table | None = None,
    losses: Sequence[Loss] = (),
    update_limit: int = replay.UPDATE_LIMIT,
    log_start_offset: int = 0,
) -> Replayed:
    """The result of `replay.replay_records` for all chunks in order, each chunk folded independently."""
    replayed = []
    scalars = replay.without_ranges(seed) if seed is not None else schemas.SHARE_PARTITION_STATE.empty_table()
    for number, chunk in enumerate(chunks):
        own = losses_until(losses, chunk, last=number == len(chunks) - 1)
        if number == 0:
            begin = seed
        else:
            known = only_keys_of(scalars, chunk)
            begin = chunk_seed(pa.concat_tables(chunks[:number]), seed, known)
        replayed.append(
            replay.replay_records(
                chunk, seed=begin, losses=own, update_limit=update_limit, log_start_offset=log_start_offset
            )
        )
        scalars = replay.replay_scalars(chunk, seed=scalars, losses=own, update_limit=update_limit)
    closed, state = stitch(seed, replayed)
    final = replay.replay_records(
        schemas.SHARE_RECORD.empty_table(), seed=state, losses=losses, log_start_offset=log_start_offset
    )
    return Replayed(
        history=pa.concat_tables([chunk.history for chunk in replayed]),
        closed=pa.concat_tables(closed),
        state=final.state,
    )


def losses_until(losses: Sequence[Loss], chunk: pa.Table, *, last: bool) -> list[Loss]:
    """The losses that begin before the end of a chunk."""
    if last:
        return list(losses)
    if chunk.num_rows == 0:
        return []
    end = pc.max(chunk.column("log_offset")).as_py()
    return [loss for loss in losses if loss.first_offset < end]


def _unknown_begin(state: pa.Table) -> pa.Table:
    """`state` with the beginnings of all its ranges marked unknown."""
    batches = state.column("state_batches").combine_chunks()
    flat = pc.list_flatten(batches)
    unknown = pa.repeat(pa.scalar(replay.UNKNOWN_BEGIN, pa.int64()), len(flat))
    arrays = [*(flat.field(name) for name in schemas.STATE_BATCH.names), unknown, unknown]
    return _set_ranges(state, pc.list_value_length(batches), arrays)


def _set_ranges(state: pa.Table, lengths: pa.Array, arrays: Sequence[pa.Array]) -> pa.Table:
    """`state` with state_batches made of flat `arrays` in the order of DATED_BATCH."""
    flat = pa.StructArray.from_arrays(list(arrays), fields=list(schemas.DATED_BATCH))
    ends = np.cumsum(lengths.to_numpy()).astype(np.int32)
    offsets = pa.array(np.concatenate([np.zeros(1, np.int32), ends]))
    column = pa.ListArray.from_arrays(offsets, flat, type=pa.list_(schemas.DATED_BATCH))
    index = state.schema.get_field_index("state_batches")
    return state.set_column(index, schemas.SHARE_PARTITION_STATE.field("state_batches"), column)


def _with_ranges(scalars: pa.Table, ranges: pa.Table) -> pa.Table:
    """Rows of `scalars` with the state_batches of the same share partitions in `ranges`."""
    scalars = scalars.sort_by(SHARE_PARTITION_ORDER)
    ranges = ranges.sort_by(SHARE_PARTITION_ORDER)
    if not scalars.select(SHARE_PARTITION_KEY).equals(ranges.select(SHARE_PARTITION_KEY)):
        raise ValueError("a share partition of the chunk has no record from its snapshot on")
    index = scalars.schema.get_field_index("state_batches")
    field = schemas.SHARE_PARTITION_STATE.field("state_batches")
    return scalars.set_column(index, field, ranges.column("state_batches"))


def _known_begin(rows: pa.Table, begun: pa.Table) -> pa.Table:
    """`rows` (with key, first_offset, valid_from_*) in their order, unknown beginnings filled in from `begun`.

    The ranges of a share partition in `begun` are disjoint, so (share partition, first offset) identifies a range.
    """
    unknown = np.flatnonzero(rows.column("valid_from_log_offset").to_numpy() == replay.UNKNOWN_BEGIN)
    if not len(unknown):
        return rows
    (searched, known), _ = number_keys(rows.take(pa.array(unknown)), begun)
    first = np.concatenate([begun.column("first_offset").to_numpy(), rows.column("first_offset").to_numpy()[unknown]])
    place = np.unique(np.stack([np.concatenate([known, searched]), first]), axis=1, return_inverse=True)[1].reshape(-1)
    row_at = np.full(int(place.max()) + 1, -1)
    row_at[place[: len(known)]] = np.arange(len(known))
    begun_row = row_at[place[len(known) :]]
    if (begun_row < 0).any():
        raise ValueError("a range in the seed of a chunk is not in the state before it")
    for name in ("valid_from_log_offset", "valid_from_ms"):
        values = rows.column(name).to_numpy().copy()
        values[unknown] = begun.column(name).to_numpy()[begun_row]
        rows = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), pa.array(values))
    return rows


def _succeed(state: pa.Table, chunk: Replayed, begun: pa.Table) -> pa.Table:
    """The state after a chunk: its rows, and those of `state` whose share partitions have no record in it."""
    own = only_keys_of(chunk.state, chunk.history)
    batches = own.column("state_batches").combine_chunks()
    flat = pc.list_flatten(batches)
    keys = own.select(SHARE_PARTITION_KEY).take(pc.list_parent_indices(batches))
    columns = {name: keys.column(name) for name in SHARE_PARTITION_KEY} | {
        name: flat.field(name) for name in schemas.DATED_BATCH.names
    }
    ranges = _known_begin(pa.table(columns), begun)
    arrays = [ranges.column(name).combine_chunks() for name in schemas.DATED_BATCH.names]
    own = _set_ranges(own, pc.list_value_length(batches), arrays)
    return pa.concat_tables([without_keys_of(state, chunk.history), own])
