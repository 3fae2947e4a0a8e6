"""A log directory of a whole small cluster for tests: state log, `__consumer_offsets`, a user topic, metadata."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from state_model.metadata.schemas import PARTITION
from tests.logs.group_files import OFFSETS_TOPIC_ID, GroupEntry, epoch, lists, write_group_partition
from tests.logs.metadata_logs import topic, value_of, write_metadata
from tests.logs.state_logs import (
    ORDERS_ID,
    START_MS,
    STATE_TOPIC,
    STATE_TOPIC_ID,
    snapshot,
    update,
    write_state_partition,
)
from tools.log_writer.writer import encode_log, record_columns, write_partition

MINUTE = 60_000
END_MS = START_MS + 10 * MINUTE
GROUPS = ("orders", "payments", "mail", "search")
OTHER_ID = "AAAAAAAAAAAAAAAAAAAAZQ"


def state(groups: Sequence[str] = GROUPS) -> list[dict[str, Any]]:
    """A share partition of each group, created at START_MS, and a write 10 minutes later."""
    created = [snapshot(group, state_epoch=2) for group in groups]
    written = [update(group, start=2, delivery_complete_count=0, at_ms=END_MS) for group in groups]
    return [*created, *written]


def group_entries(groups: Sequence[str] = GROUPS) -> list[GroupEntry]:
    """Each group with its epoch and its initialized partition, and a record 10 minutes later."""
    first = [
        entry
        for group in groups
        for entry in (GroupEntry(START_MS, 11, epoch(2), group), GroupEntry(START_MS, 15, lists([0]), group))
    ]
    return [*first, GroupEntry(END_MS, 11, epoch(3), groups[0])]


def partition(topic_id: str, leader_epoch: int = 0, number: int = 0) -> bytes:
    """The record of a partition of a topic in the metadata log."""
    tree = {
        "partition_id": number, "topic_id": topic_id, "replicas": (1,), "isr": (1,), "removing_replicas": (),
        "adding_replicas": (), "leader": 1, "leader_epoch": leader_epoch, "partition_epoch": 0,
        "leader_recovery_state": 0,
    }  # fmt: skip
    return value_of(PARTITION, tree)


def metadata(
    state_id: str = STATE_TOPIC_ID, offsets_id: str = OFFSETS_TOPIC_ID, again: Sequence[tuple[str, str]] = ()
) -> list[tuple[int, bytes]]:
    """The topics of the cluster, and a topic that is created a minute after all other records."""
    named = [(STATE_TOPIC, state_id), ("__consumer_offsets", offsets_id), ("orders", ORDERS_ID), *again]
    values = [topic(name, topic_id) for name, topic_id in named] + [partition(ORDERS_ID)]
    return [*((START_MS, value) for value in values), (END_MS + MINUTE, topic("late", OTHER_ID))]


def write_orders(logs: Path, last_ms: int = END_MS + MINUTE, count: int = 10) -> None:
    """The topic `orders`, its last record a minute after all others."""
    stamps = [START_MS] * (count - 1) + [last_ms]
    log = encode_log(record_columns([None] * count, [b"v"] * count, stamps), records_per_batch=1)
    write_partition(logs, "orders", 0, log, topic_id=ORDERS_ID)


def write_cluster(logs: Path) -> Path:
    """The log directory; all its logs agree."""
    write_state_partition(logs, state())
    write_group_partition(logs, group_entries())
    write_orders(logs)
    write_metadata(logs, metadata())
    return logs
