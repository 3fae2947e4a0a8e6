"""An independent judge of logs: a record is legal if some request makes the coordinator append exactly it.

It asks the write side of the reference model for the record, and says nothing by itself. What leaders never send
(share-partition §1, §5 and §8) is illegal too, whatever the coordinator makes of it.
"""

import functools
from collections.abc import Iterable, Iterator

from state_model import coordinator
from state_model.coordinator import WriteRequest
from state_model.errors import DecodeError
from state_model.key_map import KeyMap
from state_model.machine import PartitionState, SharePartitionState, apply
from state_model.rule_sets import KAFKA_4_4
from state_model.share_records import (
    UNKNOWN_COUNT,
    SharePartitionKey,
    ShareRecord,
    ShareSnapshot,
    ShareUpdate,
    StateBatch,
    Tombstone,
)
from tests.audit.histories import LIMIT, Entry, decode_once

PERSISTED = (0, 2, 3, 4)
LARGEST_LIMIT = 500
"""Updates after which every configuration asks for a snapshot."""


def illegal_offsets(entries: Iterable[Entry], *, limit: int | None = LIMIT) -> list[int]:
    """Log offsets of the records that no coordinator appends after those before them.

    `limit`: updates after which a write becomes a snapshot; None: unknown, so that it may at any time.
    """
    return list(_illegal(entries, limit))


def _illegal(entries: Iterable[Entry], limit: int | None) -> Iterator[int]:
    states: dict[SharePartitionKey, SharePartitionState | None] = {}
    expected = 0
    for entry in entries:
        is_next = entry.log_offset == expected
        expected = entry.log_offset + 1
        try:
            record = decode_once(entry.key, entry.value)
        except DecodeError:
            yield entry.log_offset
            continue
        if not isinstance(record, ShareRecord):  # it changes nothing that the write side looks at
            yield entry.log_offset
            continue
        is_appended, states[record.key] = _after(states.get(record.key), record, limit)
        if not is_next or record.trailing_bytes or not is_appended:
            yield entry.log_offset


@functools.lru_cache(maxsize=1 << 14)
def _after(
    current: SharePartitionState | None, record: ShareRecord, limit: int | None
) -> tuple[bool, SharePartitionState | None]:
    """Whether the coordinator appends the record to the state of its share partition, and the state behind it.

    The offsets and times of the log are no part of the states: damaged logs have most of their steps in common.
    """
    share_partitions = KeyMap() if current is None else KeyMap([(record.key, current)])
    state = PartitionState(share_partitions, LIMIT if limit is None else limit, KAFKA_4_4)
    is_appended = any(_is_appended(variant, record) for variant in _variants(state, record, limit is not None))
    return is_appended, apply(state, 0, 0, record).share_partitions.get(record.key)


def _variants(state: PartitionState, record: ShareRecord, knows_limit: bool) -> Iterator[PartitionState]:
    """The state; without the limit, with a counter below and at it."""
    current = state.share_partitions.get(record.key)
    if knows_limit or current is None:
        yield state
        return
    for count in (0, LIMIT) if current.update_count < LARGEST_LIMIT else (LIMIT,):
        variant = state.share_partitions.set(record.key, current._replace(update_count=count))
        yield state._replace(share_partitions=variant)


def _is_appended(state: PartitionState, record: ShareRecord) -> bool:
    current = state.share_partitions.get(record.key)
    value = record.value
    if isinstance(value, Tombstone):
        return current is not None
    if not isinstance(value, ShareSnapshot | ShareUpdate) or not all(map(_is_sent, value.state_batches)):
        return False
    if value.delivery_complete_count < UNKNOWN_COUNT:
        return False
    return any(record in records for records in _answers(state, record, value, current))


def _answers(
    state: PartitionState,
    record: ShareRecord,
    value: ShareSnapshot | ShareUpdate,
    current: SharePartitionState | None,
) -> Iterator[tuple[ShareRecord, ...]]:
    """What the coordinator appends for each request that could have been meant."""
    now_ms = value.create_timestamp_ms if isinstance(value, ShareSnapshot) else 0
    if isinstance(value, ShareSnapshot):
        yield coordinator.initialize(
            state, record.key, state_epoch=value.state_epoch, start_offset=value.start_offset, now_ms=now_ms
        ).records
        if current is not None and value.write_timestamp_ms > current.write_timestamp_ms:
            # Alone, and as if written just now: the job looks at all share partitions at once.
            alone = current._replace(write_timestamp_ms=current.create_timestamp_ms)
            state_alone = state._replace(share_partitions=KeyMap([(record.key, alone)]))
            yield coordinator.snapshot_cold(state_alone, now_ms=value.write_timestamp_ms, interval_ms=1)
    if current is None:
        return
    yield coordinator.read(state, record.key, leader_epoch=value.leader_epoch, now_ms=now_ms).records
    request = WriteRequest(
        state_epoch=current.state_epoch_max or 0,
        leader_epoch=current.leader_epoch_max,
        start_offset=value.start_offset,
        state_batches=value.state_batches,
        delivery_complete_count=value.delivery_complete_count,
    )
    if value.start_offset >= 0:  # a leader knows its start offset
        yield coordinator.write(state, record.key, request, now_ms=now_ms).records


def _is_sent(batch: StateBatch) -> bool:
    """Whether a leader sends such a batch."""
    return (
        0 <= batch.first_offset <= batch.last_offset
        and batch.delivery_state in PERSISTED
        and 1 <= batch.delivery_count <= 25
    )
