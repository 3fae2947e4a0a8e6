"""A group and its share partitions as a coordinator describes them, or as a log has them: the values of both."""

from collections.abc import Mapping
from typing import NamedTuple


class MemberNow(NamedTuple):
    """A member: its epoch, and what it is assigned.

    `assigned`: (topic id, partition) of a consumer or share group, (type, subtopology, partition) of tasks of a streams
    group.
    """

    epoch: int | None
    assigned: frozenset[tuple[object, ...]]


class GroupNow(NamedTuple):
    """A consumer, share or streams group; `members`: by id."""

    state: str
    group_epoch: int | None
    assignment_epoch: int | None
    members: Mapping[str, MemberNow]


class SharePartition(NamedTuple):
    """A share partition."""

    group_id: str
    topic_id: str
    partition: int


class OffsetNow(NamedTuple):
    """Where a share partition begins; its lag, None: unknown."""

    start_offset: int
    lag: int | None
