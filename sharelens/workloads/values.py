"""The values of a workload's records."""

import json
from dataclasses import dataclass

from sharelens.workloads.profiles import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """`id` counts a run's records from 0."""

    id: int
    kind: Kind


def write_value(value: Value) -> bytes:
    """The bytes of a record's value."""
    return json.dumps({"id": value.id, "kind": value.kind.value}).encode()


def read_value(raw: bytes | str | None) -> Value | None:
    """The value that `write_value` wrote; None for records of other producers."""
    try:
        fields = json.loads(raw or b"")
        return Value(id=int(fields["id"]), kind=Kind(fields["kind"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
