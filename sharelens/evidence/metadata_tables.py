"""The cluster's metadata over time as rows: settings, feature levels, registrations of brokers, and topic partitions.

As of T is the row with valid_from_ms <= T < valid_to_ms (null: no end).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Final

import pyarrow as pa

from sharelens.evidence.metadata_events import MetadataHistory
from sharelens.evidence.metadata_schemas import CONFIGURATION_HISTORY, TOPIC_HISTORY
from state_model.metadata.changes import BROKER, CONFIG, FEATURE, PARTITION
from state_model.metadata.history import Validity, topic_names
from state_model.schema import Value

REGISTRATION: Final = "registration"
LEVEL: Final = "level"
REGISTERED = ("broker_epoch", "incarnation_id", "rack", "end_points", "fenced", "in_controlled_shutdown")
"""The fields of a broker's registration that have rows."""
Row = dict[str, Any]


def configuration_rows(history: MetadataHistory) -> pa.Table:
    """CONFIGURATION_HISTORY rows."""
    rows = [row for validity in history.validities for row in _settings(validity, history)]
    brokers = (validity for validity in history.validities if validity.key[0] == BROKER)
    for _, of_broker in groupby(brokers, key=lambda validity: validity.key):
        values = list(of_broker)
        rows += [row for name in REGISTERED for row in _registrations(name, values, history)]
    return pa.Table.from_pylist(rows, schema=CONFIGURATION_HISTORY)


def topic_rows(history: MetadataHistory) -> pa.Table:
    """TOPIC_HISTORY rows."""
    names = topic_names(history.validities)
    rows = []
    for validity in history.validities:
        if validity.key[0] == PARTITION:
            content = validity.content
            row = {
                "topic_id": validity.key[1],
                "topic": names.get(str(validity.key[1])),
                "partition": validity.key[2],
                **{name: content[name] for name in ("leader", "leader_epoch", "partition_epoch")},
                **{name: list(content[name] or ()) for name in ("replicas", "isr")},  # type: ignore[arg-type]
                "recovering": content["leader_recovery_state"] == 1,
            }
            rows.append(row | _marks(validity, history))
    return pa.Table.from_pylist(rows, schema=TOPIC_HISTORY)


def _settings(validity: Validity, history: MetadataHistory) -> Iterator[Row]:
    kind, *about = validity.key
    if kind == FEATURE:
        entity_type, entity, key, value = FEATURE, str(about[0]), LEVEL, str(validity.content["level"])
        hidden: Value = None
    elif kind == CONFIG:
        entity_type, entity, key = map(str, about)
        value, hidden = validity.content["value"], validity.content["hidden"]  # type: ignore[assignment]
    else:
        return
    yield _row(entity_type, entity, key, value, hidden) | _marks(validity, history)


def _row(entity_type: str, entity: str, key: str, value: str | None, hidden: Value) -> Row:
    return {
        "entity_type": entity_type,
        "entity": entity,
        "key": key,
        "value": value,
        "is_sensitive": hidden is not None,
        "value_size_bytes": hidden["length"] if isinstance(hidden, Mapping) else None,
    }


def _registrations(name: str, values: Sequence[Validity], history: MetadataHistory) -> Iterator[Row]:
    """The rows of one field of a broker's registration: values that follow each other alike are one row."""
    current: Validity | None = None
    for validity in values:
        if current is not None and current.end == validity.begin and _field(current, name) == _field(validity, name):
            current = replace(current, end=validity.end, is_certain=current.is_certain and validity.is_certain)
            continue
        if current is not None:
            yield _registration(name, current, history)
        current = validity
    if current is not None:
        yield _registration(name, current, history)


def _registration(name: str, validity: Validity, history: MetadataHistory) -> Row:
    row = _row(REGISTRATION, str(validity.key[1]), name, _field(validity, name), None)
    return row | _marks(validity, history)


def _field(validity: Validity, name: str) -> str | None:
    """A field of a registration as text; of an end point NAME://HOST:PORT."""
    value = validity.content[name]
    if isinstance(value, tuple):
        points = (
            [str(point[field]) for field in ("name", "host", "port")] for point in value if isinstance(point, Mapping)
        )
        return ",".join(sorted(f"{listener}://{host}:{port}" for listener, host, port in points))
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)


def _marks(validity: Validity, history: MetadataHistory) -> Row:
    completeness, reason = history.completeness(validity)
    end = validity.end
    return {
        "valid_from_log_offset": validity.begin.offset,
        "valid_from_ms": validity.begin.timestamp_ms,
        "valid_to_log_offset": None if end is None else end.offset,
        "valid_to_ms": None if end is None else end.timestamp_ms,
        "began_earlier": validity.began_earlier,
        "completeness": completeness,
        "completeness_reason": reason,
    }
