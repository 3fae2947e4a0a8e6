"""Poison as small worked cases; state records are 10 ms apart, the first at 0."""

import pyarrow as pa

from sharelens.measures import poison as measure
from sharelens.measures.histories.numbers import Histories
from sharelens.measures.schemas import POISON_RECORD
from sharelens.measures.settings.over_time import DELIVERY_COUNT_LIMIT, GroupSettings, Setting
from sharelens.measures.topics.headers import NoRecords
from state_model.columnar.replay import open_ranges, replay_records
from state_model.uuids import ZERO_UUID
from tests.logs.replay_logs import parsed, table
from tests.logs.topic_headers import headers

LIMIT_3 = GroupSettings(groups={"g": {DELIVERY_COUNT_LIMIT: Setting(value="3", origin="dynamic_group_config")}})
RECORDS = "0-99 at 1"


def given_up(text, topic=RECORDS, settings=LIMIT_3, **options):
    done = replay_records(table(parsed(text)))
    deliveries = pa.concat_tables([done.closed, open_ranges(done.state)])
    no_records = NoRecords()
    no_records.take(headers(topic, topic_id=ZERO_UUID))
    rows = measure.poison(
        Histories.of(done.history, deliveries), no_records.ranges(), no_records.header_ranges(), settings, **options
    )
    assert rows.schema.equals(POISON_RECORD)
    return rows.to_pylist()


def lines(*arguments, **options):
    """`offsets count cause by source | first outcome-last outcome @ log offset` of each row."""
    return [
        f"{row['first_offset']}-{row['last_offset']} {row['delivery_count']} {row['cause']} by {row['cause_source']} | "
        f"{row['first_outcome_ms']}-{row['last_outcome_ms']} @ {row['log_offset']}"
        for row in given_up(*arguments, **options)
    ]


def test_as_many_deliveries_as_the_limit_or_fewer_tell_the_cause():
    assert lines("""
        0 snapshot start=0
        0 update start=0 0-9 available 1
        0 update start=0 3 archived 2
        0 update start=0 4 available 2
        0 update start=0 4 archived 3
    """) == ["3-3 2 rejected by configuration | 10-20 @ 2", "4-4 3 delivery_limit by configuration | 10-40 @ 4"]


def test_ranges_that_grow_and_shrink_keep_the_record_that_archived_each_offset():
    assert lines("""
        0 snapshot start=0
        0 update start=0 3 archived 1
        0 update start=0 4 archived 1
        0 update start=4 5 archived 1
        0 update start=9
    """) == [
        "3-3 1 rejected by configuration | 10-10 @ 1",
        "4-4 1 rejected by configuration | 20-20 @ 2",
        "5-5 1 rejected by configuration | 30-30 @ 3",
    ]


def test_a_record_that_was_archived_and_is_not_any_more_is_none():
    assert (
        lines("""
        0 snapshot start=0
        0 update start=0 3 archived 1
        0 update start=0 3 acknowledged 2
    """)
        == []
    )


def test_control_records_and_absent_offsets_are_gaps():
    assert lines("0 snapshot start=0 0-9 archived 1", "0-4 at 1 producer 7\n5-5 at 2 producer 7 COMMIT\n8-20 at 3") == [
        "0-4 1 rejected by configuration | 0-0 @ 0",
        "5-5 1 gap by headers | 0-0 @ 0",
        "6-7 1 gap by headers | 0-0 @ 0",
        "8-9 1 rejected by configuration | 0-0 @ 0",
    ]


def test_an_aborted_record_that_was_delivered_is_a_record():
    assert lines("0 snapshot start=0 0 archived 1", "0-4 at 1 producer 7\n5-5 at 2 producer 7 ABORT") == [
        "0-0 1 rejected by configuration | 0-0 @ 0"
    ]


def test_where_no_header_is_held_an_archived_offset_may_be_a_gap():
    assert lines("0 snapshot start=0 0-9 archived 1, 10 archived 3", "5-9 at 1") == [
        "0-4 1 unknown by None | 0-0 @ 0",
        "5-9 1 rejected by configuration | 0-0 @ 0",
        "10-10 3 delivery_limit by inferred | 0-0 @ 0",
    ]


def test_a_record_on_its_way_to_a_dead_letter_is_no_gap():
    assert lines(
        """
        0 snapshot start=0
        0 update start=0 3 archiving 1, 4 archiving 3, 5 archiving 2
        0 update start=0 3 archived 1, 4 archived 3
        """,
        "",
    ) == [
        "3-3 1 rejected by dead_letter | 10-20 @ 2",
        "4-4 3 delivery_limit by configuration | 10-20 @ 2",
        "5-5 2 rejected by dead_letter | 10-10 @ 1",
    ]


def test_without_a_limit_only_the_first_delivery_tells():
    assert lines("0 snapshot start=0 0 archived 1, 1 archived 2", settings=GroupSettings()) == [
        "0-0 1 rejected by inferred | 0-0 @ 0",
        "1-1 2 unknown by None | 0-0 @ 0",
    ]


def test_near_the_limit_is_who_stands_one_delivery_below_it():
    text = """
        0 snapshot start=0
        0 update start=0 0-4 available 1
        0 update start=0 2-3 available 2
        0 update start=0 3 acknowledged 3
    """
    assert lines(text) == []
    assert lines(text, near_limit=True) == ["2-2 2 None by None | 10-20 @ 2"]
    assert lines(text, near_limit=True, settings=GroupSettings()) == []


def test_each_life_has_its_own():
    assert [
        (row["first_offset"], row["life_log_offset"])
        for row in given_up("""
        0 snapshot start=0 snapshot=0
        0 update start=0 3 archived 1
        0 tombstone
        0 snapshot start=0 snapshot=0
        0 update start=0 3 archived 1
    """)
    ] == [(3, 0), (3, 3)]


def test_the_whole_of_the_offsets_that_a_record_may_claim_is_one_row():
    last = 2**63 - 2
    assert lines(f"0 snapshot start=0 0-{last} archived 1") == [
        "0-99 1 rejected by configuration | 0-0 @ 0",
        f"100-{last} 1 unknown by None | 0-0 @ 0",
    ]


def test_the_limit_is_shown_with_its_origin():
    (row,) = given_up("0 snapshot start=0 0 archived 1")
    assert (row["delivery_count_limit"], row["delivery_count_limit_source"]) == (3, "dynamic_group_config")
    assert row["delivery_state_name"] == "ARCHIVED"
