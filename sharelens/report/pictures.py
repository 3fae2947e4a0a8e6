"""What pictures are drawn from, as plain values: read from the streams of a report, or from the rows of an answer."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.output.wording import place, short
from sharelens.report.lag_lines import LINES, Point, points_of
from sharelens.report.reading import CODES, count_shown
from sharelens.report.timelines import GroupTimeline, timeline_of

MOST_ROWS = 1_000_000
"""Of more rows an answer has no picture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LagPicture:
    """Lag over time: at most LINES lines by name, the first one the most important; `text`: what they are."""

    lines: Sequence[tuple[str, Sequence[Point]]]
    from_ms: int
    to_ms: int
    text: str


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
        records = dict(_settled(rows))
        return CountsPicture(records=records) if records else None
    return None


def _lag(rows: pa.Table, *, is_of_one_group: bool) -> LagPicture | None:
    """One line a group, or of one group one a share partition; those with the highest lags."""
    lags = points_of(rows, summed=not is_of_one_group)
    names = {(row["topic_id"], row["partition"]): row["topic"] for row in _places(rows)}
    peaks = {
        line: max((point.lag for point in points.values() if point.lag is not None), default=-1)
        for line, points in lags.items()
    }
    drawn = sorted((line for line, peak in peaks.items() if peak >= 0), key=lambda line: (-peaks[line], line))[:LINES]
    moments = sorted(rows.column("at_ms").unique().to_pylist())
    if not drawn:
        return None

    def label(line: tuple[str, str, int] | str) -> str:
        return short(line) if isinstance(line, str) else short(place(names.get(line[1:]), *line[1:]))

    left_out = len(lags) - len(drawn)
    return LagPicture(
        lines=[(label(line), [lags[line].get(at, Point(at, None, is_part=False)) for at in moments]) for line in drawn],
        from_ms=moments[0],
        to_ms=max(moments[-1], moments[0] + 1),
        text=f"Lag of each {'share partition' if is_of_one_group else 'share group'}, the end offsets by the batches' "
        f"timestamps.{f' {left_out} more not drawn.' if left_out else ''}",
    )


def _places(rows: pa.Table) -> list[dict[str, object]]:
    places: list[dict[str, object]] = rows.group_by(["topic_id", "partition", "topic"]).aggregate([]).to_pylist()
    return places


def _settled(rows: pa.Table) -> Iterator[tuple[tuple[int, int], int]]:
    settled = rows.filter(pc.is_in(rows.column("outcome"), value_set=pa.array(list(CODES), pa.string())))
    sums: dict[tuple[int, int], int] = {}
    for row in settled.select(["outcome", "delivery_count", "offsets"]).to_pylist():
        cell = CODES[row["outcome"]], count_shown(row["delivery_count"])
        sums[cell] = sums.get(cell, 0) + row["offsets"]
    yield from sums.items()
