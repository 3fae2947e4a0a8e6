"""Answers that refuse a whole request with one error code, wherever its response has room for codes."""

from collections.abc import Container, Iterable, Mapping
from typing import Any, Final

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode

from sharelens.broker.errors import FrameError
from sharelens.broker.protocol.registry import Answer
from sharelens.kafka_formats.messages.fields import Field, fields_of

_CODES: Final = ("error_code", "partition_error_code")
_IDENTIFYING: Final = frozenset(
    {"name", "topic", "topic_id", "topic_name", "partition", "partition_index", "index", "group_id"}
    | {"resource_type", "resource_name"}
)
_OTHER_NAMES: Final = {"partition": "partition_index"}
"""Identifying fields of requests that the response calls otherwise: those of Fetch."""
_PLAIN_NAMES: Final = {
    "coordinator_keys": "key",
    "groups": "group_id",
    "group_ids": "group_id",
    "groups_names": "group_id",
    "partitions": "partition_index",
    "partition_indexes": "partition_index",
    "topic_names": "name",
    "transactional_ids": "transactional_id",
}
"""The response's field for an element of a request's plain array."""


def error_answer(api_key: int, version: int, request: Any, code: ErrorCode, **beside: Any) -> Answer:
    """The code at the top of the response, else with each topic, partition, group or other part of the request.

    beside: what else stands beside the code, in responses that have such a field.

    Raises:
        FrameError: the response has no room for an error code.
    """
    schema = load_response_schema(api_key, version)
    answer = _refused(schema, load_request_schema(api_key, version), request, {"error_code": code, **beside})
    if answer is None:
        raise FrameError(f"API {api_key} version {version} has no error code to answer")
    return answer


def list_errors(
    api_key: int, version: int, list_name: str, refused: Iterable[tuple[Any, Mapping[str, Any]]]
) -> tuple[str, list[dict[str, Any] | None]]:
    """The name of the list in the response, and the answers to elements of a list of the request.

    refused: elements with what stands in the answer to each, or to each of its partitions: error_code and other fields.
    """
    schema, request_schema = load_response_schema(api_key, version), load_request_schema(api_key, version)
    lists = next(field for field in fields_of(request_schema) if field.name == list_name)
    parts = next(field for field in fields_of(schema) if field.is_array and _has_code(field.nested))
    return parts.name, [_part(parts, lists, item, error) for item, error in refused]


def _refused(schema: Any, request_schema: Any, request: Any, error: Mapping[str, Any]) -> dict[str, Any] | None:
    """The refusal of one struct of the request; None when neither it nor its parts have an error code."""
    answered = {field.name: field for field in fields_of(schema)}
    named = (
        (field.name, field.name if field.name in answered else _OTHER_NAMES.get(field.name))
        for field in fields_of(request_schema)
        if field.name in _IDENTIFYING
    )
    same = {name: getattr(request, requested) for requested, name in named if name in answered}
    code_field = next((name for name in _CODES if name in answered), None)
    if code_field is not None:
        return same | _beside(code_field, answered, error)
    parts = next((field for field in answered.values() if field.is_array and _has_code(field.nested)), None)
    lists = next((field for field in fields_of(request_schema) if field.is_array), None)
    if parts is None or lists is None:
        return None
    return same | {parts.name: [_part(parts, lists, item, error) for item in getattr(request, lists.name) or ()]}


def _part(parts: Field, lists: Field, item: Any, error: Mapping[str, Any]) -> dict[str, Any] | None:
    if lists.nested is not None:
        return _refused(parts.nested, lists.nested, item, error)
    names = {field.name for field in fields_of(parts.nested)}
    code_field = next(name for name in _CODES if name in names)
    return {_PLAIN_NAMES[lists.name]: item, **_beside(code_field, names, error)}


def _beside(code_field: str, names: Container[str], error: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an error that a struct has, the code under its own name."""
    return {code_field: error["error_code"], **{name: value for name, value in error.items() if name in names}}


def _has_code(schema: Any) -> bool:
    if schema is None:
        return False
    return any(field.name in _CODES or (field.is_array and _has_code(field.nested)) for field in fields_of(schema))
