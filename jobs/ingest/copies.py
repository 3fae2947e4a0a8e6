"""Compares a new copy of a partition with the rows of the same partition in the lake.

Same offset, other bytes: the higher leader epoch wins, and the loser is dropped with all records behind it (Kafka's
log truncation after an unclean or a fenced leader). With equal leader epochs two clusters share an id.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jobs.ingest.plan import Extent
from jobs.ingest.superseding import Divergence
from sharelens.evidence.decoding import KEPT_BYTES
from sharelens.evidence.intervals import Interval
from sharelens.kafka_log import reader
from sharelens.kafka_log.dead_letter_records import letters_of, without_digests
from sharelens.kafka_log.errors import CopyConflictError
from sharelens.kafka_log.layout import PartitionDirectory
from sharelens.kafka_log.schemas import PROBLEM
from sharelens.kafka_log.union import LogPartition
from sharelens.lake.lake import Lake
from sharelens.lake.tables import BRONZE_LOG_RECORD
from state_model.topics import RECORD_TOPICS

COMPARED = ["timestamp_ms", "key", "value"]
COMPARED_LETTERS = ["timestamp_ms", "key_sha256", "value_sha256"]


def divergence(
    lake: Lake, cluster_id: str, partition: LogPartition, copy: PartitionDirectory, overlaps: Iterable[Interval]
) -> Divergence | None:
    """The first offset at which a copy contradicts bronze.log_record; None when it doesn't.

    Raises:
        CopyConflictError: different bytes under one leader epoch.
    """
    alone = replace(partition, copies=(copy,), committed_end=None)
    internal = partition.topic in RECORD_TOPICS
    for first, end in overlaps:
        for split in reader.splits(alone, first, end, 1 << 62):
            for chunk in reader.read_split(split, include_uncommitted=True):
                rows = without_digests(chunk.records) if internal else letters_of(chunk.records, keep_values=False)
                difference = _first_difference(lake, cluster_id, partition, rows)
                if difference is not None:
                    return _judged(partition, copy, *difference)
    return None


def _first_difference(
    lake: Lake, cluster_id: str, partition: LogPartition, theirs: pa.RecordBatch
) -> tuple[int, int, int] | None:
    """(offset, their leader epoch, our leader epoch) of the first record that differs."""
    if theirs.num_rows == 0:
        return None
    offsets = theirs.column("offset")
    compared = COMPARED if partition.topic in RECORD_TOPICS else COMPARED_LETTERS
    is_in_range = (
        (pc.field("cluster_id") == cluster_id)
        & (pc.field("topic_id") == partition.topic_id)
        & (pc.field("partition") == partition.partition)
        & (pc.field("offset") >= offsets[0].as_py())
        & (pc.field("offset") <= offsets[-1].as_py())
    )
    ours = (
        lake.snapshot(BRONZE_LOG_RECORD)
        .dataset()
        .to_table(columns=["offset", "leader_epoch", *compared], filter=is_in_range)
    )
    ours = ours.sort_by("offset")
    place = np.searchsorted(ours.column("offset").to_numpy(), offsets.to_numpy())
    place = np.minimum(place, max(0, ours.num_rows - 1))
    if ours.num_rows == 0:
        return None
    ours = ours.take(pa.array(place))
    is_in_both = pc.equal(ours.column("offset"), offsets)
    same = pa.chunked_array([np.ones(theirs.num_rows, bool)])
    for name in compared:
        our_values, right = ours.column(name), pa.chunked_array([theirs.column(name)])
        equal = pc.fill_null(pc.equal(our_values, right), False)
        same = pc.and_(same, pc.or_(equal, pc.and_(pc.is_null(our_values), pc.is_null(right))))
    wrong = np.flatnonzero(pc.and_(is_in_both, pc.invert(same)).to_numpy())
    if not len(wrong):
        return None
    at = int(wrong[0])
    return offsets[at].as_py(), theirs.column("leader_epoch")[at].as_py(), ours.column("leader_epoch")[at].as_py()


def _judged(
    partition: LogPartition, copy: PartitionDirectory, offset: int, their_epoch: int, our_epoch: int
) -> Divergence:
    if their_epoch == our_epoch:
        raise CopyConflictError(
            f"{partition.topic}-{partition.partition} @ {offset}: {copy.uri} and the lake hold different records under "
            f"leader epoch {our_epoch}; two clusters share an id: give them lakes of their own, with --cluster-id"
        )
    return Divergence(offset=offset, copy_wins=their_epoch > our_epoch)


def set_aside(cluster_id: str, extents: Sequence[Extent]) -> pc.Expression | None:
    """Rows that this run replaces: taken while uncommitted and read again, or superseded by a copy that won."""
    drop: pc.Expression | None = None
    for extent in extents:
        if not extent.late:
            continue
        offset = "offset" if extent.content == "log_record" else "last_offset"
        this = (
            (pc.field("cluster_id") == cluster_id)
            & (pc.field("topic_id") == extent.partition.topic_id)
            & (pc.field("partition") == extent.partition.partition)
        )
        if extent.superseded_from is not None:
            this = this & (pc.field(offset) >= extent.superseded_from)
        elif extent.ranges:
            this = this & (pc.field(offset) >= extent.ranges[0][0]) & pc.field("uncommitted")
        else:
            continue
        drop = this if drop is None else drop | this
    return drop


def superseded_problems(lake: Lake, cluster_id: str, extents: Sequence[Extent]) -> pa.Table:
    """PROBLEM rows of the records that a winning copy set aside; of batch headers nothing is kept."""
    tables = [PROBLEM.empty_table()]
    for extent in extents:
        if extent.superseded_from is None or extent.content != "log_record":
            continue
        drop = set_aside(cluster_id, [extent])
        for row in lake.snapshot(BRONZE_LOG_RECORD).dataset().to_table(filter=drop).to_pylist():
            problem = {name: row[name] for name in ("topic", "topic_id", "partition")} | {
                "source_id": "",
                "file": BRONZE_LOG_RECORD,
                "position": row["offset"],
                "first_offset": row["offset"],
                "last_offset": row["offset"],
                "reason": "superseded",
                "detail": f"a copy with a higher leader epoch than {row['leader_epoch']} holds another record",
                "bytes": _kept_bytes(row),
            }
            tables.append(pa.Table.from_pylist([problem], schema=PROBLEM))
    return pa.concat_tables(tables)


def _kept_bytes(row: dict[str, Any]) -> bytes:
    """The bytes of a record that was set aside; of a dead letter none, whatever else the lake keeps of it."""
    if row["topic"] not in RECORD_TOPICS:
        return b""
    first_bytes: bytes = ((row["key"] or b"") + (row["value"] or b""))[:KEPT_BYTES]
    return first_bytes
