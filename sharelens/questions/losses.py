"""Which log offsets the evidence lacks, from what was asked for and what came."""

from collections.abc import Iterable

import pyarrow as pa

from state_model.columnar.values import Loss

GAP = "gap"
QUARANTINED = "quarantined"
Interval = tuple[int, int]
"""Offsets from the first up to, not including, the second."""


def joined(intervals: Iterable[Interval]) -> list[Interval]:
    """The union as ascending, disjoint intervals that do not touch."""
    together: list[Interval] = []
    for first, end in sorted(interval for interval in intervals if interval[0] < interval[1]):
        if together and first <= together[-1][1]:
            together[-1] = (together[-1][0], max(end, together[-1][1]))
        else:
            together.append((first, end))
    return together


def without(whole: Iterable[Interval], parts: Iterable[Interval]) -> list[Interval]:
    """What of `whole` lies in none of `parts`."""
    left: list[Interval] = []
    taken = joined(parts)
    for first, end in joined(whole):
        for part_first, part_end in taken:
            if part_end <= first or part_first >= end:
                continue
            if part_first > first:
                left.append((first, part_first))
            first = part_end
        if first < end:
            left.append((first, end))
    return left


def of_extents(extents: pa.Table) -> tuple[Loss, ...]:
    """Losses of one state partition by its rows of bronze.ingest_extent: gaps that no run filled from another copy.

    Offsets taken above the high watermark (`committed_end`) do not fill a gap: the next run reads them again.
    """
    rows = extents.select(
        ["from_offset", "end_offset_exclusive", "committed_end", "gaps", "status", "content"]
    ).to_pylist()
    taken = [row for row in rows if row["status"] == "taken" and row["content"] == "log_record"]
    held: list[Interval] = []
    for row in taken:
        committed = row["committed_end"]
        end = row["end_offset_exclusive"] if committed is None else min(committed, row["end_offset_exclusive"])
        held += without(
            [(row["from_offset"], end)], [(gap["first_offset"], gap["last_offset"] + 1) for gap in row["gaps"]]
        )
    found = {
        interval: gap["reason"]
        for row in taken
        for gap in row["gaps"]
        for interval in without([(gap["first_offset"], gap["last_offset"] + 1)], held)
    }
    return tuple(
        Loss(first_offset=first, last_offset=end - 1, reason=reason) for (first, end), reason in sorted(found.items())
    )
