"""The members of a share group that a partition was assigned to, by the group coordinator's log.

The log is compacted: an assignment that a later one replaced may be gone, so what was assigned at an earlier moment is
an inference. Share groups assign a partition to several members at once; which of them had a record is not logged.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.groups.replay import ASSIGNMENT, MEMBER, decoded

ASSIGNED_MEMBERS = pa.list_(
    pa.struct(
        [
            pa.field("member_id", pa.string()),
            pa.field("client_id", pa.string()),
            pa.field("client_host", pa.string()),
            pa.field("since_ms", pa.int64()),
        ]
    )
)
"""`since_ms`: timestamp of the member's assignment record; client id and host are null without a member record."""
_READ = ["timestamp_ms", "record_type", "member_id", "is_tombstone", "value_json"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned:
    """Assignments as (member, from, to) in ms, half-open (to None: no end).

    Assignments before `known_from_ms` are unknown.
    """

    known_from_ms: int | None
    spans: tuple[tuple[str, int, int | None], ...]
    clients: Mapping[str, Mapping[str, Any]]

    def at(self, moment_ms: int) -> list[dict[str, Any]] | None:
        """ASSIGNED_MEMBERS value at a moment, by member id; None before the first known assignment."""
        if self.known_from_ms is None or moment_ms < self.known_from_ms:
            return None
        there = (
            (member, since)
            for member, since, until in self.spans
            if since <= moment_ms and (until is None or moment_ms < until)
        )
        return [self._member(member, since) for member, since in sorted(there)]

    def _member(self, name: str, since_ms: int) -> dict[str, Any]:
        client = self.clients.get(name, {})
        return {
            "member_id": name,
            "client_id": client.get("clientId"),
            "client_host": client.get("clientHost"),
            "since_ms": since_ms,
        }


def assigned(records: pa.Table, topic_id: str, partition: int) -> Assigned:
    """The members that a partition was assigned to, from GROUP_RECORD rows of one share group in log order."""
    rows = records.filter(pc.is_in(records.column("record_type"), value_set=pa.array([MEMBER, ASSIGNMENT], pa.int16())))
    clients: dict[str, Mapping[str, Any]] = {}
    since: dict[str, int] = {}
    spans: list[tuple[str, int, int | None]] = []
    first: int | None = None
    for row in decoded(rows).select(_READ).to_pylist():
        value = None if row["is_tombstone"] else json.loads(row["value_json"])
        member, moment = row["member_id"], row["timestamp_ms"]
        if row["record_type"] == MEMBER:
            if value is not None:
                clients[member] = value
            continue
        first = moment if first is None else min(first, moment)
        if value is not None and _has(value, topic_id, partition):
            since.setdefault(member, moment)
        elif member in since:
            spans.append((member, since.pop(member), moment))
    spans += [(member, moment, None) for member, moment in since.items()]
    return Assigned(known_from_ms=first, spans=tuple(spans), clients=clients)


def _has(value: Mapping[str, Any], topic_id: str, partition: int) -> bool:
    return any(
        topic["topicId"] == topic_id and partition in topic["partitions"] for topic in value["assignedPartitions"]
    )
