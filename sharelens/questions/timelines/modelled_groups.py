"""Entries of a timeline about consumer and streams groups: groups, members, rebalances and committed offsets.

Of consumer groups also the topics that regular expressions match, of streams groups also topologies.

Offsets that somebody resets or alters are commits while the group is known to have no members, or below the one before.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.groups.committed_offsets import TRANSACTIONAL, commit_changes
from sharelens.groups.histories import histories
from sharelens.groups.model_rebalances import consumer_rebalances, streams_rebalances
from sharelens.groups.model_replay import CONSUMER_MODEL, STREAMS_MODEL, GroupModel
from sharelens.groups.replay import GroupChange, changes, is_of_types, up_to
from sharelens.groups.schemas import CONSUMER, DEAD, EMPTY, NOT_READY
from sharelens.output.group_words import member_name, not_ready_reason
from sharelens.output.wording import counted, first_of, name, number
from sharelens.parameters.times import lasted
from sharelens.questions.timelines.entries import Entry, entry_of
from state_model.consumer.records import REGULAR_EXPRESSION
from state_model.offset_commits import OffsetPlace
from state_model.streams.records import TOPOLOGY
from state_model.topics import OFFSETS_TOPIC

FIRST_EPOCH = 2
"""The group epoch in the first record of a new group."""
OR_CLASSIC = "or a classic group again"
Rows = Sequence[Mapping[str, Any]]


def modelled_entries(records: pa.Table, commits: pa.Table, as_of_ms: int | None) -> Iterator[Entry]:
    """Entries from GROUP_RECORD rows and from COMMIT_COLUMNS rows of consumer and streams groups, up to a log time."""
    records = up_to(records.filter(is_of_types(records, (*CONSUMER_MODEL.types, *STREAMS_MODEL.types))), as_of_ms)
    groups = histories(records).groups.to_pylist()
    for model in (STREAMS_MODEL, CONSUMER_MODEL):
        yield from _of_records(records, model)
    yield from _of_rebalances(streams_rebalances(records).to_pylist(), "task")
    yield from _of_rebalances(consumer_rebalances(records).to_pylist(), "partition")
    yield from _of_states([row for row in groups if row["valid_to_ms"] != row["valid_from_ms"]])
    yield from _of_offsets(commits, groups)


def _of_records(records: pa.Table, model: GroupModel) -> Iterator[Entry]:
    """Groups that begin and end, members that come and go, topologies, and topics of regular expressions."""
    alive: set[str] = set()
    ended: set[str] = set()
    members: dict[tuple[str, str | None], str | None] = {}
    topologies: dict[str, Mapping[str, Any]] = {}
    for change in changes(records, model.types):
        group = change.group_id
        if change.is_undecoded:
            continue
        match change.record_type:
            case kind if kind == model.metadata and change.is_tombstone:
                alive.discard(group)
                ended.add(group)
                topologies.pop(group, None)
                yield _entry(change, "group_deleted", OR_CLASSIC if model is CONSUMER_MODEL else "")
            case kind if kind == model.metadata and group not in alive:
                alive.add(group)
                yield _beginning(change, is_new=group in ended)
            case kind if kind == model.member:
                yield _member_entry(change, members)
            case kind if kind == TOPOLOGY and change.value is not None:
                event = "topology_changed" if topologies.get(group, change.value) != change.value else "topology_set"
                topologies[group] = change.value
                yield _entry(change, event, _topology_text(change.value))
            case kind if kind == REGULAR_EXPRESSION and change.value is not None:
                yield _entry(change, "expression_resolved", _expression_text(change))


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
    where = f"on {name(change.value['clientHost'])}"
    if "processId" in change.value:
        where += f", process {name(change.value['processId'])}"
    if change.value.get("classicMemberMetadata") is not None:
        where += ", classic protocol"
    return _entry(change, event, f"{member_name(str(change.member_id), client)} {where}")


def _topology_text(value: Mapping[str, Any]) -> str:
    subtopologies = value["subtopologies"]
    topics = sorted({topic for subtopology in subtopologies for topic in subtopology["sourceTopics"]})
    count = counted(len(subtopologies), "subtopology", "subtopologies")
    sources = f" of {', '.join(map(name, topics))}" if topics else ""
    return f"topology epoch {number(value['epoch'])}: {count}{sources}"


def _expression_text(change: GroupChange) -> str:
    """`"x.*" matches x1, x2`: the topics of a regular expression."""
    topics = sorted((change.value or {})["topics"])
    return f"{name(change.member_id)} matches {first_of(topics, name) or 'no topic'}"


def _of_rebalances(rows: Rows, noun: str) -> Iterator[Entry]:
    for row in rows:
        if row["group_epoch"] is None:
            continue
        parts = [f"group epoch {number(row['group_epoch'])}", f"{counted(len(row['moved']), noun)} moved"]
        if row["stable_after_ms"] is not None:
            parts.append(f"stable after {lasted(row['stable_after_ms'])}")
        without_owner, still_without = row[f"{noun}s_without_owner"], row[f"{noun}s_still_without_owner"]
        if without_owner:
            longest = lasted(row["longest_without_owner_ms"])
            parts.append(f"{counted(without_owner, noun)} without an owner for {longest} at most")
        if still_without:
            parts.append(f"{counted(still_without, noun)} still without an owner")
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
        text = f"{name(topic)} {first_of(sorted(partitions.items()), _moved_partition)}"
        about = {"group_id": group, "log_partition": log_partition}
        yield _at(about, event, at_ms, text, min(offset for *_, offset in partitions.values()))


def _moved_partition(moved: tuple[int, tuple[int | None, int | None, int]]) -> str:
    """`3: 100 to 0`; `moved`: partition, offsets before and after, and the log offset of the commit."""
    partition, (old, new, _) = moved
    return f"{partition}: {_move(old, new)}"


def _move(old: int | None, new: int | None) -> str:
    """`100 to 0`; a side without a committed offset is left out."""
    if old is None or new is None:
        return number(new if old is None else old)
    return f"{number(old)} to {number(new)}"


def _is_idle(rows: Rows, log_offset: int) -> bool:
    """Whether a group had no members when a record was written; `rows`: GROUP_HISTORY in order.

    A streams group that did not exist had none. A consumer group may have been a classic group then, with members.
    """
    at = bisect_right(rows, log_offset, key=lambda row: row["valid_from_log_offset"])
    if at == 0 or rows[at - 1]["state"] == DEAD:
        return not rows or rows[0]["group_type"] != CONSUMER
    return bool(rows[at - 1]["state"] == EMPTY)


def _entry(change: GroupChange, event: str, text: str) -> Entry:
    about = {"group_id": change.group_id, "log_partition": change.log_partition}
    return _at(about, event, change.log_time_ms, text, change.log_offset)


def _at(about: Mapping[str, Any], event: str, at_ms: int, text: str, log_offset: int) -> Entry:
    """An entry about a group; its proof is a record of __consumer_offsets."""
    proof = {"log_topic": OFFSETS_TOPIC, "log_partition": about["log_partition"], "log_offset": log_offset}
    return entry_of({"group_id": about["group_id"]}, event, at_ms, text, **proof)
