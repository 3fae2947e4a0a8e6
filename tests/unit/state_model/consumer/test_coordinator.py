from functools import reduce

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from state_model.consumer.coordinator import (
    expire_revocation,
    expire_session,
    fence_all,
    group_tombstones,
    heartbeat,
    leave,
    resolve,
)
from state_model.consumer.draft import Draft
from state_model.consumer.group import apply
from state_model.consumer.group_values import PartitionMetadata, ResolvedExpression
from state_model.consumer.heartbeat import ErrorCode, Heartbeat, HeartbeatError
from state_model.consumer.membership import other_kind
from state_model.consumer.reconciliation import MemberState, Partition
from state_model.consumer.records import record_of
from state_model.consumer.soft_state import Settings, SoftState
from state_model.errors import SharelensError
from state_model.group_topics import TopicMetadata
from state_model.uuids import uuid_text
from tests.depths import examples


def deal(spec):
    """Each topic's partitions in turn to its subscribers, in the order of their ids."""
    targets = {member_id: {} for member_id in spec.members}
    for topic_id, count in spec.partition_counts.items():
        subscribers = sorted(name for name, each in spec.members.items() if topic_id in each.subscribed_topic_ids)
        for number in range(count):
            owner = targets[subscribers[number % len(subscribers)]]
            owner[topic_id] = (*owner.get(topic_id, ()), number)
    return targets


def hoard(spec):
    """All partitions to the last member that subscribes to their topic; the rest is left out."""
    targets = {}
    for topic_id, count in spec.partition_counts.items():
        owner = max(name for name, each in spec.members.items() if topic_id in each.subscribed_topic_ids)
        targets.setdefault(owner, {})[topic_id] = tuple(range(count))
    return targets


AT_ONCE = Settings({"deal": deal, "hoard": hoard}, assignment_interval_ms=0)


class World:
    """A consumer group, its topics and its clients, each of which knows its epoch and its partitions."""

    def __init__(self, settings=AT_ONCE, **partitions):
        self.settings = settings
        self.topics = {}
        self.group, self.soft, self.log, self.now_ms = None, SoftState(), [], 1_000
        self.epochs, self.owned, self.assigned, self.instances = {}, {}, {}, {}
        for name, count in (partitions or {"t": 2}).items():
            self.set_topic(name, count)

    def set_topic(self, name, count, incarnation=0):
        self.topics[name] = TopicMetadata(name, bytes([*name.encode(), incarnation]).ljust(16, b"\0"), count)
        self.soft = self.soft._replace(refresh_deadline_ms=0)

    def part(self, name, number):
        return Partition(uuid_text(self.topics[name].topic_id), number)

    def join(self, member, names="t", *, is_lost=False, instance_id=None, **fields):
        fields = {"subscribed_topic_names": None if names is None else frozenset(names)} | fields
        self.owned[member] = self.assigned[member] = frozenset()
        self.epochs[member], self.instances[member] = 0, instance_id
        return self.send(member, self.owned[member], is_lost=is_lost, rebalance_timeout_ms=60_000, **fields)

    def beat(self, member, *, says_owned=True, is_lost=False, **fields):
        return self.send(member, self.owned[member] if says_owned else None, is_lost=is_lost, **fields)

    def send(self, member, owned, *, is_lost=False, **fields):
        request = Heartbeat(
            "g", member, self.epochs[member], "c", "/h", self.instances.get(member), owned=owned, **fields
        )
        outcome = heartbeat(self.group, self.soft, request, self.topics.get, self.settings, self.now_ms)
        self.append(outcome)
        if not is_lost:
            self.epochs[member] = outcome.answer.member_epoch
            if outcome.answer.assigned is not None:
                self.assigned[member] = outcome.answer.assigned
        return outcome

    def revoke_and_assign(self, member):
        """The client takes the partitions of its last answer, and gives up the rest."""
        self.owned[member] = self.assigned[member]

    def leave(self, member, epoch=-1):
        request = Heartbeat("g", member, epoch, instance_id=self.instances.get(member))
        outcome = leave(self.group, self.soft, request, self.topics.get)
        self.append(outcome)
        self.owned.pop(member, None)
        return outcome

    def expire_session(self, member):
        outcome = expire_session("g", self.group, self.soft, member, self.topics.get)
        self.append(outcome)
        return outcome

    def resolve(self, **matches):
        expressions = {
            {"some": "t.*"}.get(name, name): ResolvedExpression(frozenset(names), 1, self.now_ms)
            for name, names in matches.items()
        }
        outcome = resolve("g", self.group, self.soft, expressions, self.topics.get, self.now_ms)
        self.append(outcome)
        return outcome

    def append(self, outcome):
        assert reduce(apply, outcome.records, self.group) == outcome.group
        self.log += outcome.records
        self.group, self.soft = outcome.group, outcome.soft

    def settle(self, *members):
        for _ in range(6):
            for member in members:
                self.revoke_and_assign(member)
                self.beat(member)

    def restart(self):
        self.group = reduce(apply, self.log, None)
        self.soft = SoftState()


def types(outcome):
    """The record types of an outcome, those of tombstones negative."""
    return [-record.record_type if record.is_tombstone else record.record_type for record in outcome.records]


def refused(code, call, *arguments, **fields):
    with pytest.raises(HeartbeatError) as error:
        call(*arguments, **fields)
    assert error.value.code is code
    return error.value.text


def test_the_first_member_gets_its_partitions_at_once():
    world = World()
    outcome = world.join("a")
    assert types(outcome) == [5, 3, 7, 6, 8]
    assert (outcome.answer.member_epoch, outcome.answer.heartbeat_interval_ms) == (2, 5_000)
    assert outcome.answer.assigned == {world.part("t", 0), world.part("t", 1)}
    assert world.soft == SoftState()
    world.revoke_and_assign("a")
    outcome = world.beat("a")
    assert (types(outcome), outcome.answer.assigned) == ([], None)
    assert world.soft.refresh_deadline_ms == 1_000 + 2_147_483_647
    assert world.group.state.value == "Stable"


def test_a_member_without_a_subscription_joins_in_epoch_one_without_a_new_group_epoch():
    world = World()
    outcome = world.join("a", "")
    assert types(outcome) == [5, 8]
    assert (outcome.answer.member_epoch, outcome.answer.assigned, world.group.group_epoch) == (1, frozenset(), 1)


def test_a_partition_moves_after_its_owner_has_revoked_it():
    world = World()
    world.join("a")
    world.revoke_and_assign("a")
    outcome = world.join("b")
    assert types(outcome) == [5, 3, 7, 7, 6, 8]
    assert outcome.answer.assigned == frozenset()
    outcome = world.beat("a")
    assert (types(outcome), outcome.revocation, outcome.ends_revocation) == ([8], (2, 60_000), False)
    assert world.group.members["a"].assignment.state == MemberState.UNREVOKED_PARTITIONS
    assert world.beat("b").answer.assigned is None
    world.revoke_and_assign("a")
    outcome = world.beat("a")
    assert (outcome.revocation, outcome.ends_revocation, outcome.answer.member_epoch) == (None, True, 3)
    assert world.beat("b").answer.assigned == {world.part("t", 1)}
    world.settle("a", "b")
    assert world.group.state.value == "Stable"


def test_within_the_assignment_interval_a_new_member_waits_in_the_old_epoch():
    world = World(AT_ONCE._replace(assignment_interval_ms=1_000))
    world.join("a")
    outcome = world.join("b")
    assert (types(outcome), outcome.answer.member_epoch, outcome.answer.assigned) == ([5, 3, 8], 2, frozenset())
    world.now_ms += 999
    assert types(world.beat("a", says_owned=False)) == []
    world.now_ms += 1
    assert types(world.beat("a", says_owned=False)) == [7, 7, 6, 8]


def test_a_full_request_has_the_assignment_in_its_answer():
    world = World()
    world.join("a")
    world.revoke_and_assign("a")
    outcome = world.beat("a", rebalance_timeout_ms=60_000, subscribed_topic_names=frozenset("t"))
    assert (types(outcome), len(outcome.answer.assigned)) == ([], 2)


def test_a_changed_subscription_revokes_at_once_and_rebalances():
    world = World(t=1, u=1)
    world.join("a")
    world.revoke_and_assign("a")
    outcome = world.beat("a", says_owned=False, subscribed_topic_names=frozenset("u"))
    assert types(outcome) == [5, 3, 7, 6, 8]
    assert outcome.answer.assigned == frozenset()
    world.settle("a")
    assert world.owned["a"] == {world.part("u", 0)}


def test_metadata_that_change_no_subscription_are_recorded_without_a_rebalance():
    world = World()
    world.join("a")
    assert types(world.beat("a", rack_id="r", server_assignor="hoard")) == [5]


def test_most_members_choose_the_assignor():
    world = World()
    world.join("a", server_assignor="deal")
    world.join("b", server_assignor="hoard")
    assert [len(world.group.targets[name]) for name in "ab"] == [1, 1]
    world.join("c", server_assignor="hoard")
    assert [len(world.group.targets[name]) for name in "abc"] == [0, 0, 2]
    world.settings = world.settings._replace(assignors={"deal": deal})
    text = refused(ErrorCode.UNKNOWN_SERVER_ERROR, world.join, "d")
    assert text == "Failed to compute a new target assignment for epoch 5: there is no assignor hoard"


def test_an_assignor_without_a_result_refuses_the_heartbeat():
    def fail(spec):
        raise SharelensError("no room")

    world = World(AT_ONCE._replace(assignors={"fail": fail}))
    text = refused(ErrorCode.UNKNOWN_SERVER_ERROR, world.join, "a")
    assert (text, world.group) == ("Failed to compute a new target assignment for epoch 2: no room", None)


def test_assignors_see_subscriptions_and_targets():
    specs = []

    def record(spec):
        specs.append(spec)
        return deal(spec)

    world = World(AT_ONCE._replace(assignors={"record": record}), t=1, u=2)
    world.join("a", "t", rack_id="r")
    world.join("b", ["t", "u", "gone"], instance_id="i")
    first, second = specs
    topic_t, topic_u = world.part("t", 0)[0], world.part("u", 0)[0]
    assert (first.members["a"].rack_id, first.members["a"].assignment) == ("r", {})
    assert (first.partition_counts, first.is_homogeneous) == ({topic_t: 1}, True)
    assert (second.members["a"].assignment, second.members["b"].instance_id) == ({topic_t: (0,)}, "i")
    assert (second.members["b"].subscribed_topic_ids, second.is_homogeneous) == ({topic_t, topic_u}, False)


def test_a_topic_that_changes_rebalances_at_the_next_heartbeat():
    world = World()
    world.join("a")
    world.set_topic("t", 3)
    outcome = world.beat("a")
    assert (types(outcome), len(outcome.answer.assigned)) == ([3, 7, 6, 8], 3)
    del world.topics["t"]
    assert types(world.beat("a")) == []
    world.soft = SoftState()
    assert types(world.beat("a", says_owned=False)) == [3, 7, 6, 8]
    assert world.group.metadata.metadata_hash == 0


def test_a_refresh_ends_the_old_record_of_partition_metadata():
    world = World()
    world.join("a")
    world.group = apply(world.group, record_of(4, "g", PartitionMetadata()))
    assert types(world.beat("a")) == [-4]
    assert types(world.beat("a")) == []


def test_a_member_that_leaves_writes_tombstones_and_no_target():
    world = World()
    world.join("a")
    world.join("b")
    outcome = world.leave("a")
    assert (types(outcome), outcome.answer[:2]) == ([-8, -7, -5, 3], ("a", -1))
    assert types(world.beat("b"))[:2] == [7, 6]
    world.leave("b")
    assert (world.group.state.value, world.group.metadata.metadata_hash) == ("Empty", 0)


def test_members_that_are_removed_at_once_raise_the_group_epoch_once():
    world = World()
    for member_id in "abc":
        world.join(member_id)
    epoch = world.group.group_epoch
    outcome = fence_all("g", world.group, world.soft, ("a", "c"), world.topics.get)
    assert types(outcome) == [-8, -7, -5, -8, -7, -5, 3]
    assert (list(outcome.group.members), outcome.group.group_epoch) == (["b"], epoch + 1)


def test_timers_remove_members_that_are_still_what_they_were():
    world = World()
    world.join("a")
    arguments = ("g", world.group, world.soft)
    assert types(expire_session(*arguments, "a", world.topics.get)) == [-8, -7, -5, 3]
    assert expire_session(*arguments, "b", world.topics.get) is None
    assert expire_session("g", None, world.soft, "a", world.topics.get) is None
    assert types(expire_revocation(*arguments, "a", 2, world.topics.get)) == [-8, -7, -5, 3]
    assert expire_revocation(*arguments, "a", 1, world.topics.get) is None
    assert expire_revocation(*arguments, "b", 2, world.topics.get) is None


def test_a_static_member_comes_back_under_a_new_id_with_its_partitions_and_no_rebalance():
    world = World()
    world.join("a", instance_id="i")
    world.revoke_and_assign("a")
    outcome = world.leave("a", -2)
    assert (types(outcome), outcome.answer[:2], outcome.ends_revocation) == ([8], ("a", -2), False)
    assert set(world.group.members["a"].assignment.assigned.values()) == {0}
    outcome = world.join("b", instance_id="i")
    assert types(outcome) == [-8, -7, -5, 5, 7, 8, 8]
    assert (outcome.answer.member_epoch, len(outcome.answer.assigned), world.group.group_epoch) == (2, 2, 2)
    assert (list(world.group.members), world.group.static_members) == (["b"], {"i": "b"})
    world.revoke_and_assign("b")
    assert types(world.beat("b")) == []
    assert types(world.leave("b")) == [-8, -7, -5, 3]
    assert world.group.static_members == {}


def test_the_target_of_a_static_member_is_recorded_again_when_it_comes_back_into_a_rebalance():
    world = World()
    world.join("a", instance_id="i")
    world.leave("a", -2)
    outcome = world.join("b", ["t", "u"], instance_id="i")
    assert types(outcome) == [-8, -7, -5, 5, 7, 8, 5, 3, 7, 6, 8]


def test_static_members_are_fenced_by_their_instance_id():
    world = World()
    world.join("a", instance_id="i")
    text = refused(ErrorCode.UNRELEASED_INSTANCE_ID, world.join, "b", instance_id="i")
    expected = "Static member b with instance id i cannot join the group because the instance id is owned by a member."
    assert text == expected
    refused(ErrorCode.UNRELEASED_INSTANCE_ID, world.join, "a", instance_id="i")
    world.epochs["b"] = 2
    text = refused(ErrorCode.FENCED_INSTANCE_ID, world.beat, "b")
    assert text == "Static member b with instance id i was fenced by member a."
    refused(ErrorCode.FENCED_INSTANCE_ID, world.leave, "b", -2)
    world.instances["b"] = "j"
    assert refused(ErrorCode.UNKNOWN_MEMBER_ID, world.beat, "b") == "Instance id j is unknown."
    refused(ErrorCode.UNKNOWN_MEMBER_ID, world.leave, "b", -1)


def test_an_instance_id_without_its_member_is_refused():
    world = World()
    world.join("a", instance_id="i")
    world.leave("a", -2)
    world.join("a", instance_id="j")
    world.leave("a")
    assert world.group.static_members == {"i": "a"}
    text = refused(ErrorCode.UNKNOWN_MEMBER_ID, world.join, "b", instance_id="i")
    assert text == "Member a is not a member of group g."
    refused(ErrorCode.UNKNOWN_MEMBER_ID, world.leave, "b")


def test_a_static_member_that_left_in_an_unknown_state_has_that_state_recorded():
    world = World()
    world.join("a", instance_id="i")
    draft = Draft("g", world.group)
    draft.add(8, world.group.members["a"].assignment._replace(state=99), "a")
    world.group = draft.group
    world.leave("a", -2)
    assert world.group.members["a"].assignment.state is MemberState.UNKNOWN


def test_epochs_of_members_are_fenced_and_a_lost_answer_is_repeated():
    world = World()
    world.join("a")
    world.revoke_and_assign("a")
    world.set_topic("t", 3)
    world.beat("a", is_lost=True)
    assert (world.epochs["a"], world.group.members["a"].assignment.member_epoch) == (2, 3)
    assert "smaller" in refused(ErrorCode.FENCED_MEMBER_EPOCH, world.beat, "a", says_owned=False)
    owned, world.owned["a"] = world.owned["a"], frozenset({world.part("t", 7)})
    assert "smaller" in refused(ErrorCode.FENCED_MEMBER_EPOCH, world.beat, "a")
    world.owned["a"] = owned
    assert world.beat("a").answer.member_epoch == 3
    for epoch, text in ((1, "smaller"), (9, "greater")):
        world.epochs["a"] = epoch
        assert text in refused(ErrorCode.FENCED_MEMBER_EPOCH, world.beat, "a")
    world.epochs["a"] = 0
    assert world.send("a", frozenset()).answer.member_epoch == 3


def test_a_member_in_an_unknown_state_is_fenced():
    world = World()
    world.join("a")
    draft = Draft("g", world.group)
    draft.add(8, world.group.members["a"].assignment._replace(state=99), "a")
    world.group = draft.group
    assert "unknown state" in refused(ErrorCode.FENCED_MEMBER_EPOCH, world.beat, "a", says_owned=False)


def test_refused_heartbeats_name_the_error_of_kafka():
    world = World(AT_ONCE._replace(max_size=1))
    world.epochs["a"] = 3
    world.owned["a"] = frozenset()
    assert refused(ErrorCode.GROUP_ID_NOT_FOUND, world.beat, "a") == "Consumer group g not found."
    assert refused(ErrorCode.GROUP_ID_NOT_FOUND, world.leave, "a") == "Group g not found."
    world.join("a")
    world.join("a")
    text = "The consumer group has reached its maximum capacity of 1 members."
    assert refused(ErrorCode.GROUP_MAX_SIZE_REACHED, world.join, "b") == text
    assert refused(ErrorCode.GROUP_MAX_SIZE_REACHED, world.beat, "b") == text
    world.settings = AT_ONCE
    world.epochs["b"] = 3
    assert refused(ErrorCode.UNKNOWN_MEMBER_ID, world.beat, "b") == "Member b is not a member of group g."
    assert refused(ErrorCode.UNKNOWN_MEMBER_ID, world.leave, "b") == "Member b is not a member of group g."
    assert other_kind("g").text == "Group g is not a consumer group."


def test_a_regular_expression_counts_once_it_is_resolved():
    world = World(t=1, u=1)
    outcome = world.join("a", None, subscribed_topic_regex="t.*")
    assert (types(outcome), world.group.group_epoch) == ([5, 8], 1)
    assert types(world.resolve(some="t", other="u")) == [16, 3]
    assert world.soft.refresh_deadline_ms > 0
    assert (types(world.beat("a")), len(world.assigned["a"])) == ([7, 6, 8], 1)
    assert types(world.resolve(some="t")) == [16]
    assert types(world.join("b", None, subscribed_topic_regex="t.*"))[:2] == [5, 3]
    assert types(world.beat("b", subscribed_topic_regex=""))[:2] == [5, 3]
    assert types(world.beat("a", subscribed_topic_regex="u")) == [5, -16, 8]
    assert types(world.beat("a", subscribed_topic_regex="")) == [5, -16, 3, 7, 6, 8]


def test_the_last_subscriber_of_a_regular_expression_ends_it_when_it_leaves():
    world = World()
    world.join("a", None, subscribed_topic_regex="t.*")
    world.resolve(some="t")
    world.join("b", None, subscribed_topic_regex="t.*")
    assert types(world.leave("a")) == [-8, -7, -5, 3]
    assert types(world.leave("b")) == [-8, -7, -5, -16, 3]
    assert world.group.metadata.metadata_hash == 0


def test_an_invalid_regular_expression_is_refused():
    world = World()
    text = refused(ErrorCode.INVALID_REGULAR_EXPRESSION, world.join, "a", None, subscribed_topic_regex="(")
    assert text.startswith("SubscribedTopicRegex `(` is not a valid regular expression: ")


def test_the_tombstones_of_a_group_end_it():
    world = World()
    world.join("a")
    world.leave("a")
    records = group_tombstones("g", world.group)
    assert [record.record_type for record in records] == [6, 4, 3]
    assert reduce(apply, records, world.group) is None


CLIENTS = ("a", "b", "c", "d")
INSTANCES = {"c": "i", "d": "i"}
"""Two clients of one instance id, that follow each other."""
NAMES = st.sampled_from(["t", "u", "tu", ""])


class GroupMachine(RuleBasedStateMachine):
    """Clients that join, work, lose answers and leave; topics change and the coordinator restarts.

    A client says what it owns when that is what it was assigned; a client that is refused gives everything up.
    """

    def __init__(self):
        super().__init__()
        self.world = World(AT_ONCE._replace(assignment_interval_ms=1_500), t=2, u=1)
        self.topics_before, self.incarnation = {}, 0
        self.before, self.fenced = None, set()

    def is_member(self, client):
        return self.world.group is not None and client in self.world.group.members

    def run(self, client, call, *arguments, **fields):
        """A call of a client; after an error it has nothing, and must join again."""
        size = len(self.world.log)
        try:
            call(client, *arguments, **fields)
        except HeartbeatError as error:
            assert len(self.world.log) == size
            self.world.owned[client] = self.world.assigned[client] = frozenset()
            return error.code
        return None

    @rule(client=st.sampled_from(CLIENTS), names=NAMES, is_lost=st.booleans())
    def join(self, client, names, is_lost):
        code = self.run(client, self.world.join, names, is_lost=is_lost, instance_id=INSTANCES.get(client))
        assert code in (None, ErrorCode.UNRELEASED_INSTANCE_ID)
        if code is None:
            self.fenced.discard(client)

    @precondition(lambda self: self.world.epochs)
    @rule(client=st.sampled_from(CLIENTS), names=st.none() | NAMES, is_lost=st.booleans())
    def beat(self, client, names, is_lost):
        if not self.world.epochs.get(client) or client not in self.world.owned:
            return
        says_owned = self.world.owned[client] == self.world.assigned[client]
        fields = {} if names is None else {"subscribed_topic_names": frozenset(names)}
        code = self.run(client, self.world.beat, says_owned=says_owned, is_lost=is_lost, **fields)
        if client in self.fenced:
            assert code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)
        elif code is not None:
            assert code is ErrorCode.FENCED_MEMBER_EPOCH
            self.world.epochs[client] = 0

    @rule(client=st.sampled_from(CLIENTS))
    def work(self, client):
        if client in self.world.owned:
            self.world.revoke_and_assign(client)

    @rule(client=st.sampled_from(CLIENTS), is_static=st.booleans())
    def leave(self, client, is_static):
        if self.is_member(client):
            self.world.leave(client, -2 if is_static and client in INSTANCES else -1)

    @rule(client=st.sampled_from(CLIENTS))
    def expire_session(self, client):
        if self.is_member(client):
            self.world.expire_session(client)
            self.world.owned[client] = self.world.assigned[client] = frozenset()
            self.fenced.add(client)

    @rule(name=st.sampled_from("tu"), kind=st.sampled_from(["more partitions", "gone", "again"]))
    def change_a_topic(self, name, kind):
        topic = self.world.topics.get(name)
        if kind == "gone":
            self.world.topics.pop(name, None)
            self.world.soft = SoftState()
        elif topic is None:
            self.incarnation += 1
            self.world.set_topic(name, 2, self.incarnation)
        elif kind == "more partitions":
            self.world.topics[name] = topic._replace(partitions=min(topic.partitions + 1, 5))
            self.world.soft = SoftState()

    @rule(milliseconds=st.sampled_from([100, 2_000]))
    def wait(self, milliseconds):
        self.world.now_ms += milliseconds

    @rule()
    def restart(self):
        self.world.restart()

    @invariant()
    def replay_of_the_log_gives_the_group(self):
        assert reduce(apply, self.world.log, None) == self.world.group

    @invariant()
    def a_partition_has_one_owner(self):
        owned = [part for partitions in self.world.owned.values() for part in partitions]
        assert len(owned) == len(set(owned))
        if self.world.group is not None:
            assignments = [each.assignment for each in self.world.group.members.values()]
            recorded = [part for each in assignments for part in (*each.assigned, *each.pending)]
            assert len(recorded) == len(set(recorded))
            assert set(owned) <= set(recorded)

    @invariant()
    def fenced_members_have_nothing(self):
        for client in self.fenced:
            assert not self.is_member(client)
            assert not self.world.owned.get(client)

    @invariant()
    def epochs_never_go_back(self):
        group, before = self.world.group, self.before
        self.before = group
        if group is None:
            return
        assert group.targets.keys() <= group.members.keys()
        for each in group.members.values():
            assert each.assignment.member_epoch <= group.target_assignment_epoch <= group.group_epoch
            epochs = (*each.assignment.assigned.values(), *each.assignment.pending.values())
            assert all(0 <= epoch <= group.target_assignment_epoch for epoch in epochs)
            assert bool(each.assignment.pending) <= (each.assignment.state == MemberState.UNREVOKED_PARTITIONS)
        if before is None:
            return
        assert group.group_epoch - before.group_epoch in (0, 1)
        assert group.target_assignment_epoch >= before.target_assignment_epoch
        for name in group.members.keys() & before.members.keys():
            epoch = group.members[name].assignment.member_epoch
            assert epoch == -2 or epoch >= before.members[name].assignment.member_epoch

    def teardown(self):
        """Members that go on working get all partitions of the topics that they subscribe to."""
        world = self.world
        world.soft = SoftState()
        world.settings = AT_ONCE
        active = [client for client in CLIENTS if self.is_member(client)]
        for client in active:
            if world.epochs[client] == world.group.members[client].assignment.member_epoch:
                continue
            if client in INSTANCES:  # it can't join while the coordinator counts it as a member
                world.leave(client)
            else:
                world.epochs[client] = 0
                world.owned[client] = frozenset()
                world.send(client, frozenset())
        active = [client for client in active if self.is_member(client)]
        for client in active:  # a client whose answer was lost sends all fields, and gets its assignment again
            world.revoke_and_assign(client)
            names = world.group.members[client].metadata.subscribed_topic_names
            world.beat(client, rebalance_timeout_ms=60_000, subscribed_topic_names=names)
        world.settle(*active)
        if active:
            assert world.group.state.value == "Stable"
            subscribed = [topic for name, topic in world.topics.items() if name in world.group.topic_names]
            partitions = {world.part(topic.name, number) for topic in subscribed for number in range(topic.partitions)}
            assert {part for client in active for part in world.owned[client]} == partitions


TestGroup = GroupMachine.TestCase
TestGroup.settings = examples("function")
