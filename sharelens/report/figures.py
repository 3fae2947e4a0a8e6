"""From gathered rows to charts: state maps of the worst share partitions, lag over time, delivery counts."""

from collections.abc import Iterator, Mapping, Sequence

from sharelens.measures.ranges.steps import Ints
from sharelens.output.wording import counted, moment, name, number, offsets, place
from sharelens.parameters.times import lasted
from sharelens.questions.answers.share_partitions import Key, Row, rows_of_keys
from sharelens.report import charts, raster
from sharelens.report.gather import Gathered
from sharelens.report.lag_lines import LagPicture, Point
from sharelens.report.maps import Drawn
from sharelens.report.model import Figure
from sharelens.report.pictures import CountsPicture
from sharelens.report.raster import ACKNOWLEDGED, ARCHIVED, Picture, Rectangle, Window
from sharelens.report.reading import HIGHEST_COUNT

CLOSE_BELOW, CLOSE_ABOVE = 8, 56
CLOSE_FROM = 3 * raster.ROWS
"""A close-up shows single offsets where the map's rows stand for many."""
HEADROOM = 0.35
"""The end offset is in the map as far as this share of what the group has reached; above, only its direction is."""
PARTS = " Thin stretches: the lag of some share partitions is unknown there; the others' sum is drawn."
MAP_HEIGHT, LINES_HEIGHT = 340, 300
OUTCOMES: Mapping[str, int] = {"acknowledged": ACKNOWLEDGED, "archived": ARCHIVED}


def state_maps(gathered: Gathered) -> Sequence[Figure]:
    """Maps of the worst share partitions that have any delivery state; of one with a pin a close-up too."""
    return [
        figure for rank, drawn in enumerate(gathered.pictures.maps, 1) for figure in _maps_of(gathered, drawn, rank)
    ]


def _maps_of(gathered: Gathered, drawn: Drawn, rank: int) -> list[Figure]:
    key, ends = drawn.key, drawn.ends(gathered.evidence)
    window = _window(drawn, int(ends[-1]))
    pin = _pin(gathered, key)
    title = f"{name(key[0])} · {place(gathered.signs.names.get(key[1]), key[1], key[2])}"
    if pin is not None:
        verb = "stands" if pin["until_ms"] is None else "stood"
        title += f": {verb} still at offset {number(pin['first_incomplete_offset'])} for {lasted(pin['duration_ms'])}"
    figures = [_map(f"map-{rank}", title, window, pin, drawn, ends)]
    if pin is not None and window.high - window.low > CLOSE_FROM:
        close = Window(
            from_ms=window.from_ms,
            to_ms=window.to_ms,
            low=max(window.low, pin["first_incomplete_offset"] - CLOSE_BELOW),
            high=pin["first_incomplete_offset"] + CLOSE_ABOVE,
        )
        figures.append(_map(f"map-{rank}-close", f"Close up: {title}", close, pin, drawn, ends))
    return figures


def _pin(gathered: Gathered, key: Key) -> Row | None:
    """The longest stall of a share partition; a stall that lasts goes first."""
    return next(iter(rows_of_keys(gathered.pictures.pins, [key]).to_pylist()), None)


def _window(drawn: Drawn, end: int) -> Window:
    """The offsets that mattered in the time of the map; `end`: the end offset at its end, -1 where it is unknown."""
    roof = drawn.high + max(2, round((drawn.high - drawn.low) * HEADROOM))
    high = min(max(drawn.high, end), roof)
    return Window(from_ms=drawn.from_ms, to_ms=drawn.to_ms, low=drawn.low, high=high)


def _map(name_: str, title: str, window: Window, pin: Row | None, drawn: Drawn, ends: Ints) -> Figure:
    picture = raster.picture(drawn.deliveries, window)
    lines = [
        {
            "x": int(at),
            "start": int(min(max(start, window.low), window.high)) if start >= 0 else None,
            "end": int(min(max(end, window.low), window.high)) if end >= 0 else None,
            "low": window.low,
        }
        for at, start, end in zip(raster.moments(window.from_ms, window.to_ms), drawn.starts, ends, strict=True)
    ]
    data: dict[str, charts.Rows] = {
        "cells": [_cell(picture, cell) for cell in picture.rectangles],
        "lines": lines,
        "pins": [],
    }
    first = None if pin is None else pin["first_incomplete_offset"]
    if first is not None and window.low <= first < window.high:
        until = window.to_ms if pin is None or pin["until_ms"] is None else min(pin["until_ms"], window.to_ms)
        data["pins"] = [{"x": until, "y": first + 1, "text": f"offset {number(first)}"}]
    chart = charts.drawn(name_, MAP_HEIGHT, charts.state_map(picture, first if data["pins"] else None), data)
    a_row = "one offset" if picture.per_row == 1 else f"{number(picture.per_row)} offsets"
    return Figure(
        name=name_,
        caption=title,
        drawing=chart,
        text=f"Offsets {offsets(window.low, window.high - 1)} from {moment(window.from_ms)} to {moment(window.to_ms)} "
        f"UTC. A row is {a_row}, a column one moment every {lasted(max(1, round(picture.column_ms)))}.",
        key=_map_key(picture, has_end=bool((ends >= 0).any())),
    )


def _cell(picture: Picture, cell: Rectangle) -> dict[str, object]:
    worst = "" if picture.per_row == 1 else "at least one "
    return {
        "x": cell.from_ms,
        "x2": cell.to_ms,
        "y": cell.low,
        "y2": cell.high,
        "code": cell.code,
        "text": f"{offsets(cell.low, cell.high - 1)}: {worst}{raster.words(cell.code)}, "
        f"{moment(round(cell.from_ms))[11:]} to {moment(round(cell.to_ms))[11:]}",
    }


def _map_key(picture: Picture, *, has_end: bool) -> Sequence[tuple[str, str]]:
    there = sorted({cell.code for cell in picture.rectangles})
    return (
        *((f"cell-{code}", raster.words(code)) for code in there),
        ("passed", "below the start offset"),
        ("start", "start offset"),
        *([("end", "end offset, by batch timestamps")] if has_end else []),
    )


def lag_chart(name_: str, picture: LagPicture) -> Figure:
    """Lag over time."""
    labels = [label for label, _ in picture.lines]
    rows = [row for label, points in picture.lines for row in _stretches(label, points)]
    highest = max(point.lag or 0 for _, points in picture.lines for point in points)
    has_parts = any(row["is_part"] and row["lag"] is not None for row in rows)
    drawn = charts.drawn(
        name_,
        LINES_HEIGHT,
        charts.lag_lines(labels, picture.from_ms, picture.to_ms, highest),
        {"lags": [row for row in rows if not row["is_part"]], "parts": [row for row in rows if row["is_part"]]},
    )
    return Figure(
        name=name_,
        caption="Lag over time",
        drawing=drawn,
        text=f"{picture.text}{PARTS if has_parts else ''}",
        key=tuple((f"line-{place_}", label) for place_, label in enumerate(labels)),
    )


def _stretches(label: str, points: Sequence[Point]) -> Iterator[Row]:
    """Rows of a line in stretches of one kind; each but the last ends where the next begins, so that they join."""
    stretch = 0
    for point, following in zip(points, [*points[1:], points[-1]], strict=True):
        row = {"x": point.at_ms, "lag": point.lag, "name": label, "is_part": point.is_part}
        yield row | {"stretch": f"{label} {stretch}"}
        if following.is_part != point.is_part:
            yield row | {"x": following.at_ms, "stretch": f"{label} {stretch}"}
            stretch += 1


def delivery_counts(name_: str, picture: CountsPicture) -> Figure | None:
    """How often records were delivered until their outcome was written; None where there is no outcome."""
    sums = picture.records
    if not sums:
        return None
    last = max(count for _, count in sums)
    labels = [_count_label(count) for count in range(min(count for _, count in sums), last + 1)]
    counts: list[dict[str, object]] = []
    totals: list[dict[str, object]] = []
    largest = 0
    for count, label in enumerate(labels, last + 1 - len(labels)):
        begin = 0
        for kind, code in OUTCOMES.items():
            records = sums.get((code, count), 0)
            text = f"{label}: {counted(records, 'record')} {kind}"
            counts.append({"label": label, "kind": kind, "from": begin, "until": begin + records, "text": text})
            begin += records
        totals.append({"label": label, "records": begin, "text": number(begin)})
        largest = max(largest, begin)
    height = 64 + 30 * len(labels)
    chart = charts.delivery_counts(tuple(OUTCOMES.items()), labels, largest)
    drawn = charts.drawn(name_, height, chart, {"counts": counts, "totals": totals})
    return Figure(
        name=name_,
        caption="Delivery counts",
        drawing=drawn,
        text="Acknowledged and archived records by their delivery count, as in the output of sharelens attempts. "
        "1 is a record that went well the first time; a record that came again in another life counts again.",
        key=tuple((f"cell-{code}", kind) for kind, code in OUTCOMES.items()),
    )


def _count_label(count: int) -> str:
    return f"{count} or more" if count == HIGHEST_COUNT else str(count)
