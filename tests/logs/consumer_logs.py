"""Records of consumer groups as the group coordinator writes them, for tests."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.logs.group_files import GroupEntry
from tests.logs.state_logs import ORDERS_ID

GROUP = "c"
Entry = tuple[int, str | None, Mapping[str, Any] | None]
"""Record type, member or regular expression, and value (None: a tombstone)."""


def partitions(*numbers: int, epoch: int | None = None) -> tuple[dict[str, Any], ...]:
    """Partitions of orders; `epoch`: with their assignment epochs."""
    entry: dict[str, Any] = {"topic_id": ORDERS_ID, "partitions": numbers}
    if epoch is not None:
        entry["assignment_epochs"] = (epoch,) * len(numbers)
    return (entry,) if numbers else ()


def joined(member: str, **changed: Any) -> Entry:
    """A member that subscribes to orders."""
    value = {
        "instance_id": None,
        "rack_id": None,
        "client_id": f"c-{member}",
        "client_host": "/127.0.0.1",
        "subscribed_topic_names": ("orders",),
        "subscribed_topic_regex": None,
        "rebalance_timeout_ms": 300_000,
        "server_assignor": None,
        "classic_member_metadata": None,
    }
    return 5, member, value | changed


def epoch(number: int) -> Entry:
    """The group epoch."""
    return 3, None, {"epoch": number, "metadata_hash": 7}


def target(member: str, *numbers: int) -> Entry:
    """A member's target assignment of partitions of orders."""
    return 7, member, {"topic_partitions": partitions(*numbers)}


def target_epoch(number: int) -> Entry:
    """The epoch of the target assignment."""
    return 6, None, {"assignment_epoch": number, "assignment_timestamp": 5}


def assigned(member: str, number: int, *numbers: int, pending: Sequence[int] = (), state: int = 0) -> Entry:
    """A member's current assignment in an epoch."""
    value = {
        "member_epoch": number,
        "previous_member_epoch": number - 1,
        "state": state,
        "assigned_partitions": partitions(*numbers, epoch=number),
        "partitions_pending_revocation": partitions(*pending, epoch=number),
    }
    return 8, member, value


def resolved(expression: str, *topics: str) -> Entry:
    """The topics that a regular expression matches."""
    return 16, expression, {"topics": topics, "version": 3, "timestamp": 9}


SCALED_OUT = (
    *(joined("a"), epoch(2), target("a", 0, 1), target_epoch(2), assigned("a", 2, 0, 1)),
    *(joined("b", instance_id="i", server_assignor="range"), epoch(3)),
    *(target("a", 0), target("b", 1), target_epoch(3)),
    assigned("b", 3, state=2),
    assigned("a", 2, 0, pending=(1,), state=1),
    assigned("a", 3, 0),
    assigned("b", 3, 1),
)
"""Member a has two partitions of orders, b joins and gets one of them from a."""
REMOVED_B = ((8, "b", None), (7, "b", None), (5, "b", None), epoch(4), target("a", 0, 1), target_epoch(4))
DELETED = ((6, None, None), (3, None, None))


def entries(records: Iterable[Entry], group: str = GROUP) -> list[GroupEntry]:
    """The records a millisecond apart, the first at 100 ms."""
    return [GroupEntry(100 + at, kind, value, group, name) for at, (kind, name, value) in enumerate(records)]
