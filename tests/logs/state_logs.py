"""Small log directories for tests: a few state records in, folders as a broker leaves them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from state_model.columnar.schemas import SHARE_RECORD
from tools.log_writer.share_records import encode_share_records
from tools.log_writer.writer import encode_log, record_columns, write_checkpoints, write_meta, write_partition

STATE_TOPIC = "__share_group_state"
STATE_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
ORDERS_ID = "AAAAAAAAAAAAAAAAAAAABQ"
UNKNOWN_VERSION = (9).to_bytes(2, "big")
START_MS = 1_790_000_000_000
Batch = tuple[int, int, int, int]
"""First offset, last offset, delivery state, delivery count."""


def snapshot(
    group: str = "g", partition: int = 0, *, start: int = 0, epoch: int = 0, **extra_fields: Any
) -> dict[str, Any]:
    """A ShareSnapshot of the topic `orders`; `batches` as tuples; `at_ms` is the record's timestamp."""
    stamps = {"state_epoch": 1, "create_timestamp_ms": START_MS, "write_timestamp_ms": START_MS}
    return _record("snapshot", group, partition, start=start, epoch=epoch, **{**stamps, **extra_fields})


def update(
    group: str = "g", partition: int = 0, *, start: int = -1, epoch: int = 0, **extra_fields: Any
) -> dict[str, Any]:
    """A ShareUpdate."""
    return _record("update", group, partition, start=start, epoch=epoch, **extra_fields)


def tombstone(
    group: str = "g", partition: int = 0, *, topic_id: str = ORDERS_ID, at_ms: int = START_MS
) -> dict[str, Any]:
    """A tombstone."""
    return {
        "record_type": "tombstone",
        "group_id": group,
        "topic_id": topic_id,
        "partition": partition,
        "timestamp_ms": at_ms,
    }


def other(number: int, group: str = "g", partition: int = 0, *, at_ms: int = START_MS) -> dict[str, Any]:
    """A record of a type that no Kafka has yet, about a share partition."""
    return {**tombstone(group, partition, at_ms=at_ms), "other_type": number}


def _record(kind: str, group: str, partition: int, *, start: int, epoch: int, **extra_fields: Any) -> dict[str, Any]:
    at_ms = extra_fields.pop("at_ms", START_MS)
    batches: Sequence[Batch] = extra_fields.pop("batches", ())
    names = ("first_offset", "last_offset", "delivery_state", "delivery_count")
    return {
        "record_type": kind,
        "group_id": group,
        "topic_id": extra_fields.pop("topic_id", ORDERS_ID),
        "partition": partition,
        "timestamp_ms": at_ms,
        "value_version": 0,
        "snapshot_epoch": epoch,
        "leader_epoch": extra_fields.pop("leader_epoch", 0),
        "start_offset": start,
        "delivery_complete_count": extra_fields.pop("delivery_complete_count", 0),
        "state_batches": [dict(zip(names, batch, strict=True)) for batch in batches],
        "unknown_tags": [],
        **extra_fields,
    }


def encoded_records(records: Sequence[dict[str, Any]]) -> list[tuple[bytes, bytes | None, int]]:
    """Key, value and timestamp of each record; one with `damage="value_version"` has a version that nobody knows."""
    damaged = [record.get("damage") == "value_version" for record in records]
    types = [record.get("other_type") for record in records]
    unlogged = ("damage", "other_type")
    records = [{name: value for name, value in record.items() if name not in unlogged} for record in records]
    described = {
        "log_topic_id": STATE_TOPIC_ID,
        "state_partition": 0,
        "log_offset": 0,
        "log_time_ms": 0,
        "trailing_bytes": 0,
        "record_bytes": 0,
        "log_leader_epoch": 0,
        "below_log_start": False,
        "uncommitted": False,
    }
    rows = pa.RecordBatch.from_pylist([described | record for record in records], schema=SHARE_RECORD)
    encoded = encode_share_records(rows)
    stamps = [record["timestamp_ms"] for record in records]
    values = [
        UNKNOWN_VERSION + value[2:] if bad else value
        for value, bad in zip(encoded.column("value").to_pylist(), damaged, strict=True)
    ]
    keys = [
        key if number is None else number.to_bytes(2, "big") + key[2:]
        for key, number in zip(encoded.column("key").to_pylist(), types, strict=True)
    ]
    return list(zip(keys, values, stamps, strict=True))


def write_state_partition(
    directory: Path,
    records: Sequence[dict[str, Any]],
    *,
    number: int = 0,
    topic_id: str = STATE_TOPIC_ID,
    base_offset: int = 0,
) -> Path:
    """The folder of one state partition that holds the records at ascending offsets, one a batch."""
    keys, values, stamps = zip(*encoded_records(records), strict=True)
    columns = record_columns(keys, values, stamps)
    log = encode_log(columns, records_per_batch=1, base_offset=base_offset)
    return write_partition(directory, STATE_TOPIC, number, log, topic_id=topic_id)


def write_log_directory(
    directory: Path,
    records: Sequence[dict[str, Any]],
    *,
    cluster_id: str | None = None,
    committed: int | None = None,
    state_topic_id: str = STATE_TOPIC_ID,
) -> Path:
    """A log directory with state partition 0 and a folder of the topic `orders`."""
    directory.mkdir(parents=True, exist_ok=True)
    write_state_partition(directory, records, topic_id=state_topic_id)
    user = directory / "orders-0"
    user.mkdir()
    (user / "00000000000000000000.log").write_bytes(b"")
    (user / "partition.metadata").write_text(f"version: 0\ntopic_id: {ORDERS_ID}", encoding="ascii")
    if cluster_id is not None:
        write_meta(directory, cluster_id=cluster_id, node_id=1)
    if committed is not None:
        write_checkpoints(directory, high_watermarks={(STATE_TOPIC, 0): committed})
    return directory
