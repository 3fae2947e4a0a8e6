"""Records of `__share_group_state`: keys, snapshots, updates, tombstones (share-group-state-log §2-3).

Unknown content is decoded into values too: a record type beyond 0 and 1 (the broker skips it with a warning), a value
version beyond 0 (the broker fails to load the partition), tagged fields (kept and written back).
"""

import functools
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

from state_model import schema
from state_model.codec.primitives import UNKNOWN_TAGS, UnknownTag, write_uvarint
from state_model.errors import BufferUnderflowError, DecodeError, InvalidKeyError, InvalidLengthError, MissingValueError
from state_model.schema import Field, Struct

NOT_DETERMINED = -1
"""Start offset of a state whose `share.auto.offset.reset` is pending; in an update it means unchanged."""
UNKNOWN_COUNT = -1
"""Delivery complete count of a record without that field (KIP-1226)."""
VALUE_VERSION = 0
CACHED_KEYS = 8192
MAX_CACHED_KEY_BYTES = 256
"""Keys repeat, so short ones are cached; long group ids are not, so that they can't fill the memory."""


class RecordType(IntEnum):
    """The int16 that a key begins with."""

    SHARE_SNAPSHOT = 0
    SHARE_UPDATE = 1


class DeliveryState(IntEnum):
    """State of a batch's offsets (org.apache.kafka.server.share.fetch.RecordState). ACQUIRED is never persisted."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4


KEY = Struct(
    Field(name="group_id", kind=schema.CLASSIC_STRING),
    Field(name="topic_id", kind=schema.UUID),
    Field(name="partition", kind=schema.INT32),
    flexible=False,
)
STATE_BATCH = Struct(
    Field(name="first_offset", kind=schema.INT64),
    Field(name="last_offset", kind=schema.INT64),
    Field(name="delivery_state", kind=schema.INT8),
    Field(name="delivery_count", kind=schema.INT16),
)
DELIVERY_COMPLETE_COUNT = Field(name="delivery_complete_count", kind=schema.INT32, tag=0, default=UNKNOWN_COUNT)
SNAPSHOT_VALUE = Struct(
    Field(name="snapshot_epoch", kind=schema.INT32),
    Field(name="state_epoch", kind=schema.INT32),
    Field(name="leader_epoch", kind=schema.INT32),
    Field(name="start_offset", kind=schema.INT64),
    Field(name="create_timestamp_ms", kind=schema.INT64),
    Field(name="write_timestamp_ms", kind=schema.INT64),
    Field(name="state_batches", kind=schema.CompactArray(item=STATE_BATCH)),
    DELIVERY_COMPLETE_COUNT,
)
UPDATE_VALUE = Struct(
    Field(name="snapshot_epoch", kind=schema.INT32),
    Field(name="leader_epoch", kind=schema.INT32),
    Field(name="start_offset", kind=schema.INT64),
    Field(name="state_batches", kind=schema.CompactArray(item=STATE_BATCH)),
    DELIVERY_COMPLETE_COUNT,
)
# Fields that a running coordinator writes, packed in one call: version and integers of a value; integers of a batch and
# an empty list of tags; the tagged field with its tag and size.
_SNAPSHOT_HEAD = schema.IntegerRun(SNAPSHOT_VALUE, before="h")
_UPDATE_HEAD = schema.IntegerRun(UPDATE_VALUE, before="h")
_BATCH = schema.IntegerRun(STATE_BATCH, after="B")
_UPDATE = RecordType.SHARE_UPDATE
_SNAPSHOT_TYPE, _UPDATE_TYPE = (schema.INT16.write(record_type.value) for record_type in RecordType)
_NO_TAGS = b"\x00"
_COUNT_TAG = struct.Struct(">BBBi")


class SharePartitionKey(NamedTuple):
    """A share partition: `topic_id` (22 characters) and `partition` are those of the user's topic."""

    group_id: str
    topic_id: str
    partition: int

    def __str__(self) -> str:
        return f"{self.group_id}/{self.topic_id}/{self.partition}"


class StateBatch(NamedTuple):
    """Offsets from first to last, both inclusive, with their delivery state (any int8 as logged) and delivery count."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int
    unknown_tags: tuple[UnknownTag, ...] = ()


class ShareSnapshot(NamedTuple):
    """The whole state of a share partition (ShareSnapshotValue)."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    create_timestamp_ms: int
    write_timestamp_ms: int
    state_batches: tuple[StateBatch, ...]
    delivery_complete_count: int = UNKNOWN_COUNT
    unknown_tags: tuple[UnknownTag, ...] = ()


class ShareUpdate(NamedTuple):
    """A change (ShareUpdateValue): the delivery complete count is absolute, a start offset of -1 changes nothing."""

    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    state_batches: tuple[StateBatch, ...]
    delivery_complete_count: int = UNKNOWN_COUNT
    unknown_tags: tuple[UnknownTag, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tombstone:
    """The end of a share partition: a null value under the key of a snapshot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownVersionValue:
    """A value in a version that this code does not know; `data` is the bytes behind the version."""

    record_type: RecordType
    version: int
    data: bytes


ShareValue = ShareSnapshot | ShareUpdate | Tombstone | UnknownVersionValue


class ShareRecord(NamedTuple):
    """A record of a share partition; `trailing_bytes` counts the bytes behind the value, which the broker ignores."""

    key: SharePartitionKey
    value: ShareValue
    trailing_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownTypeRecord:
    """A record of a type that this code does not know; the broker skips it with a warning."""

    record_type: int
    key: bytes
    value: bytes | None


AnyRecord = ShareRecord | UnknownTypeRecord


def delivery_state_name(delivery_state: int) -> str:
    """AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVING or ARCHIVED; UNKNOWN(id) for any other id."""
    try:
        return DeliveryState(delivery_state).name
    except ValueError:
        return f"UNKNOWN({delivery_state})"


def decode_record(key: bytes | None, value: bytes | None) -> AnyRecord:
    """The record of a key and a value. Bytes behind the key are ignored, as the broker does.

    Raises:
        InvalidKeyError: no key, or one that is cut short.
        InvalidTextError: the group id is not UTF-8.
        MissingValueError: an update without a value.
        DecodeError: the value is cut short or malformed; `reason` says which.
    """
    if key is None or len(key) < 2:
        raise InvalidKeyError("a record of __share_group_state needs a key of two bytes at least")
    number = int.from_bytes(key[:2], "big", signed=True)
    if number not in (RecordType.SHARE_SNAPSHOT, RecordType.SHARE_UPDATE):
        return UnknownTypeRecord(record_type=number, key=key, value=value)
    record_type = RecordType(number)
    share_partition = decode_key(key)
    if value is None:
        if record_type is RecordType.SHARE_UPDATE:
            raise MissingValueError(f"the ShareUpdate of {share_partition} has no value")
        return ShareRecord(key=share_partition, value=Tombstone())
    decoded, end = _decode_value(record_type, value)
    return ShareRecord(key=share_partition, value=decoded, trailing_bytes=len(value) - end)


def share_partition_of(record: UnknownTypeRecord) -> SharePartitionKey | None:
    """The share partition that the key names in the form of the known types, to its last byte; None: another form."""
    try:
        tree, end = KEY.read(record.key, 2)
    except DecodeError:
        return None
    fields: Any = tree
    return SharePartitionKey(**fields) if end == len(record.key) else None


def decode_key(key: bytes) -> SharePartitionKey:
    """The share partition of a key of type 0 or 1; they differ in their first two bytes only."""
    return _cached_key(key[2:]) if len(key) <= MAX_CACHED_KEY_BYTES else _decode_key(key[2:])


def _decode_key(fields: bytes) -> SharePartitionKey:
    try:
        tree: Any = KEY.read(fields, 0)[0]
    except (BufferUnderflowError, InvalidLengthError) as error:
        raise InvalidKeyError(f"the key of {len(fields) + 2} bytes is cut short: {error}") from None
    return SharePartitionKey(**tree)


_cached_key = functools.lru_cache(maxsize=CACHED_KEYS)(_decode_key)


def _decode_value(record_type: RecordType, value: bytes) -> tuple[ShareValue, int]:
    plain = _decode_plain(record_type, value)
    return _decode_tree(record_type, value) if plain is None else (plain, len(value))


def _decode_plain(record_type: RecordType, value: bytes) -> ShareSnapshot | ShareUpdate | None:
    """A value without unknown tags and trailing bytes, as coordinators write it; None for any other value."""
    head = _SNAPSHOT_HEAD if record_type is RecordType.SHARE_SNAPSHOT else _UPDATE_HEAD
    at = head.min_bytes
    if len(value) <= at or not 0 < value[at] < 0x80:
        return None
    end = at + 1 + (value[at] - 1) * _BATCH.min_bytes
    tail = value[end:]
    count = UNKNOWN_COUNT
    if len(tail) == _COUNT_TAG.size:
        *tag, count = _COUNT_TAG.unpack(tail)
        if tag != [1, 0, 4]:
            return None
    elif tail != _NO_TAGS:
        return None
    batches = []
    for first, last, state, times, tags in _BATCH.iter_unpack(value[at + 1 : end]):
        if tags:
            return None
        batches.append(StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=times))
    version, *epochs = head.unpack_from(value)
    if version != VALUE_VERSION:
        return None
    return _from_integers(epochs, tuple(batches), count)


def _from_integers(
    integers: list[int], batches: tuple[StateBatch, ...], delivery_complete_count: int
) -> ShareSnapshot | ShareUpdate:
    if len(integers) == len(UPDATE_VALUE.plain) - 1:
        snapshot_epoch, leader_epoch, start_offset = integers
        return ShareUpdate(
            snapshot_epoch=snapshot_epoch,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            state_batches=batches,
            delivery_complete_count=delivery_complete_count,
        )
    snapshot_epoch, state_epoch, leader_epoch, start_offset, created_ms, written_ms = integers
    return ShareSnapshot(
        snapshot_epoch=snapshot_epoch,
        state_epoch=state_epoch,
        leader_epoch=leader_epoch,
        start_offset=start_offset,
        create_timestamp_ms=created_ms,
        write_timestamp_ms=written_ms,
        state_batches=batches,
        delivery_complete_count=delivery_complete_count,
    )


def _decode_tree(record_type: RecordType, value: bytes) -> tuple[ShareValue, int]:
    version, at = schema.INT16.read(value, 0)
    if version != VALUE_VERSION:
        data = value[at:]
        return UnknownVersionValue(record_type=record_type, version=_int(version), data=data), len(value)
    tree: Any
    if record_type is RecordType.SHARE_SNAPSHOT:
        tree, end = SNAPSHOT_VALUE.read(value, at)
        return ShareSnapshot(**tree | _batches(tree)), end
    tree, end = UPDATE_VALUE.read(value, at)
    return ShareUpdate(**tree | _batches(tree)), end


def _int(value: schema.Value) -> int:
    assert isinstance(value, int)
    return value


def _batches(tree: Any) -> dict[str, tuple[StateBatch, ...]]:
    return {"state_batches": tuple(StateBatch(**batch) for batch in tree["state_batches"])}


def encode_record(record: AnyRecord) -> tuple[bytes, bytes | None]:
    """Key and value in bytes, equal to those of Kafka's writer; ignored trailing bytes are not kept."""
    if isinstance(record, UnknownTypeRecord):
        return record.key, record.value
    match record.value:
        case ShareUpdate() as update:
            return encode_key(record.key, _UPDATE), _encode_value(UPDATE_VALUE, _UPDATE_HEAD, update)
        case ShareSnapshot() as snapshot:
            key = encode_key(record.key, RecordType.SHARE_SNAPSHOT)
            return key, _encode_value(SNAPSHOT_VALUE, _SNAPSHOT_HEAD, snapshot)
        case Tombstone():
            return encode_key(record.key, RecordType.SHARE_SNAPSHOT), None
        case UnknownVersionValue() as unknown:
            return encode_key(record.key, unknown.record_type), schema.INT16.write(unknown.version) + unknown.data


def encode_key(key: SharePartitionKey, record_type: RecordType) -> bytes:
    """The key of a share partition, under the type of a snapshot or an update."""
    fields = _cached_fields if len(key.group_id) <= MAX_CACHED_KEY_BYTES else _encode_key
    return (_UPDATE_TYPE if record_type is _UPDATE else _SNAPSHOT_TYPE) + fields(key)


def _encode_key(key: SharePartitionKey) -> bytes:
    return KEY.write(_tree(KEY, key))


_cached_fields = functools.lru_cache(maxsize=CACHED_KEYS)(_encode_key)


def _encode_value(layout: Struct, head: schema.IntegerRun, value: ShareSnapshot | ShareUpdate) -> bytes:
    """The bytes of a value; without unknown tags and with integers that fit, as coordinators write it, in one pass."""
    batches = value.state_batches
    if value.unknown_tags:
        return _encode_tree(layout, value)
    try:
        parts = [head.pack(VALUE_VERSION, *head.values_of(value)), write_uvarint(len(batches) + 1)]
        for first, last, state, times, tags in batches:
            if tags:
                return _encode_tree(layout, value)
            parts.append(_BATCH.pack(first, last, state, times, 0))
        count = value.delivery_complete_count
        parts.append(_NO_TAGS if count == UNKNOWN_COUNT else _COUNT_TAG.pack(1, 0, 4, count))
    except struct.error:
        return _encode_tree(layout, value)  # says which field it is
    return b"".join(parts)


def _encode_tree(layout: Struct, value: ShareSnapshot | ShareUpdate) -> bytes:
    tree = _tree(layout, value)
    tree["state_batches"] = tuple(_tree(STATE_BATCH, batch) for batch in value.state_batches)
    return schema.INT16.write(VALUE_VERSION) + layout.write(tree)


def _tree(
    layout: Struct, value: SharePartitionKey | StateBatch | ShareSnapshot | ShareUpdate
) -> dict[str, schema.Value]:
    tree: dict[str, schema.Value] = {field.name: getattr(value, field.name) for field in layout.fields}
    if layout.flexible:
        tree[UNKNOWN_TAGS] = getattr(value, UNKNOWN_TAGS)
    return tree
