"""Who deleted share state: a topic, a group's offsets of it and the group leave the same tombstone in the state log.

The group coordinator writes of each group which topics have state (ShareGroupStatePartitionMetadata). A request first
moves them to the deleting topics, and a deleted group ends with a tombstone of its own; a deleted topic is absent from
the next record:

    initialized orders -> deleting orders -> (nothing)        group_offsets
    initialized orders -> deleting orders -> tombstone        group
    initialized orders -> (nothing)                           topic

The log is compacted and another broker's clock stamps it: the cause is an inference, and null where records are gone.
"""

import bisect
import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.groups.replay import STATE_PARTITIONS, decoded
from sharelens.measures.dlq.reconciliation import CLOCK_TOLERANCE_MS

DELETION = "deleted"
BY_TOPIC, BY_GROUP, BY_OFFSETS = "topic", "group", "group_offsets"


class _Loss(NamedTuple):
    """A record after which a topic of the group has no share state, and its cause; None: a request of unknown cause."""

    at_ms: int
    by: str | None


def deleted_by(events: pa.Table, records: pa.Table) -> pa.Array:
    """BY_TOPIC, BY_GROUP, BY_OFFSETS or null for each of `events` (LIFE rows); null for events other than deletions.

    `records`: GROUP_RECORD rows of their groups in (partition, log offset) order.
    """
    losses = _losses(records)
    event_fields = zip(
        *(events.column(name).to_pylist() for name in ("event", "group_id", "topic_id", "log_time_ms")), strict=True
    )
    return pa.array(
        [
            _nearest(losses.get((group, topic), []), at_ms) if event == DELETION else None
            for event, group, topic, at_ms in event_fields
        ],
        pa.string(),
    )


def _nearest(losses: list[_Loss], at_ms: int) -> str | None:
    near = bisect.bisect_left(losses, at_ms, key=lambda loss: loss.at_ms)
    loss = min(losses[max(0, near - 1) : near + 1], key=lambda loss: abs(loss.at_ms - at_ms), default=None)
    return None if loss is None or abs(loss.at_ms - at_ms) > CLOCK_TOLERANCE_MS else loss.by


def _losses(records: pa.Table) -> dict[tuple[str, str], list[_Loss]]:
    """The losses of share state by group and topic id, in order of time."""
    rows = records.filter(pc.equal(records.column("record_type"), STATE_PARTITIONS))
    values: dict[str, list[tuple[int, dict[str, Any] | None]]] = {}
    for row in decoded(rows).select(["group_id", "timestamp_ms", "is_tombstone", "value_json"]).to_pylist():
        value = None if row["is_tombstone"] else json.loads(row["value_json"])
        values.setdefault(row["group_id"], []).append((row["timestamp_ms"], value))
    losses_by_topic: dict[tuple[str, str], list[_Loss]] = {}
    for group, versions in values.items():
        for number in range(1, len(versions)):
            at_ms, value = versions[number]
            for topic in _with_state(versions[number - 1][1]) - _with_state(value):
                losses_by_topic.setdefault((group, topic), []).append(
                    _Loss(at_ms, _by(topic, value, versions[number + 1 : number + 2]))
                )
    return {key: sorted(losses, key=lambda loss: loss.at_ms) for key, losses in losses_by_topic.items()}


def _by(topic: str, value: Mapping[str, Any] | None, later: list[tuple[int, dict[str, Any] | None]]) -> str | None:
    if value is None:
        return BY_GROUP
    if topic not in _ids(value["deletingTopics"]):
        return BY_TOPIC
    if not later:
        return None
    return BY_GROUP if later[0][1] is None else BY_OFFSETS


def _with_state(value: Mapping[str, Any] | None) -> frozenset[str]:
    return frozenset() if value is None else _ids(value["initializedTopics"]) | _ids(value["initializingTopics"])


def _ids(topics: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    return frozenset(topic["topicId"] for topic in topics)
