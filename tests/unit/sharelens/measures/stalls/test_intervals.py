"""Stalls as small worked cases; state records are 10 ms apart, the first at 0."""

import pyarrow as pa
import pytest

from sharelens.measures.histories.numbers import Histories
from sharelens.measures.schemas import STALL
from sharelens.measures.settings.over_time import (
    DELIVERY_COUNT_LIMIT,
    MAX_RECORD_LOCKS,
    GroupSettings,
    Setting,
    over_time,
)
from sharelens.measures.stalls import intervals as measure
from sharelens.measures.topics.headers import NoRecords, OffsetTimes
from state_model.columnar.replay import open_ranges, replay_records
from state_model.uuids import ZERO_UUID
from tests.logs.replay_logs import parsed, table
from tests.logs.topic_headers import headers


def stalled(text, topic, *, now, end=None, settings=None, least=20):
    settings = settings or GroupSettings()
    done = replay_records(table(parsed(text)))
    deliveries = pa.concat_tables([done.closed, open_ranges(done.state)])
    empty = NoRecords()
    empty.take(headers(topic, topic_id=ZERO_UUID))
    intervals = measure.intervals(Histories.of(done.history, deliveries), empty.ranges(), settings)
    intervals = measure.long_enough(intervals, now, least)
    times = OffsetTimes(measure.offsets_of(intervals))
    times.take(headers(topic, topic_id=ZERO_UUID))
    ends = {} if end is None else {(ZERO_UUID, 0): (end, "high_watermark")}
    rows = measure.stalls(intervals, times.table(), ends, settings, now_ms=now, min_duration_ms=least)
    assert rows.schema.equals(STALL)
    return rows.to_pylist()


def lines(*arguments, **options):
    """`since-until kind at first incomplete offset: finished behind` of each row."""
    return [
        f"{row['since_ms']}-{row['until_ms']} {row['kind']} at {row['first_incomplete_offset']}: "
        f"{row['finished_behind']}"
        for row in stalled(*arguments, **options)
    ]


PINNED = """
    0 snapshot start=0
    0 update start=0 0-4 acknowledged 1, 6-9 acknowledged 1
    0 update start=5 10-19 acknowledged 1
    0 update start=5 20-29 acknowledged 1
"""


def test_a_record_that_others_pass_blocks_until_it_is_done():
    assert lines(PINNED, "0-29 at 1", now=100, end=30) == ["10-None blocked_by_record at 5: 24"]
    over = PINNED + "    0 update start=5 5 acknowledged 2\n"
    assert lines(over, "0-29 at 1", now=100, end=30) == ["40-None idle at 30: 0", "10-40 blocked_by_record at 5: 24"]


def test_a_full_window_needs_a_limit_to_be_told():
    limit = {"g": {MAX_RECORD_LOCKS: Setting(value="25", origin="dynamic_group_config")}}
    (row,) = stalled(PINNED, "0-29 at 1", now=100, end=30, settings=GroupSettings(groups=limit))
    assert (row["kind"], row["window_used"], row["window_limit"]) == ("window_full", 25, 25)
    assert row["window_limit_source"] == "dynamic_group_config"
    (row,) = stalled(PINNED, "0-29 at 1", now=100, end=30)
    assert (row["kind"], row["window_used"], row["window_limit"]) == ("blocked_by_record", 25, None)


CAUGHT_UP = """
    0 snapshot start=0
    0 update start=0 0-9 acknowledged 1
"""


def test_a_group_with_nothing_left_to_do_is_idle():
    assert lines(CAUGHT_UP, "0-9 at 1", now=500, end=10) == ["10-None idle at 10: 0"]


@pytest.mark.parametrize(("stamp", "clock"), [("100", "create_time"), ("100 append", "log_append_time")])
def test_silence_counts_from_when_the_record_was_there(stamp, clock):
    (row,) = stalled(CAUGHT_UP, f"0-9 at 1\n10-14 at {stamp}", now=500, end=15)
    assert (row["kind"], row["since_ms"], row["since_clock"]) == ("silent_with_backlog", 100, clock)
    assert (row["duration_ms"], row["until_ms"], row["end_offset"]) == (400, None, 15)


def test_a_record_older_than_the_interval_counts_from_its_beginning():
    assert lines(CAUGHT_UP, "0-14 at 1", now=500, end=15) == ["10-None silent_with_backlog at 10: 0"]


def test_a_producers_clock_that_runs_ahead_hides_nothing_that_the_state_log_shows():
    assert lines(PINNED, "0-29 at 99999", now=100, end=30) == ["10-None blocked_by_record at 5: 24"]


def test_silence_is_no_stall_where_the_topic_is_not_in_evidence():
    assert lines(CAUGHT_UP, "", now=500) == []


def test_a_record_whose_dead_letter_is_due_waits_for_the_broker():
    archiving = """
        0 snapshot start=0
        0 update start=0 0 archiving 5, 1-9 acknowledged 1
    """
    assert lines(archiving, "0-9 at 1", now=100, end=10) == ["1-None dead_letter_pending at 0: 9"]


def test_a_reset_and_a_deletion_end_a_stall_and_say_so():
    ended = [
        (row["since_ms"], row["until_ms"], row["ended_by"])
        for row in stalled(
            """
            0 snapshot start=0 snapshot=0
            0 update start=0 1-9 acknowledged 1
            0 update start=0
            0 snapshot start=0 epoch=2 snapshot=2
            0 update start=0 1-9 acknowledged 1
            0 update start=0
            0 tombstone
            """,
            "0-9 at 1",
            now=100,
        )
    ]
    assert ended == [(30, 60, "deleted"), (1, 30, "reset")]


def test_suspects_are_counted_from_the_delivery_count_that_slows_the_broker_down():
    released = """
        0 snapshot start=0
        0 update start=0 0-2 available 3, 3-9 available 2, 10-19 acknowledged 1
    """
    limit = {"g": {DELIVERY_COUNT_LIMIT: Setting(value="5", origin="dynamic_group_config")}}
    (row,) = stalled(released, "0-19 at 1", now=100, settings=GroupSettings(groups=limit))
    assert (row["throttled_offsets_inferred"], row["delivery_state"], row["delivery_count"]) == (3, 0, 3)
    (row,) = stalled(released, "0-19 at 1", now=100)
    assert row["throttled_offsets_inferred"] is None


def test_what_stands_still_has_a_row_however_short():
    for least_ms in (20, 21, 1000):
        assert lines(PINNED, "0-29 at 1", now=30, end=30, least=least_ms) == ["10-None blocked_by_record at 5: 24"]


def test_a_record_that_is_younger_than_now_stands_still_nowhere():
    caught_up = CAUGHT_UP + "    0 update start=10\n"
    assert lines(caught_up, "0-9 at 1\n10-14 at 31", now=30, end=15) == []
    assert lines(caught_up, "0-9 at 1\n10-14 at 31", now=32, end=15) == ["31-None blocked_by_record at 10: 0"]


def test_without_a_moment_what_stands_still_has_no_duration_and_counts_as_silent():
    story = CAUGHT_UP + "    0 update start=10\n"
    (row,) = stalled(story, "0-9 at 1\n10-14 at 12", now=None, end=15, least=60_000)
    stall = (row["kind"], row["since_ms"], row["until_ms"], row["duration_ms"])
    assert stall == ("silent_with_backlog", 12, None, None)


def test_the_limit_in_force_at_the_end_of_a_stall_counts():
    locks = {limit: {"g": {MAX_RECORD_LOCKS: Setting(value=str(limit), origin="x")}} for limit in (25, 99)}
    settings = over_time({0: locks[25], 41: locks[99]}, {})
    over = PINNED + "    0 update start=5 5 acknowledged 2\n"
    lasting, ended = stalled(over, "0-40 at 1", now=100, end=41, settings=settings)
    assert (ended["until_ms"], ended["window_limit"], ended["kind"]) == (40, 25, "window_full")
    assert (lasting["until_ms"], lasting["window_limit"]) == (None, 99)
