"""Share groups by the group coordinator's own log: state, epochs, members, last change.

The log is compacted: of each key only the newest record is sure to be there, which is all that this needs. The state is
Kafka's: DEAD after the group's tombstone, EMPTY without members, else STABLE (ShareGroup.ShareGroupState).
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from measures.schemas import GROUPS

MEMBER, GROUP, TARGET, MEMBER_TARGET, ASSIGNMENT, STATE_PARTITIONS = range(10, 16)
SHARE_TYPES = range(MEMBER, STATE_PARTITIONS + 1)


@dataclass(slots=True)
class _Group:
    """What the newest record of each key says."""

    values: dict[int, dict[str, Any] | None] = field(default_factory=dict)
    members: dict[str, dict[str, Any]] = field(default_factory=dict)
    assignments: dict[str, dict[str, Any]] = field(default_factory=dict)
    newest: dict[str, Any] = field(default_factory=dict)

    def take(self, row: dict[str, Any]) -> None:
        """Applies a record that follows those taken before."""
        value = None if row["is_tombstone"] else json.loads(row["value_json"])
        self.newest = row
        kind, member = row["record_type"], row["member_id"]
        if kind in (MEMBER, ASSIGNMENT):
            held = self.members if kind == MEMBER else self.assignments
            if value is None:
                held.pop(member, None)
            else:
                held[member] = value
        else:
            self.values[kind] = value

    def row(self) -> dict[str, Any]:
        """GROUPS row."""
        dead = GROUP in self.values and self.values[GROUP] is None
        members = [self._member(name) for name in sorted(self.members)]
        topics = self.values.get(STATE_PARTITIONS)
        return {
            "group_id": self.newest["group_id"],
            "state": "DEAD" if dead else "STABLE" if members else "EMPTY",
            "group_epoch": (self.values.get(GROUP) or {}).get("epoch"),
            "assignment_epoch": (self.values.get(TARGET) or {}).get("assignmentEpoch"),
            "member_count": len(members),
            "members": members,
            "initialized_partitions": topics and _partitions(topics["initializedTopics"]),
            "initializing_partitions": topics and _partitions(topics["initializingTopics"]),
            "deleting_topics": topics and len(topics["deletingTopics"]),
            "last_change_ms": self.newest["timestamp_ms"],
            "partition": self.newest["partition"],
            "log_offset": self.newest["log_offset"],
            "completeness": "uncommitted" if self.newest["uncommitted"] else "complete",
            "completeness_reason": "uncommitted" if self.newest["uncommitted"] else None,
        }

    def _member(self, name: str) -> dict[str, Any]:
        value = self.members[name]
        return {
            "member_id": name,
            "client_id": value["clientId"],
            "client_host": value["clientHost"],
            "member_epoch": self.assignments.get(name, {}).get("memberEpoch"),
            "subscribed_topics": value["subscribedTopicNames"],
        }


def _partitions(topics: Iterable[dict[str, Any]]) -> int:
    return sum(len(topic["partitions"]) for topic in topics)


def groups(records: pa.Table) -> pa.Table:
    """GROUPS rows by group id from silver.group_record rows in (partition, log offset) order."""
    of_share_groups = pa.array(SHARE_TYPES, records.schema.field("record_type").type)
    found: dict[str, _Group] = {}
    for batch in records.filter(pc.is_in(records.column("record_type"), value_set=of_share_groups)).to_batches():
        for row in batch.to_pylist():
            found.setdefault(row["group_id"], _Group()).take(row)
    return pa.Table.from_pylist([found[name].row() for name in sorted(found)], schema=GROUPS)
