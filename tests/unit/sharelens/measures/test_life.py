"""Creations, resets, deletions and moved epochs of share partitions."""

import pyarrow as pa

from sharelens.measures.histories.numbers import Histories
from sharelens.measures.life import life
from state_model.columnar.replay import open_ranges, replay_records
from tests.logs.replay_logs import parsed, table


def rows_of(text):
    done = replay_records(table(parsed(text)))
    return life(Histories.of(done.history, pa.concat_tables([done.closed, open_ranges(done.state)]))).to_pylist()


def lines(text):
    return [
        f"{row['log_offset']} {row['partition']} {row['event']} start {row['start_offset_before']}>"
        f"{row['start_offset_after']} epoch {row['state_epoch_before']}>{row['state_epoch_after']}"
        for row in rows_of(text)
    ]


def test_a_life_from_creation_to_deletion_and_the_next_one():
    assert lines("""
        0 snapshot start=-1 snapshot=0
        0 update start=4
        0 tombstone
        0 snapshot start=-1 snapshot=0 epoch=5
    """) == [
        "0 0 created start None>-1 epoch None>1",
        "2 0 deleted start 4>None epoch 1>None",
        "3 0 recreated start 4>-1 epoch 1>5",
    ]


def test_a_log_that_begins_in_the_middle_of_a_life_is_first_seen():
    assert lines("0 snapshot start=7 snapshot=9") == ["0 0 first_seen start None>7 epoch None>1"]


def test_a_moved_leader_epoch_and_a_start_offset_that_went_back():
    assert lines("""
        0 snapshot start=9 snapshot=0
        0 update start=-1 leader=4
        0 update start=5
    """) == [
        "0 0 created start None>9 epoch None>1",
        "1 0 leader_epoch_moved start 9>9 epoch 1>1",
        "2 0 start_offset_went_back start 9>5 epoch 1>1",
    ]


def test_a_reset_ahead_skips_and_says_what_had_been_settled():
    *_, row = rows_of("""
        0 snapshot start=0 snapshot=0
        0 update start=0 0-5 acknowledged 1, 8-9 archived 1, 25-29 acknowledged 1
        0 update start=6
        0 snapshot start=20 epoch=2
    """)
    assert row["event"] == "reset"
    assert (row["skipped_first_offset"], row["skipped_last_offset"], row["settled_skipped"]) == (6, 19, 2)
    assert (row["replayed_first_offset"], row["replayed_last_offset"], row["settled_dropped"]) == (None, None, 5)


def test_a_reset_back_replays():
    *_, row = rows_of("""
        0 snapshot start=0 snapshot=0
        0 update start=0 0-5 acknowledged 1
        0 update start=6
        0 snapshot start=2 epoch=2
    """)
    assert (row["replayed_first_offset"], row["replayed_last_offset"], row["settled_skipped"]) == (2, 5, None)
    assert row["settled_dropped"] == 0


def test_an_empty_history_has_no_events():
    done = replay_records(table([]))
    assert life(Histories.of(done.history, done.closed)).num_rows == 0
