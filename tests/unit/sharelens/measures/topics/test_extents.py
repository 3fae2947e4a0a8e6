"""Ends of user partitions from batch headers, as small worked cases."""

import pyarrow as pa
import pytest

from sharelens.measures.topics.extents import TOPIC_EXTENT, EndsFromHeaders
from tests.logs.topic_headers import headers

TOPIC = "AAAAAAAAAAAAAAAAAAAABQ"


def extent(end: int | None, partition: int = 0) -> pa.Table:
    row = {"topic_id": TOPIC, "partition": partition, "end_offset": end, "end_offset_source": "high_watermark"}
    return pa.Table.from_pylist([row], schema=TOPIC_EXTENT)


def ends(text: str, end: int | None, as_of_ms: int | None = None) -> dict[str, object]:
    folded = EndsFromHeaders(as_of_ms)
    for row in range(headers(text).num_rows):  # one header at a time: nothing may depend on how they are chunked
        folded.take(headers(text).slice(row, 1))
    at_once = EndsFromHeaders(as_of_ms)
    at_once.take(headers(text))
    (row,) = folded.ends(extent(end)).to_pylist()
    assert at_once.ends(extent(end)).to_pylist() == [row]
    return dict(row)


NO_TRANSACTION = """
    0-9   at 100
    10-19 at 200
"""
OPEN = """
    0-9   at 100
    10-14 at 110 producer 7
    15-19 at 120 producer 8
    20-20 at 130 producer 8 COMMIT
    21-24 at 140 producer 8
"""
CLOSED = """
    0-9   at 100 producer 7
    10-10 at 110 producer 7 ABORT
    11-19 at 120
"""
NEXT_ONE_OPEN = """
    0-4 at 100 producer 7
    5-5 at 110 producer 7 COMMIT
    6-9 at 120 producer 7
"""


@pytest.mark.parametrize(
    ("text", "end", "stable"),
    [
        (NO_TRANSACTION, 20, 20),
        (OPEN, 25, 10),
        (CLOSED, 20, 20),
        (NEXT_ONE_OPEN, 10, 6),
        ("", 0, 0),
        (NO_TRANSACTION, None, None),
    ],
)
def test_the_last_stable_offset_is_where_the_oldest_open_transaction_began(text, end, stable):
    at_end = ends(text, end)
    assert (at_end["end_offset"], at_end["last_stable_offset"]) == (end, stable)


def test_the_end_at_an_earlier_moment_of_producers_clocks_is_only_inferred():
    at_end = ends(NO_TRANSACTION, 20, as_of_ms=150)
    assert (at_end["end_offset"], at_end["end_offset_inferred"], at_end["end_offset_source"]) == (None, 10, None)


def test_the_end_at_an_earlier_moment_by_the_brokers_clock_is_a_fact():
    at_end = ends("0-9 at 100 append\n10-19 at 200 append", 20, as_of_ms=150)
    assert (at_end["end_offset"], at_end["end_offset_inferred"]) == (10, 10)
    assert at_end["end_offset_source"] == "log_append_time"


def test_at_a_moment_after_every_header_the_end_is_still_an_inference():
    at_end = ends(NO_TRANSACTION, 20, as_of_ms=200)
    assert (at_end["end_offset"], at_end["end_offset_inferred"]) == (None, 20)


def test_a_partition_without_headers_from_its_beginning_on_ended_there_at_any_moment():
    at_end = ends("", 20, as_of_ms=200)
    assert (at_end["end_offset"], at_end["end_offset_source"]) == (20, "high_watermark")


def test_a_moment_before_every_header_tells_no_end():
    at_end = ends(NO_TRANSACTION, 20, as_of_ms=99)
    assert (at_end["end_offset"], at_end["end_offset_inferred"]) == (None, None)


def test_headers_behind_one_that_is_too_late_do_not_count():
    """A clock that stepped back: offsets only go up, so what follows a late batch came later still."""
    assert ends("0-9 at 100\n10-19 at 300\n20-29 at 120", 30, as_of_ms=150)["end_offset_inferred"] == 10


def test_user_partitions_are_told_apart_in_one_table():
    rows = pa.concat_tables([headers(NO_TRANSACTION), headers(OPEN, partition=1)])
    folded = EndsFromHeaders()
    folded.take(rows)
    at_end = folded.ends(pa.concat_tables([extent(20), extent(25, partition=1)])).to_pylist()
    assert [row["last_stable_offset"] for row in at_end] == [20, 10]
    assert [row["newest_batch_ms"] for row in at_end] == [200, 140]
