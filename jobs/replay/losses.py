"""Losses for a replay: gaps of the extents of its runs, and records that could not be decoded."""

from typing import Any

import pyarrow.compute as pc

from jobs import books
from jobs.quarantine import QUARANTINE
from sharelens.evidence.losses import QUARANTINE_KEY, in_order, losses_of_extents, losses_of_undecodable
from sharelens.evidence.schemas import DECODED_FROM
from sharelens.lake.lake import Lake
from sharelens.lake.slices import PartitionKey
from state_model.columnar.values import Loss


def find_losses(
    lake: Lake, extents: dict[PartitionKey, list[dict[str, Any]]], late: set[PartitionKey], runs: tuple[int, int]
) -> dict[PartitionKey, list[Loss]]:
    """Losses of each state partition, ascending.

    Losses of the runs `runs` (inclusive); of the partitions `late`, which start over, losses of all runs that no later
    run filled.

    Args:
        extents: all rows of bronze.ingest_extent of the state partitions.
    """
    undecodable = _undecodable(lake, set(extents), late, runs)
    return {
        key: in_order(
            [
                *losses_of_extents(rows, runs=(0 if key in late else runs[0], runs[1])),
                *undecodable.get(key, []),
            ]
        )
        for key, rows in extents.items()
    }


def _undecodable(
    lake: Lake, keys: set[PartitionKey], late: set[PartitionKey], runs: tuple[int, int]
) -> dict[PartitionKey, list[Loss]]:
    in_partitions = books.of_partitions(keys, *QUARANTINE_KEY[1:])
    if in_partitions is None:
        return {}
    started_over = books.of_partitions(late, *QUARANTINE_KEY[1:])
    of_runs = pc.field("run_id") >= runs[0]
    chosen = in_partitions & (of_runs if started_over is None else of_runs | started_over)
    quarantined = lake.snapshot(QUARANTINE).rows([*QUARANTINE_KEY, "first_offset", "file"], chosen)
    if quarantined.num_rows == 0:
        return {}
    return losses_of_undecodable(lambda: lake.snapshot(DECODED_FROM).dataset(), quarantined)
