"""Messages in the JSON of Kafka's own converters (`…DataJsonConverter`), as fields under kio's names."""

from base64 import standard_b64decode
from typing import Any

from sharelens.kafka_formats.messages.fields import Field, fields_of


def fields_of_json(schema: Any, value: dict[str, Any]) -> dict[str, Any]:
    """The fields of a message: kio has snake case, no units in names, and bytes where JSON has base64."""
    by_name = {_plain_name(name): each for name, each in value.items()}
    schema_fields = {_plain_name(field.name): field for field in fields_of(schema)}
    # The version of the request may lack a field of the JSON, as where it lists a type's defaults.
    return {field.name: _value(field, by_name[name]) for name, field in schema_fields.items() if name in by_name}


def _plain_name(name: str) -> str:
    return name.replace("_", "").lower().removesuffix("ms")


def _value(field: Field, value: Any) -> Any:
    if value is None:
        return None
    if field.is_array:
        return [_element(field, each) for each in value]
    return _element(field, value)


def _element(field: Field, value: Any) -> Any:
    if field.nested is not None:
        return fields_of_json(field.nested, value)
    return standard_b64decode(value) if field.kafka_type in ("bytes", "records") else value
