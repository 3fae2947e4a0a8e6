"""The control records of the early design: one table for each, from which reader and writer derive.

The draft names the fields. Assumed: Kafka's usual widths (epochs int32, offsets int64, states int8, delivery counts
int16), flexible version 0 behind an int16 version as in other control records, keys of int16 version and int16 type
(ControlRecordType), and the first two types that Kafka 4.3 has not given away.
"""

from enum import IntEnum
from typing import Any, NamedTuple

from state_model import schema
from state_model.errors import DecodeError, InvalidKeyError, MissingValueError
from state_model.schema import Field, Struct
from state_model.share_records import StateBatch

VERSION = 0


class ControlType(IntEnum):
    """The types of the early design's control records; Kafka's own end at KRAFT_VOTERS (6)."""

    SHARE_CHECKPOINT = 7
    SHARE_DELTA = 8


KEY = Struct(Field(name="version", kind=schema.INT16), Field(name="type", kind=schema.INT16), flexible=False)
STATE = Struct(
    Field(name="base_offset", kind=schema.INT64),
    Field(name="last_offset", kind=schema.INT64),
    Field(name="state", kind=schema.INT8),
    Field(name="delivery_count", kind=schema.INT16),
)
CHECKPOINT_VALUE = Struct(
    Field(name="group_id", kind=schema.STRING),
    Field(name="checkpoint_epoch", kind=schema.INT32),
    Field(name="start_offset", kind=schema.INT64),
    Field(name="end_offset", kind=schema.INT64),
    Field(name="states", kind=schema.CompactArray(item=STATE)),
)
DELTA_VALUE = Struct(
    Field(name="group_id", kind=schema.STRING),
    Field(name="checkpoint_epoch", kind=schema.INT32),
    Field(name="back_offset", kind=schema.INT64),
    Field(name="states", kind=schema.CompactArray(item=STATE)),
)


class Checkpoint(NamedTuple):
    """The whole state of a group in the partition; `end_offset` (SPEO) is exclusive."""

    group_id: str
    checkpoint_epoch: int
    start_offset: int
    end_offset: int
    states: tuple[StateBatch, ...]


class Delta(NamedTuple):
    """Changed states; `back_offset` is the log offset of the group's control record before this one."""

    group_id: str
    checkpoint_epoch: int
    back_offset: int
    states: tuple[StateBatch, ...]


DraftRecord = Checkpoint | Delta


def encode(record: DraftRecord) -> tuple[bytes, bytes]:
    """The key and the value of a control record in bytes."""
    is_checkpoint = isinstance(record, Checkpoint)
    control_type = ControlType.SHARE_CHECKPOINT if is_checkpoint else ControlType.SHARE_DELTA
    tree: dict[str, Any] = record._asdict()
    tree["states"] = tuple(
        {"base_offset": first, "last_offset": last, "state": state, "delivery_count": count}
        for first, last, state, count, _ in record.states
    )
    layout = CHECKPOINT_VALUE if is_checkpoint else DELTA_VALUE
    key = KEY.write({"version": VERSION, "type": int(control_type)})
    return key, schema.INT16.write(VERSION) + layout.write(tree)


def control_type_of(key: bytes | None) -> ControlType | None:
    """The type of a control record; None for one of another kind. Raises InvalidKeyError for a short key."""
    if key is None or len(key) < KEY.min_bytes:
        raise InvalidKeyError("a control record has no key of version and type")
    tree, _ = KEY.read(key, 0)
    return ControlType(tree["type"]) if tree["type"] in set(ControlType) else None


def decode(key: bytes | None, value: bytes | None) -> DraftRecord | None:
    """The decoded control record; None for one of another kind, such as a transaction marker.

    Raises:
        DecodeError: the bytes are not what the tables say, or their version is unknown.
    """
    control_type = control_type_of(key)
    if control_type is None:
        return None
    if value is None:
        raise MissingValueError(f"{control_type.name} has no value")
    version, at = schema.INT16.read(value, 0)
    if version != VERSION:
        raise DecodeError(f"{control_type.name} has version {version!r}; only {VERSION} is known")
    is_checkpoint = control_type is ControlType.SHARE_CHECKPOINT
    tree: Any
    tree, end = (CHECKPOINT_VALUE if is_checkpoint else DELTA_VALUE).read(value, at)
    if end != len(value):
        raise DecodeError(f"{control_type.name} has {len(value) - end} bytes behind its fields")
    fields = {name: tree[name] for name in (Checkpoint if is_checkpoint else Delta)._fields}
    fields["states"] = tuple(
        StateBatch(state["base_offset"], state["last_offset"], state["state"], state["delivery_count"])
        for state in tree["states"]
    )
    return Checkpoint(**fields) if is_checkpoint else Delta(**fields)
