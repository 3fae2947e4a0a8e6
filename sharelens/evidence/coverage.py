"""Covered ranges: the offsets of a log partition that were read, and the offsets that a source may still give.

The input is bronze.ingest_extent with status `taken`: one row for a run, a partition and a source.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sharelens.evidence.intervals import Interval, difference, union
from sharelens.evidence.log_time import Ints
from sharelens.kafka_log.leader_epochs import LeaderEpoch, below

Extent = Mapping[str, Any]
"""A row of bronze.ingest_extent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """The coverage of one log partition by its extents.

    `covered`: the covered ranges (offsets that need no second reading), disjoint and ascending; `uncommitted`: the
    ranges above the committed end that were taken all the same, until they are read again; `requested`: by source id
    the requested offsets; `log_time_ms`: log time so far (None: no record); `end`: first offset above
    every request; `lost_ends`: by source id the gap at its end; `leader_epochs`: of the records below `end`, as far as
    checkpoints told them.
    """

    covered: list[Interval]
    requested: dict[str, list[Interval]]
    log_time_ms: int | None
    end: int
    uncommitted: list[Interval] = field(default_factory=list)
    lost_ends: dict[str, Interval] = field(default_factory=dict)
    leader_epochs: tuple[LeaderEpoch, ...] = ()

    @property
    def stored_ranges(self) -> list[Interval]:
        """The ranges whose records the lake holds, disjoint and ascending: covered ones and uncommitted ones."""
        return union([*self.covered, *self.uncommitted]) if self.uncommitted else self.covered

    def missing_from(self, source_id: str, available: Interval) -> list[Interval]:
        """The offsets of a source that were not requested before and are not covered.

        The gap at its end is requested again once the source ends elsewhere: a broker that recovers cuts off what it
        can't read there and appends, and a copy that was cut short is finished.
        """
        requested = self.requested.get(source_id, [])
        lost_end = self.lost_ends.get(source_id)
        if lost_end is not None and lost_end[1] != available[1]:
            requested = difference(requested, [lost_end])
        return difference([available], self.covered + requested)

    def below(self, offset: int) -> "Coverage":
        """The coverage without the offsets from `offset` on."""
        return Coverage(
            covered=_below(self.covered, offset),
            requested={source: _below(intervals, offset) for source, intervals in self.requested.items()},
            log_time_ms=self.log_time_ms,
            end=min(self.end, offset),
            uncommitted=_below(self.uncommitted, offset),
            lost_ends=self.lost_ends,
            leader_epochs=below(self.leader_epochs, offset),
        )


def coverage(extents: Iterable[Extent]) -> Coverage:
    """Coverage of one log partition from its taken extents, in any order.

    Offsets taken at or above the committed end are not covered: they are read again. A gap is not covered, and a source
    that had vanished may be read again. A run that set rows aside (`superseded_from`) covers the offsets it took in
    their place, and none above.
    """
    covered: list[Interval] = []
    uncommitted: list[Interval] = []
    requested: dict[str, list[Interval]] = {}
    lost_ends: dict[str, Interval] = {}
    leader_epochs: dict[int, int] = {}
    rows = sorted(extents, key=lambda row: int(row["run_id"]))
    for row in rows:
        source_id = row["source_id"]
        if row["superseded_from"] is not None:
            covered = _below(covered, row["superseded_from"])
            uncommitted = _below(uncommitted, row["superseded_from"])
            requested = {source: _below(intervals, row["superseded_from"]) for source, intervals in requested.items()}
            leader_epochs = dict(below(leader_epochs.items(), row["superseded_from"]))
        for entry in row["leader_epochs"] or ():
            epoch, start = entry["leader_epoch"], entry["start_offset"]
            leader_epochs[epoch] = min(start, leader_epochs.get(epoch, start))
        end = row["end_offset_exclusive"]
        if row["committed_end"] is not None:
            end = min(end, row["committed_end"])
        extent_range = (row["from_offset"], end)
        gaps = gaps_of_extent(row)
        vanished = gaps_of_extent(row, "vanished") if gaps else []
        requested[source_id] = _with(requested.get(source_id, []), extent_range, vanished)
        covered = _with(covered, extent_range, gaps)
        if uncommitted or end < row["end_offset_exclusive"]:
            uncommitted = _uncommitted(uncommitted, row, end, gaps)
        if end >= lost_ends.get(source_id, (0, 0))[1]:
            lost_ends.pop(source_id, None)
        at_end = [gap for gap in gaps if gap[1] == end]
        if at_end:
            lost_ends[source_id] = at_end[-1]
    end = max((interval[1] for intervals in requested.values() for interval in intervals), default=0)
    return Coverage(
        covered=covered,
        requested=requested,
        log_time_ms=newest_log_time(rows),
        end=end,
        uncommitted=uncommitted,
        lost_ends=lost_ends,
        leader_epochs=tuple(sorted(leader_epochs.items())),
    )


def is_whole(extents: Iterable[Extent], table: str) -> bool:
    """Whether a table has a row for every offset of a log partition from 0 to the end of its extents.

    `extents`: all rows of the partition, in any order. Each run must have found a record at every offset that it took,
    and retention must not have cut the table.
    """
    ranges: list[Interval] = []
    for row in extents:
        first, end = row["from_offset"], row["end_offset_exclusive"]
        if row["status"] == "dropped" and row["content"] == table.partition(".")[0]:
            return False
        if row["status"] == "taken" and row["content"] == "log_record":
            if row["record_count"] != end - first:
                return False
            ranges.append((first, end))
    covered = union(ranges)
    return len(covered) == 1 and covered[0][0] == 0


def whole_logs(extents: Iterable[Extent], table: str) -> set[tuple[str, int]]:
    """The (topic id, partition) of the logs for which `is_whole` holds."""
    of_logs: dict[tuple[str, int], list[Extent]] = {}
    for row in extents:
        of_logs.setdefault((row["topic_id"], row["partition"]), []).append(row)
    return {log for log, rows in of_logs.items() if is_whole(rows, table)}


def _uncommitted(
    before: Sequence[Interval], row: Extent, committed_end: int, gaps: Sequence[Interval]
) -> list[Interval]:
    """The uncommitted ranges after an extent; one that takes offsets replaces those from its first offset on."""
    first, end = row["from_offset"], row["end_offset_exclusive"]
    if first >= end:
        return list(before)
    return union([*_below(before, first), *difference([(max(first, committed_end), end)], gaps)])


def newest_log_time(extents: Iterable[Extent]) -> int | None:
    """Log time after the records of the extents; None without records."""
    return max((row["log_time_ms"] for row in extents if row["log_time_ms"] is not None), default=None)


def gaps_of_extent(row: Extent, reason: str | None = None) -> list[Interval]:
    """The gaps of an extent; only gaps of `reason`, if it is set."""
    gaps = [gap for gap in row["gaps"] if reason in (None, gap["reason"])]
    return [(gap["first_offset"], gap["last_offset"] + 1) for gap in gaps]


def ranges_of_offsets(first: Ints, last: Ints) -> list[Interval]:
    """The ranges that rows cover: rows from offset `first` to `last` (inclusive), ascending and disjoint."""
    if not len(first):
        return []
    breaks = np.flatnonzero(first[1:] != last[:-1] + 1) + 1
    starts = np.concatenate([[0], breaks])
    ends = np.concatenate([breaks, [len(first)]]) - 1
    return [(int(first[a]), int(last[b]) + 1) for a, b in zip(starts, ends, strict=True)]


def _with(ranges: list[Interval], extent_range: Interval, gaps: Sequence[Interval]) -> list[Interval]:
    """The union of disjoint ranges, ascending, with one more, less its gaps."""
    if (
        not gaps and ranges and ranges[-1][0] <= extent_range[0] <= ranges[-1][1]
    ):  # nearly all extents go on where one ended
        return [*ranges[:-1], (ranges[-1][0], max(ranges[-1][1], extent_range[1]))]
    return union([*ranges, *difference([extent_range], gaps)])


def _below(intervals: Sequence[Interval], offset: int) -> list[Interval]:
    return union((first, min(end, offset)) for first, end in intervals)
