"""Timelines of groups on a page: a picture with a lane for each kind of event, and a table with the evidence."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from sharelens.measures.schemas import EVENTS
from sharelens.output import Answer, RowCounts
from sharelens.output.wording import counted, moment, name, number
from sharelens.parameters.times import lasted
from sharelens.questions.timelines.entries import GAP, MEMBERSHIP
from sharelens.questions.timelines.metadata_entries import IN_SYNC, LEADER, SETTING
from sharelens.questions.timelines.timeline import LAYOUT
from sharelens.report import charts, colours
from sharelens.report.answer_sheets import answer_sheets
from sharelens.report.gather import Gathered
from sharelens.report.model import Figure, Sheet
from sharelens.report.pictures import TimelinePicture
from sharelens.report.raster import ARCHIVED, OPEN
from sharelens.report.timelines import COLUMNS, ENTRIES_SHOWN, STALLS, Mark

LANE_HEIGHT, AXES_HEIGHT = 22, 48
SMALLEST, LARGEST = 26, 120
"""Areas of a mark in square pixels."""
BIRTH, LOSS, EPOCHS = colours.LINES[0], colours.CELLS[OPEN + 3], colours.LINES[7]
MEMBERS = colours.LINES[2]
TICK = "M-0.2,-0.8L0.2,-0.8L0.2,0.8L-0.2,0.8Z"
"""An upright stroke."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """How the marks of a lane look: one of the shapes of Vega or a path, and a pair of colours."""

    shape: str
    colour: tuple[str, str]


LANES: Mapping[str, Lane] = {
    STALLS: Lane(shape="square", colour=LOSS),
    "first_seen": Lane(shape="triangle-up", colour=BIRTH),
    "created": Lane(shape="triangle-up", colour=BIRTH),
    "recreated": Lane(shape="diamond", colour=LOSS),
    "reset": Lane(shape="diamond", colour=LOSS),
    "deleted": Lane(shape="cross", colour=LOSS),
    "group_deleted": Lane(shape="cross", colour=LOSS),
    "start_offset_went_back": Lane(shape="triangle-left", colour=LOSS),
    GAP: Lane(shape="square", colour=EPOCHS),
    "archived": Lane(shape="square", colour=colours.CELLS[ARCHIVED]),
    "dead_letters": Lane(shape="triangle-down", colour=colours.LINES[3]),
    "redelivered": Lane(shape="circle", colour=colours.LINES[1]),
    "member_joined": Lane(shape="triangle-right", colour=MEMBERS),
    "member_changed": Lane(shape="circle", colour=MEMBERS),
    "member_left": Lane(shape="triangle-left", colour=MEMBERS),
    "rebalanced": Lane(shape=TICK, colour=MEMBERS),
    SETTING: Lane(shape="diamond", colour=EPOCHS),
    LEADER: Lane(shape="triangle-right", colour=EPOCHS),
    IN_SYNC: Lane(shape="circle", colour=EPOCHS),
    "state_epoch_moved": Lane(shape=TICK, colour=EPOCHS),
    "leader_epoch_moved": Lane(shape=TICK, colour=EPOCHS),
}
"""The lanes in the order from the top; those of other events stand below."""
UNNAMED = Lane(shape="circle", colour=EPOCHS)
assert {*EVENTS, *MEMBERSHIP} <= LANES.keys(), "each event has a lane"


def bands(gathered: Gathered) -> Sequence[Figure]:
    """The picture of each timeline in which something happened."""
    times = gathered.times
    return [
        band(f"band-{rank}", TimelinePicture(timeline=timeline, from_ms=times.from_ms, to_ms=times.to_ms))
        for rank, timeline in enumerate(gathered.pictures.timelines, 1)
        if timeline.marks
    ]


def band(name_: str, picture: TimelinePicture) -> Figure:
    """The picture of a timeline: a lane for each kind of event."""
    timeline = picture.timeline
    there = {mark.lane for mark in timeline.marks}
    lanes = [*(lane for lane in LANES if lane in there), *sorted(there - LANES.keys())]
    data: dict[str, charts.Rows] = {
        "marks": _mark_rows(picture, [mark for mark in timeline.marks if mark.lane != STALLS]),
        "stalls": _stall_rows(picture, [mark for mark in timeline.marks if mark.lane == STALLS]),
    }
    looks = [(_title(lane), *_look(lane)) for lane in lanes]
    chart = charts.band(looks, picture.from_ms, picture.to_ms, has_stalls=STALLS in lanes)
    drawn = charts.drawn(name_, AXES_HEIGHT + LANE_HEIGHT * len(lanes), chart, data)
    totals = ", ".join(f"{words(event)} {number(count)}" for event, count in sorted(timeline.counts.items()))
    return Figure(
        name=name_,
        caption=f"{name(timeline.group_id)}: what happened",
        drawing=drawn,
        text=f"Entries of the timeline: {totals}. A mark stands for all entries of one kind within "
        f"{lasted(max(1, (picture.to_ms - picture.from_ms) // COLUMNS))}; a larger one for more of them.",
    )


def _look(lane: str) -> tuple[str, str]:
    look = LANES.get(lane, UNNAMED)
    return look.shape, look.colour[0]


def words(event: str) -> str:
    """The name of an event or lane on the page."""
    return event.replace("_", " ")


def _title(lane: str) -> str:
    """The name of a lane, short enough for the axis."""
    return words(lane).removesuffix(" moved").removeprefix("start ")


def _mark_rows(picture: TimelinePicture, marks: Sequence[Mark]) -> list[dict[str, object]]:
    max_by_lane: dict[str, int] = {}
    for mark in marks:
        max_by_lane[mark.lane] = max(mark.records or mark.entries, max_by_lane.get(mark.lane, 1))
    rows: list[dict[str, object]] = []
    for mark in marks:
        share = ((mark.records or mark.entries) / max_by_lane[mark.lane]) ** 0.5
        from_ms, to_ms = _bounds(picture, mark.column, mark.column + 1)
        records = f", {counted(mark.records, 'record')}" if mark.records else ""
        entries = counted(mark.entries, "entry", "entries")
        text = f"{words(mark.lane)}: {entries}{records}, {moment(from_ms)[11:]} to {moment(to_ms)[11:]}"
        rows.append(
            {
                "x": (from_ms + to_ms) // 2,
                "lane": _title(mark.lane),
                "size": round(SMALLEST + (LARGEST - SMALLEST) * share),
                "text": text,
            }
        )
    return rows


def _stall_rows(picture: TimelinePicture, marks: Sequence[Mark]) -> list[dict[str, object]]:
    """One row for each run of columns with as many stalls."""
    runs: list[tuple[int, int, int]] = []
    for mark in marks:
        if runs and runs[-1][1] == mark.column and runs[-1][2] == mark.entries:
            runs[-1] = (runs[-1][0], mark.column + 1, mark.entries)
        else:
            runs.append((mark.column, mark.column + 1, mark.entries))
    rows: list[dict[str, object]] = []
    for first, end, stalls in runs:
        from_ms, to_ms = _bounds(picture, first, end)
        text = f"{counted(stalls, 'stall')}, {moment(from_ms)[11:]} to {moment(to_ms)[11:]}"
        rows.append({"x": from_ms, "x2": to_ms, "lane": STALLS, "text": text})
    return rows


def _bounds(picture: TimelinePicture, first: int, end: int) -> tuple[int, int]:
    """The moments at which columns begin and end."""
    span = max(1, picture.to_ms - picture.from_ms)
    return picture.from_ms + span * first // COLUMNS, picture.from_ms + span * end // COLUMNS


def timeline_sheets(gathered: Gathered, command: Callable[[str], str]) -> Sequence[Sheet]:
    """The entries of each timeline, the newest first; `command`: the command line that lists all of a group."""
    sheets: list[Sheet] = []
    for rank, timeline in enumerate(gathered.pictures.timelines, 1):
        entries = timeline.entries.take(pa.array(range(timeline.entries.num_rows - 1, -1, -1), pa.int64()))
        which = "the entries that matter most" if timeline.left_off else "all entries"
        counts = RowCounts(rows=entries.num_rows + timeline.left_off, incomplete=0, unnamed_topics=0)
        sheets += answer_sheets(
            Answer(table=entries, columns=LAYOUT.columns(entries.column_names), all_rows=counts),
            name=f"timeline-{rank}", caption=f"{name(timeline.group_id)}: {which}, the newest first",
            row_limit=ENTRIES_SHOWN, command=command(timeline.group_id), without=["GROUP"],
        )  # fmt: skip
    return [sheet for sheet in sheets if sheet.rows]
