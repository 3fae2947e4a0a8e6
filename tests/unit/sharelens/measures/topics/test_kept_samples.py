"""What a lake keeps of single batches, and the offsets that share partitions wait for."""

import numpy as np
import pyarrow as pa
import pytest

from sharelens.measures.settings.observations import SAMPLED_BATCHES, Entry, Observation, news, settings_of
from sharelens.measures.stalls.waiting import STATES, waiting_offsets
from sharelens.measures.topics.headers import NO_RECORD, OFFSET_TIME, SampledBatches
from sharelens.measures.topics.kept_samples import (
    KeptSamples,
    NoRecord,
    Time,
    changed_partitions,
    lowest_new_ranges,
)
from sharelens.measures.topics.sampled_batches import batches_of, with_batches
from state_model.columnar.schemas import SHARE_PARTITION_STATE

A, B = ("topic-a", 0), ("topic-b", 3)
KEPT_SAMPLES = KeptSamples(
    partitions=frozenset({A, B}),
    times={A: {12: Time(1000, "CreateTime")}},
    no_records={A: frozenset({NoRecord(10, 10, "control"), NoRecord(11, 11, "absent")})},
)
AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4


def observation(samples: KeptSamples, from_ms: int = 1) -> Observation:
    entries = tuple(sorted(Entry(*line) for line in samples.lines()))
    return Observation(kind=SAMPLED_BATCHES, from_ms=from_ms, entries=entries)


def test_what_is_kept_comes_back_from_its_lines():
    assert KeptSamples.of_lines(KEPT_SAMPLES.lines()) == KEPT_SAMPLES
    assert settings_of([observation(KeptSamples()), observation(KEPT_SAMPLES, 2)]).samples == KEPT_SAMPLES


def test_of_observations_the_newest_alone_is_news():
    assert news([observation(KEPT_SAMPLES, 5)], [observation(KeptSamples(), 4), observation(KEPT_SAMPLES, 6)]) == []
    assert news([observation(KEPT_SAMPLES, 5)], [observation(KeptSamples(), 6)]) == [observation(KeptSamples(), 6)]


def test_offsets_have_the_times_and_ranges_that_are_kept_of_them():
    kept_batches = batches_of(KEPT_SAMPLES, {A: np.array([10, 12, 13]), B: np.array([12])})
    assert kept_batches.times.to_pylist() == [
        {"topic_id": "topic-a", "partition": 0, "offset": 12, "max_timestamp_ms": 1000, "timestamp_type": "CreateTime"}
    ]
    assert [(row["first_offset"], row["reason"]) for row in kept_batches.no_records.to_pylist()] == [(10, "control")]


def test_further_batches_are_added_and_those_that_nobody_waits_for_are_dropped():
    times = pa.Table.from_pylist(
        [dict(zip(OFFSET_TIME.names, (*B, 7, 2000, "LogAppendTime"), strict=True))], OFFSET_TIME
    )
    ranges = pa.Table.from_pylist([dict(zip(NO_RECORD.names, (*B, 5, 6, "aborted"), strict=True))], NO_RECORD)
    extended_samples = with_batches(KEPT_SAMPLES, SampledBatches(times, ranges))
    assert (extended_samples.times[B], extended_samples.times[A]) == (
        {7: Time(2000, "LogAppendTime")},
        KEPT_SAMPLES.times[A],
    )
    assert extended_samples.no_records == KEPT_SAMPLES.no_records | {B: frozenset({NoRecord(5, 6, "aborted")})}
    assert changed_partitions(KEPT_SAMPLES, extended_samples) == {B}
    assert lowest_new_ranges(KEPT_SAMPLES, extended_samples) == {B: 5}
    needed = extended_samples.needed({A: {13}, B: {7}}, {A: 11, B: 6}, frozenset({B}))
    assert needed.partitions == {B}
    assert needed.times == {B: extended_samples.times[B]}
    assert needed.no_records == {A: frozenset({NoRecord(11, 11, "absent")}), B: extended_samples.no_records[B]}
    assert needed.needed({}, {}, frozenset()) == KeptSamples()


@pytest.mark.parametrize(
    ("start", "batches", "ranges", "waits"),
    [
        (-1, [], [], None),
        (5, [], [], 5),
        (5, [(5, 9, ACKNOWLEDGED), (10, 10, AVAILABLE)], [], 10),
        (5, [(5, 9, ACKNOWLEDGED), (12, 14, ARCHIVED)], [], 10),
        (5, [(5, 9, ACKNOWLEDGED), (12, 14, ARCHIVED)], [(10, 11)], 15),
        (5, [(5, 9, ACKNOWLEDGED), (12, 14, AVAILABLE)], [(10, 11), (15, 16)], 12),
        (5, [], [(6, 7)], 5),
        (5, [], [(3, 5), (6, 7)], 8),
    ],
)
def test_a_share_partition_waits_for_the_first_offset_that_is_not_done_and_may_hold_a_record(
    start, batches, ranges, waits
):
    names = ("first_offset", "last_offset", "delivery_state", "delivery_count")
    state = {
        "topic_id": A[0],
        "partition": A[1],
        "start_offset": start,
        "state_batches": [dict(zip(names, (*batch, 1), strict=True)) for batch in batches],
    }
    states = pa.Table.from_pylist([state], pa.schema([SHARE_PARTITION_STATE.field(name) for name in STATES]))
    no_records = {A: [NoRecord(*each, "control") for each in ranges]} if ranges else {}
    assert waiting_offsets(states, no_records) == ({} if waits is None else {A: {waits}})


def test_aborted_records_wait_for_groups_that_read_uncommitted_ones():
    state = {"topic_id": A[0], "partition": A[1], "start_offset": 5, "state_batches": []}
    states = pa.Table.from_pylist([state], pa.schema([SHARE_PARTITION_STATE.field(name) for name in STATES]))
    no_records = {A: [NoRecord(5, 5, "control"), NoRecord(6, 9, "aborted"), NoRecord(10, 10, "control")]}
    assert waiting_offsets(states, no_records) == {A: {6, 11}}
