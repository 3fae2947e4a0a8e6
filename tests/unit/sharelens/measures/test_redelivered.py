"""Records delivered more than once: worked cases, and any log against a model that goes offset by offset."""

import pyarrow as pa
import pytest
from hypothesis import given

from sharelens.measures.histories.numbers import Histories
from sharelens.measures.redelivered import redelivered
from state_model.columnar.replay import open_ranges, replay_records
from tests.logs.lives_model import life_events, lives_of
from tests.logs.replay_logs import LOGS, parsed, table

OFFSETS = range(40)
ACKNOWLEDGED = 2


def measured(log):
    done = replay_records(table(log))
    return redelivered(Histories.of(done.history, pa.concat_tables([done.closed, open_ranges(done.state)])))


def lines(text):
    """`first-last kind acknowledged/max count | life | first > cause > last` of each row."""
    return [
        f"{row['first_offset']}-{row['last_offset']} {row['kind']} {row['times_acknowledged']}/"
        f"{row['max_delivery_count']} | life {row['life_log_offset']} | "
        f"{row['first_log_offset']} > {row['cause_log_offset']} > {row['last_log_offset']}"
        for row in measured(parsed(text)).to_pylist()
    ]


def test_a_record_that_came_back_and_was_acknowledged_is_a_retry():
    assert lines("""
        0 snapshot start=0
        0 update start=0 0-9 available 1
        0 update start=0 3-4 acknowledged 2
    """) == ["3-4 retry 1/2 | life 0 | 1 > None > 2"]


def test_ranges_that_only_split_are_no_second_delivery():
    assert (
        lines("""
        0 snapshot start=0
        0 update start=0 0-9 acknowledged 1
        0 update start=5
        0 snapshot start=5 5-9 acknowledged 1
    """)
        == []
    )


def test_a_record_delivered_after_it_was_acknowledged():
    assert lines("""
        0 snapshot start=0
        0 update start=0 0-9 acknowledged 1
        0 update start=0 3-3 available 2
        0 update start=0 3-3 acknowledged 3
    """) == ["3-3 delivered_after_acknowledged 2/3 | life 0 | 1 > None > 3"]


def test_a_start_offset_that_went_back_brings_records_back():
    assert lines("""
        0 snapshot start=0
        0 update start=0 0-9 acknowledged 1
        0 update start=10
        0 update start=4
        0 update start=4 4-6 acknowledged 1
    """) == ["4-6 start_went_back 2/1 | life 0 | 1 > 3 > 4"]


def test_a_reset_to_an_earlier_offset_replays_what_was_settled():
    assert lines("""
        0 snapshot start=0 snapshot=0
        0 update start=0 0-9 acknowledged 1
        0 update start=10
        0 snapshot start=5 epoch=2 snapshot=2
        0 update start=5 5-7 acknowledged 1, 8-8 archived 2
    """) == [
        "5-7 replayed_by_reset 2/1 | life 3 | 1 > 3 > 4",
        "8-8 retry 0/2 | life 3 | 4 > None > 4",
        "8-8 replayed_by_reset 1/2 | life 3 | 1 > 3 > 4",
    ]


def test_a_share_partition_made_anew_replays_what_its_forerunner_had():
    assert lines("""
        0 snapshot start=0 snapshot=0
        0 update start=0 0-9 acknowledged 1
        0 tombstone
        0 snapshot start=0 snapshot=0
        0 update start=0 0-1 acknowledged 1
    """) == ["0-1 replayed_by_recreation 2/1 | life 3 | 1 > 3 > 4"]


def test_of_one_share_partition_nothing_is_said_about_another():
    assert (
        lines("""
        0 snapshot start=0
        1 snapshot start=0
        0 update start=0 0-9 acknowledged 1
        1 update start=0 0-9 acknowledged 1
    """)
        == []
    )


def test_the_whole_of_the_offsets_that_a_record_may_claim_is_one_range():
    last = 2**63 - 2
    assert lines(f"""
        0 snapshot start=0
        0 update start=0 0-{last} available 1
        0 update start=0 5-{last} acknowledged 2
    """) == [f"5-{last} retry 1/2 | life 0 | 1 > None > 2"]


@pytest.mark.slow
@given(LOGS)
def test_any_log_is_told_as_a_model_tells_it_that_goes_offset_by_offset(log):
    rows = {
        (row["partition"], offset, row["kind"], row["life_log_offset"]): (
            row["times_acknowledged"],
            row["max_delivery_count"],
            row["first_log_offset"],
            row["cause_log_offset"],
            row["last_log_offset"],
        )
        for row in measured(log).to_pylist()
        for offset in range(row["first_offset"], row["last_offset"] + 1)
    }
    assert rows == dict(entry for partition in range(3) for entry in model(log, partition))


def model(log, partition):
    """Rows by (partition, offset, kind, life), from the reference machine's state after each record."""
    lives = lives_of(log, partition)
    for offset in OFFSETS:
        before = None
        for number, life in enumerate(lives):
            events = life_events(life, offset)
            yield from within(partition, offset, life["at"], events, life["back"])
            if not any(count > 0 or state != 0 for _, state, count in events):
                continue
            acknowledged = sum(state == ACKNOWLEDGED for _, state, _ in events)
            count = max(count for _, _, count in events)
            if before:
                gone = any(earlier["deleted"] for earlier in lives[before["number"] : number])
                kind = "replayed_by_recreation" if gone else "replayed_by_reset"
                acknowledged, count = acknowledged + before["acknowledged"], max(count, before["count"])
                row = (acknowledged, count, before["last"], life["begun"], events[-1][0])
                yield (partition, offset, kind, life["at"]), row
            before = {"number": number, "acknowledged": acknowledged, "count": count, "last": events[-1][0]}


def within(partition, offset, at, events, back):
    if not events:
        return
    first, last, max_count = events[0][0], events[-1][0], max(count for _, _, count in events)
    acknowledged = [count for _, state, count in events if state == ACKNOWLEDGED]
    brought = [log_offset for log_offset, low, high in back if low <= offset < high and first < log_offset <= last]
    if brought:
        kind = "start_went_back"
    elif acknowledged and max_count > min(acknowledged):
        kind = "delivered_after_acknowledged"
    elif max_count > 1:
        kind = "retry"
    else:
        return
    row = (len(acknowledged), max_count, first, brought[0] if brought else None, last)
    yield (partition, offset, kind, at), row
