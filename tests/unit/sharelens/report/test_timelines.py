"""Timelines of groups in a report: bounded, with exact counts, and with marks that can be seen."""

from typing import Any

import pyarrow as pa
import pytest

from sharelens.evidence.schemas import GROUP_RECORD
from sharelens.measures.schemas import EVENTS, LIFE, STALL
from sharelens.report import colours
from sharelens.report.bands import LANES
from sharelens.report.ranking import GroupRanking
from sharelens.report.timelines import COLUMNS, ENTRIES_SHOWN, STALLS, GroupTimeline, TimelineReading, drawn_groups
from sharelens.tables.places import PLACED
from sharelens.tables.where import Span

HOUR_MS = 3_600_000


def table(schema: pa.Schema, rows: list[dict[str, Any]]) -> pa.Table:
    """Rows of a schema; columns that a row lacks are null, or empty where they must not be."""
    empty = {field.name: "" if pa.types.is_string(field.type) else 0 for field in schema if not field.nullable}
    return pa.Table.from_pylist([empty | row for row in rows], schema=schema)


def life_rows(group: str, events: list[tuple[str, int]]) -> pa.Table:
    rows = [
        {"group_id": group, "topic_id": "t", "log_offset": offset, "event": event, "log_time_ms": at_ms}
        for offset, (event, at_ms) in enumerate(events)
    ]
    return table(LIFE, rows)


def stall_rows(group: str, intervals: list[tuple[int, int | None]]) -> pa.Table:
    rows = [
        {"group_id": group, "topic_id": "t", "since_ms": since, "until_ms": until, "kind": "blocked_by_record"}
        for since, until in intervals
    ]
    return table(STALL, rows)


def reading(span: Span | None = None) -> TimelineReading:
    return TimelineReading(["g"], span or Span(), 0, HOUR_MS)


def timeline(of: TimelineReading) -> GroupTimeline:
    (group_timeline,) = of.timelines(GROUP_RECORD.empty_table(), [], {"t": "orders"})
    return group_timeline


@pytest.mark.slow
def test_marks_and_entries_are_bounded_and_counts_exact() -> None:
    events = [(EVENTS[number % len(EVENTS)], number * HOUR_MS // 20_000) for number in range(20_000)]
    of = reading()
    for begin in range(0, len(events), 5000):
        of.add_lives(life_rows("g", events[begin : begin + 5000]))
    group_timeline = timeline(of)
    assert len(group_timeline.marks) == COLUMNS * len(EVENTS)
    assert sum(mark.entries for mark in group_timeline.marks) == sum(group_timeline.counts.values()) == 20_000
    assert group_timeline.entries.num_rows == ENTRIES_SHOWN
    assert group_timeline.left_off == 20_000 - ENTRIES_SHOWN
    assert "leader_epoch_moved" not in group_timeline.entries.column("event").to_pylist()
    assert min(group_timeline.entries.column("at_ms").to_pylist()) > HOUR_MS * 99 // 100


def test_other_groups_and_times_outside_the_span_are_left_out() -> None:
    of = reading(Span(from_ms=1000, to_ms=2000))
    of.add_lives(life_rows("g", [("created", 999), ("deleted", 1000), ("recreated", 1999), ("reset", 2000)]))
    of.add_lives(life_rows("other", [("created", 1500)]))
    assert timeline(of).counts == {"deleted": 1, "recreated": 1}


def test_stalls_are_bars_over_all_columns_in_which_one_lasts() -> None:
    of = reading()
    column_ms = HOUR_MS // COLUMNS
    of.add_stalls(stall_rows("g", [(0, 2 * column_ms), (column_ms, 3 * column_ms), (70 * column_ms, None)]))
    group_timeline = timeline(of)
    bars = {mark.column: mark.entries for mark in group_timeline.marks if mark.lane == STALLS}
    assert bars == {0: 1, 1: 2, 2: 2, 3: 1, 70: 1, 71: 1}
    assert group_timeline.counts == {"stall_began": 3, "stall_ended": 2}


@pytest.mark.parametrize(("ranked", "expected"), [(["b", "a"], ["b", "a", "d"]), ([], ["d", "c", "b"])])
def test_groups_with_something_open_come_first_then_those_with_the_newest_record(
    ranked: list[str], expected: list[str]
) -> None:
    places = {"group_id": list("abcd"), "topic_id": ["t"] * 4, "partition": [0] * 4, "state_partition": [0] * 4}
    places |= {"records": [1] * 4, "log_time_ms": [1, 2, 3, 4], "start_offset": [0] * 4}
    ranking = GroupRanking(
        places={group: place for place, group in enumerate(ranked)}, severities=dict.fromkeys(ranked, 0)
    )
    assert drawn_groups(ranking, pa.table(places, schema=PLACED)) == expected


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("lane", LANES)
def test_marks_stand_out_from_the_card_in_both_themes(lane: str) -> None:
    for colour, card in zip(LANES[lane].colour, colours.CARD, strict=True):
        brighter, darker = sorted((luminance(colour), luminance(card)), reverse=True)
        assert (brighter + 0.05) / (darker + 0.05) >= 3
