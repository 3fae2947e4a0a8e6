"""Arbitrary values of schemas, for properties."""

from hypothesis import strategies as st

from state_model import schema
from state_model.codec import primitives
from state_model.codec.primitives import UnknownTag
from state_model.schema import CompactArray, CompactBytes, CompactString, Int, Kind, NullableStruct, Struct, Uuid
from state_model.uuids import uuid_text

BITS = {"b": 8, "h": 16, "i": 32, "q": 64}
UNKNOWN_TAGS = st.lists(st.builds(UnknownTag, tag=st.integers(20, 25), data=st.binary(max_size=3)), max_size=1)


def values_of(kind: Kind) -> st.SearchStrategy[schema.Value]:
    """Values of a field, often its limits."""
    match kind:
        case Int(code="H"):
            return st.integers(0, 65535)
        case Int():
            return st.integers(-(1 << BITS[kind.code] - 1), (1 << BITS[kind.code] - 1) - 1)
        case CompactString():
            texts = st.text("ab0-", max_size=4) | st.text(max_size=2)
            return st.none() | texts if kind.nullable else texts
        case CompactBytes():
            return st.binary(max_size=4)
        case Uuid():
            return st.binary(min_size=16, max_size=16).map(uuid_text)
        case CompactArray():
            items = st.lists(values_of(kind.item), max_size=3).map(tuple)
            return st.none() | items if kind.nullable else items
        case NullableStruct():
            return st.none() | values_of(kind.struct)
        case Struct():
            return trees(kind)
    raise AssertionError(kind)


def trees(layout: Struct) -> st.SearchStrategy[schema.Value]:
    """Dicts of all fields of a struct, at times with unknown tags."""
    fields = {
        field.name: values_of(field.kind) if field.tag is None else st.just(field.default) | values_of(field.kind)
        for field in layout.fields
    }
    unknown = {primitives.UNKNOWN_TAGS: UNKNOWN_TAGS.map(tuple)}
    return st.fixed_dictionaries(fields, optional=unknown)
