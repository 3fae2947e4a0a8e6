"""METADATA_RECORD rows: the records of `__cluster_metadata` and of its snapshots as a lake keeps them, without secrets.

Neither bytes nor digests are kept: a digest whose key lies beside it can be guessed like a plain one. Of a value that
is not safe to keep there is only the size.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.intervals import Interval
from sharelens.evidence.metadata_events import EventReader, MetadataHistory, Stretch, Undecoded
from sharelens.evidence.metadata_schemas import METADATA_RECORD
from state_model.metadata import schemas
from state_model.metadata.events import Snapshot
from state_model.metadata.history import Timeline, timeline
from state_model.metadata.records import MetadataRecord
from state_model.schema import Value

RECORD_COLUMNS = METADATA_RECORD.names
"""The columns that `record_history` reads."""
Row = dict[str, Any]
_NAMING = pa.array([schemas.TOPIC, schemas.REMOVE_TOPIC], pa.int16())
_ACROSS = pa.array(
    [schemas.CLEAR_ELR, schemas.BEGIN_TRANSACTION, schemas.END_TRANSACTION, schemas.ABORT_TRANSACTION], pa.int16()
)


def needed_for(topic_ids: pa.Array) -> pc.Expression:
    """The condition for METADATA_RECORD rows that the history of some topics, and of all but partitions, needs."""
    topic_id = pc.field("topic_id")
    return topic_id.is_null() | topic_id.isin(topic_ids) | pc.field("record_type").isin(_NAMING)


def changed_topics(rows: pa.Table) -> pa.Array | None:
    """The ids of the topics whose partitions METADATA_RECORD rows change; None: any, by some of the rows."""
    across = pc.field("snapshot_end_offset").is_valid() | pc.field("undecoded_reason").is_valid()
    if rows.filter(across | pc.field("record_type").isin(_ACROSS)).num_rows:
        return None
    return pc.drop_null(pc.unique(rows.column("topic_id")))


def row_of(record: MetadataRecord | Undecoded, *, snapshot_end: int | None = None) -> Row:
    """The METADATA_RECORD columns of a record, but for `uncommitted` and `log_time_ms`."""
    if isinstance(record, Undecoded):
        return {
            "snapshot_end_offset": snapshot_end,
            "log_offset": record.offset,
            "undecoded_reason": record.reason,
        }
    value_json = None if record.value is None else json.dumps(_without_digest(record.value), ensure_ascii=False)
    return {
        "snapshot_end_offset": snapshot_end,
        "log_offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "is_control": record.is_control,
        "record_type": record.record_type,
        "record_name": record.name,
        "topic_id": None if record.value is None else record.value.get("topic_id"),
        "value_version": record.version,
        "value_json": value_json,
        "size_bytes": record.length,
        "undecoded_reason": None,
    }


def _without_digest(value: Mapping[str, Value]) -> Mapping[str, Value]:
    hidden = value.get("hidden")
    return {**value, "hidden": {"length": hidden["length"]}} if isinstance(hidden, Mapping) else value


def _record(row: Row) -> MetadataRecord | Undecoded:
    """The record of a row. Each writing of a hidden setting counts as a new value: nothing says that it is the same."""
    if row["undecoded_reason"] is not None:
        return Undecoded(row["log_offset"], row["undecoded_reason"])
    value = None if row["value_json"] is None else json.loads(row["value_json"], object_hook=_with_tuples)
    if value is not None and value.get("hidden") is not None:
        value["hidden"] = {
            **value["hidden"],
            "digest": None,
            "written": (row["snapshot_end_offset"], row["log_offset"]),
        }
    return MetadataRecord(
        offset=row["log_offset"],
        timestamp_ms=row["log_time_ms"],
        is_control=row["is_control"],
        record_type=row["record_type"],
        name=row["record_name"],
        version=row["value_version"],
        value=value,
        length=row["size_bytes"],
        digest="",
    )


def _with_tuples(tree: Row) -> Row:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in tree.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _StoredSnapshots:
    """Snapshots by end offset, ascending."""

    stored: tuple[Snapshot, ...]

    def newest(self) -> Snapshot | None:
        """The snapshot with the highest end offset."""
        return self.stored[-1] if self.stored else None

    def first_covering(self, end_offset: int) -> Snapshot | None:
        """The oldest snapshot that covers all offsets below an end."""
        return next((snapshot for snapshot in self.stored if snapshot.end_offset >= max(end_offset, 1)), None)


def _snapshots(rows: pa.Table) -> _StoredSnapshots:
    stored = []
    of_snapshots = rows.filter(pc.is_valid(rows.column("snapshot_end_offset")))
    for end_offset in sorted(pc.unique(of_snapshots.column("snapshot_end_offset")).to_pylist()):
        snapshot_rows = of_snapshots.filter(pc.field("snapshot_end_offset") == end_offset).sort_by("log_offset")
        records = [record for record in map(_record, snapshot_rows.to_pylist()) if isinstance(record, MetadataRecord)]
        header = records[0].value
        assert header is not None
        last_ms = header["last_contained_log_timestamp"]
        assert isinstance(last_ms, int)
        stored.append(Snapshot(end_offset=end_offset, timestamp_ms=last_ms, records=tuple(records)))
    return _StoredSnapshots(stored=tuple(stored))


def record_history(
    rows: pa.Table, read: Iterable[Interval], *, committed_end: int, problems: Mapping[str, int]
) -> MetadataHistory:
    """The metadata over time from METADATA_RECORD rows of one cluster, in any order.

    `read`: the offsets of the log that were read, disjoint and ascending. `problems`: how often each reason code of a
    problem beside undecoded records came up.
    """
    reasons = Counter(problems)
    events = EventReader(snapshots=_snapshots(rows), reasons=reasons)
    of_log = rows.filter(pc.is_null(rows.column("snapshot_end_offset"))).sort_by("log_offset")
    result = timeline(events.events(_stretches(of_log, read)))
    return MetadataHistory(
        validities=result.validities,
        first_ms=events.first_ms,
        has_beginning=events.has_beginning,
        end_offset=events.next_offset,
        committed_end=committed_end,
        problems=sorted(reasons.items()),
    )


def _stretches(rows: pa.Table, read: Iterable[Interval]) -> Iterator[Stretch]:
    offsets = rows.column("log_offset").to_numpy()
    for first, end in read:
        begin, behind = offsets.searchsorted([first, end]).tolist()
        yield Stretch(first, end, map(_record, rows.slice(begin, behind - begin).to_pylist()))


def voters(rows: pa.Table) -> tuple[int, ...]:
    """The ids of the voters by the control records among METADATA_RECORD rows; empty when none names them."""
    named = pa.array([schemas.LEADER_CHANGE, schemas.KRAFT_VOTERS], pa.int16())
    control = rows.filter(pc.field("is_control") & pc.field("record_type").isin(named))
    order = [("snapshot_end_offset", "ascending"), ("log_offset", "ascending")]
    voter_timeline = Timeline()
    of_snapshots, of_log = (
        control.filter(condition).sort_by(order)
        for condition in (pc.field("snapshot_end_offset").is_valid(), pc.field("snapshot_end_offset").is_null())
    )
    for row in (*of_snapshots.to_pylist(), *of_log.to_pylist()):
        record = _record(row)
        if isinstance(record, MetadataRecord):
            voter_timeline.take(record)
    return voter_timeline.voters
