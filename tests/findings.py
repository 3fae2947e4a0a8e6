"""Signs of tests: a cluster in which nothing is wrong, and rows of trouble to put into it."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from sharelens.evidence.now import LAST_RECORD, READ, Now
from sharelens.findings.signs import ShareCoordination, Signs
from sharelens.groups.schemas import GROUPS
from sharelens.measures.latency.measure import HOURLY_ATTEMPTS
from sharelens.measures.schemas import DELETED_BY
from sharelens.questions.findings.letter_signs import LETTERS
from sharelens.questions.findings.measured_signs import EVENTS, GIVEN_UP, LAGS, STANDING
from sharelens.tables.missing import MissingEvidence

NOW_MS = 1_800_000_000_000
TOPIC = "AAAAAAAAAAAAAAAAAAAAAQ"
PLACE = {"group_id": "g", "topic_id": TOPIC, "partition": 0, "state_partition": 7, "topic": "orders"}
ARCHIVED = GIVEN_UP.append(pa.field("records", pa.int64())).append(pa.field("hour_ms", pa.int64()))
NOT_STARTED = LAGS.append(pa.field("has_records", pa.bool_()))


def rows(schema: pa.Schema, *values: Mapping[str, Any]) -> pa.Table:
    """Rows of a schema at PLACE, unless values say otherwise; what they leave out is null."""
    columns = [{name: (PLACE | dict(value)).get(name) for name in schema.names} for value in values]
    return pa.Table.from_pylist(columns, schema=schema)


def signs_with(*, is_now_known: bool = True, **changes: Any) -> Signs:
    """Signs of a group `g` with nothing to do, with changes; tables are given as lists of rows."""
    schemas = {
        "lag": LAGS,
        "stalls": STANDING,
        "attempts": HOURLY_ATTEMPTS,
        "archived": ARCHIVED,
        "events": EVENTS.append(DELETED_BY),
        "not_started": NOT_STARTED,
        "missing_letters": LETTERS,
        "unjudged_letters": LETTERS,
    }
    tables = {name: rows(schema, *changes.pop(name, ())) for name, schema in schemas.items()}
    groups = changes.pop("groups", ())
    values: dict[str, Any] = {
        "now": Now(ms=NOW_MS, source=READ if is_now_known else LAST_RECORD),
        "first_ms": NOW_MS - 7_200_000,
        "last_ms": NOW_MS,
        "samples": (),
        "groups": None if groups is None else rows(GROUPS, *map(_group, groups)),
        "share_groups": ("g",),
        "coordination": (),
        "streams": (),
        "audited": None,
        "unwritable": None,
        "unpruned": (),
        "log_starts": {},
        "retention_ms": {},
        "with_headers": frozenset({(TOPIC, 0)}),
        "cover": (),
        "missing": MissingEvidence(),
        "names": {TOPIC: "orders"},
        "warnings": (),
    }
    return Signs(**values | tables | changes)


def _group(values: Mapping[str, Any]) -> dict[str, Any]:
    return {"state": "STABLE", "last_change_ms": NOW_MS, "member_count": 0, "members": [], **values}


def stall(duration_ms: int, **values: Any) -> dict[str, Any]:
    """A row of `stalls`: three records behind the first incomplete offset 5 are finished."""
    return {
        "since_ms": NOW_MS - duration_ms,
        "duration_ms": duration_ms,
        "kind": "blocked_by_record",
        "first_incomplete_offset": 5,
        "finished_behind": 3,
        "window_used": 4,
        "end_offset": 20,
        "last_state_write_ms": NOW_MS - 1,
    } | values


def coordination(**values: Any) -> ShareCoordination:
    """What the coordinator's log says of group `g`, with one member that has the partition 0."""
    default: dict[str, Any] = {
        "group_id": "g",
        "members": 1,
        "changed_ms": NOW_MS,
        "initializing": (),
        "initialized_ms": None,
        "repeated": (),
        "initialized": frozenset(),
        "assigned": frozenset({(TOPIC, 0)}),
        "epochs_ms": (),
    }
    return ShareCoordination(**default | values)
