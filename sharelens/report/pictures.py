"""What pictures are drawn from, as plain values: read from the streams of a report, or from the rows of an answer."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.report.lag_lines import LagPicture, lag_picture, points_of
from sharelens.report.reading import CODES, count_shown
from sharelens.report.timelines import GroupTimeline, timeline_of

MOST_ROWS = 1_000_000
"""Of more rows an answer has no picture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelinePicture:
    """What happened to a group in a time."""

    timeline: GroupTimeline
    from_ms: int
    to_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CountsPicture:
    """Settled records by (cell code, delivery count), as `outcomes_of` counts them."""

    records: Mapping[tuple[int, int], int]


Picture = LagPicture | TimelinePicture | CountsPicture


def picture_of(question: str, rows: pa.Table) -> Picture | None:
    """What the rows of an answer look like; None: there is no picture of them."""
    if not 0 < rows.num_rows <= MOST_ROWS:
        return None
    groups = rows.column("group_id").unique().to_pylist() if "group_id" in rows.column_names else []
    if question == "lag" and "at_ms" in rows.column_names:
        return _lag(rows, is_of_one_group=len(groups) == 1)
    if question == "timeline" and len(groups) == 1:
        span = pc.min_max(rows.column("at_ms")).as_py()
        return TimelinePicture(
            timeline=timeline_of(groups[0], rows, span["min"], span["max"]), from_ms=span["min"], to_ms=span["max"]
        )
    if question == "attempts":
        records = _settled(rows)
        return CountsPicture(records=records) if records else None
    return None


def _lag(rows: pa.Table, *, is_of_one_group: bool) -> LagPicture | None:
    """One line a group, or of one group one a share partition; those with the highest lags."""
    lags = points_of(rows, summed=not is_of_one_group)
    topics = rows.group_by(["topic_id", "topic"]).aggregate([]).to_pylist()
    return lag_picture(
        lags,
        sorted(rows.column("at_ms").unique().to_pylist()),
        {row["topic_id"]: row["topic"] for row in topics if row["topic"] is not None},
        rank=lambda _: 0,
        of_what="each share partition" if is_of_one_group else "each share group, summed over its share partitions",
        line_count=len(lags),
    )


def _settled(rows: pa.Table) -> dict[tuple[int, int], int]:
    sums: dict[tuple[int, int], int] = {}
    for row in rows.select(["outcome", "delivery_count", "offsets"]).to_pylist():
        if row["outcome"] in CODES:
            cell = CODES[row["outcome"]], count_shown(row["delivery_count"])
            sums[cell] = sums.get(cell, 0) + row["offsets"]
    return sums
