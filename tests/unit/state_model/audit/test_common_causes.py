"""What explains findings of many share partitions, groups and logs: events, and findings about whole logs."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_model.audit.causes import CAUSES, inferred_causes
from state_model.audit.common_causes import (
    BEYOND_TOPIC,
    EVENTS,
    FEWEST,
    GROUP_CREATED_AGAIN,
    GROUP_DELETED,
    RECORDS_LOST,
    SEQUENCES,
    SHARED,
    TOPIC_CREATED_AGAIN,
    TOPIC_DELETED,
    TOPIC_RECORDS_LOST,
    WIDE,
)
from state_model.audit.sightings import Sighting
from state_model.audit.table import BY_CODE
from tests.depths import examples

LOG = ("__share_group_state", 0)


def sighting(rule, group="g", partition=0, *, at=10, after=-1, log=LOG, first_ms=0, since=None, event=None):
    """A finding in a state partition."""
    return Sighting(
        rule=rule, place=(group, "T", partition, log[1]), log_offset=at, since=at if since is None else since,
        severity=BY_CODE[rule].severity or "info", after=after, first_ms=first_ms, group_id=group, topic_id="T",
        partition=partition, log=log, event=event,
    )  # fmt: skip


def causes(*sightings):
    return inferred_causes(sightings)


def test_the_tables_name_rules_and_events_are_none():
    assert set(BY_CODE) >= SHARED
    assert not EVENTS.keys() & BY_CODE.keys()


@pytest.mark.parametrize("rule", sorted(SHARED))
def test_a_finding_alone_has_no_cause(rule):
    assert causes(sighting(rule, after=3, event=TOPIC_DELETED)) == [None]


@pytest.mark.parametrize("rule", sorted(SEQUENCES))
def test_sequences_of_three_places_that_break_around_one_place_of_the_log_lost_its_records(rule):
    broken = [
        sighting(rule, group, at=at, after=after) for group, at, after in (("a", 9, 4), ("b", 20, 7), ("c", 8, 1))
    ]
    assert causes(*broken) == [RECORDS_LOST] * FEWEST
    assert causes(*broken[1:]) == [None, None]  # too few
    apart = broken[0]._replace(log_offset=6)  # 4 to 6: the others are whole there
    assert causes(apart, *broken[1:]) == [None] * 3
    other_log = broken[0]._replace(log=("__share_group_state", 1))
    assert causes(other_log, *broken[1:]) == [None] * 3


def test_a_log_can_lose_two_stretches():
    early = [sighting("group_epoch_skips", group, at=9, after=5) for group in "abc"]
    late = [sighting("group_epoch_skips", group, at=99, after=90) for group in "defg"]
    single = sighting("group_epoch_skips", "h", at=50, after=40)
    assert causes(*early, single, *late) == [RECORDS_LOST] * 3 + [None] + [RECORDS_LOST] * 4


def test_what_follows_from_a_break_follows_from_the_loss():
    broken = [sighting("update_of_other_snapshot", group, at=9, after=5) for group in "abc"]
    follower = sighting("cold_snapshot_changes_state", "b", at=30, since=2)
    assert causes(*broken, follower)[-1] == RECORDS_LOST
    assert causes(broken[1], follower) == [None, "update_of_other_snapshot"]


def test_another_number_of_partitions_explains_what_is_seen_after_it():
    changed = sighting("state_partition_count_changed", None, None, first_ms=100)
    odd = sighting("life_begins_oddly", log=("__share_group_state", 3), first_ms=100)
    follower = odd._replace(rule="update_of_other_snapshot", log_offset=11, since=10)
    assert causes(changed, odd, follower) == [None] + 2 * ["state_partition_count_changed"]
    assert causes(changed, odd._replace(first_ms=99)) == [None, None]


def test_logs_of_another_cluster_explain_what_does_not_fit():
    other = sighting("log_of_other_cluster", None, None, first_ms=900)
    strangers = sighting("no_common_group", None, None)
    missing = sighting("unknown_topic_partition")
    assert causes(other, strangers, missing) == [None, *2 * ["log_of_other_cluster"]]
    assert causes(strangers, missing) == [None, "no_common_group"]


def test_a_group_epoch_explains_epochs_of_the_same_group():
    skipped = sighting("group_epoch_skips", "a", first_ms=5, at=7)
    order = sighting("epochs_out_of_order", "a", first_ms=6, at=9)
    assert causes(skipped, order) == [None, "group_epoch_skips"]
    assert causes(skipped, order._replace(group_id="b")) == [None, None]


@pytest.mark.parametrize(
    ("rules", "event"),
    [
        (("state_after_group_deletion", "state_after_group_deletion"), GROUP_DELETED),
        (("state_after_group_deletion", "state_without_group"), GROUP_DELETED),
        (("left_state_fences_group", "state_without_group"), GROUP_CREATED_AGAIN),
        (("state_without_group", "state_without_group"), None),
    ],
)
def test_a_deletion_explains_what_a_group_left_behind(rules, event):
    leftover_sightings = [sighting(rule, partition=number) for number, rule in enumerate(rules)]
    assert causes(*leftover_sightings) == [event, event]
    assert causes(leftover_sightings[0], leftover_sightings[1]._replace(group_id="other")) == [None, None]


@pytest.mark.parametrize("event", [TOPIC_DELETED, TOPIC_CREATED_AGAIN])
def test_a_topic_of_which_the_metadata_says_that_it_is_gone_explains_what_is_left_of_it(event):
    leftover_sightings = [sighting("state_without_group", group, event=event) for group in "ab"]
    assert causes(*leftover_sightings) == [event, event]
    assert causes(leftover_sightings[0], leftover_sightings[1]._replace(topic_id="U")) == [None, None]


@pytest.mark.parametrize("rule", sorted(BEYOND_TOPIC))
def test_states_of_several_groups_beyond_a_topic_say_that_the_topic_lost_records(rule):
    beyond = [sighting(rule, group) for group in "ab"]
    assert causes(*beyond) == [TOPIC_RECORDS_LOST] * 2
    assert causes(beyond[0], beyond[1]._replace(partition=1)) == [None, None]
    assert causes(beyond[0], beyond[0]._replace(log_offset=12)) == [None, None]


SIGHTINGS = st.lists(
    st.builds(
        lambda rule, group, partition, at, back, since, log, ms, event: sighting(
            rule, group, partition, at=at, after=max(-1, at - back), since=max(0, at - since),
            log=("__share_group_state", log), first_ms=ms, event=event),
        st.sampled_from(sorted({*SHARED, *CAUSES})), st.sampled_from("abc"), st.integers(0, 1), st.integers(0, 9),
        st.integers(1, 6), st.integers(0, 6), st.integers(0, 1), st.integers(0, 5),
        st.sampled_from([None, TOPIC_DELETED]),
    ),
    max_size=14,
    unique_by=lambda finding: (finding.rule, finding.place),
)  # fmt: skip


@pytest.mark.slow
@given(SIGHTINGS, st.randoms(use_true_random=False))
@examples("table")
def test_the_order_of_findings_is_free(sightings, chance):
    order = list(range(len(sightings)))
    chance.shuffle(order)
    inferred = inferred_causes(sightings)
    assert inferred_causes([sightings[index] for index in order]) == [inferred[index] for index in order]


@pytest.mark.slow
@given(SIGHTINGS)
@examples("table")
def test_a_cause_is_an_event_or_the_rule_of_a_finding_that_nothing_explains(sightings):
    inferred = inferred_causes(sightings)
    unexplained = {finding.rule for finding, cause in zip(sightings, inferred, strict=True) if cause is None}
    assert {cause for cause in inferred if cause} - EVENTS.keys() <= unexplained


@pytest.mark.slow
@given(SIGHTINGS, SIGHTINGS)
@examples("table")
def test_findings_of_other_places_only_add_causes(sightings, other_sightings):
    """Unless a new finding is about a whole log: the causes within a share partition stay."""
    quiet = [finding for finding in sightings if finding.rule not in SHARED | WIDE.keys()]
    apart = [
        finding._replace(place=("other", *finding.place), group_id="other")
        for finding in other_sightings
        if finding.rule not in WIDE and finding.rule not in SHARED
    ]
    assert inferred_causes([*quiet, *apart])[: len(quiet)] == inferred_causes(quiet)


@pytest.mark.slow
def test_many_broken_sequences_take_no_time():
    chance = random.Random(5)
    many = [
        sighting("snapshot_epoch_skips", f"g{number}", at=at, after=at - 5)
        for number in range(20_000)
        for at in [chance.randrange(10, 100_000)]
    ]
    assert len(inferred_causes(many)) == len(many)
