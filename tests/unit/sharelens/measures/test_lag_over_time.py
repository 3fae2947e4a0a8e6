"""Lag at moments of the past, as one small worked story."""

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.measures.lag_over_time import Arrivals, RowsAtMoments, lag_over_time
from sharelens.measures.schemas import LAG_OVER_TIME
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
