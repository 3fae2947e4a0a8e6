"""Records of __consumer_offsets as rows: share and streams groups decoded, other records counted.

Group records are few beside offset commits, so those are set aside by the first two bytes of their keys, and only
the rest goes through the reference decoder (consumer-offsets-records).
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evidence.decoding import KEPT_BYTES
from evidence.schemas import DECODED_FROM, GROUP_RECORD, NAME, ODD_GROUP_RECORD
from kafka_log.schemas import PROBLEM
from state_model import group_records
from state_model.errors import DecodeError
from state_model.group_records import GroupRecord
from state_model.group_schemas import PREVIEW_TYPES, RECORD_TYPES

DECODED_TYPES = tuple(number for number, kind in RECORD_TYPES.items() if kind.values)
STATE_PARTITION_METADATA: Final = 15
"""Record type ShareGroupStatePartitionMetadata: the only group record that has topic names beside topic ids."""
UNKNOWN_TOPIC: Final = "<UNKNOWN>"
"""The name that the group coordinator writes for a deleted topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedGroups:
    """GROUP_RECORD, NAME, PROBLEM and ODD_GROUP_RECORD rows, and how many records there were of each type by name."""

    records: pa.Table
    odd_records: pa.Table
    names: pa.Table
    problems: pa.Table
    counts: dict[str, int]


def decode_groups(rows: pa.Table) -> DecodedGroups:
    """Decodes LOG_RECORD rows of __consumer_offsets, in their order; control records carry no group and are left out.

    A record that can't be decoded is a PROBLEM row.
    """
    data = rows.filter(pc.and_(pc.invert(rows.column("is_control")), pc.is_valid(rows.column("key"))))
    kinds = _record_types(data.column("key").combine_chunks())
    counts = {
        _type_name(int(kind)): int(number) for kind, number in zip(*np.unique(kinds, return_counts=True), strict=True)
    }
    records: list[dict[str, Any]] = []
    problems: list[dict[str, Any]] = []
    names: dict[tuple[str, str], int] = {}
    previews = data.filter(pa.array(np.isin(kinds, PREVIEW_TYPES)))
    odd_records = [_odd_record(row, None) for row in previews.to_pylist()]
    for row in data.filter(pa.array(np.isin(kinds, DECODED_TYPES))).to_pylist():
        try:
            record = group_records.decode_record(row["key"], row["value"])
        except DecodeError as error:
            problems.append(_problem(row, error.reason, str(error)))
            odd_records.append(_odd_record(row, error.reason))
            continue
        assert isinstance(record, GroupRecord)
        if record.undecoded is not None:
            detail = f"{record.name} has value version {record.version}, which this version does not know"
            problems.append(_problem(row, "unknown_value_version", detail))
        records.append(_row(row, record))
        for key in _topic_names(record):
            names[key] = min(row["timestamp_ms"], names.get(key, row["timestamp_ms"]))
    name_rows = [
        {"topic_id": topic_id, "topic": topic, "source": "group_record", "valid_from_ms": at}
        for (topic_id, topic), at in sorted(names.items())
    ]
    return DecodedGroups(
        records=pa.Table.from_pylist(records, schema=GROUP_RECORD),
        odd_records=pa.Table.from_pylist(odd_records, schema=ODD_GROUP_RECORD),
        names=pa.Table.from_pylist(name_rows, schema=NAME),
        problems=pa.Table.from_pylist(problems, schema=PROBLEM),
        counts=counts,
    )


def topic_names(rows: pa.Table) -> dict[str, str]:
    """Topic names by topic id from LOG_RECORD rows of __consumer_offsets; the last record of a topic counts.

    Records that can't be decoded hold none.
    """
    metadata_key = pa.scalar(STATE_PARTITION_METADATA.to_bytes(2, "big"))
    begins = pc.equal(pc.binary_slice(rows.column("key"), 0, 2), metadata_key)
    chosen = rows.filter(pc.and_(pc.fill_null(begins, False), pc.invert(rows.column("is_control"))))
    names: dict[str, str] = {}
    for row in chosen.select(["key", "value"]).to_pylist():
        try:
            record = group_records.decode_record(row["key"], row["value"])
        except DecodeError:
            continue
        if isinstance(record, GroupRecord):
            names.update(_topic_names(record))
    return names


def _type_name(kind: int) -> str:
    known = RECORD_TYPES.get(kind)
    return f"unknown type {kind}" if known is None else known.name


def _record_types(keys: pa.Array) -> npt.NDArray[np.int32]:
    """The int16 record type that each key begins with; -1 for a key that is too short."""
    if not len(keys):
        return np.empty(0, np.int32)
    lengths = pc.binary_length(keys).to_numpy()
    padded = pc.binary_join_element_wise(pc.binary_slice(keys, 0, 2), pa.scalar(b"\0\0"), b"")
    heads = np.frombuffer(b"".join(pc.binary_slice(padded, 0, 2).to_pylist()), ">i2").astype(np.int32)
    return np.where(lengths >= 2, heads, -1)


def _topic_names(record: GroupRecord) -> Iterator[tuple[str, str]]:
    """(topic id, name) pairs of a ShareGroupStatePartitionMetadata record; none of other records."""
    for entries in (record.value or {}).values() if record.record_type == STATE_PARTITION_METADATA else ():
        for entry in entries if isinstance(entries, (list, tuple)) else ():
            if isinstance(entry, dict) and entry.get("topic_name") not in (None, UNKNOWN_TOPIC):
                yield str(entry["topic_id"]), str(entry["topic_name"])


def _row(row: dict[str, Any], record: GroupRecord) -> dict[str, Any]:
    printed = group_records.to_formatter_json(record)["value"]
    data = printed["data"] if isinstance(printed, dict) else None
    return {
        "log_topic_id": row["topic_id"],
        "partition": row["partition"],
        "log_offset": row["offset"],
        "timestamp_ms": row["timestamp_ms"],
        "record_type": record.record_type,
        "record_name": record.name,
        "group_id": record.group_id,
        "member_id": record.member_id,
        "value_version": record.version,
        "is_tombstone": record.is_tombstone,
        "value_json": None if data is None else json.dumps(data, ensure_ascii=False),
        "below_log_start": row["below_log_start"],
        "uncommitted": row["uncommitted"],
    }


def _odd_record(row: dict[str, Any], reason: str | None) -> dict[str, Any]:
    key: bytes = row["key"]
    length = int.from_bytes(key[2:4], "big")
    group_id = key[4 : 4 + length].decode("utf-8", "replace") if len(key) >= 4 + length else None
    return {
        "log_topic_id": row["topic_id"],
        "partition": row["partition"],
        "log_offset": row["offset"],
        "timestamp_ms": row["timestamp_ms"],
        "record_type": int.from_bytes(key[:2], "big", signed=True),
        "group_id": group_id,
        "reason": reason,
        "uncommitted": row["uncommitted"],
    }


def _problem(row: dict[str, Any], reason: str, detail: str) -> dict[str, Any]:
    return {
        "source_id": "",
        "topic": row["topic"],
        "topic_id": row["topic_id"],
        "partition": row["partition"],
        "file": DECODED_FROM,
        "position": row["offset"],
        "offset": row["offset"],
        "last_offset": row["offset"],
        "reason": reason,
        "detail": detail,
        "bytes": (row["key"] + (row["value"] or b""))[: 2 * KEPT_BYTES],
    }
