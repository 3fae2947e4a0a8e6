"""Decoding the records of `__cluster_metadata` without their secrets (metadata-log §2, §3 and §6).

A decoded record has the tree of its value where its type is safe; of others only length and digest. The digest is
keyed: with one key equal values have equal digests, and without the key a password can't be guessed from it.
"""

import hashlib
from collections.abc import Mapping
from typing import Final, NamedTuple

from state_model.codec.primitives import UNKNOWN_TAGS, need, read_uvarint
from state_model.errors import DecodeError, InvalidLengthError
from state_model.metadata import schemas
from state_model.metadata.safe_settings import is_safe
from state_model.metadata.schemas import CONTROL_TYPES, RECORD_TYPES, MetadataRecordType
from state_model.schema import INT16, Value

FRAME_VERSION = 1
DIGEST_BYTES = 8
NO_OP_VALUE: Final = bytes([FRAME_VERSION, schemas.NO_OP, 0, 0])
"""The value of a NoOpRecord: the idle heartbeat of the controller, which changes nothing."""


class UnknownRecordError(DecodeError):
    """Raised when a metadata record has a type or a version that this version does not know."""

    reason = "unknown_value_version"


class MetadataRecord(NamedTuple):
    """A record of the metadata log or of a snapshot.

    `value`: the fields by name; None where the type is not safe to keep. `length`, `digest`: of the value's bytes.
    A CONFIG_RECORD whose key is not safe has the `hidden` length and digest of its setting instead of its `value`.
    """

    offset: int
    timestamp_ms: int
    is_control: bool
    record_type: int
    name: str
    version: int
    value: Mapping[str, Value] | None
    length: int
    digest: str


def digest_of(data: bytes, key: bytes) -> str:
    """The keyed digest of bytes, in hexadecimal."""
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES, key=key).hexdigest()


def decode_record(value: bytes | None, *, offset: int, timestamp_ms: int, digest_key: bytes) -> MetadataRecord:
    """The record of a data batch.

    Raises:
        UnknownRecordError: a type or version that is not in the schemas.
        DecodeError: the value is cut short or malformed. No message repeats bytes of the value.
    """
    if value is None:
        raise InvalidLengthError("a metadata record has no value")
    frame, at = read_uvarint(value, 0)
    if frame != FRAME_VERSION:
        raise UnknownRecordError(f"frame version {frame}, which this version does not know")
    number, at = read_uvarint(value, at)
    version, at = read_uvarint(value, at)
    record_type = RECORD_TYPES.get(number)
    tree = _tree(record_type, number, version, value, at)
    assert record_type is not None
    kept_value: Mapping[str, Value] | None = tree if record_type.keeps_value else None
    if number == schemas.CONFIG:
        kept_value = _without_secret(tree, digest_key)
    return MetadataRecord(
        offset=offset,
        timestamp_ms=timestamp_ms,
        is_control=False,
        record_type=number,
        name=record_type.name,
        version=version,
        value=kept_value,
        length=len(value),
        digest=digest_of(value, digest_key),
    )


def decode_control(key: bytes | None, value: bytes | None, *, offset: int, timestamp_ms: int) -> MetadataRecord:
    """The record of a control batch: leader changes, voters, the ends of a snapshot.

    Raises:
        UnknownRecordError: a type or version that is not in the schemas.
        DecodeError: key or value is cut short or malformed.
    """
    if key is None or value is None:
        raise InvalidLengthError("a control record has no key or no value")
    need(key, 0, 4)
    number = int.from_bytes(key[2:4], "big", signed=True)
    need(value, 0, INT16.min_bytes)
    version = int.from_bytes(value[:2], "big", signed=True)
    record_type = CONTROL_TYPES.get(number)
    tree = _tree(record_type, number, version, value, 0)
    assert record_type is not None
    return MetadataRecord(
        offset=offset,
        timestamp_ms=timestamp_ms,
        is_control=True,
        record_type=number,
        name=record_type.name,
        version=version,
        value=tree,
        length=len(value),
        digest="",
    )


def _tree(record_type: MetadataRecordType | None, number: int, version: int, value: bytes, at: int) -> dict[str, Value]:
    if record_type is None:
        raise UnknownRecordError(f"record type {number}, which this version does not know")
    layout = record_type.versions.get(version)
    if layout is None:
        raise UnknownRecordError(f"{record_type.name} has version {version}, which this version does not know")
    tree, end = layout.read(value, at)
    if end != len(value):
        raise InvalidLengthError(f"{len(value) - end} bytes are left behind a {record_type.name}")
    return _without_unknown_tags(tree)


def _without_unknown_tags(tree: dict[str, Value]) -> dict[str, Value]:
    """The tree without tagged fields that no schema names, at any depth: their bytes could be secrets."""
    known_fields: dict[str, Value] = {}
    for name, value in tree.items():
        if name == UNKNOWN_TAGS:
            continue
        if isinstance(value, tuple):
            known_fields[name] = tuple(
                _without_unknown_tags(item) if isinstance(item, dict) else item for item in value
            )
        else:
            known_fields[name] = _without_unknown_tags(value) if isinstance(value, dict) else value
    return known_fields


def _without_secret(tree: Mapping[str, Value], digest_key: bytes) -> dict[str, Value]:
    """A setting: its value where the key is safe, else length and digest of the value."""
    setting, resource_type = tree["value"], tree["resource_type"]
    assert isinstance(resource_type, int)
    if setting is None or is_safe(resource_type, str(tree["name"])):
        return {**tree, "hidden": None}
    raw = str(setting).encode()
    return {**tree, "value": None, "hidden": {"length": len(raw), "digest": digest_of(raw, digest_key)}}
