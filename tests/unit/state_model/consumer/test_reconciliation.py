import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from state_model.consumer.reconciliation import (
    MemberAssignment,
    MemberState,
    Partition,
    Subscription,
    partition_epochs,
    reconcile,
    subscribed_topic_names,
)
from state_model.group_reconciliation import FencedError
from tests.depths import examples

TOPICS = {"ID-T": "t", "ID-U": "u"}
ALL = frozenset("tu")


def parts(text):
    """Partitions by the topic's name and the number: "t0 u1"."""
    return frozenset(Partition(f"ID-{name[0].upper()}", int(name[1:])) for name in text.split())


def with_epochs(text):
    """Partitions with their epochs: "t0@3 u1@4"."""
    pairs = [pair.split("@") for pair in text.split()]
    return {partition: int(epoch) for name, epoch in pairs for partition in parts(name)}


def member(state, epoch, assigned="", pending="", previous=0):
    return MemberAssignment(MemberState[state], epoch, previous, with_epochs(assigned), with_epochs(pending))


def after(before, target, epoch, *, owned=None, names=ALL, is_changed=False, has="", topics=TOPICS):
    """The member after a heartbeat; `has`: what other members have, with their member epochs."""
    return reconcile(
        before,
        parts(target),
        epoch,
        None if owned is None else parts(owned),
        Subscription(frozenset(names), topics, is_changed),
        partition_epochs([before]) | with_epochs(has),
    )


STABLE = member("STABLE", 4, "t0@2 t1@4", previous=3)
REVOKING = member("UNREVOKED_PARTITIONS", 4, "t0@2", "t1@4", previous=4)
WAITING = member("UNRELEASED_PARTITIONS", 4, "t0@2", previous=3)


@pytest.mark.parametrize(
    ("before", "call", "expected"),
    [
        pytest.param(STABLE, ("t0 t1", 4), STABLE, id="stable in the target epoch"),
        pytest.param(STABLE, ("t0 t1", 5), member("STABLE", 5, "t0@2 t1@4", previous=4), id="only the epoch changed"),
        pytest.param(
            STABLE, ("t0 t1 u0", 5), member("STABLE", 5, "t0@2 t1@4 u0@5", previous=4), id="gets a free partition"
        ),
        pytest.param(
            STABLE,
            ("t0", 5),
            member("UNREVOKED_PARTITIONS", 4, "t0@2", "t1@4", previous=4),
            id="must revoke, and its heartbeat does not say what it owns",
        ),
        pytest.param(
            STABLE,
            ("t0 u0", 5, {"owned": "t0 t1"}),
            member("UNREVOKED_PARTITIONS", 4, "t0@2", "t1@4", previous=4),
            id="must revoke before it gets a free partition",
        ),
        pytest.param(STABLE, ("t0", 5, {"owned": "t0"}), member("STABLE", 5, "t0@2", previous=4), id="revoked already"),
        pytest.param(
            STABLE,
            ("t0 t1 u0 u1", 5, {"has": "u1@4"}),
            member("UNRELEASED_PARTITIONS", 5, "t0@2 t1@4 u0@5", previous=4),
            id="another member has one of two",
        ),
        pytest.param(
            STABLE,
            ("t0 t1 u1", 5, {"has": "u1@-2"}),
            member("UNRELEASED_PARTITIONS", 5, "t0@2 t1@4", previous=4),
            id="a static member that left still has it",
        ),
        pytest.param(REVOKING, ("t0", 5), REVOKING, id="revoking, and does not say what it owns"),
        pytest.param(REVOKING, ("t0", 5, {"owned": "t0 t1"}), REVOKING, id="still owns what it must revoke"),
        pytest.param(REVOKING, ("t0", 5, {"owned": "t0"}), member("STABLE", 5, "t0@2", previous=4), id="has revoked"),
        pytest.param(
            REVOKING,
            ("t0 t1", 6, {"owned": ""}),
            member("STABLE", 6, "t0@2 t1@6", previous=4),
            id="gets back what it revoked, with a new assignment epoch",
        ),
        pytest.param(
            REVOKING,
            ("", 6, {"owned": "t0"}),
            member("UNREVOKED_PARTITIONS", 4, "", "t0@2", previous=4),
            id="has revoked, and must revoke more: its epoch stays",
        ),
        pytest.param(
            REVOKING,
            ("t0 u0", 5, {"owned": "t0", "has": "u0@4"}),
            member("UNRELEASED_PARTITIONS", 5, "t0@2", previous=4),
            id="has revoked, and waits for another member",
        ),
        pytest.param(
            WAITING,
            ("t0 u0", 4, {"has": "u0@3"}),
            member("UNRELEASED_PARTITIONS", 4, "t0@2", previous=4),
            id="still waits: the previous epoch becomes the epoch",
        ),
        pytest.param(
            WAITING, ("t0 u0", 4), member("STABLE", 4, "t0@2 u0@4", previous=4), id="the partition is released"
        ),
        pytest.param(
            WAITING,
            ("u0", 5, {"has": "u0@3"}),
            member("UNREVOKED_PARTITIONS", 4, "", "t0@2", previous=4),
            id="waiting, with a new target that takes a partition away",
        ),
        pytest.param(
            STABLE,
            ("t0 t1 u0", 5, {"names": "t"}),
            member("STABLE", 5, "t0@2 t1@4", previous=4),
            id="a target with a topic that it does not subscribe to",
        ),
        pytest.param(
            STABLE,
            ("t0 t1 u0", 5, {"topics": {"ID-U": "u"}}),
            member("UNREVOKED_PARTITIONS", 4, "", "t0@2 t1@4", previous=4),
            id="a deleted topic counts as not subscribed to",
        ),
        pytest.param(STABLE, ("t0 t1", 4, {"names": "u"}), STABLE, id="unsubscribed in an earlier heartbeat"),
        pytest.param(STABLE, ("t0 t1", 4, {"is_changed": True}), STABLE, id="subscribed to more"),
        pytest.param(
            STABLE,
            ("t0 t1", 4, {"names": "u", "is_changed": True}),
            member("UNREVOKED_PARTITIONS", 4, "", "t0@2 t1@4", previous=4),
            id="unsubscribed, before there is a target for it",
        ),
        pytest.param(
            STABLE,
            ("t0 t1", 4, {"names": "u", "is_changed": True, "owned": ""}),
            member("STABLE", 4, "", previous=4),
            id="unsubscribed and revoked",
        ),
        pytest.param(
            REVOKING,
            ("t0", 5, {"names": "u", "is_changed": True}),
            member("UNREVOKED_PARTITIONS", 4, "", "t0@2 t1@4", previous=4),
            id="unsubscribed while it revokes",
        ),
        pytest.param(
            member("STABLE", 4, previous=3),
            ("", 4, {"names": "", "is_changed": True}),
            member("STABLE", 4, previous=4),
            id="no partitions, and no subscription any more",
        ),
        pytest.param(
            member("UNREVOKED_PARTITIONS", 4, "", "t1@4", previous=3),
            ("", 4, {"names": "", "is_changed": True}),
            member("UNREVOKED_PARTITIONS", 4, "", "t1@4", previous=3),
            id="no subscription any more while it revokes all it had",
        ),
        pytest.param(
            MemberAssignment(99, 4, 3, with_epochs("t0@2")),
            ("t0 t1", 6, {"owned": ""}),
            member("STABLE", 6, "t0@2 t1@6", previous=4),
            id="an unknown state, without partitions",
        ),
    ],
)
def test_a_heartbeat_brings_a_member_to_its_next_assignment(before, call, expected):
    target, epoch, *options = call
    assert after(before, target, epoch, **dict(*options)) == expected


@pytest.mark.parametrize("owned", [None, "t0"])
def test_a_member_in_an_unknown_state_is_fenced_unless_it_owns_no_partitions(owned):
    with pytest.raises(FencedError):
        after(MemberAssignment(MemberState.UNKNOWN, 4, 3), "t0", 5, owned=owned)


@pytest.mark.parametrize(
    ("names", "regex", "expected"),
    [("tu", None, "tu"), ("", "", ""), ("t", "u.*", "tu"), ("", "u.*", "u"), ("t", "unresolved", "t")],
)
def test_a_subscription_has_names_and_what_the_regular_expression_matches(names, regex, expected):
    assert subscribed_topic_names(names, regex, {"u.*": frozenset("u")}) == frozenset(expected)


MEMBERS = "abc"
PARTITIONS = sorted(parts("t0 t1 t2 u0 u1"))
OWNERS = st.lists(st.sampled_from(MEMBERS), min_size=len(PARTITIONS), max_size=len(PARTITIONS))
SUBSCRIPTIONS = st.sets(st.sampled_from("tu")).map(frozenset)


class GroupMachine(RuleBasedStateMachine):
    """Three members of a group, and what their clients use and report.

    A client learns its assignment from an answer, which may be lost (`assigned`). Later it gives up and takes what that
    needs (`owned`); until then its heartbeats don't say what it owns.
    """

    def __init__(self):
        super().__init__()
        self.epoch = 1
        self.targets = dict.fromkeys(MEMBERS, frozenset())
        self.names = dict.fromkeys(MEMBERS, ALL)
        self.members = {name: MemberAssignment(MemberState.STABLE, 0, 0) for name in MEMBERS}
        self.assigned = dict.fromkeys(MEMBERS, frozenset())
        self.owned = dict.fromkeys(MEMBERS, frozenset())

    def subscribed(self, name, partitions):
        """Those of the partitions whose topics a member subscribes to."""
        return frozenset(filter(Subscription(self.names[name], TOPICS).includes, partitions))

    @rule(owners=OWNERS)
    def change_the_target(self, owners):
        self.epoch += 1
        pairs = list(zip(PARTITIONS, owners, strict=True))
        self.targets = {name: frozenset(part for part, owner in pairs if owner == name) for name in MEMBERS}

    @rule(name=st.sampled_from(MEMBERS), names=SUBSCRIPTIONS, answered=st.booleans())
    def subscribe(self, name, names, answered):
        is_changed = self.names[name] != names
        self.names[name] = names
        self.beat(name, answered, is_changed=is_changed)
        assigned = self.members[name].assigned
        assert not is_changed or self.subscribed(name, assigned) == assigned.keys()

    @rule(name=st.sampled_from(MEMBERS))
    def take_the_assignment(self, name):
        self.owned[name] = self.assigned[name]

    @rule(name=st.sampled_from(MEMBERS), answered=st.booleans())
    def beat(self, name, answered, is_changed=False):
        before = self.members[name]
        changed = reconcile(
            before,
            self.targets[name],
            self.epoch,
            self.owned[name] if self.owned[name] == self.assigned[name] else None,
            Subscription(self.names[name], TOPICS, is_changed),
            partition_epochs(self.members.values()),
        )
        assert before.member_epoch <= changed.member_epoch <= self.epoch
        assert changed is before or changed.previous_member_epoch == before.member_epoch
        self.members[name] = changed
        if answered:
            self.assigned[name] = frozenset(changed.assigned)

    @invariant()
    def a_partition_has_one_owner(self):
        owned = [part for partitions in self.owned.values() for part in partitions]
        recorded = [part for each in self.members.values() for part in (*each.assigned, *each.pending)]
        assert len(owned) == len(set(owned))
        assert len(recorded) == len(set(recorded))
        assert set(owned) <= set(recorded)

    @invariant()
    def members_have_what_their_state_says(self):
        for each in self.members.values():
            assert bool(each.pending) == (each.state == MemberState.UNREVOKED_PARTITIONS)
            assert all(epoch <= self.epoch for epoch in (*each.assigned.values(), *each.pending.values()))

    def teardown(self):
        """Each member has its next target after four rounds of heartbeats.

        A client learns what it must give up for an earlier target, gives that up and learns what it must give up for
        the last one, gives that up, and others get it.
        """
        self.epoch += 1
        for name in MEMBERS * 4:
            self.take_the_assignment(name)
            self.beat(name, answered=True)
        for name, each in self.members.items():
            assert (each.state, each.member_epoch) == (MemberState.STABLE, self.epoch)
            assert each.assigned.keys() == self.subscribed(name, self.targets[name])


TestGroup = GroupMachine.TestCase
TestGroup.settings = examples("function")
