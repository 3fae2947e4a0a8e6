"""The signs of trouble of consumer groups at the end of the evidence: what their findings are made of.

All comes from the group coordinator's log and the ends of the topics that the groups read.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.findings.signs import ConsumerSign, Lag, WaitingMember
from sharelens.groups.consumer_values import owned_partitions
from sharelens.groups.moment import consumer_groups_at
from sharelens.groups.replay import is_of_types, up_to
from sharelens.questions.findings.group_signs import epochs_ms
from sharelens.questions.findings.model_signs import (
    Rows,
    histories_of,
    lags_of,
    rows_by_group,
    since_last_end,
    state_signs,
    window_of,
)
from sharelens.questions.groups.describe_committed import is_lag_unknown
from sharelens.questions.groups.describe_consumer import committed_of, group_of, offset_rows
from sharelens.tables.port import Tables
from state_model.consumer.group_values import ConsumerGroup, is_settled, member_assignment, member_metadata
from state_model.consumer.records import CONSUMER_TYPES, METADATA


def consumer_signs(evidence: Tables, records: pa.Table, as_of_ms: int | None, now_ms: int) -> tuple[ConsumerSign, ...]:
    """The consumer groups among GROUP_RECORD rows that exist at the moment, by name.

    `now_ms`: the present, or later the time of the newest record.
    """
    records = up_to(records.filter(is_of_types(records, CONSUMER_TYPES)), as_of_ms)
    moments = {name: moment for name, moment in consumer_groups_at(records).items() if moment.group.group is not None}
    if not moments:
        return ()
    window = window_of(records, now_ms)
    replayed, group_histories = histories_of(records, moments, METADATA, window.from_ms)
    groups_by_name, members_by_name = rows_by_group(group_histories.groups), rows_by_group(group_histories.members)
    lags = lags_of(evidence, moments, as_of_ms, None, offset_rows)
    loops = epochs_ms(records, METADATA, window.now_ms)
    signs = []
    for name, moment in moments.items():
        lag, rows = lags[name]
        lives, of_its_members = (
            _lives(groups_by_name[name], members_by_name.get(name)) if name in replayed else ((), ())
        )
        of_state = state_signs(lives, moment.group.state, moment.newest.log_time_ms, window)
        of_members = _of_members(group_of(moment), rows, of_its_members, of_state["since_ms"])
        signs.append(
            ConsumerSign(group_id=name, lag=_lag(lag, rows), epochs_ms=loops.get(name, ()), **of_state, **of_members)
        )
    return tuple(signs)


def _lives(groups: pa.Table, members: pa.Table | None) -> tuple[Rows, Rows]:
    """GROUP_HISTORY and MEMBER_HISTORY rows of a group since its last deletion, in order."""
    lives, since = since_last_end(groups)
    if members is None:
        return lives, ()
    return lives, members.filter(pc.field("valid_from_log_offset") >= since).to_pylist()


def _lag(lag: Lag, rows: Rows) -> Lag:
    """The lag without partitions of which nothing is committed: they have none, as in Kafka's tool."""
    committed = committed_of(rows)
    return replace(lag, partitions=len(committed), unknown=sum(map(is_lag_unknown, committed)))


def _of_members(group: ConsumerGroup, rows: Rows, history: Rows, since_ms: int) -> dict[str, Any]:
    """The fields of ConsumerSign that follow from members; `rows`: those of `describe` with committed offsets."""
    owned = {name: owned_partitions(member_assignment(member)) for name, member in group.members.items()}
    timeouts_ms = [member_metadata(member).rebalance_timeout_ms for member in group.members.values()]
    known_timeouts_ms = [timeout_ms for timeout_ms in timeouts_ms if timeout_ms >= 0]
    return {
        "members": len(group.members),
        "partitions": sum(map(len, owned.values())),
        "idle_members": sum(not partitions for partitions in owned.values()),
        "without_owner": sorted(_without_owner(group, rows)) if group.members else (),
        "waiting": tuple(_waiting(group, history, since_ms)),
        "rebalance_timeout_ms": max(known_timeouts_ms, default=None),
    }


def _without_owner(group: ConsumerGroup, rows: Rows) -> Iterator[tuple[str, int]]:
    """Partitions that no member has: of the target assignment, or with offsets in a subscribed topic.

    Commits name their topic: where the name of a topic that members have is unknown, they say nothing.
    """
    names = {row["topic_id"]: row["topic"] for row in rows if row["topic"] is not None}
    assignments = map(member_assignment, group.members.values())
    owned = {partition for assignment in assignments for partition in owned_partitions(assignment)}
    targets = {partition for target in group.targets.values() for partition in target}
    yield from {(names.get(part.topic_id, part.topic_id), part.partition) for part in targets - owned}
    if not {partition.topic_id for partition in owned | targets} <= names.keys():
        return
    planned = {(names.get(part.topic_id, part.topic_id), part.partition) for part in targets}
    subscribed = group.topic_names
    for row in rows:
        place = (row["topic"], row["partition"])
        if row["member_id"] is None and row["topic"] in subscribed and place not in planned:
            yield place


def _waiting(group: ConsumerGroup, history: Rows, since_ms: int) -> Iterator[WaitingMember]:
    """Members that are not settled, each since when; without its history since the group has its state."""
    rows_by_member: dict[str, list[Mapping[str, Any]]] = {}
    for row in history:
        rows_by_member.setdefault(row["member_id"], []).append(row)
    for name, member in sorted(group.members.items()):
        assignment, target = member_assignment(member), group.targets.get(name, frozenset())
        partitions = len(assignment.pending) + len(target - assignment.assigned.keys())
        if is_settled(member, group.target_assignment_epoch) or not partitions or assignment.member_epoch < 0:
            continue
        waits = [row["valid_from_ms"] for row in _unsettled(rows_by_member.get(name, ()))]
        yield WaitingMember(member_id=name, since_ms=waits[-1] if waits else since_ms, partitions=partitions)


def _unsettled(rows: Rows) -> Iterator[Mapping[str, Any]]:
    """The newest MEMBER_HISTORY rows of a member that lacks or must give up partitions, back to the first of them."""
    for row in reversed(rows):
        if not row["pending_partitions"] and row["assigned_partitions"] == row["target_partitions"]:
            return
        yield row
