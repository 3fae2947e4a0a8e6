"""Damages of the small cluster of `cluster_logs`, each of which makes two of its logs disagree."""

from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.logs.cluster_logs import (
    END_MS,
    GROUPS,
    MINUTE,
    OTHER_ID,
    group_entries,
    metadata,
    partition,
    state,
    write_orders,
)
from tests.logs.group_files import GroupEntry, epoch, lists, write_group_partition
from tests.logs.metadata_logs import write_metadata
from tests.logs.state_logs import ORDERS_ID, START_MS, STATE_TOPIC, snapshot, update, write_state_partition

NEW_STATE_ID: Final = "AAAAAAAAAAAAAAAAAAAAcQ"


def forgotten(logs: Path) -> None:
    """The state log lacks a share partition that the group has."""
    write_state_partition(logs, [record for record in state() if record["group_id"] != "mail"])


def unlisted(logs: Path) -> None:
    """A share partition leaves the group, not the state log."""
    write_group_partition(logs, [*group_entries(), GroupEntry(END_MS - 5 * MINUTE, 15, lists(), "mail")])


def beyond_epoch(logs: Path) -> None:
    """A state epoch beyond the group's."""
    creations, writes = state()[: len(GROUPS)], state()[len(GROUPS) :]
    again = snapshot("mail", epoch=1, state_epoch=9, at_ms=END_MS - 3 * MINUTE)
    write_state_partition(logs, [*creations, again, *writes])


def skipped_epoch(logs: Path) -> None:
    """A group epoch that no snapshot has."""
    write_group_partition(logs, [*group_entries(), GroupEntry(END_MS, 11, epoch(9), "orders")])


def other_cluster(logs: Path) -> None:
    """The metadata log of another cluster."""
    write_metadata(logs, metadata(state_id=OTHER_ID))


def other_partition(logs: Path) -> None:
    """A share partition of a user partition that never was."""
    write_state_partition(logs, [*state(), snapshot("mail", 7, state_epoch=2)])


def other_groups(logs: Path) -> None:
    """Groups of another cluster."""
    write_group_partition(logs, group_entries(("stock", "fraud", "billing")))


def short_topic(logs: Path) -> None:
    """The user topic ends in front of start offsets."""
    write_orders(logs, count=1)


def cut_topic(logs: Path) -> None:
    """States beyond the end of the user topic."""
    creations = [snapshot(group, state_epoch=2, start=0) for group in GROUPS]
    beyond = update("mail", start=2, batches=[(2, 30, 2, 1)], delivery_complete_count=29, at_ms=END_MS)
    write_state_partition(logs, [*creations, *state()[len(GROUPS) :], beyond])


def later_epoch(logs: Path) -> None:
    """A leader epoch that never began."""
    ahead = update("mail", start=2, leader_epoch=4, delivery_complete_count=0, at_ms=END_MS - MINUTE)
    write_state_partition(logs, [*state(), ahead])


def other_assignment(logs: Path) -> None:
    """A current assignment of a partition that neither the target nor the topic has, in place of the target's."""
    current = {"member_epoch": 2, "previous_member_epoch": 1, "state": 0}
    values: list[tuple[int, dict[str, Any]]] = [
        (10, {"rack_id": None, "client_id": "c", "client_host": "/h", "subscribed_topic_names": ("orders",)}),
        (13, {"topic_partitions": _partitions(0)}),
        (12, {"assignment_epoch": 2, "assignment_timestamp": 0}),
        (14, {**current, "assigned_partitions": _partitions(7)}),
    ]
    entries = [GroupEntry(START_MS, kind, value, "mail", None if kind == 12 else "m") for kind, value in values]
    write_group_partition(logs, [*group_entries()[:-1], *entries, group_entries()[-1]])


def _partitions(*numbers: int) -> tuple[dict[str, Any], ...]:
    return ({"topic_id": ORDERS_ID, "partitions": numbers},)


def parted_group(logs: Path) -> None:
    """A record of a group in another partition of __consumer_offsets than the others."""
    write_group_partition(logs, [GroupEntry(END_MS, 11, epoch(3), "mail")], number=1)


def older_state(logs: Path) -> None:
    """A reset at a larger group epoch that never came to the state log."""
    values: list[tuple[int, dict[str, Any]]] = [(11, epoch(3)), (15, lists([0], initializing=[0])), (15, lists([0]))]
    entries = [GroupEntry(START_MS + MINUTE, kind, value, "mail") for kind, value in values]
    write_group_partition(logs, [*group_entries()[:-1], *entries, group_entries()[-1]])


def state_created_again(logs: Path) -> None:
    """The state topic created again, of which one share partition has state since: too few to show its size."""
    write_state_partition(logs, [snapshot("orders", state_epoch=2, at_ms=END_MS)], topic_id=NEW_STATE_ID)
    *records, end = metadata(again=[(STATE_TOPIC, NEW_STATE_ID)])
    write_metadata(logs, [*records, (START_MS, partition(NEW_STATE_ID)), end])


class OddEntry(NamedTuple):
    """A record of a group with any bytes."""

    time_ms: int
    key: bytes

    def encoded(self) -> tuple[bytes, bytes]:
        """Key and value."""
        return self.key, b"?"


def odd_group_records(logs: Path) -> None:
    """A preview record, and one whose key is cut short."""
    preview, cut_short = ((kind).to_bytes(2, "big") + b"\0\4mail" for kind in (9, 15))
    write_group_partition(logs, [*group_entries(), OddEntry(END_MS, preview), OddEntry(END_MS, cut_short)])


DAMAGES = (
    *(forgotten, unlisted, beyond_epoch, skipped_epoch, other_cluster, other_partition, other_groups),
    *(short_topic, cut_topic, later_epoch, odd_group_records),
    *(other_assignment, parted_group, older_state, state_created_again),
)
