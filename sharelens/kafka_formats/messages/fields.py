"""kio's message classes as tables of fields, from which readers and writers are derived."""

import dataclasses
from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a message: either a primitive (`kafka_type`) or a nested struct (`nested`), alone or in an array."""

    name: str
    kafka_type: str
    nested: Any | None
    is_array: bool
    is_nullable: bool
    tag: int | None
    default: Any
    has_default: bool


def fields_of(entity: Any) -> Iterator[Field]:
    """The fields of a message class, in the order of the wire."""
    for field in dataclasses.fields(entity):
        inner, is_nullable = _without_none(field.type)
        is_array = get_origin(inner) is tuple
        if is_array:
            inner, inner_nullable = _without_none(get_args(inner)[0])
            is_nullable = is_nullable or inner_nullable
        nested = inner if dataclasses.is_dataclass(inner) and isinstance(inner, type) else None
        yield Field(
            name=field.name,
            kafka_type=field.metadata.get("kafka_type", ""),
            nested=nested,
            is_array=is_array,
            is_nullable=is_nullable,
            tag=field.metadata.get("tag"),
            default=None if field.default is dataclasses.MISSING else field.default,
            has_default=field.default is not dataclasses.MISSING,
        )


def _without_none(declared: Any) -> tuple[Any, bool]:
    """A type without its None, and whether it had one."""
    if get_origin(declared) not in (Union, UnionType):
        return declared, False
    kinds = [kind for kind in get_args(declared) if kind is not NoneType]
    assert len(kinds) == 1, declared
    return kinds[0], True
