"""Every offset in exactly one class: worked cases, and any log against a model that goes offset by offset."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.measures.account import account
from sharelens.measures.topics.topic_log import TopicLogs
from state_model.columnar.replay import open_ranges, replay_records
from state_model.columnar.values import Loss
from state_model.uuids import ZERO_UUID
from tests.logs.lives_model import life_events, lives_of
from tests.logs.replay_logs import LOGS, parsed, table
from tests.logs.topic_headers import headers

END = 30
ACKNOWLEDGED, ARCHIVING, ARCHIVED = 2, 3, 4


def accounted(log, *, first=0, end=END, topics=None, losses=None):
    done = replay_records(table(log), losses=(losses or {}).get(0, ()))
    deliveries = pa.concat_tables([done.closed, open_ranges(done.state)])
    windows = {(ZERO_UUID, partition): (first, end) for partition in range(3)}
    return account(done.history, deliveries, windows, topics, losses).to_pylist()


def lines(text, **options):
    rows = accounted(parsed(text), **options)
    return [
        f"{row['first_offset']}-{row['last_offset']} {row['class']}" + (f" {row['reason']}" if row["reason"] else "")
        for row in rows
    ]


def test_each_outcome_has_its_class():
    assert lines("""
        0 snapshot start=3 snapshot=0
        0 update start=3 3-5 acknowledged 1, 6-7 available 1, 8-8 archived 5
        0 update start=3 6-6 acknowledged 2
    """) == [
        "0-2 below_first_start",
        "3-5 acknowledged_once",
        "6-6 acknowledged_after_retries",
        "7-7 open",
        "8-8 archived",
        "9-29 open",
    ]


def test_an_outcome_stays_when_the_start_offset_passes():
    assert lines("""
        0 snapshot start=0 snapshot=0
        0 update start=0 0-5 acknowledged 1, 6-7 archiving 5
        0 update start=10
    """) == ["0-5 acknowledged_once", "6-7 archived", "8-9 passed_without_outcome unknown", "10-29 open"]


def test_what_a_reset_skips_and_what_it_brings_back():
    assert lines("""
        0 snapshot start=0 snapshot=0
        0 update start=0 0-5 acknowledged 1, 8-8 acknowledged 1
        0 snapshot start=12 epoch=2
        0 snapshot start=10 epoch=3
        0 update start=10 10-10 acknowledged 1
        0 snapshot start=5 epoch=4
        0 update start=5 5-5 acknowledged 1
    """) == [
        "0-4 acknowledged_once",
        "5-5 acknowledged_after_retries acknowledged_again",
        "6-29 open",
    ]
    assert lines("""
        0 snapshot start=0 snapshot=0
        0 update start=0 0-5 acknowledged 1, 8-8 acknowledged 1
        0 snapshot start=12 epoch=2
    """) == [
        "0-5 acknowledged_once",
        "6-7 skipped_by_reset",
        "8-8 acknowledged_once",
        "9-11 skipped_by_reset",
        "12-29 open",
    ]


def test_a_share_partition_that_was_deleted_leaves_what_was_open():
    assert lines("""
        0 snapshot start=0 snapshot=0
        0 update start=0 0-5 acknowledged 1
        0 tombstone
    """) == ["0-5 acknowledged_once", "6-29 passed_without_outcome life_ended"]


def test_a_share_partition_whose_start_offset_is_not_determined_is_open():
    assert lines("0 snapshot start=-1 snapshot=0") == ["0-29 open start_undetermined"]


def test_of_offsets_before_the_evidence_nothing_is_said():
    assert lines("0 snapshot start=10 snapshot=7 12-12 archived 5") == [
        "0-9 not_in_evidence",
        "10-11 open",
        "12-12 archived",
        "13-29 open",
    ]


def test_what_was_passed_where_records_are_missing_is_not_in_evidence():
    loss = {0: [Loss(first_offset=1, last_offset=1, reason="gap")]}
    log = parsed("""
        0 snapshot start=0 snapshot=0
        1 snapshot start=0 snapshot=0
        0 snapshot start=10 snapshot=1
        0 update start=12
    """)
    del log[1]
    done = replay_records(drop_second(table([log[0], log[0], *log[1:]])), losses=loss[0])
    deliveries = pa.concat_tables([done.closed, open_ranges(done.state)])
    rows = account(done.history, deliveries, {(ZERO_UUID, 0): (0, 20)}, None, loss).to_pylist()
    assert [(row["first_offset"], row["last_offset"], row["class"]) for row in rows] == [
        (0, 9, "not_in_evidence"),
        (10, 11, "passed_without_outcome"),
        (12, 19, "open"),
    ]


def drop_second(rows):
    return pa.concat_tables([rows.slice(0, 1), rows.slice(2)])


def test_the_topics_headers_tell_why_offsets_were_passed():
    logs = TopicLogs()
    logs.take(
        headers(
            """
            2-3 at 100
            4-5 at 100 producer 7
            6-6 at 110 producer 8
            7-7 at 120 producer 7 ABORT
            8-8 at 120 producer 8 COMMIT
            12-13 at 130
            """,
            topic_id=ZERO_UUID,
        )
    )
    log = logs.log((ZERO_UUID, 0), first=0, end=14, log_start=2)
    assert lines(
        """
        0 snapshot start=0 snapshot=0
        0 update start=0 3-3 acknowledged 1
        0 update start=13
        """,
        end=14,
        topics={(ZERO_UUID, 0): log},
    ) == [
        "0-1 passed_without_outcome expired",
        "2-2 passed_without_outcome unknown",
        "3-3 acknowledged_once",
        "4-5 passed_without_outcome aborted",
        "6-6 passed_without_outcome unknown",
        "7-8 passed_without_outcome control",
        "9-11 passed_without_outcome compacted",
        "12-12 passed_without_outcome unknown",
        "13-13 open",
    ]
    assert lines("0 snapshot start=5 snapshot=0", first=5, end=10, topics={(ZERO_UUID, 0): log}) == [
        "5-5 open aborted",
        "6-6 open",
        "7-8 open control",
        "9-9 open",
    ]
    assert log.batch_offsets == 9


def test_a_window_of_time_is_what_kafkas_lookup_by_time_gives():
    logs = TopicLogs(from_ms=110, to_ms=130)
    logs.take(headers("0-9 at 100\n10-19 at 110"))
    logs.take(headers("20-29 at 105\n30-39 at 130\n40-49 at 120"))
    log = logs.log((headers("0-0 at 0").column("topic_id")[0].as_py(), 0), first=0, end=50, log_start=None)
    assert (log.first, log.end, log.batch_offsets) == (10, 30, 20)


@pytest.mark.slow
@given(LOGS, st.integers(0, 10), st.integers(0, 30))
def test_the_classes_partition_the_window_as_a_model_says(log, first, size):
    rows = accounted(log, first=first, end=first + size)
    classes = [
        ((row["partition"], offset), (row["class"], row["reason"]))
        for row in rows
        for offset in range(row["first_offset"], row["last_offset"] + 1)
    ]
    partitions = {key.partition for key, _, _ in log}
    assert len(classes) == size * len(partitions)
    offsets = range(first, first + size)
    assert dict(classes) == {
        (partition, offset): classed(log, partition, offset) for partition in partitions for offset in offsets
    }


def classed(log, partition, offset):
    """(class, reason) of one offset, by the lives of its share partition."""
    lives = lives_of(log, partition)
    live = bool(lives) and not lives[-1]["deleted"]
    reaching = [n for n, life in enumerate(lives) if any(0 <= start <= offset for start in life["starts"])]
    started = [n for n, life in enumerate(lives) if any(start >= 0 for start in life["starts"])]
    if not reaching:
        if not lives or not lives[0]["created"]:
            return "not_in_evidence", None
        if started:
            return "below_first_start", None
        return ("open", "start_undetermined") if live else ("passed_without_outcome", "life_ended")
    number = reaching[-1]
    life = lives[number]
    times = sum(state == ACKNOWLEDGED for earlier in lives for _, state, _ in life_events(earlier, offset))
    at_end = offset >= life["starts"][-1]
    at_offset = [(s, c) for first, last, s, c in life["states"][-1][1] if first <= offset <= last]
    events = [(state, count) for _, state, count in life_events(life, offset)]
    state, count = (at_offset or [(None, 0)])[0] if at_end else (events or [(None, 0)])[-1]
    if state == ACKNOWLEDGED:
        if count > 1:
            return "acknowledged_after_retries", None
        return ("acknowledged_once", None) if times == 1 else ("acknowledged_after_retries", "acknowledged_again")
    if state == ARCHIVED or (state == ARCHIVING and not at_end):
        return "archived", None
    if not at_end:
        unseen = any(low <= offset < high for low, high in life["blind"])
        return ("not_in_evidence", None) if unseen else ("passed_without_outcome", "unknown")
    if number == len(lives) - 1 and live:
        return "open", None
    if any(n > number for n in started):
        return "skipped_by_reset", "recreated" if life["deleted"] else None
    return ("open", "start_undetermined") if live else ("passed_without_outcome", "life_ended")
