import pytest

from state_model.consumer.assignors import ASSIGNORS
from state_model.consumer.classic_group import ClassicGroup, ClassicMember, Downgrade, classic_protocols
from state_model.consumer.classic_members import ClassicCall, Join, join, must_rejoin, named_member, sync
from state_model.consumer.coordinator import expire_session, fence_all, leave
from state_model.consumer.group import apply
from state_model.consumer.group_values import member_assignment, member_metadata
from state_model.consumer.heartbeat import ErrorCode, Heartbeat, HeartbeatError
from state_model.consumer.migration import join_classic_group, upgrade, with_downgrade
from state_model.consumer.soft_state import MigrationPolicy, Settings, SoftState
from state_model.consumer_protocol import read_assignment, read_version, write_assignment
from state_model.group_topics import TopicMetadata
from state_model.uuids import uuid_text
from tests.consumer_subscriptions import subscription_bytes

TOPIC = TopicMetadata("t", bytes([*range(16)]), 4)
TOPICS = {"t": TOPIC}.get
NAMES = {uuid_text(TOPIC.topic_id): "t"}.get
SETTINGS = Settings(ASSIGNORS, assignment_interval_ms=0)
FRESH = SoftState()
RANGE = (("range", subscription_bytes(1, "t")),)
JOINING = Heartbeat(
    "g", "new", 0, "c", "/h", None, None, 60_000, frozenset("t"), owned=frozenset()
)  # fmt: skip


def partitions(*numbers):
    return frozenset(("t", number) for number in numbers)


def classic_member(name, *numbers, version=1, instance_id=None, **fields):
    subscription = subscription_bytes(version, "t")
    protocols = (("range", subscription), ("sticky", subscription))
    assignment = write_assignment(version, partitions(*numbers))
    member = ClassicMember(name, instance_id, "c", "/h", 60_000, 6_000, protocols, assignment)
    return member._replace(**fields)


def classic(*members, **fields):
    return ClassicGroup(7, "consumer", "range", members)._replace(**fields)


PAIR = classic(classic_member("a", 0, 1), classic_member("b", 2, 3, version=3))


def upgraded(group=PAIR, **fields):
    return upgrade("g", group, TOPICS, SETTINGS._replace(**fields))


def refusal(function, *arguments):
    with pytest.raises(HeartbeatError) as refused:
        function(*arguments)
    return refused.value.code


def assigned(group, member_id):
    assignment = member_assignment(group.members[member_id])
    return assignment.member_epoch, {part.partition for part in assignment.assigned}


def classic_join(group, member_id="k", *, now_ms=5, settings=SETTINGS, soft=FRESH, **fields):
    request = Join("g", member_id, 6_000, 60_000, "consumer", RANGE, "c", "/h")._replace(**fields)
    return join(group, soft, request, TOPICS, NAMES, settings, now_ms)


def call(group, name, **fields):
    epoch = member_assignment(group.members[name]).member_epoch
    return ClassicCall("g", name, epoch)._replace(**fields)


def owning(*numbers):
    return (("range", subscription_bytes(1, "t", partitions(*numbers))),)


def test_a_classic_group_becomes_a_consumer_group_of_its_generation():
    draft = upgraded()
    assert [each.record_type for each in draft.records] == [2, 5, 5, 3, 7, 7, 6, 8, 8]
    assert draft.records[0].is_tombstone
    group = None
    for record in draft.records[1:]:
        group = apply(group, record)
    assert group == draft.group
    assert (group.group_epoch, group.target_assignment_epoch) == (7, 7)
    assert {name: assigned(group, name) for name in "ab"} == {"a": (7, {0, 1}), "b": (7, {2, 3})}
    assert classic_protocols(member_metadata(group.members["a"])) == PAIR.members[0].protocols


def test_a_consumer_that_joins_a_classic_group_upgrades_it():
    outcome = join_classic_group(PAIR, JOINING, TOPICS, SETTINGS, 5)
    assert outcome.records[:9] == tuple(upgraded().records)
    assert (outcome.group.group_epoch, outcome.answer.member_epoch, outcome.answer.assigned) == (8, 8, frozenset())
    assert outcome.soft == SoftState()
    assert refusal(join_classic_group, PAIR, JOINING._replace(member_epoch=3), TOPICS, SETTINGS, 5) == 69


def test_an_empty_assignment_and_topics_that_do_not_exist_are_no_partitions():
    gone = write_assignment(0, [("gone", 1)])
    draft = upgraded(classic(classic_member("a", assignment=b""), classic_member("b", assignment=gone)))
    assert [assigned(draft.group, name) for name in "ab"] == [(7, set()), (7, set())]


@pytest.mark.parametrize(
    ("group", "settings", "code"),
    [
        pytest.param(PAIR, {"migration_policy": MigrationPolicy.DOWNGRADE}, 69, id="policy"),
        pytest.param(PAIR, {"migration_policy": MigrationPolicy.DISABLED}, 69, id="no migration"),
        pytest.param(PAIR, {"max_size": 1}, 69, id="size"),
        pytest.param(PAIR._replace(protocol_type="connect"), {}, 69, id="other protocol type"),
        pytest.param(classic(classic_member("a", assignment=b"\0")), {}, 69, id="assignment cut short"),
        pytest.param(
            classic(classic_member("a", assignment=write_assignment(0, [])[:-4] + b"\0\0\0\1x")), {}, 69,
            id="data of an assignor",
        ),
        pytest.param(classic(classic_member("a", protocols=(("range", b"\0\1\0"),))), {}, 69, id="metadata cut short"),
        pytest.param(PAIR._replace(protocol_name=None), {}, -1, id="no generation yet"),
    ],
)  # fmt: skip
def test_a_classic_group_stays_one_with_the_error_of_kafka(group, settings, code):
    assert refusal(upgrade, "g", group, TOPICS, SETTINGS._replace(**settings)) == code


def test_the_last_consumer_that_leaves_makes_the_group_a_classic_one():
    outcome = join_classic_group(PAIR, JOINING, TOPICS, SETTINGS, 5)
    before = outcome.group
    removal = leave(before, outcome.soft, Heartbeat("g", "new", -1), TOPICS)
    downgraded = with_downgrade("g", before, removal, NAMES, SETTINGS, 9)
    assert [each.record_type for each in downgraded.records] == [8, 8, 8, 7, 7, 7, 6, 5, 5, 5, 4, 3]
    assert all(each.is_tombstone for each in downgraded.records)
    group = downgraded.downgrade.group
    assert downgraded.downgrade.rebalances
    assert (group.generation, group.protocol_name, group.state_since_ms) == (8, "range", 9)
    assert [each.member_id for each in group.members] == ["a", "b"]
    assert [read_version(each.assignment) for each in group.members] == [1, 3]
    targets = [{part.partition for part in before.targets[name]} for name in "ab"]
    assert [{number for _, number in read_assignment(each.assignment).partitions} for each in group.members] == targets
    assert upgrade("g", group, TOPICS, SETTINGS).group.members.keys() == {"a", "b"}


@pytest.mark.parametrize(
    "settings",
    [
        {"migration_policy": MigrationPolicy.UPGRADE},
        {"migration_policy": MigrationPolicy.DISABLED},
        {"classic_max_size": 1},
    ],
)
def test_without_a_downgrade_the_classic_members_stay_in_the_consumer_group(settings):
    outcome = join_classic_group(PAIR, JOINING, TOPICS, SETTINGS, 5)
    removal = expire_session("g", outcome.group, outcome.soft, "new", TOPICS)
    assert with_downgrade("g", outcome.group, removal, NAMES, SETTINGS._replace(**settings), 9) is removal


def test_a_group_without_members_and_one_with_a_consumer_stay_consumer_groups():
    outcome = join_classic_group(PAIR, JOINING, TOPICS, SETTINGS, 5)
    one_left = fence_all("g", outcome.group, outcome.soft, ["a"], TOPICS)
    assert with_downgrade("g", outcome.group, one_left, NAMES, SETTINGS, 9) is one_left
    all_left = fence_all("g", outcome.group, outcome.soft, ["a", "b", "new"], TOPICS)
    assert with_downgrade("g", outcome.group, all_left, NAMES, SETTINGS, 9) is all_left


def test_a_classic_member_moves_through_a_rebalance_by_heartbeat_join_and_sync():
    group = join_classic_group(PAIR, JOINING, TOPICS, SETTINGS, 5).group
    assert {name: {part.partition for part in group.targets[name]} for name in group.targets} == {
        "a": {0, 1},
        "b": {2},
        "new": {3},
    }
    assert must_rejoin(group, call(group, "b"))
    assert refusal(sync, group, call(group, "b"), NAMES) == ErrorCode.REBALANCE_IN_PROGRESS
    joined = classic_join(group, "b", protocols=owning(2, 3))
    group = joined.group
    assert joined.answer.member_epoch == 7, "the member must give up a partition first"
    assert (joined.revocation, joined.ends_revocation) == (None, False), "classic members have no such timer"
    assert read_assignment(sync(group, call(group, "b"), NAMES)).partitions == partitions(2)
    assert must_rejoin(group, call(group, "b"))
    group = classic_join(group, "b", protocols=owning(2)).group
    assert assigned(group, "b") == (8, {2})
    assert not must_rejoin(group, call(group, "b"))


def test_a_classic_member_that_waits_for_partitions_joins_again_when_they_are_free():
    group = classic_join(upgraded(classic(classic_member("a", 0, 1, 2, 3))).group).group
    assert assigned(group, "k") == (8, set())
    assert not must_rejoin(group, call(group, "k"))
    for numbers in ((0, 1, 2, 3), (0, 1)):
        group = classic_join(group, "a", protocols=owning(*numbers)).group
    assert assigned(group, "a") == (8, {0, 1})
    assert must_rejoin(group, call(group, "k"))
    group = classic_join(group).group
    assert assigned(group, "k") == (8, {2, 3})


def test_calls_of_classic_members_are_refused_as_by_kafka():
    group = join_classic_group(PAIR, JOINING, TOPICS, SETTINGS, 5).group
    assert refusal(must_rejoin, group, call(group, "a", member_id="x")) == ErrorCode.UNKNOWN_MEMBER_ID
    assert refusal(must_rejoin, group, call(group, "new")) == ErrorCode.UNKNOWN_MEMBER_ID
    assert refusal(must_rejoin, group, call(group, "a", instance_id="i")) == ErrorCode.UNKNOWN_MEMBER_ID
    assert refusal(must_rejoin, group, call(group, "a", generation=3)) == ErrorCode.ILLEGAL_GENERATION
    inconsistent = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert refusal(sync, group, call(group, "a", protocol_name="sticky"), NAMES) == inconsistent
    assert refusal(sync, group, call(group, "a", protocol_type="connect"), NAMES) == inconsistent
    disabled = SETTINGS._replace(migration_policy=MigrationPolicy.DISABLED)
    for fields in (
        {"settings": disabled},
        {"protocols": (("other", RANGE[0][1]),)},
        {"protocols": ()},
        {"protocol_type": "connect"},
    ):
        with pytest.raises(HeartbeatError) as refused:
            classic_join(group, **fields)
        assert refused.value.code is inconsistent
    with pytest.raises(HeartbeatError, match="again") as refused:
        classic_join(group, is_new_id=True)
    assert refused.value.code is ErrorCode.MEMBER_ID_REQUIRED
    with pytest.raises(HeartbeatError, match="Malformed") as refused:
        classic_join(group, protocols=(("range", b""),))
    assert refused.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_classic_member_that_replaces_the_last_consumer_downgrades_the_group_with_its_partitions():
    alone = upgraded(classic(classic_member("a", 0, 1)))
    consumer = join_classic_group(
        classic(classic_member("a", 0, 1)), JOINING._replace(instance_id="i"), TOPICS, SETTINGS, 5
    )
    assert alone.group.members.keys() < consumer.group.members.keys()
    replaced = classic_join(consumer.group, "k", is_new_id=True, instance_id="i", soft=SoftState(99))
    assert isinstance(replaced.downgrade, Downgrade)
    assert not replaced.downgrade.rebalances
    members = {each.member_id: each for each in replaced.downgrade.group.members}
    assert members["k"].instance_id == "i"
    target = {part.partition for part in consumer.group.targets["new"]}
    assert {number for _, number in read_assignment(members["k"].assignment).partitions} == target
    assert replaced.downgrade.group.generation == consumer.group.group_epoch


def test_a_consumer_replaces_a_classic_static_member_that_has_not_left():
    group = classic(classic_member("a", 0, 1, instance_id="i"), classic_member("b", 2, 3))
    outcome = join_classic_group(group, JOINING._replace(instance_id="i"), TOPICS, SETTINGS, 5)
    assert outcome.group.members.keys() == {"new", "b"}
    assert outcome.group.static_members["i"] == "new"
    assert member_metadata(outcome.group.members["new"]).classic_member_metadata is None
    assert not outcome.group.targets.keys() - {"new", "b"}


def test_a_classic_member_that_replaces_a_classic_one_changes_no_protocol():
    group = upgraded(classic(classic_member("a", 0, 1, instance_id="i"), classic_member("b", 2, 3))).group
    for fields in ({"member_id": "k", "is_new_id": True}, {"member_id": "a"}):
        outcome = classic_join(group, instance_id="i", **fields)
        assert outcome.downgrade is None
        assert outcome.group.static_members["i"] == fields["member_id"]


def test_leave_group_names_members_of_both_protocols():
    group = classic(classic_member("a", 0, 1, instance_id="i"), classic_member("b", 2, 3))
    group = join_classic_group(group, JOINING, TOPICS, SETTINGS, 5).group
    assert [named_member("g", group, *names) for names in (("new", None), ("a", "i"), ("", "i"))] == ["new", "a", "a"]
    assert refusal(named_member, "g", group, "b", "i") == ErrorCode.FENCED_INSTANCE_ID
    assert refusal(named_member, "g", group, "", "x") == ErrorCode.UNKNOWN_MEMBER_ID
    assert refusal(named_member, "g", group, "", None) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_chosen_protocol_without_a_version_refuses_the_downgrade():
    bad = classic_member("a", 0, protocols=(("range", subscription_bytes(1, "t")), ("sticky", b"")))
    other = classic_member("b", 1, protocols=(("sticky", subscription_bytes(1, "t")), ("range", RANGE[0][1])))
    third = other._replace(member_id="d")
    group = join_classic_group(classic(bad, other, third), JOINING, TOPICS, SETTINGS, 5).group
    removal = leave(group, SoftState(), Heartbeat("g", "new", -1), TOPICS)
    assert refusal(with_downgrade, "g", group, removal, NAMES, SETTINGS, 9) == ErrorCode.GROUP_ID_NOT_FOUND
