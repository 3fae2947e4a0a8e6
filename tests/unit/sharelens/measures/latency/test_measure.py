"""How old records were when they were settled, and how often they were delivered: worked cases, and any log.

State records are 10 ms apart, the first at 0.
"""

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.measures.histories.lives import BLIND
from sharelens.measures.histories.numbers import Histories
from sharelens.measures.histories.settled import settled
from sharelens.measures.inputs import Inputs
from sharelens.measures.latency.ages import Ages, age_ranges, ages_of
from sharelens.measures.latency.measure import HOURLY_ATTEMPTS, attempts, attempts_by_hour, latency
from sharelens.measures.latency.schemas import ATTEMPTS, LATENCY
from sharelens.measures.latency.tallies import By
from state_model.columnar.keys import PLACE_KEY
from state_model.columnar.replay import open_ranges, replay_records
from state_model.columnar.values import Loss
from state_model.uuids import ZERO_UUID
from tests.logs.lives_model import life_events, lives_of
from tests.logs.replay_logs import HOSTILE_LOGS, LOGS, parsed, table
from tests.logs.topic_headers import headers

OFFSETS = range(30)
SETTLED = (2, 4)
SUMS = ("offsets", "deliveries", "extra_deliveries")
BATCHES = st.lists(st.tuples(st.integers(1, 6), st.integers(0, 60), st.integers(0, 9)), min_size=1, max_size=8)
"""Records, first timestamp, and by how much the last one is later, of each batch of a topic."""
FIRST = "0 snapshot start=0 snapshot=0\n"


def stamped(text, partition=0):
    """Headers of lines such as `0-9 at 5`; `at 5..9` gives base and max timestamp."""
    lines = [line.split() for line in text.strip().splitlines()]
    bases = [int(words[2].split("..")[0]) for words in lines]
    plain = "\n".join(" ".join([*words[:2], words[2].split("..")[-1], *words[3:]]) for words in lines)
    header_rows = headers(plain, topic_id=ZERO_UUID, partition=partition)
    at = header_rows.schema.get_field_index("base_timestamp_ms")
    return header_rows.set_column(at, header_rows.schema.field(at), pa.array(bases, pa.int64()))


def log_of(text):
    return parsed("\n".join(filter(str.strip, text.splitlines())))


def done_of(log, losses=None):
    done = replay_records(table(log))
    return done.history, settled(
        Histories.of(done.history, pa.concat_tables([done.closed, open_ranges(done.state)])), losses
    )


def rows(text, topic="0-99 at 1", by=None):
    _, done = done_of(log_of(text))
    ages = Ages(done)
    ages.take(stamped(topic))
    result = latency(done, ages, by or By())
    if by is None:
        assert result.schema.equals(LATENCY)
    return result.to_pylist()


def lines_of(*arguments):
    """`outcome settled/aged p50 p99 largest` of each row, each with both bounds."""
    return [
        f"{row['outcome']} {row['settled_offsets']}/{row['aged_offsets']} "
        + " ".join(
            f"{row[low]}..{row[high]}"
            for low, high in (
                ("age_p50_min_ms", "age_p50_max_ms"),
                ("age_p99_min_ms", "age_p99_max_ms"),
                ("age_largest_min_ms", "age_max_ms"),
            )
        )
        for row in rows(*arguments)
    ]


def test_the_age_lies_between_those_of_the_batchs_newest_and_oldest_record():
    assert lines_of(FIRST + "0 update start=0 2-3 acknowledged 1", "0-9 at 1..4") == ["acknowledged 2/2 6..9 6..9 6..9"]


def test_percentiles_weigh_ranges_by_their_length():
    log = FIRST + "0 update start=0 0-89 acknowledged 1\n0 update start=0 90-99 acknowledged 1"
    assert lines_of(log, "0-99 at 4..5") == ["acknowledged 100/100 5..6 15..16 15..16"]


def test_an_offset_counts_once_a_life_at_its_first_outcome_with_its_largest_count():
    (row,) = rows(
        FIRST
        + """
        0 update start=0 5-6 acknowledged 1
        0 update start=0 5 available 2
        0 update start=0 5 acknowledged 3
    """
    )
    assert (row["settled_offsets"], row["first_settled_ms"], row["last_settled_ms"]) == (2, 10, 10)
    assert (row["deliveries"], row["extra_deliveries"], row["deliveries_per_settled"]) == (4, 2, 2.0)


def test_a_new_life_settles_anew():
    assert lines_of(
        FIRST
        + """
        0 update start=0 0-4 acknowledged 1
        0 snapshot start=0 epoch=2 snapshot=1
        0 update start=0 0-1 archived 1
    """
    ) == ["acknowledged 5/5 9..9 9..9 9..9", "archived 2/2 29..29 29..29 29..29"]


def test_negative_ages_are_counted_and_not_clipped():
    (row,) = rows(FIRST + "0 update start=0 0-9 acknowledged 1", "0-3 at 15..20\n4-7 at 5..20\n8-9 at 5")
    assert (row["negative_offsets_min"], row["negative_offsets_max"]) == (4, 8)
    assert (row["age_min_ms"], row["age_max_ms"]) == (-10, 5)


def test_control_records_and_archived_offsets_without_a_record_are_no_settled_records():
    latencies = rows(
        FIRST + "0 update start=0 0-9 archived 1", "0-4 at 1 producer 7\n5-5 at 2 producer 7 COMMIT\n8-20 at 3"
    )
    assert [(row["settled_offsets"], row["gap_offsets"], row["aged_offsets"]) for row in latencies] == [(7, 3, 7)]


def test_offsets_without_a_header_have_no_age_and_count_all_the_same():
    (row,) = rows(FIRST + "0 update start=0 0-9 acknowledged 1", "4-5 at 1")
    assert (row["settled_offsets"], row["aged_offsets"], row["gap_offsets"]) == (10, 2, 0)


def test_whether_archived_offsets_are_gaps_does_not_depend_on_where_reading_headers_begins():
    topic = stamped("0-1 at 1\n12-19 at 1")
    _, done = done_of(log_of(FIRST + "0 update start=0 10-14 archived 1"))

    def read(begins):
        (begin,) = begins.values()
        yield topic.filter(pc.greater_equal(topic.column("last_offset"), begin))

    place = (ZERO_UUID, 0)
    assert ages_of(done, read, lambda: {place: 0}).gaps().tolist() == [2]
    assert ages_of(done, read, lambda: {place: 10}).gaps().tolist() == [0], "nothing is known of what lies below"


@pytest.mark.parametrize(
    ("topic", "clock", "low"),
    [
        ("0-9 at 1..4", "create_time", 6),
        ("0-9 at 1..4 append", "log_append_time", 6),
        ("0-4 at 1\n5-9 at 4 append", "both", 6),
        ("0-9 at -1", None, None),
    ],
)
def test_the_clock_is_that_of_the_batches(topic, clock, low):
    (row,) = rows(FIRST + "0 update start=0 0-9 acknowledged 1", topic)
    assert (row["clock"], row["age_min_ms"]) == (clock, low)
    if clock == "log_append_time":
        assert row["age_max_ms"] == low


def test_what_only_a_snapshot_shows_has_no_time():
    (row,) = rows("0 snapshot start=0 snapshot=7 0-9 acknowledged 1")
    assert (row["settled_offsets"], row["aged_offsets"], row["hour_ms"], row["first_settled_ms"]) == (10, 0, None, None)


def test_a_snapshot_behind_a_hole_shows_outcomes_without_a_time():
    log = parsed("0 snapshot start=0 snapshot=0\n0 snapshot start=0 snapshot=1 0-9 acknowledged 1")
    assert done_of(log)[1].at_ms.tolist() == [10]
    hole = Loss(first_offset=1, last_offset=1, reason="gap")
    assert done_of(log[:1] + log[1:], {0: [hole]})[1].at_ms.tolist() == [10], (
        "a loss at the record itself is none before it"
    )


def test_the_window_bounds_the_log_time_of_the_outcome():
    _, done = done_of(log_of(FIRST + "0 update start=0 0-4 acknowledged 1\n0 update start=0 5-9 acknowledged 1"))
    assert done.within(20, None).first.tolist() == [5]
    assert done.within(None, 20).first.tolist() == [0]


def test_groups_and_hours_make_rows_and_throughput_is_over_the_hour():
    log = (
        FIRST
        + "1 snapshot start=0 snapshot=0\n0 update start=0 0-59 acknowledged 1\n1 update start=0 0-5 acknowledged 1"
    )
    by_partition = rows(log, by=By(partition=True, hour=False))
    assert [(row["partition"], row["settled_offsets"]) for row in by_partition] == [(0, 60), (1, 6)]
    (together,) = rows(log, by=By(partition=False, hour=True))
    assert (together["hour_ms"], together["settled_offsets"]) == (0, 66)
    assert together["settled_per_minute"] == pytest.approx(1.1)
    assert "partition" not in together


def test_attempts_are_told_by_outcome_and_count():
    log = log_of(
        FIRST
        + """
        0 update start=0 0-9 available 1
        0 update start=0 0-4 acknowledged 2
        0 update start=0 5 archived 3
    """
    )
    _, done = done_of(log)
    result = attempts(done, Ages(done).gaps(), By())
    assert result.schema.equals(ATTEMPTS)
    told_rows = [
        (row["outcome"], row["delivery_count"], row["offsets"], row["deliveries"], row["extra_deliveries"])
        for row in result.to_pylist()
    ]
    assert told_rows == [("open", 1, 4, 4, 0), ("acknowledged", 2, 5, 10, 5), ("archived", 3, 1, 3, 2)]


class OfLog(Inputs):
    """The inputs of a log with a user topic."""

    def __init__(self, log, topic):
        self._done, self._topic = replay_records(table(log)), topic

    def history(self):
        return self._done.history

    def deliveries(self):
        return pa.concat_tables([self._done.closed, open_ranges(self._done.state)])

    def headers(self, begins):
        return iter([stamped(self._topic)])


@pytest.mark.parametrize("from_ms", [0, 15, 25, 99])
def test_attempts_by_hour_since_a_moment_are_those_of_all_with_later_outcomes(from_ms):
    log = log_of(
        FIRST
        + """
        0 update start=0 0-1 acknowledged 1
        0 update start=0 2-4 archived 3
        0 update start=0 5 acknowledged 2
        0 update start=0 6 available 1
    """
    )
    inputs = OfLog(log, "0-2 at 1\n4-9 at 1")
    offsets, deliveries = {0: (5, 10), 15: (3, 8), 25: (1, 2), 99: (0, 0)}[from_ms]
    sums_since = attempts_by_hour(inputs, from_ms)
    assert [sum(sums_since.column(name).to_pylist()) for name in SUMS] == [offsets, deliveries, deliveries - offsets]


@given(LOGS)
def test_attempts_by_hour_are_sums_of_attempts(log):
    inputs = OfLog(log, "0-2 at 1\n4-29 at 1")
    done = settled(inputs.histories())
    rows = attempts(done, ages_of(done, inputs.headers, inputs.lowest_offsets).gaps(), By())
    of_hours = rows.filter(pc.is_valid(rows.column("hour_ms"))).group_by([*PLACE_KEY, "hour_ms"])
    sums = of_hours.aggregate([(name, "sum") for name in SUMS]).rename_columns(HOURLY_ATTEMPTS.names)
    by_hour = attempts_by_hour(inputs, 0)
    by_hour = by_hour.filter(pc.greater(by_hour.column("offsets"), 0))
    assert sorted(by_hour.to_pylist(), key=repr) == sorted(sums.to_pylist(), key=repr)


def test_a_share_partition_that_became_complete_has_no_reason_any_more():
    log = "0 update start=0 0-9 acknowledged 1\n0 snapshot start=0 0-9 acknowledged 1"
    for by in (By(), By(partition=False, hour=False)):
        assert {(row["completeness"], row["completeness_reason"]) for row in rows(log, by=by)} == {("complete", None)}
    (row,) = rows("0 update start=0 0-9 acknowledged 1")
    assert (row["completeness"], row["completeness_reason"]) == ("provisional", "orphan")


def test_ranges_are_listed_by_the_largest_age():
    _, done = done_of(log_of(FIRST + "0 update start=0 0-9 acknowledged 2"))
    listed, has_more = age_ranges(done, iter([stamped("0-4 at 1..3\n5-9 at 2..9")]), row_limit=1)
    (row,) = listed.to_pylist()
    assert (row["first_offset"], row["last_offset"], row["age_min_ms"], row["age_max_ms"]) == (0, 4, 7, 9)
    assert has_more


def header_lines(batches):
    """Lines of headers that follow each other, and (end, oldest, newest) of each."""
    lines, ends, first = [], [], 0
    for size, stamp, spread in batches:
        lines.append(f"{first}-{first + size - 1} at {stamp}..{stamp + spread}")
        first += size
        ends.append((first, stamp, stamp + spread))
    return lines, ends


def modelled(log, history, ends):
    """(partition, state, bounds of the age or None) of each settled offset; `ends`: (end, oldest, newest) a batch."""
    kinds = {row["log_offset"]: row["record_type"] for row in history.to_pylist()}
    for partition in range(3):
        partition_rows = [row for row in history.to_pylist() if row["partition"] == partition]
        blind = {None: True} | {row["log_offset"]: row["completeness"] in BLIND for row in partition_rows}
        before = dict(zip(list(blind)[1:], blind, strict=False))
        for life in lives_of(log, partition):
            for offset in OFFSETS:
                outcomes = [event for event in life_events(life, offset) if event[1] in SETTLED]
                if not outcomes:
                    continue
                at, state, _ = outcomes[0]
                timed = kinds[at] != "snapshot" or not blind[before[at]]
                batch = next(((old, new) for end, old, new in ends if offset < end), None)
                aged = timed and batch is not None
                yield partition, state, (10 * at - batch[1], 10 * at - batch[0]) if aged else None


@pytest.mark.slow
@given(LOGS, BATCHES)
def test_any_log_is_told_as_a_model_tells_it_that_goes_offset_by_offset(log, batches):
    history, done = done_of(log)
    lines, ends = header_lines(batches)
    ages = Ages(done, exact=True)
    for partition in range(3):
        ages.take(stamped("\n".join(lines), partition))
    expected = list(modelled(log, history, ends))
    assert sum(done.size.tolist()) == len(expected)
    counts = ages.counts()
    entry = ages.sample[counts.bucket]
    partitions = done.places.column("partition").to_numpy()[done.place[entry]]
    states = done.outcome[entry] * 2 + 2
    columns = (partitions, states, counts.age_min, counts.age_max, counts.weight)
    told_ages = Counter()
    for partition, state, low, high, weight in zip(*(column.tolist() for column in columns), strict=True):
        told_ages[partition, state, (low, high)] += weight
    assert told_ages == Counter(entry_of_model for entry_of_model in expected if entry_of_model[2] is not None)


@pytest.mark.slow
@given(LOGS, BATCHES)
def test_the_weights_add_up_and_percentiles_lie_within_the_bounds(log, batches):
    _, done = done_of(log)
    ages = Ages(done)
    for line in header_lines(batches)[0]:
        ages.take(stamped(line))
    result = latency(done, ages, By())
    total = sum(done.size.tolist())
    assert sum(row["settled_offsets"] + row["gap_offsets"] for row in result.to_pylist()) == total
    for row in result.to_pylist():
        assert 0 <= row["aged_offsets"] <= row["settled_offsets"]
        assert row["negative_offsets_min"] <= row["negative_offsets_max"] <= row["aged_offsets"]
        if row["aged_offsets"]:
            lows = [row[name] for name in ("age_min_ms", "age_p50_min_ms", "age_p90_min_ms", "age_p99_min_ms")]
            highs = [row[name] for name in ("age_p50_max_ms", "age_p90_max_ms", "age_p99_max_ms", "age_max_ms")]
            assert lows == sorted(lows)
            assert highs == sorted(highs)
            assert all(low <= high for low, high in zip(lows[1:], highs, strict=False))
    tried = attempts(done, ages.gaps(), By()).to_pylist()
    settled_offsets = sum(row["settled_offsets"] for row in result.to_pylist())
    assert sum(row["offsets"] for row in tried if row["outcome"] != "open") == settled_offsets
    deliveries = sum(row["deliveries"] for row in result.to_pylist())
    assert sum(row["deliveries"] for row in tried if row["outcome"] != "open") == deliveries


@pytest.mark.slow
@given(HOSTILE_LOGS)
def test_no_log_makes_it_fail(log):
    _, done = done_of(log)
    ages = Ages(done)
    ages.take(stamped("0-9 at 1\n10-99 at 5"))
    assert latency(done, ages, By(partition=False)).num_rows >= 0
    assert attempts(done, ages.gaps(), By(hour=False)).num_rows >= 0
