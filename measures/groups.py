"""Share groups by the group coordinator's own log: state, epochs, members, last change.

The log is compacted: it surely has only the newest record of each key, which suffices for the end of the log. At an
earlier moment, records of a group that later ones replaced may be missing. The state is Kafka's:
DEAD after the group's tombstone, EMPTY without members, else STABLE (ShareGroup.ShareGroupState).
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
COMPACTED = "compacted"


@dataclass(slots=True)
class _Group:
    """The newest value of each key of one group."""

    values: dict[int, dict[str, Any] | None] = field(default_factory=dict)
    members: dict[str, dict[str, Any]] = field(default_factory=dict)
    assignments: dict[str, dict[str, Any]] = field(default_factory=dict)
    newest: dict[str, Any] = field(default_factory=dict)
    has_later: bool = False

    def take(self, row: dict[str, Any]) -> None:
        """Applies the next record of the log."""
        value = None if row["is_tombstone"] else json.loads(row["value_json"])
        self.newest = row
        kind, member = row["record_type"], row["member_id"]
        if kind in (MEMBER, ASSIGNMENT):
            values_by_member = self.members if kind == MEMBER else self.assignments
            if value is None:
                values_by_member.pop(member, None)
            else:
                values_by_member[member] = value
        else:
            self.values[kind] = value

    def marks(self) -> tuple[str, str | None]:
        """Completeness and its reason."""
        if self.newest["uncommitted"]:
            return "uncommitted", "uncommitted"
        return ("incomplete", COMPACTED) if self.has_later else ("complete", None)

    def row(self) -> dict[str, Any]:
        """GROUPS row."""
        dead = GROUP in self.values and self.values[GROUP] is None
        members = [self._member(name) for name in sorted(self.members)]
        topics = self.values.get(STATE_PARTITIONS)
        completeness, reason = self.marks()
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
            "completeness": completeness,
            "completeness_reason": reason,
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


def groups(records: pa.Table, as_of_ms: int | None = None) -> pa.Table:
    """GROUPS rows by group id from silver.group_record rows in (partition, log offset) order.

    `as_of_ms`: uses records with a timestamp up to this one; of groups with later records, some may be compacted away.
    """
    of_share_groups = pa.array(SHARE_TYPES, records.schema.field("record_type").type)
    groups_by_id: dict[str, _Group] = {}
    for batch in records.filter(pc.is_in(records.column("record_type"), value_set=of_share_groups)).to_batches():
        for row in batch.to_pylist():
            group = groups_by_id.setdefault(row["group_id"], _Group())
            if as_of_ms is None or row["timestamp_ms"] <= as_of_ms:
                group.take(row)
            else:
                group.has_later = True
    return pa.Table.from_pylist(
        [groups_by_id[name].row() for name in sorted(groups_by_id) if groups_by_id[name].newest], schema=GROUPS
    )
