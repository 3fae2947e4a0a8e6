"""Records of __consumer_offsets as rows: consumer, share and streams groups decoded, other records counted.

Other records are set aside by the first two bytes of their keys. A kernel prints the values of many group records; few
records, and what the kernel leaves out, go through the reference decoder (consumer-offsets-records).
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.decoding import KEPT_BYTES
from sharelens.evidence.schemas import DECODED_FROM, GROUP_RECORD, NAME, ODD_GROUP_RECORD
from sharelens.kafka_log.schemas import PROBLEM
from state_model import group_records
from state_model.columnar.json_values import print_values
from state_model.errors import DecodeError
from state_model.group_records import GroupRecord
from state_model.group_schemas import PREVIEW_TYPES, RECORD_TYPES, TABLE_TYPES

NAMING_TYPES: Final = (4, 15)
"""ConsumerGroupPartitionMetadata and ShareGroupStatePartitionMetadata: the record types with topic names and ids."""
FEW: Final = 1 << 10
"""Records that the reference decoder decodes in less time than it takes to load the kernel."""
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
    has_key = pc.and_(pc.invert(rows.column("is_control")), pc.is_valid(rows.column("key")))
    data = _chosen(rows, has_key.to_numpy())
    kinds = _record_types(data.column("key").combine_chunks())
    counts = {
        _type_name(int(kind)): int(number) for kind, number in zip(*np.unique(kinds, return_counts=True), strict=True)
    }
    is_decoded = np.isin(kinds, TABLE_TYPES)
    decodable_rows = _chosen(data, is_decoded)
    printed_records, is_whole = _printed(decodable_rows, kinds[is_decoded])
    places = np.flatnonzero(~is_whole)
    single_decoding = _decode_each(decodable_rows.take(pa.array(places)))
    previews = data.filter(pa.array(np.isin(kinds, PREVIEW_TYPES)))
    odd_records = [_odd_record(row, None) for row in previews.to_pylist()]
    name_rows = [
        {"topic_id": topic_id, "topic": topic, "source": "group_record", "valid_from_ms": at}
        for (topic_id, topic), at in sorted(single_decoding.names.items())
    ]
    return DecodedGroups(
        records=_in_order(
            printed_records, np.flatnonzero(is_whole), single_decoding.records, places[single_decoding.decoded]
        ),
        odd_records=pa.Table.from_pylist([*odd_records, *single_decoding.odd_records], schema=ODD_GROUP_RECORD),
        names=pa.Table.from_pylist(name_rows, schema=NAME),
        problems=pa.Table.from_pylist(single_decoding.problems, schema=PROBLEM),
        counts=counts,
    )


def _chosen(rows: pa.Table, is_chosen: npt.NDArray[np.bool_]) -> pa.Table:
    """The rows that are chosen; the table itself if all are, as values are large."""
    return rows if is_chosen.all() else rows.filter(pa.array(is_chosen))


def _in_order(
    printed_records: pa.Table,
    places: npt.NDArray[np.int64],
    single_records: list[dict[str, Any]],
    other_places: npt.NDArray[np.int64],
) -> pa.Table:
    """GROUP_RECORD rows from both forms of decoding, by their places."""
    if not single_records:
        return printed_records
    order = np.argsort(np.concatenate([places, other_places]))
    return pa.concat_tables([printed_records, pa.Table.from_pylist(single_records, schema=GROUP_RECORD)]).take(order)


def _printed(rows: pa.Table, kinds: npt.NDArray[np.int32]) -> tuple[pa.Table, npt.NDArray[np.bool_]]:
    """GROUP_RECORD rows of tombstones and of the values that the kernel prints; and which rows these are.

    Few rows are none of them: they take less time than loading the kernel.
    """
    if rows.num_rows < FEW:
        return GROUP_RECORD.empty_table(), np.zeros(rows.num_rows, np.bool_)
    keys = rows.column("key").combine_chunks().dictionary_encode()
    named = [_names_of_key(key) for key in keys.dictionary.to_pylist()]
    texts, is_printed = print_values(kinds.astype(np.int64), rows.column("value").combine_chunks())
    is_tombstone = rows.column("value").is_null()
    has_key = np.array([record_name is not None for record_name, *_ in named], np.bool_)[keys.indices.to_numpy()]
    is_whole = has_key & (is_printed | is_tombstone.to_numpy())

    of_keys = [pa.array(column, pa.string()).take(keys.indices) for column in zip(*named, strict=True)]
    columns = {
        "log_topic_id": rows.column("topic_id"),
        "partition": rows.column("partition"),
        "log_offset": rows.column("offset"),
        "timestamp_ms": rows.column("timestamp_ms"),
        "record_type": pa.array(kinds, pa.int16()),
        "record_name": of_keys[0],
        "group_id": of_keys[1],
        "member_id": of_keys[2],
        "regular_expression": of_keys[3],
        "value_version": pa.array(np.zeros(len(kinds), np.int16), mask=is_tombstone.to_numpy()),
        "is_tombstone": is_tombstone,
        "value_json": texts,
        "below_log_start": rows.column("below_log_start"),
        "uncommitted": rows.column("uncommitted"),
    }
    return _chosen(pa.table(columns), is_whole).cast(GROUP_RECORD), is_whole


def _names_of_key(key: bytes) -> tuple[str | None, str | None, str | None, str | None]:
    """Record name, group id, member id and regular expression of a key of TABLE_TYPES; no name: it is cut short."""
    try:
        record = group_records.decode_record(key, None)
    except DecodeError:
        return None, None, None, None
    assert isinstance(record, GroupRecord)
    return record.name, record.group_id, record.member_id, record.regular_expression


@dataclass(slots=True)
class _Decoded:
    """Rows by the reference decoder; `decoded`: which of its rows are in `records`."""

    records: list[dict[str, Any]] = field(default_factory=list)
    decoded: list[int] = field(default_factory=list)
    odd_records: list[dict[str, Any]] = field(default_factory=list)
    problems: list[dict[str, Any]] = field(default_factory=list)
    names: dict[tuple[str, str], int] = field(default_factory=dict)


def _decode_each(rows: pa.Table) -> _Decoded:
    """Rows of TABLE_TYPES by the reference decoder."""
    result = _Decoded()
    for place, row in enumerate(rows.to_pylist()):
        try:
            record = group_records.decode_record(row["key"], row["value"])
        except DecodeError as error:
            result.problems.append(_problem(row, error.reason, str(error)))
            result.odd_records.append(_odd_record(row, error.reason))
            continue
        assert isinstance(record, GroupRecord)
        if record.undecoded is not None:
            detail = f"{record.name} has value version {record.version}, which this version does not know"
            result.problems.append(_problem(row, "unknown_value_version", detail))
        result.records.append(_row(row, record))
        result.decoded.append(place)
        for key in _topic_names(record):
            result.names[key] = min(row["timestamp_ms"], result.names.get(key, row["timestamp_ms"]))
    return result


def topic_names(rows: pa.Table) -> dict[str, str]:
    """Topic names by topic id from LOG_RECORD rows of __consumer_offsets; the last record of a topic counts.

    Records that can't be decoded hold none.
    """
    naming_keys = pa.array([kind.to_bytes(2, "big") for kind in NAMING_TYPES])
    begins = pc.is_in(pc.binary_slice(rows.column("key"), 0, 2), value_set=naming_keys)
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
    record_type = RECORD_TYPES.get(kind)
    return f"unknown type {kind}" if record_type is None else record_type.name


def _record_types(keys: pa.Array) -> npt.NDArray[np.int32]:
    """The int16 record type that each key begins with; -1 for a key that is too short."""
    if not len(keys):
        return np.empty(0, np.int32)
    lengths = pc.binary_length(keys).to_numpy()
    padded = pc.binary_join_element_wise(pc.binary_slice(keys, 0, 2), pa.scalar(b"\0\0"), b"")
    heads = np.frombuffer(b"".join(pc.binary_slice(padded, 0, 2).to_pylist()), ">i2").astype(np.int32)
    return np.where(lengths >= 2, heads, -1)


def _topic_names(record: GroupRecord) -> Iterator[tuple[str, str]]:
    """(topic id, name) pairs of a record of NAMING_TYPES; none of other records."""
    for entries in (record.value or {}).values() if record.record_type in NAMING_TYPES else ():
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
        "regular_expression": record.regular_expression,
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
        "first_offset": row["offset"],
        "last_offset": row["offset"],
        "reason": reason,
        "detail": detail,
        "bytes": (row["key"] + (row["value"] or b""))[: 2 * KEPT_BYTES],
    }
