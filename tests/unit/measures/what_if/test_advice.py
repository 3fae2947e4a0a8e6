"""Advice has evidence in the history, and none is given without it."""

import pytest

from measures.settings import DEAD_LETTER_TOPIC, DELIVERY_COUNT_LIMIT, UPDATES_PER_SNAPSHOT, GroupSettings, Setting
from measures.what_if.advice import GroupOutcomes, of_coordinator, of_groups
from measures.what_if.schema import WHAT_IF
from tests.unit.measures.what_if.test_snapshots import WRITES, done, snapshot, what_if_rows

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


def test_an_interval_that_saves_little_is_not_suggested():
    tried = {limit: what_if_rows(WRITES, limit) for limit in (250, 500)}
    assert of_coordinator(tried, 500).num_rows == 0
    assert of_coordinator({500: WHAT_IF.empty_table()}, 500).num_rows == 0
