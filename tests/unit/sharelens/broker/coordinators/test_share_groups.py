import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from sharelens.broker.coordinators.share_group import GroupError
from state_model.group_schemas import GroupKind
from state_model.rule_sets import KAFKA_4_3, KAFKA_4_4
from state_model.share_records import SharePartitionKey, ShareSnapshot
from state_model.topics import OFFSETS_TOPIC, STATE_TOPIC
from tests.broker_parts.share_group_harness import ShareGroupHarness


@pytest.fixture
def harness():
    group_harness = ShareGroupHarness()
    group_harness.cluster.create("alpha", 3)
    group_harness.cluster.create("beta", 2)
    return group_harness


def refused(code):
    return pytest.raises(GroupError, check=lambda error: error.code is code)


def test_a_first_member_is_at_epoch_two_with_nothing_assigned_until_the_state_is_there(harness):
    first = harness.beat(topics="alpha beta")
    assert (first.beat.member.epoch, first.beat.assignment) == (2, {})
    assert harness.types() == ["10 11 13 12 14 15", "15"]
    assert {named.name for named in harness.groups.get("g").initialized.values()} == {"alpha", "beta"}
    harness.timers.advance(1_000)
    second = harness.beat()
    assert second.beat.member.epoch == 3
    assert harness.assigned() == {"alpha": {0, 1, 2}, "beta": {0, 1}}
    assert second.beat.assignment is not None
    assert harness.beat().beat.assignment is None
    assert harness.types()[2:] == ["11 13 12 14"]


def test_new_state_begins_undetermined_at_the_group_epoch(harness):
    harness.beat(topics="beta")
    for values in harness.state_values().values():
        assert [(each.state_epoch, each.start_offset, each.delivery_complete_count) for each in values] == [(2, -1, -1)]
        assert isinstance(values[0], ShareSnapshot)
    assert sorted(harness.state_values()) == [("beta", 0), ("beta", 1)]


def test_a_quiet_heartbeat_writes_nothing(harness):
    harness.settle(topics="alpha")
    written = harness.types()
    for _ in range(3):
        harness.timers.advance(5_000)
        assert harness.beat().beat.records == []
    assert harness.types() == written


def test_the_assignment_waits_for_its_interval(harness):
    harness.beat(topics="alpha")
    harness.timers.advance(300)
    assert harness.beat().beat.member.epoch == 2
    assert harness.types()[2:] == ["11"]
    harness.timers.advance(699)
    assert harness.beat().beat.records == []
    harness.timers.advance(1)
    assert harness.beat().beat.member.epoch == 3
    assert harness.types()[2:] == ["11", "13 12 14"]


def test_without_an_interval_assignments_come_at_once(harness):
    harness.configure(assignment_interval_ms=0)
    harness.beat(topics="alpha")
    harness.beat()
    assert harness.types() == ["10 11 13 12 14 15", "15", "11 13 12 14"]


def test_a_second_member_takes_its_share(harness):
    harness.settle("a", "alpha beta")
    joined = harness.beat("b", "alpha beta")
    assert joined.beat.member.epoch == harness.groups.get("g").epoch
    harness.timers.advance(1_000)
    harness.beat("a")
    sizes = sorted(sum(map(len, harness.assigned(member).values())) for member in "ab")
    assert sizes == [2, 3]
    assert not harness.assigned("a")["alpha"] & harness.assigned("b").get("alpha", set())


def test_a_member_that_leaves_is_gone_at_once_and_the_rest_is_assigned_at_the_next_heartbeat(harness):
    harness.settle("a", "alpha")
    harness.settle("b", "alpha")
    harness.timers.advance(1_000)
    harness.leave("a")
    assert harness.types()[-1] == "14X 13X 10X 11"
    harness.timers.advance(1_000)
    harness.beat("b")
    assert harness.assigned("b") == {"alpha": {0, 1, 2}}
    harness.leave("b")
    group = harness.groups.get("g")
    assert (group.state, group.metadata_hash, group.targets) == ("Empty", 0, {})


def test_a_silent_member_is_gone_after_its_session(harness):
    harness.settle("a", "alpha")
    harness.settle("b", "alpha")
    harness.timers.advance(40_999)
    harness.beat("b")
    assert set(harness.groups.get("g").members) == {"a", "b"}
    harness.timers.advance(1)
    assert set(harness.groups.get("g").members) == {"b"}
    assert harness.types()[-1] == "14X 13X 10X 11"
    with refused(ErrorCode.unknown_member_id):
        harness.beat("a")


def test_a_session_that_could_not_be_ended_is_ended_later(harness):
    harness.beat(topics="alpha")
    harness.refuse(groups=True)
    harness.timers.advance(45_000)
    assert harness.groups.get("g").members
    harness.refuse()
    harness.timers.advance(45_000)
    assert not harness.groups.get("g").members


@pytest.mark.parametrize(
    ("member", "epoch", "code"),
    [
        ("m", 9, ErrorCode.fenced_member_epoch),
        ("m", 1, ErrorCode.fenced_member_epoch),
        ("stranger", 3, ErrorCode.unknown_member_id),
    ],
)
def test_epochs_that_are_not_the_members_are_refused(harness, member, epoch, code):
    harness.settle(topics="alpha")
    written = harness.types()
    with refused(code):
        harness.beat(member, epoch=epoch)
    assert harness.types() == written


def test_the_previous_epoch_is_accepted_when_an_answer_was_lost(harness):
    harness.settle(topics="alpha")
    assert harness.beat(epoch=2).beat.member.epoch == 3


def test_a_member_that_joins_again_keeps_what_it_has(harness):
    harness.settle(topics="alpha")
    written = harness.types()
    again = harness.beat(topics="alpha", epoch=0)
    assert (again.beat.member.epoch, dict(again.beat.assignment)) == (3, harness.groups.get("g").members["m"].assigned)
    assert harness.types() == written


def test_another_client_id_is_recorded_without_a_new_epoch(harness):
    harness.settle(topics="alpha")
    harness.beat(client="other", rack="r1")
    assert harness.types()[-1] == "10"
    assert (harness.last(10)["clientId"], harness.last(10)["rackId"]) == ("other", "r1")


def test_other_topics_are_a_new_epoch_and_a_new_assignment(harness):
    harness.settle(topics="alpha")
    answer = harness.beat(topics="beta")
    assert harness.types()[-2:] == ["10 11 13 12 14 15", "15"]
    assert answer.beat.assignment == {}
    harness.timers.advance(1_000)
    harness.beat()
    assert harness.assigned() == {"beta": {0, 1}}


def test_a_full_group_takes_no_new_member():
    harness = ShareGroupHarness(max_size=1)
    harness.cluster.create("alpha", 1)
    harness.beat("a", "alpha")
    with refused(ErrorCode.group_max_size_reached):
        harness.beat("b", "alpha")
    assert harness.beat("a").beat.member.epoch == 2


def test_groups_that_are_not_there_or_of_another_kind_are_not_found(harness):
    with refused(ErrorCode.group_id_not_found):
        harness.beat(epoch=1)
    with refused(ErrorCode.group_id_not_found):
        harness.groups.leave("g", "m")
    harness.log.ids.claim("classic", GroupKind.CLASSIC)
    with refused(ErrorCode.group_id_not_found):
        harness.beat(topics="alpha", group="classic")
    harness.beat(topics="alpha")
    with refused(ErrorCode.unknown_member_id):
        harness.groups.leave("g", "stranger")
    assert harness.log.ids.kind("g") is GroupKind.SHARE


def test_what_the_log_refuses_has_not_happened(harness):
    harness.refuse(groups=True)
    with refused(ErrorCode.coordinator_not_available):
        harness.beat(topics="alpha")
    assert harness.groups.get("g") is None
    assert harness.log.ids.kind("g") is None
    harness.refuse()
    harness.settle(topics="alpha")
    before = harness.groups.get("g")
    harness.refuse(groups=True)
    with refused(ErrorCode.coordinator_not_available):
        harness.leave()
    with refused(ErrorCode.coordinator_not_available):
        harness.beat(topics="beta")
    assert harness.groups.get("g") == before


def test_partitions_whose_state_could_not_be_made_are_tried_again(harness):
    harness.refuse(state=True)
    harness.beat(topics="alpha")
    assert harness.types() == ["10 11 13 12 14 15", "15"]
    assert harness.last(15) == {"initializingTopics": [], "initializedTopics": [], "deletingTopics": []}
    harness.refuse()
    harness.settle()
    assert harness.assigned() == {"alpha": {0, 1, 2}}


def interrupt_initialization(harness, topics="alpha"):
    """A member joins; the process ends before the state of the partitions is initialized."""
    harness.timers.after_ms = lambda delay_ms, callback: None
    harness.beat(topics=topics)
    del harness.timers.after_ms
    assert harness.last(15)["initializingTopics"]
    harness.restart()


def test_an_interrupted_initialization_continues_after_a_restart_without_a_heartbeat(harness):
    interrupt_initialization(harness)
    harness.timers.advance(0)
    assert {values[0].start_offset for values in harness.state_values().values()} == {-1}
    assert len(harness.state_values()) == 3
    assert harness.last(15)["initializedTopics"][0]["partitions"] == [0, 1, 2]
    harness.timers.advance(1_000)
    harness.beat()
    assert harness.assigned() == {"alpha": {0, 1, 2}}


def test_an_interrupted_initialization_keeps_a_start_offset_that_was_written(harness):
    interrupt_initialization(harness)
    topic_id = harness.cluster.by_name("alpha").topic_id
    key = SharePartitionKey(group_id="g", topic_id=topic_id, partition=1)
    assert harness.state.initialize(key, state_epoch=1, start_offset=7) == 0
    harness.timers.advance(0)
    starts = {partition: values[-1].start_offset for (_, partition), values in harness.state_values().items()}
    assert starts == {0: -1, 1: 7, 2: -1}
    assert harness.last(15)["initializedTopics"][0]["partitions"] == [0, 1, 2]


def test_an_interrupted_change_of_start_offsets_leaves_initialized_partitions_alone(harness):
    harness.settle(topics="alpha")
    harness.leave()
    harness.offsets.alter("g", {"alpha": {0: 5}})
    harness.refuse(state=True)
    harness.offsets.alter("g", {"alpha": {0: 9}})
    harness.refuse()
    harness.restart()
    harness.timers.advance(0)
    assert harness.state_values()["alpha", 0][-1].start_offset == 5


def test_an_initialization_that_fails_after_a_restart_is_tried_again_by_a_heartbeat(harness):
    interrupt_initialization(harness)
    harness.refuse(state=True)
    harness.timers.advance(0)
    assert harness.state_values() == {}
    harness.refuse()
    harness.settle()
    assert harness.assigned() == {"alpha": {0, 1, 2}}


def test_an_initialization_that_was_lost_is_repeated_after_thirty_seconds(harness):
    after_ms = harness.timers.after_ms
    harness.timers.after_ms = lambda delay_ms, callback: None if delay_ms == 0 else after_ms(delay_ms, callback)
    harness.beat(topics="alpha")
    del harness.timers.after_ms
    harness.timers.advance(29_999)
    harness.beat()
    assert harness.state_values() == {}
    harness.timers.advance(1)
    harness.beat()
    assert len(harness.state_values()) == 3
    assert harness.last(15)["initializedTopics"][0]["partitions"] == [0, 1, 2]


@pytest.mark.parametrize(("rules", "emptied"), [(KAFKA_4_3, "14X 13X 10X 11"), (KAFKA_4_4, "14X 13X 10X 11 12")])
def test_kafka_4_4_writes_the_assignment_of_a_group_without_members(rules, emptied):
    harness = ShareGroupHarness(rules=rules)
    harness.cluster.create("alpha", 1)
    harness.settle("a", topics="alpha")
    harness.settle("b", topics="alpha")
    harness.leave("a")
    assert harness.types()[-1] == "14X 13X 10X 11"
    harness.leave("b")
    assert harness.types()[-1] == emptied
    if rules is KAFKA_4_4:
        assert harness.last(12) == {"assignmentEpoch": harness.last(11)["epoch"]}


@pytest.mark.parametrize(("rules", "start_offset"), [(None, -1), (KAFKA_4_4, 0)])
def test_partitions_that_are_added_are_initialized_and_assigned(rules, start_offset):
    harness = ShareGroupHarness() if rules is None else ShareGroupHarness(rules=rules)
    harness.cluster.create("alpha", 1)
    harness.settle(topics="alpha")
    harness.cluster.grow("alpha", 3)
    harness.groups.topics_changed()
    harness.settle()
    assert harness.assigned() == {"alpha": {0, 1, 2}}
    assert harness.state_values()["alpha", 0][0].start_offset == -1
    assert harness.state_values()["alpha", 2][0].start_offset == start_offset


def test_a_topic_that_comes_later_is_found_when_topics_change(harness):
    harness.settle(topics="gamma")
    assert harness.assigned() == {}
    assert harness.last(11)["metadataHash"] == 0
    harness.cluster.create("gamma", 1)
    harness.groups.topics_changed()
    harness.settle()
    assert harness.assigned() == {"gamma": {0}}
    assert harness.last(11)["metadataHash"] != 0


def test_a_topic_that_goes_takes_its_state_along(harness):
    harness.settle(topics="alpha beta")
    harness.delete_topic("beta")
    assert harness.types()[-1] == "15"
    assert [each["topicName"] for each in harness.last(15)["initializedTopics"]] == ["alpha"]
    harness.timers.advance(1_000)
    harness.settle()
    assert harness.assigned() == {"alpha": {0, 1, 2}}


def test_groups_of_one_log_partition_forget_a_topic_in_one_batch():
    harness = ShareGroupHarness(partitions=1)
    harness.cluster.create("alpha", 1)
    for group in ("g", "h", "other"):
        harness.settle(topics="alpha" if group != "other" else "beta", group=group)
    harness.delete_topic("alpha")
    last = harness.cluster.batches(OFFSETS_TOPIC)[-1]
    assert len(last) == 2


def test_a_restart_finds_the_groups_as_they_were_and_members_go_on(harness):
    harness.settle("a", "alpha beta")
    harness.settle("b", "alpha")
    harness.beat("a")
    before = harness.groups.get("g")
    harness.restart()
    assert harness.groups.get("g") == before
    written = harness.types()
    harness.timers.advance(44_999)
    assert harness.beat("a").beat.records == []
    assert harness.types() == written
    harness.timers.advance(1)
    assert set(harness.groups.get("g").members) == {"a"}


ALPHA_BETA = st.sampled_from(["alpha", "beta", "alpha beta", "gamma"])
OPERATIONS = {
    "beat": lambda harness, member, topics, number: harness.beat(
        member, topics if member not in group_members(harness) else None
    ),
    "subscribe": lambda harness, member, topics, number: harness.beat(member, topics),
    "leave": lambda harness, member, topics, number: harness.leave(member),
    "wait": lambda harness, member, topics, number: harness.timers.advance(number * 400),
    "silence": lambda harness, member, topics, number: harness.timers.advance(50_000),
    "alter": lambda harness, member, topics, number: harness.offsets.alter("g", {"alpha": {0: number}}),
    "delete offsets": lambda harness, member, topics, number: harness.offsets.delete_offsets("g", ["alpha"]),
    "delete": lambda harness, member, topics, number: harness.offsets.delete_group("g"),
    "full": lambda harness, member, topics, number: harness.refuse(groups=number % 2 == 0, state=number % 3 == 0),
    "room": lambda harness, member, topics, number: harness.refuse(),
    "grow": lambda harness, member, topics, number: grow(harness),
    "drop": lambda harness, member, topics, number: drop(harness),
}


def group_members(harness):
    group = harness.groups.get("g")
    return () if group is None else group.members


def grow(harness):
    topic = harness.cluster.by_name("gamma")
    if topic is None:
        harness.cluster.create("gamma", 1)
    elif topic.partitions < 4:
        harness.cluster.grow("gamma", topic.partitions + 1)
    harness.groups.topics_changed()


def drop(harness):
    if harness.cluster.by_name("gamma") is not None:
        harness.delete_topic("gamma")


@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(OPERATIONS)), st.sampled_from("abc"), ALPHA_BETA, st.integers(0, 9)),
        max_size=40,
    ),
    st.integers(0, 100),
)
def test_a_crash_after_any_batch_leaves_the_group_as_it_was_then_and_able_to_go_on(operations, cut):
    harness = ShareGroupHarness(partitions=1)
    harness.cluster.create("alpha", 3)
    harness.cluster.create("beta", 1)
    log = harness.log.log_for("g")
    state_log = harness.cluster.get(harness.cluster.ensure_internal(STATE_TOPIC).name, 0)
    states = {(0, 0): None}
    commit = harness.groups.commit

    def watched(group_id, records):
        commit(group_id, records)
        states[log.high_watermark, state_log.high_watermark] = harness.groups.get("g")

    harness.groups.commit = watched
    for operation, member, topics, number in operations:
        try:
            OPERATIONS[operation](harness, member, topics, number)
        except GroupError:
            harness.epochs.pop(("g", member), None)
    ends = sorted(states)[cut % len(states)]
    log.cut_to(ends[0])
    state_log.cut_to(ends[1])
    harness.restart()
    assert harness.groups.get("g") == states[ends]
    check_invariants(states[ends])
    harness.refuse()
    harness.epochs.clear()
    harness.timers.advance(50_000)
    harness.settle("a", "alpha beta", beats=4)
    assert harness.assigned("a") == {"alpha": {0, 1, 2}, "beta": {0}}


def check_invariants(group):
    """Rules G2 to G5 of consumer-offsets-records §7."""
    if group is None:
        return
    assert group.assignment_epoch <= group.epoch
    assert set(group.targets) <= set(group.members)
    for member in group.members.values():
        assert member.previous_epoch < member.epoch <= group.assignment_epoch
        target = group.targets.get(member.member_id, {})
        if member.epoch == group.assignment_epoch:
            assert all(set(stored) <= set(target.get(topic_id, ())) for topic_id, stored in member.assigned.items())
