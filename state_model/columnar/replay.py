"""Replays decoded records of state partitions (Arrow): states, scalar history, delivery history.

The result is the same from an earlier state, in chunks that are replayed apart (boundaries.py) or record by record: the
merge of an offset does not depend on order (share-group-state-log §8-9), and a snapshot has all state.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from state_model.columnar import fold, schemas, soft_state
from state_model.columnar.codes import COMPLETENESS_NAMES, END_REASONS, REASON_NAMES, codes, ints, kinds_of
from state_model.columnar.keys import PLACE_KEY, SHARE_PARTITION_KEY, Ints, number_places, place_of_keys
from state_model.columnar.ordering import by_column, order_by
from state_model.columnar.ranges import FIRST, FROM_AT, FROM_TIME, LAST, NONE, PRIORITY, priority
from state_model.columnar.values import Loss, encoded_names, encoded_state_names, has_unknown_state, state_names

UPDATE_LIMIT = 500
VALUE_COLUMNS = (
    "snapshot_epoch",
    "state_epoch",
    "leader_epoch",
    "start_offset",
    "delivery_complete_count",
    "create_timestamp_ms",
    "write_timestamp_ms",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The result of a replay: SHARE_PARTITION_HISTORY, closed DELIVERY_HISTORY rows and SHARE_PARTITION_STATE."""

    history: pa.Table
    closed: pa.Table
    state: pa.Table


@dataclass(slots=True)
class _Memory:
    """The soft state between folds: places (PLACE_KEY), scalar matrix and range pool."""

    keys: pa.Table
    scalars: Ints
    pool: Ints
    used: int


def replay_records(
    records: pa.Table,
    *,
    seed: pa.Table | None = None,
    losses: Sequence[Loss] = (),
    update_limit: int = UPDATE_LIMIT,
    log_start_offset: int | Mapping[int, int] = 0,
    by_key: bool = False,
    encoded: bool = False,
) -> Replayed:
    """Folds `records` (SHARE_RECORD rows, ascending log_offset in each state partition) onto `seed`.

    All are of one incarnation of the state topic; with losses, of one state partition. `seed`: SHARE_PARTITION_STATE
    rows of these state partitions; None is the empty state. `losses`: the offset ranges that the evidence lacks.
    `log_start_offset`: one, or by state partition. The returned state has all live share partitions, those of the seed
    too, sorted by PLACE_KEY. History comes in the order of the records and closed ranges in the
    order of their end; with `by_key` both come by (group_id, topic_id, partition), then by state partition and log
    offset, or by first offset and beginning. With `encoded` their text is dictionary-encoded. Of
    `records` the columns of schemas.REPLAYED are needed; their text may be dictionary-encoded. A record of a type that
    this version does not know changes the completeness alone; of a share partition that is not there it has no row in
    the history.
    """
    seed = schemas.SHARE_PARTITION_STATE.empty_table() if seed is None else seed
    memory, key_of_record = _memory_of(records, seed)
    after, closed = _fold(memory, records, key_of_record, losses, update_limit)
    topic_id = _log_topic_id(records, seed)
    if by_key and records.num_rows:
        place = place_of_keys(memory.keys)
        order = order_by(place[key_of_record])
        records, after = records.take(pa.array(order)), after.take(order, axis=0)
        # Ranges of one share partition with the same first offset follow each other: by end is by beginning.
        order = order_by(place[closed[:, fold.C_KEY]], closed[:, fold.C_FIRST])
    else:
        order = np.arange(len(closed))
    return Replayed(
        history=_history(records, after, encoded=encoded),
        closed=_closed(memory, by_column(closed, order), topic_id, encoded=encoded),
        state=_state(memory, topic_id, log_start_offset),
    )


def replay_states(
    records: pa.Table,
    *,
    seed: pa.Table,
    losses: Sequence[Loss] = (),
    update_limit: int = UPDATE_LIMIT,
    log_start_offset: int = 0,
    with_ranges: bool = True,
) -> pa.Table:
    """The state of `replay_records` alone; without ranges its `state_batches` are empty."""
    seed = seed if with_ranges else without_ranges(seed)
    memory, key_of_record = _memory_of(records, seed)
    _fold(memory, records, key_of_record, losses, update_limit, with_ranges=with_ranges, with_history=False)
    return _state(memory, _log_topic_id(records, seed), log_start_offset)


def without_ranges(state: pa.Table) -> pa.Table:
    """`state` (SHARE_PARTITION_STATE) with empty state_batches."""
    index = state.schema.get_field_index("state_batches")
    empty = pa.array([[]] * state.num_rows, pa.list_(schemas.DATED_BATCH))
    return state.set_column(index, schemas.SHARE_PARTITION_STATE.field("state_batches"), empty)


def open_ranges(state: pa.Table) -> pa.Table:
    """The open rows of the delivery history (DELIVERY_HISTORY): the ranges of `state` (SHARE_PARTITION_STATE)."""
    batches = state.column("state_batches").combine_chunks()
    parent = pc.list_parent_indices(batches)
    flat = pc.list_flatten(batches)
    # A take of all columns would copy the batches of a state for each of them.
    keys = state.select(["log_topic_id", "state_partition", *SHARE_PARTITION_KEY, "life_log_offset"]).take(parent)
    nulls = pa.nulls(len(flat), pa.int64())
    columns = {
        **{name: keys.column(name) for name in keys.column_names},
        **{name: flat.field(name) for name in ("first_offset", "last_offset", "delivery_state")},
        "delivery_state_name": state_names(flat.field("delivery_state")),
        **{name: flat.field(name) for name in ("delivery_count", "valid_from_log_offset", "valid_from_ms")},
        "valid_to_log_offset": nulls,
        "valid_to_ms": nulls,
        "is_open": pa.repeat(True, len(flat)),
        "end_reason": pa.nulls(len(flat), pa.string()),
    }
    return pa.table(columns, schema=schemas.DELIVERY_HISTORY)


def _memory_of(records: pa.Table, seed: pa.Table) -> tuple[_Memory, Ints]:
    """The memory with the seed's state, and the number of each record's place in it."""
    (seeded, recorded), keys = number_places(seed, records)
    scalars = np.zeros((keys.num_rows, soft_state.SCALAR_COUNT), np.int64)
    pool = np.zeros((16, 5), np.int64)
    memory = _Memory(keys=keys, scalars=scalars, pool=pool, used=0)
    _load(memory, seed, seeded)
    return memory, recorded


def _load(memory: _Memory, seed: pa.Table, key: Ints) -> None:
    """Writes seed rows (SHARE_PARTITION_STATE) into the memory; `key` numbers the row's place."""
    if seed.num_rows == 0:
        return
    scalars = memory.scalars
    scalars[key, soft_state.PRESENT] = 1
    for index, name in enumerate(VALUE_COLUMNS):
        scalars[key, soft_state.SNAPSHOT_EPOCH + index] = ints(seed, name)
    sources = (
        (soft_state.LEADER_MAX, "leader_epoch_max_from_log"),
        (soft_state.STATE_MAX, "state_epoch_max_from_log"),
        (soft_state.UPDATES, "update_count_from_log"),
        (soft_state.SNAPSHOT_AT, "snapshot_log_offset"),
        (soft_state.LIFE, "life_log_offset"),
        (soft_state.LAST_AT, "log_offset"),
        (soft_state.LAST_TIME, "log_time_ms"),
    )
    for index, name in sources:
        scalars[key, index] = ints(seed, name)
    scalars[key, soft_state.COMPLETENESS] = codes(seed.column("completeness"), COMPLETENESS_NAMES)
    scalars[key, soft_state.REASON] = codes(seed.column("completeness_reason"), REASON_NAMES)
    batches = seed.column("state_batches").combine_chunks()
    flat = pc.list_flatten(batches)
    count = pc.list_value_length(batches).to_numpy().astype(np.int64)
    at = np.concatenate([[0], np.cumsum(count)])[:-1]
    memory.used = len(flat)
    memory.pool = np.zeros((max(16, len(flat)), 5), np.int64)
    memory.pool[: len(flat)] = _ranges(flat)
    memory.pool[: len(flat), FROM_AT] = flat.field("valid_from_log_offset").to_numpy()
    memory.pool[: len(flat), FROM_TIME] = flat.field("valid_from_ms").to_numpy()
    scalars[key, soft_state.RANGE_AT] = at
    scalars[key, soft_state.RANGE_BASE] = at
    scalars[key, soft_state.RANGE_COUNT] = count
    scalars[key, soft_state.RANGE_ROOM] = count


def _fold(
    memory: _Memory,
    records: pa.Table,
    keys: Ints,
    losses: Sequence[Loss],
    update_limit: int,
    *,
    with_ranges: bool = True,
    with_history: bool = True,
) -> tuple[Ints, Ints]:
    """Runs the kernel; the scalar state after each record and the closed ranges, as rows. Changes `memory`."""
    batches = records.column("state_batches").combine_chunks()
    lengths = pc.fill_null(pc.list_value_length(batches), 0).to_numpy().astype(np.int64)
    flat = pc.list_flatten(batches) if with_ranges else pa.array([], schemas.STATE_BATCH)
    counts = lengths if with_ranges else np.zeros_like(lengths)
    values = np.empty((records.num_rows, len(VALUE_COLUMNS)), np.int64)
    for index, name in enumerate(VALUE_COLUMNS):
        values[:, index] = ints(records, name)
    kinds = kinds_of(records)
    arrays = fold.Records(
        kinds=kinds,
        keys=keys,
        ats=ints(records, "log_offset"),
        times=ints(records, "log_time_ms"),
        values=values,
        uncommitted=records.column("uncommitted").to_numpy().astype(np.bool_),
        unknown=has_unknown_state(batches) | (kinds == soft_state.OTHER),
        no_batches=lengths == 0,
        batch_at=np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]),
        batches=_ranges(flat),
    )
    loss_rows = _loss_rows(memory.keys, losses)
    after, closed, count, memory.pool, memory.used = fold.fold(
        arrays, loss_rows, update_limit, memory.scalars, memory.pool, memory.used, with_history
    )
    return after, closed[:count]


def _ranges(flat: pa.StructArray) -> Ints:
    """State batches as rows of the kernel: first and last offset and (count, state) as one integer of that order."""
    rows = np.zeros((len(flat), 5), np.int64)
    rows[:, FIRST] = flat.field("first_offset").to_numpy()
    rows[:, LAST] = flat.field("last_offset").to_numpy()
    count = flat.field("delivery_count").to_numpy().astype(np.int64)
    rows[:, PRIORITY] = priority(count, flat.field("delivery_state").to_numpy().astype(np.int64))
    return rows


def _loss_rows(keys: pa.Table, losses: Sequence[Loss]) -> Ints:
    """Losses as rows of (first, last, reason code, key or -1), ascending; unknown share partitions are left out."""
    rows = []
    number: dict[tuple[object, ...], int] = {}
    if any(loss.group_id is not None for loss in losses):
        columns = [keys.column(name).to_pylist() for name in SHARE_PARTITION_KEY]
        number = {key: index for index, key in enumerate(zip(*columns, strict=True))}
    for loss in losses:
        key = NONE
        if loss.group_id is not None:
            key_number = number.get((loss.group_id, loss.topic_id, loss.partition))
            if key_number is None:
                continue
            key = key_number
        reason = REASON_NAMES.index(loss.reason) if loss.reason in REASON_NAMES else REASON_NAMES.index("quarantined")
        rows.append((loss.first_offset, loss.last_offset, reason, key))
    return np.array(sorted(rows), np.int64).reshape(-1, 4)


def _history(records: pa.Table, after: Ints, *, encoded: bool) -> pa.Table:
    """SHARE_PARTITION_HISTORY: the scalars after each record; null after a tombstone."""
    deleted = after[:, soft_state.PRESENT] == 0
    if deleted.any():
        is_history = ~deleted | (kinds_of(records) != soft_state.OTHER)
        records, after, deleted = records.filter(pa.array(is_history)), after[is_history], deleted[is_history]
    columns = {
        name: records.column(name)
        for name in ("log_topic_id", "state_partition", "log_offset", "timestamp_ms", "log_time_ms", "record_type")
    }
    columns |= {name: records.column(name) for name in SHARE_PARTITION_KEY}
    columns |= _scalar_columns(after, deleted)
    columns["state_batch_count"] = pa.array(after[:, soft_state.RANGE_COUNT])
    columns |= _completeness_columns(after)
    return _table(columns, schemas.SHARE_PARTITION_HISTORY, encoded=encoded)


def _scalar_columns(rows: Ints, deleted: npt.NDArray[np.bool_]) -> dict[str, pa.Array]:
    """SCALARS and FROM_LOG columns of scalar rows; null where the share partition is deleted."""
    columns = {
        name: pa.array(rows[:, soft_state.SNAPSHOT_EPOCH + index], mask=deleted)
        for index, name in enumerate(VALUE_COLUMNS)
    }
    columns["leader_epoch_max_from_log"] = pa.array(rows[:, soft_state.LEADER_MAX], mask=deleted)
    provisional = rows[:, soft_state.SNAPSHOT_AT] == NONE
    state_max = rows[:, soft_state.STATE_MAX]
    columns["state_epoch_max_from_log"] = pa.array(state_max, mask=deleted | (provisional & (state_max == NONE)))
    columns["update_count_from_log"] = pa.array(rows[:, soft_state.UPDATES], mask=deleted)
    columns["snapshot_log_offset"] = pa.array(rows[:, soft_state.SNAPSHOT_AT], mask=deleted | provisional)
    columns["life_log_offset"] = pa.array(rows[:, soft_state.LIFE], mask=rows[:, soft_state.LIFE] == NONE)
    return columns


def _completeness_columns(rows: Ints) -> dict[str, pa.Array]:
    return {
        "completeness": encoded_names(rows[:, soft_state.COMPLETENESS], COMPLETENESS_NAMES),
        "completeness_reason": encoded_names(rows[:, soft_state.REASON], REASON_NAMES),
    }


def _closed(memory: _Memory, closed: Ints, topic_id: str, *, encoded: bool) -> pa.Table:
    """DELIVERY_HISTORY rows of ranges that ended; `closed`: by column (C_KEY to C_LIFE)."""
    rank = closed[fold.C_PRIORITY]
    state = _state_of(rank)
    key = closed[fold.C_KEY]
    count = len(key)
    columns = {
        "log_topic_id": pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), pa.array([topic_id])),
        "state_partition": memory.keys.column("state_partition").to_numpy()[key],
        **{name: _text_of_keys(memory.keys, name, key) for name in SHARE_PARTITION_KEY[:2]},
        "partition": memory.keys.column("partition").to_numpy()[key],
        "life_log_offset": closed[fold.C_LIFE],
        "first_offset": closed[fold.C_FIRST],
        "last_offset": closed[fold.C_LAST],
        "delivery_state": state,
        "delivery_state_name": encoded_state_names(state),
        "delivery_count": _count_of(rank),
        "valid_from_log_offset": closed[fold.C_FROM_AT],
        "valid_from_ms": closed[fold.C_FROM_TIME],
        "valid_to_log_offset": closed[fold.C_TO_AT],
        "valid_to_ms": closed[fold.C_TO_TIME],
        "is_open": pa.repeat(False, count),
        "end_reason": encoded_names(closed[fold.C_REASON], END_REASONS),
    }
    return _table(columns, schemas.DELIVERY_HISTORY, encoded=encoded)


def _text_of_keys(keys: pa.Table, name: str, key: Ints) -> pa.DictionaryArray:
    """A text column of the share partitions with the numbers `key`, dictionary-encoded."""
    texts = keys.column(name).combine_chunks().dictionary_encode()
    return pa.DictionaryArray.from_arrays(pa.array(texts.indices.to_numpy()[key]), texts.dictionary)


def _state(memory: _Memory, topic_id: str, log_start_offset: int | Mapping[int, int]) -> pa.Table:
    """SHARE_PARTITION_STATE of the live share partitions, sorted by key."""
    live = np.flatnonzero(memory.scalars[:, soft_state.PRESENT] == 1)
    rows = memory.scalars[live]
    keys = memory.keys.take(pa.array(live))
    columns = {name: keys.column(name) for name in PLACE_KEY}
    columns["log_topic_id"] = pa.repeat(topic_id, len(live))
    columns["log_offset"] = pa.array(rows[:, soft_state.LAST_AT])
    columns["log_time_ms"] = pa.array(rows[:, soft_state.LAST_TIME])
    columns |= _scalar_columns(rows, np.zeros(len(live), np.bool_))
    columns["state_batches"] = _dated_batches(memory, rows)
    snapshot_at = rows[:, soft_state.SNAPSHOT_AT]
    if isinstance(log_start_offset, int):
        starts: int | Ints = log_start_offset
    else:
        starts = np.array([log_start_offset[number] for number in keys.column("state_partition").to_pylist()], np.int64)
    columns["below_log_start"] = pa.array((snapshot_at != NONE) & (snapshot_at < starts))
    columns |= _completeness_columns(rows)
    table = _table(columns, schemas.SHARE_PARTITION_STATE)
    return table.sort_by([(name, "ascending") for name in PLACE_KEY])


def _dated_batches(memory: _Memory, rows: Ints) -> pa.Array:
    """The ranges of scalar rows as a list column."""
    counts = rows[:, soft_state.RANGE_COUNT]
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    index = np.repeat(rows[:, soft_state.RANGE_AT] - (ends - counts), counts) + np.arange(total)
    ranges = memory.pool[index] if total else np.zeros((0, 5), np.int64)
    rank = ranges[:, PRIORITY]
    columns = (
        ranges[:, FIRST],
        ranges[:, LAST],
        _state_of(rank),
        _count_of(rank),
        ranges[:, FROM_AT],
        ranges[:, FROM_TIME],
    )
    arrays = [
        pa.array(np.ascontiguousarray(column)).cast(field.type)
        for column, field in zip(columns, schemas.DATED_BATCH, strict=True)
    ]
    flat = pa.StructArray.from_arrays(arrays, fields=list(schemas.DATED_BATCH))
    offsets = np.concatenate([np.zeros(1, np.int64), ends]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), flat, type=pa.list_(schemas.DATED_BATCH))


def _state_of(rank: Ints) -> npt.NDArray[np.int8]:
    """The delivery state inside a priority: its lowest byte, signed."""
    return rank.astype(np.int8)


def _count_of(rank: Ints) -> npt.NDArray[np.int16]:
    """The delivery count inside a priority."""
    return ((rank + 128) >> 8).astype(np.int16)


def _log_topic_id(records: pa.Table, seed: pa.Table) -> str:
    """The state topic's id of the rows; "" without rows."""
    return next((str(table.column("log_topic_id")[0]) for table in (records, seed) if table.num_rows), "")


def _table(columns: dict[str, Any], schema: pa.Schema, *, encoded: bool = False) -> pa.Table:
    """A table of `schema`; with `encoded`, text that is dictionary-encoded stays so."""
    arrays = []
    fields = []
    for field in schema:
        value = columns[field.name]
        array = pa.array(np.ascontiguousarray(value)) if isinstance(value, np.ndarray) else value
        if encoded and pa.types.is_dictionary(array.type):
            field = field.with_type(array.type)
        arrays.append(array.cast(field.type))
        fields.append(field)
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))
