"""What other logs list and the state log of a lake lacks, by the tables of its published cut."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.schemas import GROUP_RECORD, GROUP_RECORD_ORDER
from sharelens.groups.initialized import LISTING_TYPES, initialized_share_partitions
from sharelens.tables.cover import StatePartitionCover
from sharelens.tables.lakes.places import Scan
from sharelens.tables.missing import LeftOut, MissingEvidence, StateTopic, missing_evidence
from state_model.columnar.keys import PLACE_KEY
from state_model.topics import OFFSETS_TOPIC, STATE_TOPIC
from state_model.uuids import ZERO_UUID

PLACE_TABLES = ("gold.progress", "gold.share_partition_state")
"""The tables that together have a row of every share partition."""
READ = ["topic", "topic_id", "partition", "node_id", "source_id", "log_time_ms"]


def missing_of_lake(
    scan: Scan, cover: Sequence[StatePartitionCover], places: pa.Table | None = None
) -> MissingEvidence:
    """What is missing of one cluster; `scan` reads rows of that cluster.

    `places`: PLACE_KEY of every share partition; None: by PLACE_TABLES.
    """
    extents = scan("bronze.ingest_extent", READ, pc.field("topic").isin([STATE_TOPIC, OFFSETS_TOPIC])).to_pylist()
    has_group_log = any(row["topic"] == OFFSETS_TOPIC for row in extents)
    initialized = _initialized(scan) if has_group_log else None
    log_topic_id = cover[0].log_topic_id if cover else ZERO_UUID
    topic = _state_topic(scan, log_topic_id, [row for row in extents if row["topic"] == STATE_TOPIC])
    if places is None:
        places = pa.concat_tables([scan(table, PLACE_KEY, None) for table in PLACE_TABLES])
    return replace(missing_evidence(initialized, places, cover, topic), left_out=_left_out(log_topic_id, extents))


def _left_out(log_topic_id: str, extents: Iterable[Mapping[str, Any]]) -> tuple[LeftOut, ...]:
    """The older incarnations of the state topic that have records."""
    times: dict[str, int] = {}
    sources: dict[str, set[str]] = {}
    for row in extents:
        topic_id = row["topic_id"]
        if row["topic"] == STATE_TOPIC and topic_id != log_topic_id != ZERO_UUID and row["log_time_ms"] is not None:
            times[topic_id] = max(row["log_time_ms"], times.get(topic_id, row["log_time_ms"]))
            sources.setdefault(topic_id, set()).add(row["source_id"])
    return tuple(LeftOut(topic_id, times[topic_id], tuple(sorted(sources[topic_id]))) for topic_id in sorted(times))


def _initialized(scan: Scan) -> pa.Table:
    of_lists = pc.field("record_type").isin(pa.array(LISTING_TYPES, pa.int16()))
    return initialized_share_partitions(
        scan("silver.group_record", GROUP_RECORD.names, of_lists).sort_by(GROUP_RECORD_ORDER)
    )


def _state_topic(scan: Scan, log_topic_id: str, extents: Iterable[Mapping[str, Any]]) -> StateTopic:
    """The state partitions that runs read, and the replicas by the metadata log.

    `log_topic_id`: of the newest incarnation of the state topic; the zero uuid: no record was read.
    """
    rows = [row for row in extents if log_topic_id in (row["topic_id"], ZERO_UUID)]
    is_in_force = (pc.field("topic") == STATE_TOPIC) & pc.field("valid_to_log_offset").is_null()
    history = scan("gold.topic_history", ["topic_id", "partition", "replicas"], is_in_force).to_pylist()
    replicas = {
        row["partition"]: frozenset(row["replicas"]) for row in history if log_topic_id in (row["topic_id"], ZERO_UUID)
    }
    return StateTopic(
        folders=frozenset(row["partition"] for row in rows),
        replicas=replicas or None,
        nodes=frozenset(int(row["node_id"]) for row in rows if row["node_id"] is not None),
    )
