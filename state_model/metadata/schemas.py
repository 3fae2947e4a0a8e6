"""Schemas of the records of `__cluster_metadata` (metadata-log §2 and §3), in all versions up to Kafka 4.4.

Every message is flexible. `keeps_value` marks the record types whose values hold no secret and no user name; of all
others the fields are read, so that damage is seen, and nothing of them is kept (§6).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from state_model.codec.primitives import need, read_uvarint
from state_model.errors import EncodeError
from state_model.schema import (
    INT8,
    INT16,
    INT32,
    INT64,
    NULLABLE_STRING,
    STRING,
    UINT16,
    UUID,
    CompactArray,
    Field,
    Struct,
    Value,
)

UNCHANGED_LEADER: Final = -2
UNCHANGED_RECOVERY: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenBytes:
    """Bytes that are stepped over and never kept: `size` of them, or, without it, compact bytes with their length."""

    size: int | None = None
    min_bytes: int = 1

    def read(self, buffer: bytes, offset: int) -> tuple[Value, int]:
        """None, and the offset behind the bytes."""
        size, at = (self.size, offset) if self.size is not None else read_uvarint(buffer, offset)
        if self.size is None:
            size = max(size - 1, 0)
        need(buffer, at, size)
        return None, at + size

    def write(self, value: Value) -> bytes:
        """Raises EncodeError: there is no value to write."""
        raise EncodeError("a hidden field has no value to write")


class Boolean:
    """One byte: 0 is false, all else true, as Kafka reads it."""

    min_bytes = 1

    def read(self, buffer: bytes, offset: int) -> tuple[Value, int]:
        """The truth value and the offset behind it."""
        need(buffer, offset, 1)
        return buffer[offset] != 0, offset + 1

    def write(self, value: Value) -> bytes:
        """The byte 0 or 1."""
        return b"\x01" if value else b"\x00"


BOOLEAN = Boolean()
SECRET = HiddenBytes()
FLOAT64 = HiddenBytes(size=8, min_bytes=8)
INTS = CompactArray(item=INT32)
NULLABLE_INTS = CompactArray(item=INT32, nullable=True)
UUIDS = CompactArray(item=UUID)
NULLABLE_UUIDS = CompactArray(item=UUID, nullable=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataRecordType:
    """A record type: its versions, and whether its values may be kept."""

    number: int
    name: str
    versions: Mapping[int, Struct]
    keeps_value: bool


def _field(name: str, kind: object, *, since: int = 0, tag: int | None = None, default: Value = None) -> "_Since":
    return _Since(version=since, field=Field(name=name, kind=kind, tag=tag, default=default))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Since:
    """A field, and the first version of the message that has it."""

    version: int
    field: Field


def _struct(*fields: _Since) -> Struct:
    return Struct(*(entry.field for entry in fields))


def _versions(newest: int, *fields: _Since) -> Mapping[int, Struct]:
    return {
        version: Struct(*(entry.field for entry in fields if entry.version <= version)) for version in range(newest + 1)
    }


_ENDPOINTS = CompactArray(
    item=_struct(
        _field("name", STRING), _field("host", STRING), _field("port", UINT16), _field("security_protocol", INT16)
    )
)
_FEATURES = CompactArray(
    item=_struct(_field("name", STRING), _field("min_supported_version", INT16), _field("max_supported_version", INT16))
)
_ENTITIES = CompactArray(item=_struct(_field("entity_type", STRING), _field("entity_name", NULLABLE_STRING)))

REGISTER_BROKER, UNREGISTER_BROKER, TOPIC, PARTITION, CONFIG, PARTITION_CHANGE = range(6)
FENCE_BROKER, UNFENCE_BROKER, REMOVE_TOPIC, DELEGATION_TOKEN, SCRAM_CREDENTIAL, FEATURE_LEVEL = range(7, 13)
CLIENT_QUOTA, PRODUCER_IDS, BROKER_CHANGE, ACCESS_CONTROL, REMOVE_ACCESS_CONTROL = 14, 15, 17, 18, 19
NO_OP, ZK_MIGRATION, REMOVE_SCRAM, BEGIN_TRANSACTION, END_TRANSACTION, ABORT_TRANSACTION = range(20, 26)
REMOVE_DELEGATION_TOKEN, REGISTER_CONTROLLER, CLEAR_ELR, UNREGISTER_CONTROLLER = range(26, 30)

_FENCING = _versions(0, _field("broker_id", INT32), _field("broker_epoch", INT64))
_TYPES: tuple[tuple[int, str, Mapping[int, Struct]], ...] = (
    (
        REGISTER_BROKER,
        "REGISTER_BROKER_RECORD",
        _versions(
            4,
            _field("broker_id", INT32),
            _field("is_migrating_zk_broker", BOOLEAN, since=2),
            _field("incarnation_id", UUID),
            _field("broker_epoch", INT64),
            _field("end_points", _ENDPOINTS),
            _field("features", _FEATURES),
            _field("rack", NULLABLE_STRING),
            _field("fenced", BOOLEAN),
            _field("in_controlled_shutdown", BOOLEAN, since=1),
            _field("log_dirs", UUIDS, since=3, tag=0, default=()),
            _field("cordoned_log_dirs", NULLABLE_UUIDS, since=4, tag=1),
        ),
    ),
    (UNREGISTER_BROKER, "UNREGISTER_BROKER_RECORD", _FENCING),
    (TOPIC, "TOPIC_RECORD", _versions(0, _field("name", STRING), _field("topic_id", UUID))),
    (
        PARTITION,
        "PARTITION_RECORD",
        _versions(
            2,
            _field("partition_id", INT32),
            _field("topic_id", UUID),
            _field("replicas", INTS),
            _field("isr", INTS),
            _field("removing_replicas", INTS),
            _field("adding_replicas", INTS),
            _field("leader", INT32),
            _field("leader_recovery_state", INT8, tag=0, default=0),
            _field("leader_epoch", INT32),
            _field("partition_epoch", INT32),
            _field("directories", UUIDS, since=1),
            _field("eligible_leader_replicas", NULLABLE_INTS, since=2, tag=1),
            _field("last_known_elr", NULLABLE_INTS, since=2, tag=2),
        ),
    ),
    (
        CONFIG,
        "CONFIG_RECORD",
        _versions(
            0,
            _field("resource_type", INT8),
            _field("resource_name", STRING),
            _field("name", STRING),
            _field("value", NULLABLE_STRING),
        ),
    ),
    (
        PARTITION_CHANGE,
        "PARTITION_CHANGE_RECORD",
        _versions(
            2,
            _field("partition_id", INT32),
            _field("topic_id", UUID),
            _field("isr", NULLABLE_INTS, tag=0),
            _field("leader", INT32, tag=1, default=UNCHANGED_LEADER),
            _field("replicas", NULLABLE_INTS, tag=2),
            _field("removing_replicas", NULLABLE_INTS, tag=3),
            _field("adding_replicas", NULLABLE_INTS, tag=4),
            _field("leader_recovery_state", INT8, tag=5, default=UNCHANGED_RECOVERY),
            _field("eligible_leader_replicas", NULLABLE_INTS, since=2, tag=6),
            _field("last_known_elr", NULLABLE_INTS, since=2, tag=7),
            _field("directories", NULLABLE_UUIDS, since=1, tag=8),
        ),
    ),
    (FENCE_BROKER, "FENCE_BROKER_RECORD", _FENCING),
    (UNFENCE_BROKER, "UNFENCE_BROKER_RECORD", _FENCING),
    (REMOVE_TOPIC, "REMOVE_TOPIC_RECORD", _versions(0, _field("topic_id", UUID))),
    (
        DELEGATION_TOKEN,
        "DELEGATION_TOKEN_RECORD",
        _versions(
            0,
            _field("owner", STRING),
            _field("requester", STRING),
            _field("renewers", CompactArray(item=STRING)),
            _field("issue_timestamp", INT64),
            _field("max_timestamp", INT64),
            _field("expiration_timestamp", INT64),
            _field("token_id", STRING),
        ),
    ),
    (
        SCRAM_CREDENTIAL,
        "USER_SCRAM_CREDENTIAL_RECORD",
        _versions(
            0,
            _field("name", STRING),
            _field("mechanism", INT8),
            _field("salt", SECRET),
            _field("stored_key", SECRET),
            _field("server_key", SECRET),
            _field("iterations", INT32),
        ),
    ),
    (FEATURE_LEVEL, "FEATURE_LEVEL_RECORD", _versions(0, _field("name", STRING), _field("feature_level", INT16))),
    (
        CLIENT_QUOTA,
        "CLIENT_QUOTA_RECORD",
        _versions(
            0, _field("entity", _ENTITIES), _field("key", STRING), _field("value", FLOAT64), _field("remove", BOOLEAN)
        ),
    ),
    (
        PRODUCER_IDS,
        "PRODUCER_IDS_RECORD",
        _versions(0, _field("broker_id", INT32), _field("broker_epoch", INT64), _field("next_producer_id", INT64)),
    ),
    (
        BROKER_CHANGE,
        "BROKER_REGISTRATION_CHANGE_RECORD",
        _versions(
            3,
            _field("broker_id", INT32),
            _field("broker_epoch", INT64),
            _field("fenced", INT8, tag=0, default=0),
            _field("in_controlled_shutdown", INT8, since=1, tag=1, default=0),
            _field("log_dirs", UUIDS, since=2, tag=2, default=()),
            _field("cordoned_log_dirs", NULLABLE_UUIDS, since=3, tag=3),
        ),
    ),
    (
        ACCESS_CONTROL,
        "ACCESS_CONTROL_ENTRY_RECORD",
        _versions(
            0,
            _field("id", UUID),
            _field("resource_type", INT8),
            _field("resource_name", STRING),
            _field("pattern_type", INT8),
            _field("principal", STRING),
            _field("host", STRING),
            _field("operation", INT8),
            _field("permission_type", INT8),
        ),
    ),
    (REMOVE_ACCESS_CONTROL, "REMOVE_ACCESS_CONTROL_ENTRY_RECORD", _versions(0, _field("id", UUID))),
    (NO_OP, "NO_OP_RECORD", _versions(0)),
    (ZK_MIGRATION, "ZK_MIGRATION_STATE_RECORD", _versions(0, _field("zk_migration_state", INT8))),
    (
        REMOVE_SCRAM,
        "REMOVE_USER_SCRAM_CREDENTIAL_RECORD",
        _versions(0, _field("name", STRING), _field("mechanism", INT8)),
    ),
    (BEGIN_TRANSACTION, "BEGIN_TRANSACTION_RECORD", _versions(0, _field("name", NULLABLE_STRING, tag=0))),
    (END_TRANSACTION, "END_TRANSACTION_RECORD", _versions(0)),
    (ABORT_TRANSACTION, "ABORT_TRANSACTION_RECORD", _versions(0, _field("reason", NULLABLE_STRING, tag=0))),
    (REMOVE_DELEGATION_TOKEN, "REMOVE_DELEGATION_TOKEN_RECORD", _versions(0, _field("token_id", STRING))),
    (
        REGISTER_CONTROLLER,
        "REGISTER_CONTROLLER_RECORD",
        _versions(
            0,
            _field("controller_id", INT32),
            _field("incarnation_id", UUID),
            _field("zk_migration_ready", BOOLEAN),
            _field("end_points", _ENDPOINTS),
            _field("features", _FEATURES),
        ),
    ),
    (CLEAR_ELR, "CLEAR_ELR_RECORD", _versions(0, _field("topic_name", STRING))),
    (UNREGISTER_CONTROLLER, "UNREGISTER_CONTROLLER_RECORD", _versions(0, _field("controller_id", INT32))),
)
_WITHHELD = frozenset(
    {
        DELEGATION_TOKEN,
        REMOVE_DELEGATION_TOKEN,
        SCRAM_CREDENTIAL,
        REMOVE_SCRAM,
        CLIENT_QUOTA,
        ACCESS_CONTROL,
        REMOVE_ACCESS_CONTROL,
    }
)
RECORD_TYPES: Mapping[int, MetadataRecordType] = {
    number: MetadataRecordType(number=number, name=name, versions=versions, keeps_value=number not in _WITHHELD)
    for number, name, versions in _TYPES
}

LEADER_CHANGE, SNAPSHOT_HEADER, SNAPSHOT_FOOTER, KRAFT_VERSION, KRAFT_VOTERS = range(2, 7)
_VOTER = _struct(_field("voter_id", INT32))
_VOTER_AND_DIRECTORY = _struct(_field("voter_id", INT32), _field("voter_directory_id", UUID))


def _leader_change(voter: Struct) -> Struct:
    voters = CompactArray(item=voter)
    return _struct(
        _field("version", INT16),
        _field("leader_id", INT32),
        _field("voters", voters),
        _field("granting_voters", voters),
    )


_VOTER_SET = CompactArray(
    item=_struct(
        _field("voter_id", INT32),
        _field("voter_directory_id", UUID),
        _field(
            "endpoints",
            CompactArray(item=_struct(_field("name", STRING), _field("host", STRING), _field("port", UINT16))),
        ),
        _field(
            "k_raft_version_feature",
            _struct(_field("min_supported_version", INT16), _field("max_supported_version", INT16)),
        ),
    )
)
CONTROL_TYPES: Mapping[int, MetadataRecordType] = {
    number: MetadataRecordType(number=number, name=name, versions=versions, keeps_value=True)
    for number, name, versions in (
        (LEADER_CHANGE, "LeaderChange", {0: _leader_change(_VOTER), 1: _leader_change(_VOTER_AND_DIRECTORY)}),
        (
            SNAPSHOT_HEADER,
            "SnapshotHeader",
            {0: _struct(_field("version", INT16), _field("last_contained_log_timestamp", INT64))},
        ),
        (SNAPSHOT_FOOTER, "SnapshotFooter", {0: _struct(_field("version", INT16))}),
        (KRAFT_VERSION, "KRaftVersion", {0: _struct(_field("version", INT16), _field("k_raft_version", INT16))}),
        (KRAFT_VOTERS, "KRaftVoters", {0: _struct(_field("version", INT16), _field("voters", _VOTER_SET))}),
    )
}
"""Types of the keys of control records; their values begin with their version."""
