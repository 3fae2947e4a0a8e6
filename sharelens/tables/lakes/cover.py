"""The evidence of each state partition at the published cut of a lake."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.coverage import coverage
from sharelens.evidence.losses import in_order, losses_of_extents, losses_of_undecodable
from sharelens.evidence.schemas import DECODED_FROM
from sharelens.kafka_log.bounds import log_start
from sharelens.lake.gates import closed, closed_text
from sharelens.lake.scan import Cut
from sharelens.tables.cover import StatePartitionCover, Undecoded

Extent = Mapping[str, Any]


def state_partition_covers(
    lake: Cut, evidence: Sequence[Mapping[str, Any]], extents: pa.Table, problems: pa.Table
) -> tuple[StatePartitionCover, ...]:
    """The published range of each state partition, with its gaps and quarantine counts, in order.

    `evidence`: rows of the publication's evidence; `extents`, `problems`: rows of bronze.ingest_extent and of
    bronze.quarantine about the state topic.
    """
    undecodable = losses_of_undecodable(lambda: lake.dataset(DECODED_FROM), problems)
    undecoded = _undecoded(problems)
    gates = closed_text(closed(lake.lake))
    ordered = extents.sort_by("partition")
    partitions = ordered.column("partition").to_numpy()
    quarantined = Counter(problems.column("partition").to_pylist())
    parts = []
    for row in evidence:
        partition = int(row["state_partition"])
        begin, end = np.searchsorted(partitions, [partition, partition + 1]).tolist()
        partition_extents = ordered.slice(begin, end - begin).to_pylist()
        log_start_offset = log_start(
            (extent["log_start_offset"], extent["log_start_known"]) for extent in partition_extents
        )
        key = (row["cluster_id"], row["log_topic_id"], partition)
        parts.append(
            StatePartitionCover(
                log_topic_id=row["log_topic_id"],
                state_partition=partition,
                first_offset=row["first_log_offset"],
                end_offset_exclusive=row["end_log_offset_exclusive"],
                log_start_offset=log_start_offset,
                first_ms=row["first_log_time_ms"],
                last_ms=row["log_time_ms"],
                held_back=row["held_back"] or 0,
                uncommitted=sum(end - first for first, end in coverage(_records(partition_extents)).uncommitted),
                unreadable_bytes=_unreadable_bytes(partition_extents),
                size_bytes=sum(
                    extent["size_bytes"]
                    for extent in _records(partition_extents)
                    if extent["end_offset_exclusive"] > log_start_offset
                ),
                quarantined=quarantined[partition],
                losses=tuple(in_order([*losses_of_extents(partition_extents), *undecodable.get(key, ())])),
                undecoded_losses=tuple(undecodable.get(key, ())),
                undecoded=undecoded.get(partition, ()),
                closed_gates=gates,
                dropped_ms=_dropped_ms(partition_extents),
            )
        )
    return tuple(sorted(parts, key=lambda part: part.state_partition))


def _undecoded(problems: pa.Table) -> dict[int, tuple[Undecoded, ...]]:
    """The records that could not be decoded by state partition and reason."""
    rows = problems.filter(pc.field("file") == DECODED_FROM).sort_by("first_offset")
    named = rows.group_by(["partition", "reason"], use_threads=False).aggregate(
        [("detail", "first"), ([], "count_all")]
    )
    result: dict[int, tuple[Undecoded, ...]] = {}
    for row in named.sort_by("reason").to_pylist():
        records = Undecoded(row["reason"], row["detail_first"] or "", row["count_all"])
        result[row["partition"]] = (*result.get(row["partition"], ()), records)
    return result


def _dropped_ms(extents: Iterable[Extent]) -> dict[str, int]:
    """For each group of tables, the log time before which retention dropped rows, by the newest `dropped` extent."""
    dropped = sorted((row for row in extents if row["status"] == "dropped"), key=_run)
    return {row["content"]: row["log_time_ms"] for row in dropped}


def _unreadable_bytes(extents: Iterable[Extent]) -> int:
    """The bytes behind the last complete batch of a state partition when a run last took records of it."""
    newest = sorted(_records(extents), key=_run)[-1:]
    return int(newest[0]["unreadable_bytes"] or 0) if newest else 0


def _records(extents: Iterable[Extent]) -> list[Extent]:
    return [row for row in extents if row["status"] == "taken" and row["content"] == "log_record"]


def _run(extent: Extent) -> int:
    return int(extent["run_id"])
