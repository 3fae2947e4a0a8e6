"""Entries of a timeline about streams groups: groups, topologies, members, rebalances and committed offsets.

Offsets that somebody resets or alters are commits while the group has no members, or below the one before.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.groups.committed_offsets import TRANSACTIONAL, commit_changes
from sharelens.groups.histories import histories
from sharelens.groups.model_rebalances import streams_rebalances
from sharelens.groups.replay import GroupChange, changes, is_of_types
from sharelens.groups.schemas import DEAD, EMPTY, NOT_READY
from sharelens.output.group_words import member_name, not_ready_reason
from sharelens.output.wording import counted, name, number
from sharelens.parameters.times import lasted
from sharelens.questions.timelines.entries import Entry, entry_of
from state_model.offset_commits import OffsetPlace
from state_model.streams.records import MEMBER, METADATA, STREAMS_TYPES, TOPOLOGY
from state_model.topics import OFFSETS_TOPIC

FIRST_EPOCH = 2
"""The group epoch in the first record of a new group."""
PARTITIONS_NAMED = 10
Rows = Sequence[Mapping[str, Any]]


def streams_entries(records: pa.Table, commits: pa.Table, as_of_ms: int | None) -> Iterator[Entry]:
    """Entries from GROUP_RECORD rows and from COMMIT_COLUMNS rows of streams groups, up to a log time."""
    records = records.filter(is_of_types(records, STREAMS_TYPES))
    if as_of_ms is not None:
        records = records.filter(pc.field("timestamp_ms") <= as_of_ms)
    groups = histories(records).groups.to_pylist()
    yield from _of_records(records)
    yield from _of_rebalances(streams_rebalances(records).to_pylist())
    yield from _of_states([row for row in groups if row["valid_to_ms"] != row["valid_from_ms"]])
    yield from _of_offsets(commits, groups)


def _of_records(records: pa.Table) -> Iterator[Entry]:
    """Groups that begin and end, members that come and go, and topologies."""
    alive: set[str] = set()
    ended: set[str] = set()
    members: dict[tuple[str, str | None], str | None] = {}
    topologies: dict[str, Mapping[str, Any]] = {}
    for change in changes(records, STREAMS_TYPES):
        group = change.group_id
        if change.is_undecoded:
            continue
        match change.record_type:
            case kind if kind == METADATA and change.is_tombstone:
                alive.discard(group)
                ended.add(group)
                topologies.pop(group, None)
                yield _entry(change, "group_deleted", "")
            case kind if kind == METADATA and group not in alive:
                alive.add(group)
                yield _beginning(change, is_new=group in ended)
            case kind if kind == MEMBER:
                yield _member_entry(change, members)
            case kind if kind == TOPOLOGY and change.value is not None:
                event = "topology_changed" if topologies.get(group, change.value) != change.value else "topology_set"
                topologies[group] = change.value
                yield _entry(change, event, _topology_text(change.value))


def _beginning(change: GroupChange, *, is_new: bool) -> Entry:
    """A group that was created; one whose first records may be missing was seen first."""
    epoch = (change.value or {})["epoch"]
    event = "group_created" if is_new or epoch == FIRST_EPOCH else "group_first_seen"
    return _entry(change, event, f"group epoch {number(epoch)}")


def _member_entry(change: GroupChange, members: dict[tuple[str, str | None], str | None]) -> Entry:
    key = change.group_id, change.member_id
    if change.value is None:
        return _entry(change, "member_left", member_name(str(change.member_id), members.pop(key, None)))
    event = "member_changed" if key in members else "member_joined"
    members[key] = client = change.value["clientId"]
    where = f"on {name(change.value['clientHost'])}, process {name(change.value['processId'])}"
    return _entry(change, event, f"{member_name(str(change.member_id), client)} {where}")


def _topology_text(value: Mapping[str, Any]) -> str:
    subtopologies = value["subtopologies"]
    topics = sorted({topic for subtopology in subtopologies for topic in subtopology["sourceTopics"]})
    count = counted(len(subtopologies), "subtopology", "subtopologies")
    sources = f" of {', '.join(map(name, topics))}" if topics else ""
    return f"topology epoch {number(value['epoch'])}: {count}{sources}"


def _of_rebalances(rows: Rows) -> Iterator[Entry]:
    for row in rows:
        if row["group_epoch"] is None:
            continue
        parts = [f"group epoch {number(row['group_epoch'])}", f"{counted(len(row['moved']), 'task')} moved"]
        if row["stable_after_ms"] is not None:
            parts.append(f"stable after {lasted(row['stable_after_ms'])}")
        if row["tasks_without_owner"]:
            longest = lasted(row["longest_without_owner_ms"])
            parts.append(f"{counted(row['tasks_without_owner'], 'task')} without an owner for {longest} at most")
        if row["tasks_still_without_owner"]:
            parts.append(f"{counted(row['tasks_still_without_owner'], 'task')} still without an owner")
        yield _at(row, "rebalanced", row["at_ms"], ", ".join(parts), row["log_offset"])


def _of_states(rows: Rows) -> Iterator[Entry]:
    """The times in which a group was not ready."""
    since: dict[str, int] = {}
    for row in rows:
        group, at_ms, proof = row["group_id"], row["valid_from_ms"], row["valid_from_log_offset"]
        if row["state"] == NOT_READY and group not in since:
            since[group] = at_ms
            reason = not_ready_reason(row["topology_epoch"], row["validated_topology_epoch"])
            yield _at(row, "not_ready_began", at_ms, reason, proof)
        elif row["state"] != NOT_READY and group in since:
            text = f"after {lasted(at_ms - since.pop(group))}, {row['state']}"
            yield _at(row, "not_ready_ended", at_ms, text, proof)


def _of_offsets(commits: pa.Table, groups: Rows) -> Iterator[Entry]:
    """Offsets that were reset and deleted: one entry for the partitions of a topic that changed at the same time."""
    of_groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in groups:
        of_groups.setdefault(row["group_id"], []).append(row)
    before: dict[OffsetPlace, int] = {}
    moved: dict[tuple[str, str, str, int, int], dict[int, tuple[int | None, int | None, int]]] = {}
    plain = commits.filter((pc.bit_wise_and(pc.field("attributes"), TRANSACTIONAL) == 0) & ~pc.field("is_control"))
    for row, change in commit_changes(plain):
        group, topic, partition = place = change.key
        old, new = before.pop(place, None), None if change.committed is None else change.committed.offset
        if new is not None:
            before[place] = new
        is_idle = _is_idle(of_groups.get(group, []), change.log_offset)
        is_reset = new is not None and new != old and (is_idle or new < (old or 0))
        if is_reset or (change.is_tombstone and old is not None):
            event = "offsets_reset" if is_reset else "offsets_deleted"
            key = (event, group, topic, row["timestamp_ms"], row["partition"])
            moved.setdefault(key, {})[partition] = (old, new, change.log_offset)
    for (event, group, topic, at_ms, log_partition), partitions in moved.items():
        texts = [f"{partition}: {_move(old, new)}" for partition, (old, new, _) in sorted(partitions.items())]
        remainder_text = f" and {len(texts) - PARTITIONS_NAMED} more" if len(texts) > PARTITIONS_NAMED else ""
        text = f"{name(topic)} {', '.join(texts[:PARTITIONS_NAMED])}{remainder_text}"
        about = {"group_id": group, "log_partition": log_partition}
        yield _at(about, event, at_ms, text, min(offset for *_, offset in partitions.values()))


def _move(old: int | None, new: int | None) -> str:
    """`100 to 0`; a side without a committed offset is left out."""
    if old is None or new is None:
        return number(new if old is None else old)
    return f"{number(old)} to {number(new)}"


def _is_idle(rows: Rows, log_offset: int) -> bool:
    """Whether a group had no members, or did not exist, when a record was written; `rows`: GROUP_HISTORY in order."""
    at = bisect_right(rows, log_offset, key=lambda row: row["valid_from_log_offset"])
    return at == 0 or rows[at - 1]["state"] in (EMPTY, DEAD)


def _entry(change: GroupChange, event: str, text: str) -> Entry:
    about = {"group_id": change.group_id, "log_partition": change.log_partition}
    return _at(about, event, change.log_time_ms, text, change.log_offset)


def _at(about: Mapping[str, Any], event: str, at_ms: int, text: str, log_offset: int) -> Entry:
    """An entry about a group; its proof is a record of __consumer_offsets."""
    proof = {"log_topic": OFFSETS_TOPIC, "log_partition": about["log_partition"], "log_offset": log_offset}
    return entry_of({"group_id": about["group_id"]}, event, at_ms, text, **proof)
