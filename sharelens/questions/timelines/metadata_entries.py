"""Changes of the metadata log as entries of a timeline: settings, leaders and in-sync replicas that matter to a group.

A group depends on its own settings, on those of its topics and of the brokers, and on the leaders of its topics'
partitions, of the state partitions with its states (share coordinators) and of its partition of `__consumer_offsets`
(group coordinator).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.questions.timelines.entries import Entry, entry_of
from sharelens.tables.metadata_history import configuration_history, topic_history
from sharelens.tables.port import Tables
from state_model.topics import METADATA_TOPIC, OFFSETS_TOPIC, STATE_TOPIC

SETTING, LEADER, IN_SYNC = "setting_changed", "leader_changed", "in_sync_replicas_changed"
GROUP, TOPIC, BROKER = "group", "topic", "broker"
VALIDITY = ["valid_from_ms", "valid_from_log_offset", "valid_to_ms", "valid_to_log_offset", "began_earlier"]
About = Mapping[str, Any]


def metadata_entries(evidence: Tables, places: pa.Table, records: pa.Table) -> Iterator[Entry]:
    """Entries for each group that a change matters to; none without a metadata log.

    `places`: PLACED rows of the groups' share partitions; `records`: GROUP_RECORD rows of the groups.
    """
    groups = sorted({*places.column("group_id").to_pylist(), *records.column("group_id").to_pylist()})
    keys = places.group_by(["group_id", "topic_id", "partition", "state_partition"]).aggregate([]).to_pylist()
    topic_ids = sorted({row["topic_id"] for row in keys})
    is_related = pc.field("topic_id").isin(pa.array(topic_ids, pa.string())) | pc.field("topic").isin(
        [STATE_TOPIC, OFFSETS_TOPIC]
    )
    columns = ["topic_id", "topic", "partition", "leader", "leader_epoch", "isr", *VALIDITY]
    partitions = topic_history(evidence, columns, is_related)
    if partitions is not None:
        yield from _partition_entries(partitions, keys, records)
    columns = ["entity_type", "entity", "key", "value", "is_sensitive", *VALIDITY]
    settings = configuration_history(evidence, columns, pc.field("entity_type").isin([GROUP, TOPIC, BROKER]))
    if settings is not None:
        names = evidence.names(topic_ids)
        topics = {(row["group_id"], row["topic_id"]): names.get(row["topic_id"]) for row in keys}
        yield from _setting_entries(settings, groups, topics)


def _partition_entries(rows: pa.Table, keys: Iterable[About], records: pa.Table) -> Iterator[Entry]:
    """Changes of leaders and in-sync replicas, for the groups that depend on the partition."""
    related: defaultdict[tuple[str, int], dict[tuple[Any, ...], About]] = defaultdict(dict)
    for row in keys:
        about: About = {name: row[name] for name in ("group_id", "topic_id", "partition")}
        related[row["topic_id"], row["partition"]][tuple(about.values())] = about
        related[STATE_TOPIC, row["state_partition"]][row["group_id"],] = {"group_id": row["group_id"]}
    for row in records.group_by(["group_id", "partition"]).aggregate([]).to_pylist():
        related[OFFSETS_TOPIC, row["partition"]][row["group_id"],] = {"group_id": row["group_id"]}
    for before, after in _changes(rows, ("topic_id", "topic", "partition")):
        if before is None or after is None:
            continue
        number = after["partition"]
        is_internal = after["topic"] in (STATE_TOPIC, OFFSETS_TOPIC)
        of_group = related.get((after["topic"] if is_internal else after["topic_id"], number), {})
        words = f"{after['topic']}-{number}: " if is_internal else ""
        for about in of_group.values():
            if before["leader"] != after["leader"]:
                text = f"{words}broker {before['leader']} to {after['leader']}, leader epoch {after['leader_epoch']}"
                yield _entry(about, LEADER, after, text)
            if set(before["isr"]) != set(after["isr"]):
                yield _entry(about, IN_SYNC, after, f"{words}{_brokers(before['isr'])} to {_brokers(after['isr'])}")


def _brokers(ids: Iterable[int]) -> str:
    return f"[{', '.join(map(str, sorted(ids)))}]"


def _setting_entries(
    rows: pa.Table, groups: Iterable[str], topics: Mapping[tuple[str, str], str | None]
) -> Iterator[Entry]:
    """Changes of settings, for the groups that they are about; `topics`: names by group and topic id."""
    of_topic: defaultdict[str | None, list[About]] = defaultdict(list)
    for (group, topic_id), name in topics.items():
        of_topic[name].append({"group_id": group, "topic_id": topic_id})
    of_group = {group: [{"group_id": group}] for group in groups}
    for before, after in _changes(rows, ("entity_type", "entity", "key")):
        row = after or before
        assert row is not None
        kind, entity = row["entity_type"], row["entity"]
        if kind == BROKER:
            related: Iterable[About] = ({"group_id": group} for group in groups)
        else:
            related = (of_topic if kind == TOPIC else of_group).get(entity, ())
        whose = "" if kind == GROUP else f"{kind} {entity}: " if entity else "all brokers: "
        text = f"{whose}{row['key']} {_value(before)} to {_value(after)}"
        for about in related:
            yield _entry(about, SETTING, after, text, ended=before)


def _value(row: About | None) -> str:
    if row is None:
        return "unset"
    return "(hidden)" if row["is_sensitive"] else str(row["value"])


def _changes(rows: pa.Table, key: tuple[str, ...]) -> Iterator[tuple[About | None, About | None]]:
    """The values of each key before and after each change; None: there was none."""
    order = [(name, "ascending") for name in (*key, "valid_from_log_offset")]
    for _, of_key in groupby(rows.sort_by(order).to_pylist(), key=lambda row: [row[name] for name in key]):
        before: About | None = None
        for row in of_key:
            if before is not None and before["valid_to_log_offset"] != row["valid_from_log_offset"]:
                yield before, None
                before = None
            if before is not None or not row["began_earlier"]:
                yield before, row
            before = row
        if before is not None and before["valid_to_ms"] is not None:
            yield before, None


def _entry(about: About, event: str, after: About | None, text: str, ended: About | None = None) -> Entry:
    """An entry at the time of the new value, or where there is none, at the end of the earlier one."""
    assert after is not None or ended is not None
    at_ms, offset = (
        (after["valid_from_ms"], after["valid_from_log_offset"])
        if after is not None
        else (ended["valid_to_ms"], ended["valid_to_log_offset"])  # type: ignore[index]
    )
    return entry_of(about, event, at_ms, text, log_topic=METADATA_TOPIC, log_partition=0, log_offset=offset)
