"""Rows of bronze.quarantine: unreadable and superseded records."""

import pyarrow as pa

from sharelens.lake.lake import Lake

QUARANTINE = "bronze.quarantine"


def new_problems(lake: Lake, problems: pa.Table) -> pa.Table:
    """PROBLEM rows with a cluster_id, less those that quarantine holds already (same source, place and reason)."""
    place = ["cluster_id", "source_id", "topic_id", "partition", "file", "position", "reason"]
    quarantined = lake.snapshot(QUARANTINE).rows(place).to_pylist()
    known_marks = {tuple(row.values()) for row in quarantined}
    keep = []
    for row in problems.select(place).to_pylist():
        mark = tuple(row.values())
        keep.append(mark not in known_marks)
        known_marks.add(mark)
    return problems.filter(pa.array(keep, pa.bool_()))
