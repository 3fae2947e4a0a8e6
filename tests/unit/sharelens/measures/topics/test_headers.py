"""What batch headers say of single offsets, as small worked cases."""

import numpy as np
import pyarrow as pa
import pytest

from sharelens.measures.topics.headers import (
    ABORTED,
    ABSENT,
    CONTROL,
    NO_RECORD,
    NoRecords,
    OffsetTimes,
    news_from,
    spans_of,
    with_sampled,
)
from tests.logs.state_logs import ORDERS_ID
from tests.logs.topic_headers import headers

STORY = """
    0-9   at 100 producer 7
    10-14 at 110 producer 8
    15-15 at 120 producer 7 ABORT
    20-24 at 130
    25-25 at 140 producer 8 COMMIT
    26-29 at 150 producer 7
"""


@pytest.mark.parametrize("chunk", [1, 2, 4, 100])
def test_markers_holes_and_aborted_records_are_told_however_headers_are_chunked(chunk):
    rows, no_records = headers(STORY), NoRecords()
    for first in range(0, rows.num_rows, chunk):
        no_records.take(rows.slice(first, chunk))
    reasons = [(row["first_offset"], row["last_offset"], row["reason"]) for row in no_records.ranges().to_pylist()]
    assert reasons == [(0, 9, "aborted"), (15, 15, "control"), (16, 19, "absent"), (25, 25, "control")]
    header_range = {"topic_id": ORDERS_ID, "partition": 0, "first_offset": 0, "last_offset": 29}
    assert no_records.header_ranges().to_pylist() == [header_range]


def test_transactions_of_one_partition_say_nothing_about_another():
    no_records = NoRecords()
    no_records.take(headers("0-9 at 1 producer 7"))
    no_records.take(headers("0-0 at 2 producer 7 ABORT", partition=1))
    assert [(row["partition"], row["reason"]) for row in no_records.ranges().to_pylist()] == [(1, "control")]


def test_ranges_come_apart_by_user_partition():
    no_records = NoRecords()
    no_records.take(headers("0-0 at 2 producer 7 ABORT"))
    no_records.take(headers("0-0 at 2 producer 7 COMMIT\n5-9 at 3", partition=1))
    spans = spans_of(no_records.ranges())
    assert {place: list(zip(*map(list, parts), strict=True)) for place, parts in spans.items()} == {
        (ORDERS_ID, 0): [(0, 0, 0)],
        (ORDERS_ID, 1): [(0, 0, 0), (1, 4, 1)],
    }
    assert spans_of(NoRecords().ranges()) == {}


def test_an_offset_has_the_time_of_its_batch_and_none_outside_all():
    times = OffsetTimes({(ORDERS_ID, 0): np.array([3, 17, 20, 99])})
    for row in range(headers(STORY).num_rows):
        times.take(headers(STORY).slice(row, 1))
    times.take(headers("0-9 at 7 append", partition=1))
    assert [(row["offset"], row["max_timestamp_ms"]) for row in times.table().to_pylist()] == [(3, 100), (20, 130)]


def test_a_new_header_tells_of_the_hole_before_it_too():
    rows = headers("0-9 at 1\n10-14 at 1\n20-29 at 1")
    assert news_from(rows, np.array([False, False, True])) == 15
    assert news_from(rows, np.array([False, False, False])) is None


def test_ranges_of_single_batches_join_the_others_without_overlaps():
    from_headers = no_records(("t", 0, 0, 4, ABSENT), ("t", 0, 10, 10, CONTROL))
    sampled = no_records(("t", 0, 3, 7, ABSENT), ("t", 0, 10, 10, CONTROL), ("t", 1, 3, 7, ABORTED))
    assert (
        with_sampled(from_headers, sampled).to_pylist()
        == no_records(
            ("t", 0, 0, 4, ABSENT), ("t", 0, 5, 7, ABSENT), ("t", 0, 10, 10, CONTROL), ("t", 1, 3, 7, ABORTED)
        ).to_pylist()
    )


def no_records(*rows):
    return pa.Table.from_pylist([dict(zip(NO_RECORD.names, row, strict=True)) for row in rows], schema=NO_RECORD)
