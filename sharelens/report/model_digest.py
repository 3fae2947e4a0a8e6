"""What the report reads of consumer and streams groups."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.groups.histories import histories
from sharelens.groups.model_rebalances import consumer_rebalances, streams_rebalances
from sharelens.groups.replay import is_of_types
from sharelens.groups.schemas import ACTIVE
from sharelens.questions.groups import rebalances_consumer
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_group_records
from sharelens.tables.where import Span
from state_model.consumer.records import CONSUMER_TYPES
from state_model.streams.records import STREAMS_TYPES

OWNED: pa.Schema = pa.schema(
    [
        pa.field("group_id", pa.string()),
        pa.field("part", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("member_id", pa.string()),
        pa.field("client_id", pa.string()),
        pa.field("valid_from_ms", pa.int64()),
        pa.field("valid_to_ms", pa.int64()),
    ]
)
"""A partition of a topic, or an active task of a subtopology (`part`), that a member had, and when."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDigest:
    """GROUP_HISTORY rows of groups of a kind, OWNED rows, their rebalances, and the time that charts show."""

    groups: pa.Table
    owned: pa.Table
    rebalances: pa.Table
    from_ms: int
    to_ms: int


def streams_digest(evidence: Tables, groups: frozenset[str] | None, until_ms: int | None, span: Span) -> ModelDigest:
    """The streams groups among `groups` (None: all) up to a moment, of the records in `span`."""
    records = _records(evidence, STREAMS_TYPES, groups, until_ms)
    of_groups = histories(records)
    tasks = of_groups.tasks.filter(pc.field("task_type") == ACTIVE)
    owned = pa.table([tasks.column(_OF_TASKS.get(name, name)) for name in OWNED.names], OWNED.names)
    return _digest(of_groups.groups, owned, streams_rebalances(records), records, span)


def consumer_digest(evidence: Tables, groups: frozenset[str] | None, until_ms: int | None, span: Span) -> ModelDigest:
    """The consumer groups, as `streams_digest`."""
    records = _records(evidence, CONSUMER_TYPES, groups, until_ms)
    of_groups = histories(records)
    members = of_groups.members.to_pylist()
    names = evidence.names({topic["topic_id"] for row in members for topic in _topics(row)})
    owned = pa.Table.from_pylist(list(_owned(members, names)), schema=OWNED)
    rebalances = rebalances_consumer.rows(evidence, consumer_rebalances(records))
    return _digest(of_groups.groups, owned, rebalances, records, span)


_OF_TASKS = {"part": "subtopology_id"}


def _records(evidence: Tables, types: Collection[int], groups: frozenset[str] | None, until_ms: int | None) -> pa.Table:
    records = read_group_records(evidence, groups)
    records = records.filter(is_of_types(records, types))
    return records if until_ms is None else records.filter(pc.field("timestamp_ms") <= until_ms)


def _topics(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What a member had, also what it had to give up."""
    return [*row["assigned_partitions"], *(row["pending_partitions"] or ())]


def _owned(members: list[dict[str, Any]], names: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """OWNED rows from MEMBER_HISTORY rows, a member's in order: one for the time in which it had a partition."""
    had: dict[tuple[str, str], dict[tuple[str, int], dict[str, Any]]] = {}
    for row in members:
        before = had.get((row["group_id"], row["member_id"]), {})
        now: dict[tuple[str, int], dict[str, Any]] = {}
        for topic in _topics(row):
            for partition in topic["partitions"]:
                place = names.get(topic["topic_id"], topic["topic_id"]), partition
                about = {name: row[name] for name in ("group_id", "member_id", "client_id", "valid_from_ms")}
                now[place] = before.pop(place, {}) or {**about, "part": place[0], "partition": partition}
                now[place]["valid_to_ms"] = row["valid_to_ms"]
        yield from before.values()
        had[row["group_id"], row["member_id"]] = now
    for still in had.values():
        yield from still.values()


def _digest(groups: pa.Table, owned: pa.Table, rebalances: pa.Table, records: pa.Table, span: Span) -> ModelDigest:
    first, last = (pc.min_max(records.column("timestamp_ms"))[end].as_py() or 0 for end in ("min", "max"))
    from_ms = max(first, first if span.from_ms is None else span.from_ms)
    to_ms = last if span.to_ms is None else min(last, span.to_ms)
    return ModelDigest(
        groups=groups, owned=owned, rebalances=rebalances, from_ms=from_ms, to_ms=max(from_ms + 1, to_ms)
    )
