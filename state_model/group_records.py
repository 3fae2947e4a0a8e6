"""Records of `__consumer_offsets`: consumer, share and streams groups in full, classic groups and committed offsets
classified (consumer-offsets-records).

Values are plain trees with snake_case keys; `to_formatter_json` converts them to the JSON that Kafka's tools print.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias, Union

from state_model import schema
from state_model.codec.primitives import UnknownTag, need
from state_model.errors import BufferUnderflowError, InvalidKeyError, InvalidLengthError
from state_model.group_schemas import RECORD_TYPES, GroupRecordType
from state_model.schema import Field, Kind, NullableStruct, Struct, Tree, Value
from state_model.share_records import UnknownTypeRecord

Json: TypeAlias = Union[int, str, list["Json"], dict[str, "Json"], None]  # noqa: UP007 - forward references


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRecord:
    """A decoded record of `__consumer_offsets` of a known type.

    Attributes:
        record_type: its number, 0 to 23.
        name: the name of the type.
        key: all fields of the key.
        version: version of the value; None for a tombstone.
        value: the value's fields; None for a tombstone, and when type or version have no schema here.
        undecoded: the bytes behind the version, where no schema is known and `value` is None.
        trailing_bytes: bytes behind the value, which the broker ignores.
    """

    record_type: int
    name: str
    key: Tree
    version: int | None = None
    value: Tree | None = None
    undecoded: bytes | None = None
    trailing_bytes: int = 0

    @property
    def group_id(self) -> str:
        """The group; every known type has one."""
        return str(self.key[RECORD_TYPES[self.record_type].key.fields[0].name])

    @property
    def member_id(self) -> str | None:
        """The member, for types whose key names one."""
        return str(self.key["member_id"]) if "member_id" in self.key else None

    @property
    def regular_expression(self) -> str | None:
        """The regular expression, for the type whose key has one."""
        return str(self.key["regular_expression"]) if "regular_expression" in self.key else None

    @property
    def is_tombstone(self) -> bool:
        """Whether the record deletes its key."""
        return self.version is None


AnyGroupRecord = GroupRecord | UnknownTypeRecord


def group_record(record_type: int, group_id: str, value: Tree | None, name: str | None = None) -> GroupRecord:
    """The record of a value of version 0; None: its tombstone.

    Args:
        name: the member or regular expression in the key of types with more than one record a group.
    """
    layout = RECORD_TYPES[record_type]
    key = {field.name: part for field, part in zip(layout.key.fields, (group_id, name), strict=False)}
    version = None if value is None else 0
    return GroupRecord(record_type=record_type, name=layout.name, key=key, version=version, value=value)


def classify(key: bytes | None) -> GroupRecordType | int:
    """The type of a record by the first two bytes of its key; the bare number when Kafka has not shipped it."""
    if key is None or len(key) < 2:
        raise InvalidKeyError("a record of __consumer_offsets needs a key of two bytes at least")
    number = int.from_bytes(key[:2], "big", signed=True)
    return RECORD_TYPES.get(number, number)


def decode_record(key: bytes | None, value: bytes | None) -> AnyGroupRecord:
    """The record of a key and a value. Bytes behind the key are ignored, as the broker does.

    Raises:
        InvalidKeyError: no key, or one that is cut short.
        DecodeError: the value is cut short or malformed; `reason` says which.
    """
    record_type = classify(key)
    assert key is not None
    if isinstance(record_type, int):
        return UnknownTypeRecord(record_type=record_type, key=key, value=value)
    try:
        key_tree = record_type.key.read(key, 2)[0]
    except (BufferUnderflowError, InvalidLengthError) as error:
        raise InvalidKeyError(f"the key of {len(key)} bytes of a {record_type.name} is cut short: {error}") from None
    if value is None:
        return GroupRecord(record_type=record_type.number, name=record_type.name, key=key_tree)
    need(value, 0, 2)
    version = int.from_bytes(value[:2], "big", signed=True)
    layout = record_type.values.get(version)
    if layout is None:
        return GroupRecord(
            record_type=record_type.number, name=record_type.name, key=key_tree, version=version, undecoded=value[2:]
        )
    tree, end = layout.read(value, 2)
    return GroupRecord(
        record_type=record_type.number,
        name=record_type.name,
        key=key_tree,
        version=version,
        value=tree,
        trailing_bytes=len(value) - end,
    )


def encode_record(record: AnyGroupRecord) -> tuple[bytes, bytes | None]:
    """Key and value in bytes, equal to those of Kafka's writer; ignored trailing bytes are not kept."""
    if isinstance(record, UnknownTypeRecord):
        return record.key, record.value
    record_type = RECORD_TYPES[record.record_type]
    key = schema.INT16.write(record_type.number) + record_type.key.write(record.key)
    if record.version is None:
        return key, None
    body = record.undecoded
    if record.value is not None:
        body = record_type.values[record.version].write(record.value)
    return key, schema.INT16.write(record.version) + (body or b"")


def to_formatter_json(record: GroupRecord) -> dict[str, Json]:
    """`{key: {type, data}, value: {version, data} | None}` as Kafka's formatter prints it.

    Names are camelCase, bytes are base64; a tagged field at its default and unknown tags are not printed. For types
    without a value schema the data of the value is None.
    """
    record_type = RECORD_TYPES[record.record_type]
    key: dict[str, Json] = {"type": record_type.number, "data": _struct_json(record_type.key, record.key)}
    if record.version is None:
        return {"key": key, "value": None}
    data = None if record.value is None else _struct_json(record_type.values[record.version], record.value)
    return {"key": key, "value": {"version": record.version, "data": data}}


def from_formatter_json(record_type: int, version: int, data: Mapping[str, Any]) -> Tree:
    """The value tree of the JSON that `to_formatter_json` prints of it; fields that are not there have their default.

    Unknown tags are not printed, so the tree lacks them.
    """
    return _struct_tree(RECORD_TYPES[record_type].values[version], data)


def _struct_tree(layout: Struct, data: Mapping[str, Any]) -> dict[str, Value]:
    tree: dict[str, Value] = {}
    for field in layout.fields:
        name = camel_case(field.name)
        tree[field.name] = _tree(field.kind, data[name]) if name in data else field.default
    return tree


def _tree(kind: Kind, value: Any) -> Value:
    if isinstance(kind, schema.CompactArray) and value is not None:
        if isinstance(kind.item, schema.Int):
            return tuple(value)
        return tuple([_tree(kind.item, item) for item in value])
    if isinstance(kind, schema.CompactBytes) and value is not None:
        return b64decode(value)
    if isinstance(value, dict):
        layout = kind.struct if isinstance(kind, NullableStruct) else kind
        assert isinstance(layout, Struct)
        return _struct_tree(layout, value)
    tree: Value = value
    return tree


def _struct_json(layout: Struct, tree: Tree) -> dict[str, Json]:
    return {
        camel_case(field.name): _json(field.kind, tree[field.name])
        for field in layout.fields
        if not _is_omitted(field, tree)
    }


def _is_omitted(field: Field, tree: Tree) -> bool:
    return field.tag is not None and tree.get(field.name, field.default) == field.default


def _json(kind: Kind, value: Value) -> Json:
    if isinstance(value, tuple):
        item = kind.item if isinstance(kind, schema.CompactArray) else kind
        return [_json(item, element) for element in value]
    if isinstance(value, Mapping):
        layout = kind.struct if isinstance(kind, NullableStruct) else kind
        assert isinstance(layout, Struct)
        return _struct_json(layout, value)
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    assert not isinstance(value, UnknownTag)
    return value


@cache
def camel_case(name: str) -> str:
    """snake_case to the camelCase of Kafka's JSON."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
