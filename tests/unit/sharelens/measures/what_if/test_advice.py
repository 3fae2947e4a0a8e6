"""Advice has evidence in the history, and none is given without it."""

import pyarrow as pa
import pytest

from sharelens.measures.settings.over_time import (
    DEAD_LETTER_TOPIC,
    DELIVERY_COUNT_LIMIT,
    STATE_PARTITIONS,
    UPDATES_PER_SNAPSHOT,
    GroupSettings,
    Setting,
)
from sharelens.measures.what_if.advice import GroupOutcomes, of_coordinator, of_groups
from sharelens.measures.what_if.lock_advice import about_locks, attempt_times
from sharelens.measures.what_if.placement_advice import about_state_partitions
from sharelens.measures.what_if.schema import WHAT_IF
from sharelens.measures.what_if.state_partitions import SUM_OF_PLACE
from state_model.java import partition_for
from tests.unit.sharelens.measures.what_if.test_lock_duration import Written, created, outcome
from tests.unit.sharelens.measures.what_if.test_snapshots import WRITES, done, snapshot, what_if_rows

TOPIC = "AAAAAAAAAAAAAAAAAAAAAQ"
AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4


def settings(limit="5", topic=None):
    values = {DELIVERY_COUNT_LIMIT: Setting(value=limit), DEAD_LETTER_TOPIC: Setting(value=topic)}
    return GroupSettings(groups={"g": values})


def advice(offsets, group_settings=None):
    rows = of_groups(
        [GroupOutcomes(group_id="g", offsets=offsets)], group_settings or settings(topic="dlq.g")
    ).to_pylist()
    return [(row["setting"], row["in_force"], row["suggested"], row["effect"], row["certainty"]) for row in rows]


def test_a_limit_that_no_acknowledged_record_needed_is_suggested_with_the_deliveries_that_it_spares():
    offsets = {(ACKNOWLEDGED, 1): 90, (ACKNOWLEDGED, 3): 2, (ARCHIVED, 5): 4, (ARCHIVED, 4): 1}
    effect = "9 deliveries fewer, the same outcomes"
    assert advice(offsets) == [(DELIVERY_COUNT_LIMIT, "5", "3", effect, "exact")]


def test_a_limit_that_records_reach_and_pass_in_their_last_delivery_is_suggested_higher():
    ((setting, in_force, suggested, effect, certainty),) = advice({(ACKNOWLEDGED, 5): 3, (ARCHIVED, 5): 4})
    assert (setting, in_force, suggested, certainty) == (DELIVERY_COUNT_LIMIT, "5", "6", "bound")
    assert effect.startswith("0 to 4 ")


@pytest.mark.parametrize(
    "offsets",
    [{}, {(ACKNOWLEDGED, 1): 9}, {(ARCHIVED, 1): 9}, {(ARCHIVED, 5): 2, (AVAILABLE, 3): 1, (ACKNOWLEDGED, 2): 1}],
)
def test_without_evidence_there_is_no_advice(offsets):
    assert advice(offsets) == []


def test_archived_records_without_a_dead_letter_topic_suggest_one():
    rows = advice({(ARCHIVED, 2): 7, (ACKNOWLEDGED, 5): 1}, settings())
    assert [row[0] for row in rows] == [DEAD_LETTER_TOPIC]


def test_unknown_settings_give_no_advice():
    assert advice({(ARCHIVED, 5): 7}, GroupSettings()) == []


def test_the_interval_with_the_fewest_bytes_is_suggested_where_it_saves_a_fifth():
    wide = tuple(done(2 * offset, 2 * offset) for offset in range(40))
    log = [(0, snapshot()), (0, snapshot(*wide, epoch=1))]
    later = tuple(done(100 + 2 * number, 100 + 2 * number) for number in range(1, 20))
    log += [(0, snapshot(*wide, *later[:number], epoch=number + 1)) for number in range(1, 20)]
    tried = {limit: what_if_rows(log, limit) for limit in (0, 500)}
    (row,) = of_coordinator(tried, 0).to_pylist()
    assert (row["setting"], row["in_force"], row["suggested"]) == (UPDATES_PER_SNAPSHOT, "0", "500")


def sums_of(records):
    """SUM_OF_PLACE rows of share partitions with these numbers of records, in the places of three state partitions."""
    rows = [
        {"log_topic_id": "log", "state_partition": partition_for("g", TOPIC, number, 3), "group_id": "g"}
        | {"topic_id": TOPIC, "partition": number, "records": count, "bytes": count, "cold_snapshots": 0}
        for number, count in enumerate(records)
    ]
    return pa.Table.from_pylist(rows, schema=SUM_OF_PLACE)


def test_more_state_partitions_are_suggested_where_one_holds_most_records_and_others_would_share_them():
    crowded = [1000 if partition_for("g", TOPIC, number, 3) == 1 else 1 for number in range(12)]
    (row,) = about_state_partitions(sums_of(crowded), 3).to_pylist()
    assert (row["setting"], row["in_force"], row["certainty"]) == (STATE_PARTITIONS, "3", "exact")
    assert row["evidence"].startswith("the largest of 3 state partitions has ")
    assert int(row["effect"].split()[0]) <= sum(crowded) / 2


@pytest.mark.parametrize("records", [[], [5] * 12, [1000]])
def test_no_number_of_state_partitions_is_suggested_where_they_are_even_or_one_share_partition_is_all(records):
    assert about_state_partitions(sums_of(records), 3).num_rows == 0


def test_share_partitions_that_lie_elsewhere_than_their_number_says_give_no_advice():
    assert about_state_partitions(sums_of([1000, *[1] * 11]), 4).num_rows == 0


def lock_advice_of(log, in_force="40000"):
    inputs = Written(log, broker={"group.share.record.lock.duration.ms": in_force})
    rows = about_locks(attempt_times(inputs), inputs.settings).to_pylist()
    return [(row["in_force"], row["suggested"], row["effect"], row["certainty"]) for row in rows]


def test_a_lock_longer_than_any_settled_attempt_is_suggested_shorter_where_others_may_have_waited_for_it():
    log = [(0, created()), (41_000, outcome(0, 4, AVAILABLE, 1)), (50_000, outcome(0, 4, ACKNOWLEDGED, 2))]
    assert lock_advice_of(log) == [("40000", "15000", "the same outcomes, what times out 25000 ms sooner", "exact")]
    assert lock_advice_of(log[:2]) == []


def test_a_lock_that_records_outlast_before_they_are_acknowledged_is_suggested_longer():
    log = [(0, created()), (15_000, outcome(0, 4, AVAILABLE, 1)), (30_500, outcome(0, 4, AVAILABLE, 2))]
    log += [(58_000, outcome(0, 4, ACKNOWLEDGED, 3))]
    assert lock_advice_of(log, "15000") == [("15000", "20000", "0 to 5 deliveries fewer", "inferred")]
    assert lock_advice_of(log[:3], "15000") == []


def test_an_interval_that_saves_little_is_not_suggested():
    tried = {limit: what_if_rows(WRITES, limit) for limit in (250, 500)}
    assert of_coordinator(tried, 500).num_rows == 0
    assert of_coordinator({500: WHAT_IF.empty_table()}, 500).num_rows == 0
