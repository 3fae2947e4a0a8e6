"""Worked examples and properties of the assignors; tests/broker compares them with Kafka's classes."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_model.consumer.assignors import ASSIGNORS, assign_range, assign_uniform
from state_model.consumer.group_spec import GroupSpec, MemberSpec, SubscriptionType
from state_model.errors import PartitionAssignorError
from state_model.uuids import uuid_text

TOPICS = {name: uuid_text(name.encode().rjust(16, b"\0")) for name in ("A", "B", "C", "D")}
NAMES = {topic_id: name for name, topic_id in TOPICS.items()}


def group(table, **counts):
    """A group from lines `member [instance=…] topics | assignment before`, such as `m1 AB | A0 A1 B0`.

    counts: numbers of partitions by topic.
    """
    members = {}
    for line in filter(None, map(str.strip, table.splitlines())):
        subscription, _, assignment = line.partition("|")
        member_id, *options, topics = subscription.split()
        instance_id = options[0].removeprefix("instance=") if options else None
        numbers = {}
        for name, *digits in assignment.split():
            numbers.setdefault(TOPICS[name], []).append(int("".join(digits)))
        members[member_id] = MemberSpec(
            subscribed_topic_ids=frozenset(TOPICS[name] for name in topics if name != "-"),
            assignment={topic_id: tuple(partitions) for topic_id, partitions in numbers.items()},
            instance_id=instance_id,
        )
    return GroupSpec(members=members, partition_counts={TOPICS[name]: count for name, count in counts.items()})


def table(targets):
    """Lines `member | partitions`, by member id."""
    return [f"{member_id} | {' '.join(_names(by_topic))}".strip() for member_id, by_topic in targets.items()]


def _names(by_topic):
    return [f"{NAMES[topic_id]}{number}" for topic_id, numbers in by_topic.items() for number in numbers]


def again(spec, targets, **changes):
    """The group with targets as the assignment before."""
    members = {
        member_id: replace(member, assignment=targets.get(member_id, {})) for member_id, member in spec.members.items()
    }
    return replace(spec, members=members, **changes)


def sizes(targets):
    return [sum(map(len, by_topic.values())) for by_topic in targets.values()]


def partitions_of(by_topic):
    return {(topic_id, number) for topic_id, numbers in by_topic.items() for number in numbers}


def test_uniform_gives_new_members_equal_numbers_and_the_last_members_the_remainder():
    spec = group("m1 AB\nm2 AB\nm3 AB", A=4, B=3)
    assert table(assign_uniform(spec)) == [
        "m1 | A0 A1",
        "m2 | A2 A3",
        "m3 | B0 B1 B2",
    ]


def test_uniform_takes_only_what_a_member_that_joins_needs():
    spec = group(
        """
        m1 A | A0 A1 A2
        m2 A | A3 A4 A5
        m3 A |
        """,
        A=6,
    )
    assert table(assign_uniform(spec)) == ["m1 | A0 A1", "m2 | A3 A4", "m3 | A2 A5"]


def test_uniform_gives_the_partitions_of_a_member_that_left_to_the_rest():
    spec = group("m1 A | A0 A1\nm3 A | A4 A5", A=6)
    assert table(assign_uniform(spec)) == ["m1 | A0 A1 A2", "m3 | A3 A4 A5"]


def test_uniform_leaves_the_larger_quota_with_members_that_have_it():
    spec = group(
        """
        m1 A | A0
        m2 A | A1 A2
        m3 A |
        """,
        A=4,
    )
    assert table(assign_uniform(spec)) == ["m1 | A0", "m2 | A1 A2", "m3 | A3"]


def test_uniform_takes_the_partitions_that_come_last_in_a_hash_table():
    """Of 16 buckets the first has 0 and 16, the second 1."""
    joined = "\n".join(f"m{number} A" for number in range(2, 10))
    targets = assign_uniform(group(f"m1 A | A0 A1 A16\n{joined}", A=17))
    assert table({"m1": targets["m1"]}) == ["m1 | A0 A16"]


def test_uniform_balances_members_with_different_subscriptions_topic_by_topic():
    spec = group(
        """
        m1 A
        m2 AB
        m3 B
        """,
        A=4,
        B=2,
    )
    assert table(assign_uniform(spec)) == ["m1 | A0 A2", "m2 | A1 A3", "m3 | B0 B1"]


def test_uniform_passes_over_members_without_partitions_of_the_topic():
    """m1 has the largest number of partitions, and none of topic B to give up."""
    spec = group(
        """
        m1 AB | A0 A1 A2 A3 A4 A5
        m2 B  | B0 B1 B2 B3
        m3 B  |
        """,
        A=6,
        B=4,
    )
    assert table(assign_uniform(spec)) == ["m1 | A0 A1 A2 A3 A4 A5", "m2 | B0 B1", "m3 | B2 B3"]


def test_a_subscription_that_ends_frees_the_partitions_of_its_topic():
    spec = group(
        """
        m1 A  | A0 B0
        m2 AB | A1 B1
        """,
        A=2,
        B=2,
    )
    assert table(assign_uniform(spec)) == ["m1 | A0 A1", "m2 | B0 B1"]


def test_range_cuts_topics_of_one_size_at_the_same_places():
    spec = group("m1 ABC\nm2 ABC", A=3, B=3, C=1)
    assert table(assign_range(spec)) == ["m1 | A0 A1 B0 B1 C0", "m2 | A2 B2"]


def test_range_orders_static_members_by_instance_id_before_the_rest():
    spec = group(
        """
        m1            A
        m2 instance=y A
        m3 instance=x A
        """,
        A=3,
    )
    assert table(assign_range(spec)) == ["m1 | A2", "m2 | A1", "m3 | A0"]


def test_range_counts_only_subscribers_of_a_topic():
    spec = group("m1 A\nm2 AB\nm3 -", A=3, B=2)
    assert table(assign_range(spec)) == ["m1 | A0 A1", "m2 | A2 B0 B1", "m3 |"]


def test_range_gives_all_members_the_topics_of_the_first_where_the_group_counts_as_homogeneous():
    spec = replace(group("m1 A\nm2 -", A=3), subscription_type=SubscriptionType.HOMOGENEOUS)
    assert table(assign_range(spec)) == ["m1 | A0 A1", "m2 | A2"]
    assert assign_range(GroupSpec(members={}, partition_counts={})) == {}


def test_range_moves_partitions_when_a_member_joins_in_front():
    spec = group("m0 A |\nm1 A | A0 A1\nm2 A | A2 A3", A=4)
    assert table(assign_range(spec)) == ["m0 | A0 A1", "m1 | A2", "m2 | A3"]


@pytest.mark.parametrize("assign", ASSIGNORS.values(), ids=ASSIGNORS)
def test_without_members_or_subscriptions_nothing_is_assigned(assign):
    assert assign(group("", A=2)) == {}
    assert assign(group("m1 - | A0\nm2 -", A=2)) == {"m1": {}, "m2": {}}


@pytest.mark.parametrize("assign", ASSIGNORS.values(), ids=ASSIGNORS)
@pytest.mark.parametrize("members", ["m1 AB", "m1 AB\nm2 A"], ids=["homogeneous", "heterogeneous"])
def test_a_subscribed_topic_without_a_number_of_partitions_is_an_error(assign, members):
    with pytest.raises(PartitionAssignorError, match=TOPICS["B"]):
        assign(group(members, A=2))


counts = st.dictionaries(st.sampled_from(sorted(NAMES)), st.integers(1, 40), min_size=1)
member_names = st.sets(st.text(min_size=1, max_size=4), min_size=1, max_size=14)


@st.composite
def groups(draw, *, is_homogeneous=None):
    """Groups after two assignments, between which members and partitions were added and members left."""
    partition_counts = draw(counts)
    topic_ids = st.frozensets(st.sampled_from(sorted(partition_counts)))
    shared = draw(topic_ids)
    is_equal = draw(st.booleans()) if is_homogeneous is None else is_homogeneous
    subscriptions = st.just(shared) if is_equal else topic_ids
    members = {
        name: MemberSpec(
            subscribed_topic_ids=draw(subscriptions), instance_id=draw(st.sampled_from((None, f"i-{name}")))
        )
        for name in sorted(draw(member_names))
    }
    assign = draw(st.sampled_from(list(ASSIGNORS.values())))
    before = draw(st.sets(st.sampled_from(sorted(members))))
    spec = GroupSpec(members={name: members[name] for name in before}, partition_counts=partition_counts)
    added = {topic_id: count + draw(st.integers(0, 9)) for topic_id, count in partition_counts.items()}
    leaving = draw(st.sets(st.sampled_from(sorted(members)), max_size=len(members) - 1))
    joined = {name: member for name, member in members.items() if name not in leaving}
    return again(GroupSpec(members=joined, partition_counts=added), assign(spec))


@given(groups(), st.sampled_from(list(ASSIGNORS.values())))
def test_each_partition_of_a_subscribed_topic_has_one_member_that_subscribes_to_it(spec, assign):
    targets = assign(spec)
    assert targets.keys() == spec.members.keys()
    assigned = [
        (topic_id, number) for by_topic in targets.values() for topic_id in by_topic for number in by_topic[topic_id]
    ]
    subscribed = set().union(*(member.subscribed_topic_ids for member in spec.members.values()))
    assert sorted(assigned) == [
        (topic_id, number) for topic_id in sorted(subscribed) for number in range(spec.partition_counts[topic_id])
    ]
    assert all(by_topic.keys() <= spec.members[name].subscribed_topic_ids for name, by_topic in targets.items())


@given(groups(), st.sampled_from(list(ASSIGNORS.values())), st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(spec, assign, random):
    members = list(spec.members.items())
    random.shuffle(members)
    shuffled = {
        name: replace(
            member,
            assignment={
                topic_id: tuple(random.sample(numbers, len(numbers)))
                for topic_id, numbers in random.sample(list(member.assignment.items()), len(member.assignment))
            },
        )
        for name, member in members
    }
    partition_counts = dict(random.sample(list(spec.partition_counts.items()), len(spec.partition_counts)))
    targets = assign(replace(spec, members=shuffled, partition_counts=partition_counts))
    assert repr(targets) == repr(assign(spec))


@given(groups(is_homogeneous=True))
def test_uniform_gives_members_with_equal_subscriptions_numbers_that_differ_by_at_most_one(spec):
    targets = assign_uniform(spec)
    assert max(sizes(targets)) - min(sizes(targets)) <= 1


@given(groups(is_homogeneous=True))
def test_uniform_moves_no_more_partitions_than_balance_needs(spec):
    """Members keep as many of their partitions as fit the quotas that Kafka's order of members gives them."""
    targets = assign_uniform(spec)
    for (name, member), size in zip(spec.members.items(), sizes({n: targets[n] for n in spec.members}), strict=True):
        had = {each for each in partitions_of(member.assignment) if each[0] in member.subscribed_topic_ids}
        assert len(had & partitions_of(targets[name])) == min(len(had), size)


@given(groups())
def test_uniform_changes_nothing_in_a_balanced_group(spec):
    targets = assign_uniform(spec)
    settled = again(spec, targets)
    if settled.is_homogeneous or _is_balanced(settled):
        assert assign_uniform(settled) == targets


def _is_balanced(spec):
    """Whether the subscribers of each topic have numbers of partitions that differ by at most 1."""
    counts = {name: len(partitions_of(member.assignment)) for name, member in spec.members.items()}
    return all(
        max(of_topic) - min(of_topic) <= 1
        for topic_id in spec.partition_counts
        if (of_topic := [counts[name] for name, m in spec.members.items() if topic_id in m.subscribed_topic_ids])
    )


@given(groups())
def test_range_does_not_depend_on_the_assignment_before(spec):
    assert assign_range(spec) == assign_range(again(spec, {}))


@given(groups(is_homogeneous=True))
def test_both_rules_for_uniform_balance_a_group_with_equal_subscriptions_alike(spec):
    heterogeneous = assign_uniform(replace(spec, subscription_type=SubscriptionType.HETEROGENEOUS))
    assert sorted(sizes(heterogeneous)) == sorted(sizes(assign_uniform(spec)))
