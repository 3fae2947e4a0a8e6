"""Dead letters against the state log as small worked cases; state records are 10 ms apart, the first at 0."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.lake.dlq_partitions import partitions_table
from sharelens.measures import poison
from sharelens.measures.dlq.reach import LetterTopics
from sharelens.measures.dlq.reconciliation import HISTORY_READ, nameless_places, reconcile
from sharelens.measures.dlq.schemas import DLQ_RECONCILIATION
from sharelens.measures.histories.numbers import Histories
from sharelens.measures.settings.over_time import DEAD_LETTER_TOPIC, GroupSettings, Setting
from sharelens.measures.topics.headers import NoRecords
from state_model.columnar.replay import open_ranges, replay_records
from state_model.uuids import ZERO_UUID
from tests.logs.dead_letter_logs import DLQ_ID, DLQ_TOPIC, letter_rows
from tests.logs.replay_logs import parsed, table
from tests.logs.topic_headers import headers

NAMES = {ZERO_UUID: "orders"}
ONE_LETTER = "0@0 at 11: g orders-0 3 rejected 1"
ONE_RECORD = """
    0 snapshot start=0 snapshot=0
    0 update start=0 3 archiving 1
    0 update start=0 3 archived 1
"""
NO_SETTINGS = GroupSettings()


def looked_into(topic=DLQ_TOPIC, *, partition=0, log_start=0, held_back=0, oldest=None):
    place = {"dlq_topic": topic, "dlq_topic_id": DLQ_ID, "dlq_partition": partition}
    offsets = {"log_start_offset": log_start, "end_offset": 9, "held_back": held_back}
    return place | offsets | {"letters": 1, "oldest_ms": oldest}


def configured(topic):
    return GroupSettings(groups={"g": {DEAD_LETTER_TOPIC: Setting(value=topic, origin="dynamic_group_config")}})


def rows_of(
    state,
    letters="",
    *,
    topic="0-99 at 1",
    settings=NO_SETTINGS,
    partitions=None,
    names=NAMES,
    begins_ms=0,
    shuffled=None,
    part_rows=1 << 20,
):
    done = replay_records(table(parsed(state)))
    deliveries = pa.concat_tables([done.closed, open_ranges(done.state)])
    no_records = NoRecords()
    no_records.take(headers(topic, topic_id=ZERO_UUID))
    histories = Histories.of(done.history, deliveries)
    given_up = poison.poison(histories, no_records.ranges(), no_records.header_ranges(), NO_SETTINGS)
    dead_letters = letter_rows(letters)
    history = done.history.select(HISTORY_READ)
    if shuffled is not None:
        given_up, dead_letters, history = (
            rows.take(shuffled(rows.num_rows)) for rows in (given_up, dead_letters, history)
        )
    topics = LetterTopics.of(dead_letters, partitions_table([looked_into()] if partitions is None else partitions))
    nameless = nameless_places(history, names)
    parts = [history.slice(first, part_rows) for first in range(0, history.num_rows, part_rows)]
    rows = reconcile(given_up, dead_letters, parts, names, topics, settings, begins_ms=begins_ms, nameless=nameless)
    assert rows.schema.equals(DLQ_RECONCILIATION)
    return rows


def lines(*arguments, **options):
    """`offsets status (reason) cause | archiving-archived letter at` of each row."""
    texts = []
    for row in rows_of(*arguments, **options).to_pylist():
        offsets = (
            f"{row['first_offset']}"
            if row["first_offset"] == row["last_offset"]
            else f"{row['first_offset']}-{row['last_offset']}"
        )
        reason = "" if row["reason"] is None else f" ({row['reason']})"
        letter = "no letter" if row["dlq_offset"] is None else f"{row['dlq_partition']}@{row['dlq_offset']}"
        moment = "" if row["dead_lettered_ms"] is None else f" at {row['dead_lettered_ms']}"
        texts.append(
            f"{offsets} {row['status']}{reason} {row['cause']} | "
            f"{row['archiving_ms']}-{row['archived_ms']} {letter}{moment}"
        )
    return texts


def test_a_record_that_was_archiving_and_its_dead_letter_match():
    assert lines(ONE_RECORD, ONE_LETTER) == ["3 matched rejected | 10-20 0@0 at 11"]


def test_a_second_dead_letter_is_a_duplicate_of_the_first():
    rows = rows_of(ONE_RECORD, "0@7 at 15: g orders-0 3 rejected 1\n" + ONE_LETTER).to_pylist()
    assert [(row["status"], row["dlq_offset"], row["duplicate_of_dlq_offset"]) for row in rows] == [
        ("matched", 0, None),
        ("duplicate", 7, 0),
    ]


def test_due_and_not_there_is_missing_where_the_group_s_topic_is_held():
    state = """
        0 snapshot start=0 snapshot=0
        0 update start=0 3-6 archiving 1
        0 update start=0 3-6 archived 1
    """
    assert lines(state, "0@0 at 11: g orders-0 4 rejected 1") == [
        "3 missing (no_dead_letter) rejected | 10-20 no letter",
        "4 matched rejected | 10-20 0@0 at 11",
        "5-6 missing (no_dead_letter) rejected | 10-20 no letter",
    ]


def test_a_group_whose_topic_nobody_knows_has_nothing_missing():
    unknown = "3 unknown (no_dead_letter_topic_known) rejected | 10-20 no letter"
    assert lines(ONE_RECORD) == [unknown]
    assert lines(ONE_RECORD, settings=configured("")) == [unknown]
    assert lines(ONE_RECORD, settings=configured(DLQ_TOPIC)) == [
        "3 missing (no_dead_letter) rejected | 10-20 no letter"
    ]


@pytest.mark.slow
def test_what_is_not_held_of_the_group_s_topic_is_not_missing():
    def reason(*partitions, topic=DLQ_TOPIC, letters=""):
        rows = rows_of(ONE_RECORD, letters, settings=configured(topic), partitions=list(partitions)).to_pylist()
        return [(row["status"], row["reason"], row["dlq_topic"]) for row in rows]

    assert reason() == [("unknown", "dead_letter_topic_not_in_evidence", DLQ_TOPIC)]
    assert reason(looked_into(held_back=1)) == [("unknown", "dead_letters_held_back", DLQ_TOPIC)]
    assert reason(looked_into(log_start=5)) == [("unknown", "dead_letter_may_have_expired", DLQ_TOPIC)]
    missing = ("missing", "no_dead_letter", DLQ_TOPIC)
    expired = ("unknown", "dead_letter_may_have_expired", DLQ_TOPIC)
    assert reason(looked_into(log_start=5, oldest=5)) == [missing]
    assert reason(looked_into(log_start=5, oldest=11)) == [expired]
    whole_log, later = looked_into(partition=1, oldest=5), looked_into(partition=1, log_start=5, oldest=11)
    assert reason(looked_into(log_start=5, oldest=5), whole_log) == [missing]
    assert reason(looked_into(log_start=5, oldest=5), later) == [expired]


def test_a_record_that_is_archiving_still_waits_for_its_dead_letter():
    state = """
        0 snapshot start=0 snapshot=0
        0 update start=0 3 archiving 1
    """
    assert lines(state) == ["3 archiving rejected | 10-None no letter"]
    assert lines(state, ONE_LETTER) == ["3 matched rejected | 10-None 0@0 at 11"]


def test_what_was_archived_at_once_and_gaps_are_due_none():
    state = """
        0 snapshot start=0 snapshot=0
        0 update start=0 3 archived 1, 5 archiving 1
        0 update start=0 5 archived 1
    """
    assert lines(state, settings=configured(DLQ_TOPIC), topic="0-4 at 1\n6-9 at 1") == []


def test_the_dead_letter_s_own_words_go_before_what_the_log_lets_one_infer():
    (row,) = rows_of(ONE_RECORD, "0@0 at 11: g orders-0 3 delivery_limit 1").to_pylist()
    assert (row["cause"], row["cause_source"]) == ("delivery_limit", "dead_letter")
    (row,) = rows_of(ONE_RECORD, "0@0 at 11: g orders-0 3 unknown 1").to_pylist()
    assert (row["cause"], row["cause_source"]) == ("rejected", "dead_letter")


def test_each_life_has_its_own_dead_letter():
    state = """
        0 snapshot start=0 snapshot=0
        0 update start=0 3 archiving 1
        0 update start=0 3 archived 1
        0 tombstone
        0 snapshot start=0 snapshot=0
        0 update start=0 3 archiving 1
        0 update start=0 3 archived 1
    """
    assert lines(state, "0@0 at 11: g orders-0 3 rejected 1\n0@1 at 52: g orders-0 3 rejected 1") == [
        "3 matched rejected | 10-20 0@0 at 11",
        "3 matched rejected | 50-60 0@1 at 52",
    ]
    assert lines(state, "0@1 at 52: g orders-0 3 rejected 1") == [
        "3 missing (no_dead_letter) rejected | 10-20 no letter",
        "3 matched rejected | 50-60 0@1 at 52",
    ]


def test_a_clock_may_lie_a_minute_behind_and_not_more():
    assert lines(ONE_RECORD, "0@0 at -59000: g orders-0 3 rejected 1") == ["3 matched rejected | 10-20 0@0 at -59000"]
    assert lines(ONE_RECORD, "0@0 at -60000: g orders-0 3 rejected 1") == [
        "3 missing (no_dead_letter) rejected | 10-20 no letter",
        "3 unknown (before_the_state_log) rejected | None-None 0@0 at -60000",
    ]


def test_a_dead_letter_of_a_record_that_was_not_given_up_is_unexpected():
    state = """
        0 snapshot start=0 snapshot=0
        0 update start=0 3 acknowledged 1
        0 update start=4
    """
    assert lines(state, "0@0 at 15: g orders-0 3 rejected 1") == [
        "3 unexpected (not_archived) rejected | None-None 0@0 at 15"
    ]


def test_where_the_state_log_ends_or_begins_nobody_can_say():
    state = """
        0 update start=0 3 acknowledged 1
        0 snapshot start=0 snapshot=0
        0 update start=0 3 acknowledged 1
    """
    assert lines(state, "0@0 at 35: g orders-0 3 rejected 1") == [
        "3 unknown (after_the_state_log) rejected | None-None 0@0 at 35"
    ]
    assert lines(state, "0@0 at 5: g orders-0 3 rejected 1") == [
        "3 unknown (state_log_not_complete) rejected | None-None 0@0 at 5"
    ]
    assert lines(state, "0@0 at -5: g orders-0 3 rejected 1") == [
        "3 unknown (before_the_state_log) rejected | None-None 0@0 at -5"
    ]


def test_a_dead_letter_of_a_group_without_state_is_unexpected_unless_it_may_be_older():
    letter = "0@0 at 15: other orders-0 3 rejected 1"
    assert lines(ONE_RECORD, letter)[-1] == "3 unexpected (no_share_state) rejected | None-None 0@0 at 15"
    assert "3 unknown (before_the_state_log) rejected | None-None 0@0 at 15" in lines(ONE_RECORD, letter, begins_ms=16)
    assert "3 unknown (before_the_state_log) rejected | None-None 0@0 at 15" in lines(
        ONE_RECORD, letter, begins_ms=None
    )


def test_a_topic_may_be_known_by_its_id_alone():
    by_id = f"0@0 at 11: g {ZERO_UUID}-0 3 rejected 1"
    assert lines(ONE_RECORD, by_id, names={}) == ["3 matched rejected | 10-20 0@0 at 11"]
    (row,) = [row for row in rows_of(ONE_RECORD, ONE_LETTER, names={}).to_pylist() if row["dlq_offset"] is not None]
    assert (row["status"], row["reason"]) == ("unknown", "no_share_state")


def test_the_largest_offsets_are_one_row():
    last = 2**63 - 2
    state = f"""
        0 snapshot start=0 snapshot=0
        0 update start=0 0-{last} archiving 1
    """
    assert lines(state, f"0@0 at 11: g orders-0 {last} rejected 1", topic="") == [
        f"0-{last - 1} archiving rejected | 10-None no letter",
        f"{last} matched rejected | 10-None 0@0 at 11",
    ]


STATES = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 6), st.integers(0, 2), st.sampled_from(["archiving", "archived"])),
    min_size=1,
    max_size=6,
)
LETTERS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 8), st.integers(-10, 90)), max_size=6)


@pytest.mark.slow
@given(STATES, LETTERS, st.randoms(use_true_random=False), st.integers(1, 4))
def test_order_and_parts_of_the_evidence_are_of_no_account(states, letters, random, part_rows):
    state = "0 snapshot start=0 snapshot=0\n1 snapshot start=0 snapshot=0\n" + "\n".join(
        f"{partition} update start=0 {first}-{first + size} {name} 1" for partition, first, size, name in states
    )
    text = "\n".join(
        f"{partition}@{number} at {at}: g orders-{partition} {offset} rejected 1"
        for number, (partition, offset, at) in enumerate(letters)
    )

    def shuffled(count):
        order = list(range(count))
        random.shuffle(order)
        return pa.array(order, pa.int64())

    rows = rows_of(state, text)
    assert rows_of(state, text, shuffled=shuffled, part_rows=part_rows).equals(rows)
    places = [(row["dlq_partition"], row["dlq_offset"]) for row in rows.to_pylist() if row["dlq_offset"] is not None]
    assert sorted(places) == sorted((partition, number) for number, (partition, _, _) in enumerate(letters))
