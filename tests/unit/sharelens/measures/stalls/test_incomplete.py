"""The first incomplete offset: worked cases, and any log against the states of the reference machine."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.measures.histories.numbers import (
    RANGE_COUNT,
    RANGE_FIRST,
    RANGE_FROM,
    RANGE_LAST,
    RANGE_STATE,
    RANGE_TO,
    Histories,
)
from sharelens.measures.stalls import incomplete
from sharelens.measures.stalls.incomplete import first_incomplete
from sharelens.measures.stalls.incomplete_kernels import BEGIN, BEHIND, END, FIRST, LAST, LATEST, THROTTLED
from sharelens.measures.topics.headers import NoRecords
from state_model.batches import coalesce
from state_model.columnar.replay import open_ranges, replay_records
from state_model.machine import PartitionState, apply
from state_model.uuids import ZERO_UUID
from tests.logs.replay_logs import LATER_LOGS, parsed, record_of, table
from tests.logs.topic_headers import headers

DONE = (2, 4)


def measured(log, topic="", *, complete=None, committed=None, slowed_from=None, only_last=False):
    rows = table(log)
    if complete is not None:
        at = rows.schema.get_field_index("delivery_complete_count")
        rows = rows.set_column(at, rows.schema.field(at), pa.array(complete, pa.int32()))
    done = replay_records(rows)
    deliveries = pa.concat_tables([done.closed, open_ranges(done.state)])
    empty = NoRecords()
    empty.take(headers(topic, topic_id=ZERO_UUID))
    histories = Histories.of(done.history, deliveries)
    return first_incomplete(
        histories,
        empty.ranges(),
        reads_committed=None if committed is None else np.array(committed),
        slowed_from=None if slowed_from is None else np.resize(slowed_from, histories.history.num_rows),
        only_last=only_last,
    )


def firsts(text, topic="", **options):
    """`first incomplete offset-end of its range: offsets finished behind` of each interval."""
    intervals = measured(parsed(text), topic, **options).rows
    return [f"{row[FIRST]}-{row[LAST]}: {row[BEHIND]}" for row in intervals.tolist()]


def test_it_is_the_first_offset_that_is_neither_acknowledged_nor_archived():
    assert firsts("""
        0 snapshot start=-1
        0 update start=0 0-4 acknowledged 1, 6-9 archived 1
        0 update start=0 5 available 2
        0 update start=0 5 acknowledged 3
    """) == ["5-5: 4", "10--1: 0"]


def test_it_goes_back_with_the_start_offset_and_begins_anew_in_another_life():
    assert firsts("""
        0 snapshot start=0 0-9 acknowledged 1
        0 update start=10
        0 update start=4
        0 tombstone
        0 snapshot start=4
    """) == ["10--1: 0", "4--1: 0", "4--1: 0"]


ABORTED = """
    0-4 at 1
    5-8 at 2 producer 7
    9-9 at 3 producer 7 ABORT
    12-20 at 4
"""
AROUND = """
    0 snapshot start=0
    0 update start=0 0-4 acknowledged 1, 9 archived 1, 12-19 acknowledged 1
"""


def test_offsets_absent_from_the_topic_are_passed():
    assert firsts("0 snapshot start=0 0-9 acknowledged 1, 12-19 acknowledged 1", ABORTED) == ["20--1: 0"]


def test_aborted_records_are_passed_when_the_group_reads_committed_records():
    assert firsts(AROUND, ABORTED) == ["0--1: 0", "5-8: 9"]
    assert firsts(AROUND, ABORTED, committed=[True, True]) == ["0--1: 0", "20--1: 0"]


def test_the_isolation_level_at_each_record_counts():
    later = AROUND + "    0 update start=0 25-29 acknowledged 1\n"
    assert firsts(later, ABORTED, committed=[False, False, True]) == ["0--1: 0", "5-8: 9", "20-24: 5"]
    assert firsts(later, ABORTED, committed=[True, True, False]) == ["0--1: 0", "20--1: 0", "5-8: 14"]


def test_or_when_the_complete_count_accounts_for_them():
    assert firsts(AROUND, ABORTED, complete=[0, 14 + 4]) == ["0--1: 0", "20--1: 0"]
    assert firsts(AROUND, ABORTED, complete=[0, 14 + 3]) == ["0--1: 0", "5-8: 9"]


def test_a_record_is_never_passed_whatever_the_count_says():
    assert firsts("0 snapshot start=0 0-3 acknowledged 1, 5-9 acknowledged 1", "0-9 at 1", complete=[99]) == ["4-4: 5"]


def test_the_whole_of_the_offsets_that_a_record_may_claim_is_one_range():
    assert firsts(f"0 snapshot start=0 0-{2**63 - 2} acknowledged 1") == [f"{2**63 - 1}--1: 0"]


@pytest.mark.slow
@given(LATER_LOGS)
def test_any_log_agrees_with_the_states_of_the_reference_machine(log):
    expected, state = {}, PartitionState()
    for number, (key, value, _) in enumerate(log):
        state = apply(state, number, 10 * number, record_of(key, value))
        expected[number] = first_of(state.share_partitions.get(key))
    intervals = measured(log)
    offsets = intervals.history.column("log_offset").to_pylist()
    places = intervals.history.column("partition").to_pylist()
    first_incomplete_offsets = dict.fromkeys(offsets)
    for row in intervals.rows.tolist():
        positions = [at for at, place in enumerate(places) if place == places[row[BEGIN]] and at >= row[BEGIN]]
        first_incomplete_offsets |= {offsets[at]: row[FIRST] for at in positions if row[END] < 0 or at < row[END]}
    assert first_incomplete_offsets == {offset: expected[offset] for offset in offsets}


@pytest.mark.slow
@given(LATER_LOGS, st.lists(st.integers(0, 3), min_size=1, max_size=3))
def test_what_is_finished_and_slowed_behind_an_offset_is_counted_as_of_the_last_record_of_its_interval(log, limits):
    intervals = measured(log, slowed_from=limits)
    histories = intervals.histories
    offsets = intervals.history.column("log_offset").to_pylist()
    thresholds = np.resize(limits, len(offsets)).tolist()
    for row in intervals.rows.tolist():
        at, place = offsets[row[LATEST]], histories.place[row[LATEST]]
        in_force = [
            part
            for part in histories.ranges[histories.place_of_range == place].tolist()
            if part[RANGE_FROM] <= at and not 0 <= part[RANGE_TO] <= at
        ]
        counted = [(max(0, part[RANGE_LAST] - max(part[RANGE_FIRST], row[FIRST]) + 1), part) for part in in_force]
        limit = thresholds[row[LATEST]]
        slowed = [size for size, part in counted if part[RANGE_STATE] not in DONE and part[RANGE_COUNT] >= limit]
        assert row[BEHIND] == sum(size for size, part in counted if part[RANGE_STATE] in DONE)
        assert row[THROTTLED] == (sum(slowed) if limit else -1)


@pytest.mark.slow
@given(LATER_LOGS, st.integers(1, 3))
def test_the_intervals_that_last_are_the_same_from_the_last_records_alone(log, few):
    every_row = measured(log).rows
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(incomplete, "FEW_RECORDS", few)
        lasting = measured(log, only_last=True).rows
    assert lasting.tolist() == every_row[every_row[:, END] < 0].tolist()


def first_of(current):
    """The first incomplete offset of a reference state; None without one or without a start offset."""
    if current is None or current.start_offset < 0:
        return None
    at = current.start_offset
    for batch in coalesce(current.state_batches):
        if batch.first_offset <= at <= batch.last_offset and batch.delivery_state in DONE:
            at = batch.last_offset + 1
    return at


def test_nothing_comes_of_nothing():
    assert len(measured([]).rows) == 0
