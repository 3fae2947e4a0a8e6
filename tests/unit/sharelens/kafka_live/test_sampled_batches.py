"""The batches that hold single records, in bounded bytes."""

import pytest

from sharelens.kafka_live.cluster import READ_COMMITTED, Fetched, Place
from sharelens.kafka_live.sampled_batches import MOST_PLACES, SIZES, Batch, Sampled, sampled
from tools.log_writer.writer import encode_batch, encode_control_batch, record_columns

A, B = Place("orders", 0), Place("orders", 1)
PLENTY = 1 << 30
PRODUCER, OTHER, COMMIT = 7, 8, 1


def batch(first, count, *, at_ms, value=b"", **batch_options):
    records = record_columns([None] * count, [value] * count, range(at_ms, at_ms + count))
    return first, first + count, encode_batch(records, base_offset=first, **batch_options)


MARKER = (3, 4, encode_control_batch(COMMIT, offset=3, timestamp_ms=1, producer_id=PRODUCER, producer_epoch=0))


class ScriptedCluster:
    """Answers as a broker: whole batches of at most as many bytes as asked for, but the very first one always."""

    bootstrap_server = "scripted:9092"

    def __init__(self, logs, *, forbidden=(), aborted=()):
        self.logs, self.forbidden, self.aborted = logs, forbidden, tuple(aborted)
        self.readings = []

    def fetch(self, positions, reading):
        self.readings.append((len(positions), reading.partition_bytes))
        is_first = True
        for place in sorted(positions):
            offset = positions[place].offset
            records = b""
            for _, end, data in self.logs.get(place, []):
                fits = len(records) + len(data) <= reading.partition_bytes or (is_first and not records)
                if end > offset and fits:
                    records += data
                elif end > offset:
                    break
            is_first = is_first and not records
            yield Fetched(
                place=place,
                records=b"" if place.topic in self.forbidden else records,
                is_out_of_range=place not in self.logs,
                is_forbidden=place.topic in self.forbidden,
                aborted=self.aborted if reading.isolation_level == READ_COMMITTED else (),
            )


def batches(cluster, *offsets):
    return sampled(cluster, offsets, PLENTY).batches


def test_a_record_has_the_largest_time_of_its_batch_and_the_clock_of_it():
    by_producer, by_broker = batch(0, 10, at_ms=100), batch(10, 5, at_ms=300, log_append_time_ms=900)
    cluster = ScriptedCluster({A: [by_producer, by_broker]})
    assert batches(cluster, Sampled(A, 4), Sampled(A, 12)) == {
        Sampled(A, 4): Batch(0, 9, 109, False),
        Sampled(A, 12): Batch(10, 14, 900, True),
    }


def test_partitions_are_read_together_and_large_batches_again():
    large = batch(0, 1, at_ms=5, value=b"x" * 2 * SIZES[0])
    largest = batch(0, 1, at_ms=6, value=b"x" * 2 * SIZES[1])
    logs = {Place("t", number): [batch(0, 1, at_ms=1)] for number in range(9)}
    cluster = ScriptedCluster(logs | {Place("t", 9): [large], Place("t", 10): [largest]})
    batch_by_sample = batches(cluster, *(Sampled(place, 0) for place in cluster.logs))
    assert [batch_by_sample[Sampled(Place("t", number), 0)].max_timestamp_ms for number in (0, 8, 9, 10)] == [
        1,
        1,
        5,
        6,
    ]
    assert cluster.readings == [(11, SIZES[0]), (2, SIZES[1]), (1, SIZES[1])]


@pytest.mark.parametrize(
    ("log", "aborted", "expected"),
    [
        ([], (), None),
        ([batch(5, 3, at_ms=1)], (), Batch(5, 7, 3, False)),
        ([MARKER], (), Batch(3, 3, 1, False, is_control=True)),
        (
            [batch(0, 9, at_ms=1, producer_id=PRODUCER, transactional=True)],
            [(PRODUCER, 0)],
            Batch(0, 8, 9, False, is_aborted=True),
        ),
    ],
    ids=["no batch", "compacted", "a marker", "aborted"],
)
def test_a_batch_says_whether_the_offset_holds_a_record(log, aborted, expected):
    assert batches(ScriptedCluster({A: log}, aborted=aborted), Sampled(A, 3)) == {Sampled(A, 3): expected}


def test_an_offset_below_the_log_has_no_batch():
    assert batches(ScriptedCluster({}), Sampled(A, 3)) == {Sampled(A, 3): None}


@pytest.mark.parametrize("aborted", [(OTHER, 0), (PRODUCER, 9)], ids=["another producer", "a later transaction"])
def test_a_batch_of_a_transaction_that_was_not_aborted_is_none_of_an_aborted_one(aborted):
    cluster = ScriptedCluster({A: [batch(0, 9, at_ms=1, producer_id=PRODUCER, transactional=True)]}, aborted=[aborted])
    assert batches(cluster, Sampled(A, 3)) == {Sampled(A, 3): Batch(0, 8, 9, False)}


def test_a_topic_that_one_may_not_read_is_named_and_others_are_read():
    secret = Place("secret", 0)
    cluster = ScriptedCluster({A: [batch(0, 1, at_ms=1)], secret: [batch(0, 1, at_ms=1)]}, forbidden={"secret"})
    samples = sampled(cluster, [Sampled(A, 0), Sampled(secret, 0)], PLENTY)
    assert (samples.forbidden, set(samples.batches)) == ({"secret"}, {Sampled(A, 0)})


@pytest.mark.slow
def test_bytes_are_bounded_and_what_they_leave_out_is_counted():
    value = b"x" * (SIZES[0] // 2)
    logs = {Place("t", number): [batch(0, 1, at_ms=1, value=value)] for number in range(MOST_PLACES // 8)}
    max_bytes = 20 * SIZES[0]
    samples = sampled(ScriptedCluster(logs), [Sampled(place, 0) for place in logs], max_bytes)
    assert samples.left_out == len(logs) - len(samples.batches) > 0
    assert samples.fetched_bytes <= max_bytes + SIZES[0]
    assert len(samples.batches) >= 20
