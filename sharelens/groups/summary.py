"""Consumer, share and streams groups by the group coordinator's own log: state, epochs, members, last change.

The state is Kafka's: DEAD after the group's tombstone, EMPTY without members, else STABLE; consumer and streams groups
have more.
"""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from sharelens.groups.consumer_values import consumer_group_values, consumer_member_values
from sharelens.groups.moment import (
    ConsumerMoment,
    ShareMoment,
    StreamsMoment,
    consumer_groups_at,
    groups_at,
    streams_groups_at,
)
from sharelens.groups.replay import GroupChange, Member
from sharelens.groups.schemas import DELETING, GROUPS, INITIALIZED, INITIALIZING, SHARE, STREAMS, SUBSCRIBED_MEMBERS
from state_model.streams.values import StreamsMember


def groups(records: pa.Table, as_of_ms: int | None = None) -> pa.Table:
    """GROUPS rows by group id from silver.group_record rows in (partition, log offset) order.

    `as_of_ms`: uses records with a log time up to this one; of groups with later records, some may be compacted away.
    """
    return group_rows(
        groups_at(records, as_of_ms), streams_groups_at(records, as_of_ms), consumer_groups_at(records, as_of_ms)
    )


def group_rows(
    share_moments: Mapping[str, ShareMoment],
    streams_moments: Mapping[str, StreamsMoment] | None = None,
    consumer_moments: Mapping[str, ConsumerMoment] | None = None,
) -> pa.Table:
    """GROUPS rows by group id from the groups as of one moment."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for name, share_moment in share_moments.items():
        rows.setdefault(name, []).append(_row(share_moment))
    for name, streams_moment in (streams_moments or {}).items():
        rows.setdefault(name, []).append(_streams_row(streams_moment))
    for name, consumer_moment in (consumer_moments or {}).items():
        rows.setdefault(name, []).append(_consumer_row(consumer_moment))
    return pa.Table.from_pylist([_newest(*rows[name]) for name in sorted(rows)], schema=GROUPS)


def _newest(first: dict[str, Any], *other_rows: dict[str, Any]) -> dict[str, Any]:
    """The row with the newest record: a group of a deleted group's name may have another type."""
    return max([first, *other_rows], key=lambda row: (row["last_change_ms"], row["log_offset"]))


def _row(moment: ShareMoment) -> dict[str, Any]:
    group = moment.group
    return {
        "group_type": SHARE,
        "state": group.state,
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "member_count": len(group.members),
        "members": [_member(name, member) for name, member in sorted(group.members.items())],
        "initialized_partitions": _initialization(moment, INITIALIZED),
        "initializing_partitions": _initialization(moment, INITIALIZING),
        "deleting_topics": _initialization(moment, DELETING),
        **_place(moment.newest),
        **moment.group_marks,
    }


def _streams_row(moment: StreamsMoment) -> dict[str, Any]:
    group = moment.group.group
    members = {} if group is None else group.members
    return {
        "group_type": STREAMS,
        "state": moment.group.state,
        "group_epoch": None if group is None else group.group_epoch,
        "assignment_epoch": None if group is None else group.target_assignment_epoch,
        "member_count": len(members),
        "members": [_streams_member(name, member) for name, member in sorted(members.items())],
        **_place(moment.newest),
        **moment.group_marks,
    }


def _consumer_row(moment: ConsumerMoment) -> dict[str, Any]:
    group = moment.group.group
    members = {} if group is None else group.members
    values = consumer_group_values(group)
    return {
        **{name: values[name] for name in ("group_type", "state", "group_epoch", "assignment_epoch", "member_count")},
        "members": [
            {name: values[name] for name in SUBSCRIBED_MEMBERS.value_type.names}
            for values in (consumer_member_values(name, member, ()) for name, member in sorted(members.items()))
        ],
        **_place(moment.newest),
        **moment.group_marks,
    }


def _place(newest: GroupChange) -> dict[str, Any]:
    return {
        "group_id": newest.group_id,
        "last_change_ms": newest.timestamp_ms,
        "partition": newest.log_partition,
        "log_offset": newest.log_offset,
    }


def _initialization(moment: ShareMoment, status: str) -> int | None:
    """How many share partitions (DELETING: topics) are in a status; None without a record of it."""
    initialization = moment.group.initialization
    return None if initialization is None else sum(key.status == status for key in initialization)


def _member(name: str, member: Member) -> dict[str, Any]:
    return {
        "member_id": name,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "member_epoch": member.member_epoch,
        "subscribed_topics": member.subscribed_topics,
    }


def _streams_member(name: str, member: StreamsMember) -> dict[str, Any]:
    metadata, assignment = member
    return {
        "member_id": name,
        "client_id": metadata and metadata.client_id,
        "client_host": metadata and metadata.client_host,
        "member_epoch": assignment and assignment.member_epoch,
    }
