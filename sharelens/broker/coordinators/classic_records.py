"""The records of classic groups in `__consumer_offsets`: committed offsets (type 1) and groups (type 2).

Written in the versions that Kafka 4.3 writes: OffsetCommitValue 4, which is flexible, and GroupMetadataValue 3, which
is not (consumer-offsets-records §1-2). `GroupRecord.undecoded` holds their bytes: state_model has no schema of them.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from state_model import schema
from state_model.codec.primitives import need
from state_model.errors import InvalidLengthError, InvalidTextError
from state_model.group_records import GroupRecord
from state_model.group_schemas import CLASSIC_GROUP_KEY, OFFSET_KEY
from state_model.offset_commits import OFFSET_COMMIT, OFFSET_COMMIT_VALUES
from state_model.uuids import ZERO_UUID

OFFSET_COMMIT_VERSION = 4
GROUP_METADATA = 2
GROUP_METADATA_VERSION = 3
ZERO_TOPIC_ID = ZERO_UUID

_OFFSET_COMMIT_VALUE = OFFSET_COMMIT_VALUES[OFFSET_COMMIT_VERSION]
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_MIN_MEMBER_BYTES = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedOffset:
    """A committed offset, the next to read; leader epoch -1 and the zero topic id mean unknown."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp_ms: int = -1
    topic_id: str = ZERO_TOPIC_ID


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMember:
    """A member in the group's record: the metadata of the chosen protocol, and the assignment."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredGroup:
    """A group in its record; a group without members has no protocol and no leader."""

    protocol_type: str
    generation: int
    protocol_name: str | None
    leader: str | None
    state_since_ms: int
    members: Sequence[StoredMember] = ()


def offset_key(group_id: str, topic: str, partition: int) -> bytes:
    """The key of a committed offset."""
    return _INT16.pack(OFFSET_COMMIT) + OFFSET_KEY.write({"group": group_id, "topic": topic, "partition": partition})


def offset_value(committed: CommittedOffset) -> bytes:
    """The value of a committed offset."""
    return _INT16.pack(OFFSET_COMMIT_VERSION) + _OFFSET_COMMIT_VALUE.write(
        {
            "offset": committed.offset,
            "leader_epoch": committed.leader_epoch,
            "metadata": committed.metadata,
            "commit_timestamp": committed.commit_timestamp_ms,
            "topic_id": committed.topic_id,
        }
    )


def read_offset(record: GroupRecord) -> CommittedOffset | None:
    """The committed offset of a record; None for another type, a tombstone, and an unknown version.

    Raises a DecodeError for broken bytes.
    """
    if not _is(record, OFFSET_COMMIT, OFFSET_COMMIT_VERSION) or record.undecoded is None:
        return None
    tree, _ = _OFFSET_COMMIT_VALUE.read(record.undecoded, 0)
    return CommittedOffset(
        offset=cast(int, tree["offset"]),
        leader_epoch=cast(int, tree["leader_epoch"]),
        metadata=str(tree["metadata"]),
        commit_timestamp_ms=cast(int, tree["commit_timestamp"]),
        topic_id=str(tree["topic_id"]),
    )


def group_key(group_id: str) -> bytes:
    """The key of a group."""
    return _INT16.pack(GROUP_METADATA) + CLASSIC_GROUP_KEY.write({"group": group_id})


def group_value(group: StoredGroup) -> bytes:
    """The value of a group."""
    parts = [
        _INT16.pack(GROUP_METADATA_VERSION),
        _text(group.protocol_type),
        _INT32.pack(group.generation),
        _text(group.protocol_name),
        _text(group.leader),
        _INT64.pack(group.state_since_ms),
        _INT32.pack(len(group.members)),
    ]
    for member in group.members:
        parts += (
            _text(member.member_id),
            _text(member.group_instance_id),
            _text(member.client_id),
            _text(member.client_host),
            _INT32.pack(member.rebalance_timeout_ms),
            _INT32.pack(member.session_timeout_ms),
            _INT32.pack(len(member.subscription)),
            member.subscription,
            _INT32.pack(len(member.assignment)),
            member.assignment,
        )
    return b"".join(parts)


def read_group(record: GroupRecord) -> StoredGroup | None:
    """The group of a record; None for another type, a tombstone, and an unknown version.

    Raises a DecodeError for broken bytes.
    """
    if not _is(record, GROUP_METADATA, GROUP_METADATA_VERSION) or record.undecoded is None:
        return None
    reader = _Reader(record.undecoded)
    protocol_type, generation = reader.required_text(), reader.number(_INT32)
    protocol_name, leader = reader.text(), reader.text()
    state_since_ms, count = reader.number(_INT64), reader.number(_INT32)
    if count < 0:
        raise InvalidLengthError(f"a group claims {count} members")
    need(record.undecoded, reader.at, count * _MIN_MEMBER_BYTES)
    return StoredGroup(
        protocol_type=protocol_type,
        generation=generation,
        protocol_name=protocol_name,
        leader=leader,
        state_since_ms=state_since_ms,
        members=tuple(_read_member(reader) for _ in range(count)),
    )


def _is(record: GroupRecord, record_type: int, version: int) -> bool:
    return record.record_type == record_type and record.version == version


def _read_member(reader: "_Reader") -> StoredMember:
    return StoredMember(
        member_id=reader.required_text(),
        group_instance_id=reader.text(),
        client_id=reader.required_text(),
        client_host=reader.required_text(),
        rebalance_timeout_ms=reader.number(_INT32),
        session_timeout_ms=reader.number(_INT32),
        subscription=reader.blob(),
        assignment=reader.blob(),
    )


def _text(value: str | None) -> bytes:
    return _INT16.pack(-1) if value is None else schema.CLASSIC_STRING.write(value)


class _Reader:
    """Reads the fields of a non-flexible message in order; every length is checked first."""

    def __init__(self, buffer: bytes) -> None:
        self._buffer = buffer
        self.at = 0

    def number(self, layout: struct.Struct) -> int:
        need(self._buffer, self.at, layout.size)
        value: int = layout.unpack_from(self._buffer, self.at)[0]
        self.at += layout.size
        return value

    def blob(self) -> bytes:
        return self._take(self.number(_INT32))

    def text(self) -> str | None:
        size = self.number(_INT16)
        if size == -1:
            return None
        raw = self._take(size)
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            raise InvalidTextError(f"the string that ends at byte {self.at} is not UTF-8") from None

    def required_text(self) -> str:
        value = self.text()
        if value is None:
            raise InvalidLengthError(f"the string before byte {self.at} is null, and the field has no null")
        return value

    def _take(self, size: int) -> bytes:
        if size < 0:
            raise InvalidLengthError(f"a length of {size} before byte {self.at}")
        need(self._buffer, self.at, size)
        self.at += size
        return self._buffer[self.at - size : self.at]
