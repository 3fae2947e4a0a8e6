"""What the evidence of state partitions lacks, as replay has to know it."""

from typing import Any

import pyarrow.compute as pc

from evidence.intervals import difference
from jobs import books
from jobs.quarantine import QUARANTINE
from lake.lake import Lake
from lake.slices import PartitionKey
from lake.undecodable import DECODED_FROM, PLACE, undecodable
from state_model.columnar.values import Loss


def find_losses(
    lake: Lake, extents: dict[PartitionKey, list[dict[str, Any]]], late: set[PartitionKey], runs: tuple[int, int]
) -> dict[PartitionKey, list[Loss]]:
    """Losses of each state partition, ascending: gaps of its extents, and records that could not be decoded.

    `extents`: all rows of bronze.ingest_extent of the state partitions asked for. Only what the runs `runs` (inclusive)
    found; for the partitions `late`, which start over, of all runs, less what later ones filled in.
    """
    result: dict[PartitionKey, list[Loss]] = {}
    for key, rows in extents.items():
        taken = [r for r in rows if r["status"] == "taken" and r["content"] == "log_record" and r["run_id"] <= runs[1]]
        mine = taken if key in late else [r for r in taken if r["run_id"] >= runs[0]]
        held = books.coverage(taken).held
        reasons: dict[tuple[int, int], str] = {}
        for row in mine:
            for gap in row["gaps"]:
                for interval in difference([(gap["first_offset"], gap["last_offset"] + 1)], held):
                    reasons.setdefault(interval, gap["reason"])
        result[key] = [
            Loss(first_offset=first, last_offset=end - 1, reason=reason) for (first, end), reason in reasons.items()
        ]
    for key, found in _undecodable(lake, set(extents), late, runs).items():
        result[key] += found
    return {key: sorted(found, key=lambda loss: loss.first_offset) for key, found in result.items()}


def _undecodable(
    lake: Lake, keys: set[PartitionKey], late: set[PartitionKey], runs: tuple[int, int]
) -> dict[PartitionKey, list[Loss]]:
    mine = books.of_partitions(keys, *PLACE[1:])
    if mine is None:
        return {}
    started_over = books.of_partitions(late, *PLACE[1:])
    fresh = pc.field("run_id") >= runs[0]
    wanted = mine & (fresh if started_over is None else fresh | started_over)
    quarantined = lake.snapshot(QUARANTINE).rows([*PLACE, "offset", "file"], wanted)
    return undecodable(lake.snapshot(DECODED_FROM).dataset(), quarantined) if quarantined.num_rows else {}
