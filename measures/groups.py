"""Share groups by the group coordinator's own log: state, epochs, members, last change.

The state is Kafka's: DEAD after the group's tombstone, EMPTY without members, else STABLE.
"""

from typing import Any

import pyarrow as pa

from measures.group_moment import GroupMoment, groups_at
from measures.group_replay import Member
from measures.group_schemas import DELETING, INITIALIZED, INITIALIZING
from measures.schemas import GROUPS


def groups(records: pa.Table, as_of_ms: int | None = None) -> pa.Table:
    """GROUPS rows by group id from silver.group_record rows in (partition, log offset) order.

    `as_of_ms`: uses records with a log time up to this one; of groups with later records, some may be compacted away.
    """
    rows = [_row(moment) for moment in groups_at(records, as_of_ms).values()]
    return pa.Table.from_pylist(rows, schema=GROUPS)


def _row(moment: GroupMoment) -> dict[str, Any]:
    group, newest = moment.group, moment.newest
    return {
        "group_id": newest.group_id,
        "state": group.state,
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "member_count": len(group.members),
        "members": [_member(name, member) for name, member in sorted(group.members.items())],
        "initialized_partitions": _initialization(moment, INITIALIZED),
        "initializing_partitions": _initialization(moment, INITIALIZING),
        "deleting_topics": _initialization(moment, DELETING),
        "last_change_ms": newest.timestamp_ms,
        "partition": newest.log_partition,
        "log_offset": newest.log_offset,
        **moment.group_marks,
    }


def _initialization(moment: GroupMoment, status: str) -> int | None:
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
