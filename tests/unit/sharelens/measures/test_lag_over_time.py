"""Lag at moments of the past, as one small worked story."""

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.measures.lag_over_time import (
    MINUTE_MS,
    VALUES,
    Arrivals,
    ArrivalsByMinute,
    FirstArrival,
    RowsAtMoments,
    changes,
    lag_over_time,
    minutes_of,
)
from sharelens.measures.schemas import LAG_OVER_TIME
from state_model.columnar.codes import ABOVE_ALL, BELOW_ALL
from state_model.columnar.replay import replay_records
from state_model.columnar.schemas import SHARE_RECORD
from tests.logs.state_logs import ORDERS_ID, STATE_TOPIC_ID, snapshot, tombstone, update
from tests.logs.topic_headers import headers

BATCHES = """
    0-49    at 100
    50-99   at 200
    100-149 at 300
    150-159 at 250
"""
STORY = [
    snapshot("g", start=-1, at_ms=50, delivery_complete_count=-1),
    update("g", start=0, at_ms=110),
    update("g", start=40, delivery_complete_count=25, at_ms=210),
    tombstone("g", at_ms=400),
]


def history(story: list[dict[str, Any]]) -> pa.Table:
    place = {"log_topic_id": STATE_TOPIC_ID, "state_partition": 0, "trailing_bytes": 0, "record_bytes": 0}
    place |= {"log_leader_epoch": 0, "below_log_start": False, "uncommitted": False}
    rows = [
        place | record | {"log_offset": offset, "log_time_ms": record["timestamp_ms"]}
        for offset, record in enumerate(story)
    ]
    return replay_records(pa.Table.from_pylist(rows, schema=SHARE_RECORD)).history


def lag_rows(text: str, *moments: int) -> list[dict[str, Any]]:
    at_moments = np.array(moments, np.int64)
    arrivals = Arrivals(at_moments)
    rows = headers(text)
    for at in range(rows.num_rows):
        arrivals.take(rows.slice(at, 1))
    at_once = Arrivals(at_moments)
    at_once.take(rows)
    lags = lag_over_time(history(STORY), arrivals, at_moments, {ORDERS_ID: "orders"})
    assert lags.schema.equals(LAG_OVER_TIME)
    assert lag_over_time(history(STORY), at_once, at_moments, {ORDERS_ID: "orders"}).equals(lags)
    return list(lags.to_pylist())


def test_each_moment_has_the_state_and_the_end_of_then():
    rows = lag_rows(BATCHES, 49, 50, 110, 209, 210, 299, 399, 400)
    assert [(row["at_ms"], row["end_offset_inferred"], row["lag_inferred"]) for row in rows] == [
        (50, None, None),
        (110, 50, 50),
        (209, 100, 100),
        (210, 100, 35),
        (299, 100, 35),
        (399, 160, 95),  # the last batch's own time is older, and it came after the third
    ]
    assert rows[0]["unknown_reason"] == "start_offset_not_determined"
    assert {row["topic"] for row in rows} == {"orders"}


def test_without_headers_no_lag_is_known():
    (row,) = lag_rows("", 150)
    assert (row["lag_inferred"], row["unknown_reason"]) == (None, "end_offset_of_the_moment_not_logged")


def test_no_moment_has_no_row():
    assert lag_rows(BATCHES) == []


def test_without_history_no_moment_has_a_row():
    moment = np.array([150], np.int64)
    assert lag_over_time(history([]), Arrivals(moment), moment, {}).num_rows == 0


@pytest.mark.slow
@given(
    records=st.lists(st.tuples(st.sampled_from("gh"), st.integers(0, 5), st.integers(-1, 60)), max_size=30),
    cuts=st.lists(st.integers(0, 30), max_size=4),
    moments=st.lists(st.integers(0, 160), unique=True, max_size=6).map(sorted),
)
def test_rows_at_moments_are_enough_however_the_history_is_cut(
    records: list[tuple[str, int, int]], cuts: list[int], moments: list[int]
) -> None:
    at_ms, story = 0, []
    for group, pause_ms, start in records:
        at_ms += pause_ms
        story.append(snapshot(group, start=start, at_ms=at_ms))
    rows, at_moments = history(story), np.array(moments, np.int64)
    arrivals = Arrivals(at_moments)
    arrivals.take(headers(BATCHES))
    rows_at_moments = RowsAtMoments(at_moments)
    ends = sorted({0, *(cut for cut in cuts if cut < rows.num_rows), rows.num_rows})
    for begin, end in itertools.pairwise(ends if rows.num_rows else [0, 0]):
        rows_at_moments.add(rows.slice(begin, end - begin))
    assert rows_at_moments.table().num_rows <= 2 * len(moments)
    assert lag_over_time(rows_at_moments.table(), arrivals, at_moments, {}).equals(
        lag_over_time(rows, arrivals, at_moments, {})
    )


MINUTES = """
    0-49    at 60000
    50-99   at 60001
    100-149 at 300000
    150-159 at 290000
"""
CHANGES = [
    snapshot("g", start=0, at_ms=30_000),
    update("g", start=40, at_ms=60_001),
    update("g", start=40, at_ms=100_000),
    update("g", start=40, at_ms=180_000),
    snapshot("h", start=-1, at_ms=180_000, delivery_complete_count=-1),
    tombstone("g", at_ms=400_000),
]


def changed_rows(story: list[dict[str, Any]], text: str, parts: int = 1) -> pa.Table:
    """The rows of `changes`; the headers come in parts."""
    arrivals, rows = ArrivalsByMinute(), headers(text)
    for at in range(0, rows.num_rows, parts):
        arrivals.take(rows.slice(at, parts))
    return changes(history(story), arrivals, {ORDERS_ID: "orders"})


def test_a_minute_has_a_row_where_something_changed() -> None:
    rows = changed_rows(CHANGES, MINUTES).to_pylist()
    assert [
        (
            row["group_id"],
            row["at_ms"] // MINUTE_MS,
            row["start_offset"],
            row["end_offset_inferred"],
            row["lag_inferred"],
        )
        for row in rows
    ] == [
        ("g", 1, 0, 50, 50),
        ("g", 2, 40, 100, 60),
        ("g", 5, 40, 160, 120),
        ("g", 7, None, None, None),
        ("h", 3, -1, 100, None),
        ("h", 5, -1, 160, None),
    ]
    assert [row["unknown_reason"] for row in rows if row["group_id"] == "g"] == [
        *[None] * 3,
        "share_partition_deleted",
    ]


@pytest.mark.parametrize("times", [[-1, 0, 1, 60_000, 60_001], [(1 << 63) - 1]])
def test_a_time_counts_from_the_next_minute_on(times: list[int]) -> None:
    minutes = minutes_of(np.array(times, np.int64)).tolist()
    assert all(minute % MINUTE_MS == 0 for minute in minutes)
    assert minutes in ([0, 0, 60_000, 60_000, 120_000], [((1 << 63) - 1) // MINUTE_MS * MINUTE_MS])


HEADERS = st.lists(st.tuples(st.integers(1, 20), st.integers(0, 500_000)), max_size=12)
STORIES = st.lists(
    st.tuples(st.sampled_from("gh"), st.integers(0, 90_000), st.sampled_from([-1, 0, 10, 20, None])), max_size=20
)


@given(records=STORIES, batches=HEADERS, parts=st.integers(1, 5))
def test_changes_are_the_lag_at_every_minute(
    records: list[tuple[str, int, int | None]], batches: list[tuple[int, int]], parts: int
) -> None:
    at_ms, story, text, end = 0, [], "", 0
    for group, pause_ms, start in records:
        at_ms += pause_ms
        story.append(tombstone(group, at_ms=at_ms) if start is None else snapshot(group, start=start, at_ms=at_ms))
    for size, batch_ms in batches:
        text += f"{end}-{end + size - 1} at {batch_ms}\n"
        end += size
    moments = np.arange(0, 35 * MINUTE_MS, MINUTE_MS, dtype=np.int64)
    arrivals = Arrivals(moments)
    arrivals.take(headers(text))
    expected = lag_over_time(history(story), arrivals, moments, {ORDERS_ID: "orders"}).to_pylist()
    rows = changed_rows(story, text, parts).to_pylist()
    names = ["group_id", "at_ms", *VALUES]
    at_every_minute = []
    for group in "gh":
        group_rows = [row for row in rows if row["group_id"] == group]
        for row, following in itertools.zip_longest(group_rows, group_rows[1:], fillvalue={"at_ms": 35 * MINUTE_MS}):
            if row["unknown_reason"] != "share_partition_deleted":
                for moment in range(row["at_ms"], following["at_ms"], MINUTE_MS):
                    at_every_minute.append([row[name] if name != "at_ms" else moment for name in names])
        for row, following in itertools.pairwise(group_rows):
            assert [row[name] for name in VALUES] != [following[name] for name in VALUES]
    assert at_every_minute == [[row[name] for name in names] for row in expected]


@pytest.mark.parametrize(
    ("times", "new", "since"),
    [
        ([10, 20, 30], [False, False, True], 30),
        ([10, 20, 30], [False, True, False], 10),
        ([10, 5, 30], [False, True, True], 10),
        ([10, 20], [False, False], None),
        ([10, 20], [True, True], 10),
        ([10, 20], [True, False], None),
    ],
)
def test_new_headers_change_ends_from_the_first_of_them_on(
    times: list[int], new: list[bool], since: int | None
) -> None:
    rows = pa.table({"max_timestamp_ms": pa.array(times, pa.int64())})
    for parts in (1, len(times)):
        first = FirstArrival()
        for at in range(0, len(times), parts):
            first.take(rows.slice(at, parts), np.array(new[at : at + parts]))
        if since is not None:
            assert first.time_ms == since
        else:
            assert first.time_ms == (ABOVE_ALL if not any(new) else BELOW_ALL)
