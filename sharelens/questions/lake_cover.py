"""The evidence of each state partition at the published cut of a lake."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from evidence.conditions import with_value
from evidence.losses import in_order, losses_of_extents, losses_of_undecodable
from evidence.schemas import DECODED_FROM
from kafka_log.bounds import log_start
from lake.gates import closed, closed_text
from lake.scan import Cut
from sharelens.questions.evidence import StatePartitionCover


def state_partition_covers(
    lake: Cut, evidence: Sequence[Mapping[str, Any]], extents: pa.Table, problems: pa.Table
) -> tuple[StatePartitionCover, ...]:
    """The published range of each state partition, with its gaps and quarantine counts, in order.

    `evidence`: rows of the publication's evidence; `extents`, `problems`: rows of bronze.ingest_extent and of
    bronze.quarantine about the state topic.
    """
    undecodable = losses_of_undecodable(lambda: lake.dataset(DECODED_FROM), problems)
    gates = closed_text(closed(lake.lake))
    parts = []
    for row in evidence:
        partition = int(row["state_partition"])
        mine = with_value(extents, "partition", partition)
        broken = with_value(problems, "partition", partition)
        key = (row["cluster_id"], row["log_topic_id"], partition)
        starts = (mine.column(name).to_pylist() for name in ("log_start_offset", "log_start_known"))
        parts.append(
            StatePartitionCover(
                log_topic_id=row["log_topic_id"],
                state_partition=partition,
                first_offset=row["first_log_offset"],
                end_offset_exclusive=row["end_log_offset_exclusive"],
                log_start_offset=log_start(zip(*starts, strict=True)),
                first_ms=row["first_log_time_ms"],
                last_ms=row["log_time_ms"],
                held_back=row["held_back"] or 0,
                unreadable_bytes=_unreadable_bytes(mine),
                quarantined=broken.num_rows,
                losses=tuple(in_order([*losses_of_extents(mine.to_pylist()), *undecodable.get(key, ())])),
                closed_gates=gates,
                dropped_ms=_dropped_ms(mine),
            )
        )
    return tuple(sorted(parts, key=lambda part: part.state_partition))


def _dropped_ms(extents: pa.Table) -> dict[str, int]:
    """For each group of tables, the log time before which retention dropped rows, by the newest `dropped` extent."""
    rows = with_value(extents, "status", "dropped").select(["run_id", "content", "log_time_ms"]).sort_by("run_id")
    return dict(zip(rows.column("content").to_pylist(), rows.column("log_time_ms").to_pylist(), strict=True))


def _unreadable_bytes(extents: pa.Table) -> int:
    """The bytes behind the last complete batch of a state partition when a run last took records of it."""
    rows = with_value(with_value(extents, "status", "taken"), "content", "log_record").sort_by("run_id")
    return int(rows.column("unreadable_bytes")[-1].as_py() or 0) if rows.num_rows else 0
