from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from sharelens.broker.coordinators.assignor import assign

TOPICS = [f"t{number}" for number in range(4)]
MEMBERS = [f"m{number}" for number in range(12)]
PARTITIONS = st.dictionaries(st.sampled_from(TOPICS), st.sets(st.integers(0, 7), max_size=8))
SAME_TOPICS = st.tuples(st.sets(st.sampled_from(MEMBERS)), st.sets(st.sampled_from(TOPICS), min_size=1)).map(
    lambda pair: dict.fromkeys(pair[0], pair[1])
)
ANY_TOPICS = st.dictionaries(st.sampled_from(MEMBERS), st.sets(st.sampled_from(TOPICS)))
CURRENT = st.dictionaries(
    st.sampled_from([*MEMBERS, "gone"]), st.sets(st.tuples(st.sampled_from(TOPICS), st.integers(0, 9)))
)


def eligible(topics, partitions):
    return {(topic, partition) for topic in topics for partition in partitions.get(topic, ())}


def counts(targets):
    return Counter(each for assigned in targets.values() for each in assigned)


@given(ANY_TOPICS, PARTITIONS, CURRENT)
def test_members_get_only_partitions_of_their_topics_that_may_be_assigned(subscriptions, partitions, current):
    targets = assign(subscriptions, partitions, current)
    assert targets.keys() == subscriptions.keys()
    for member, assigned in targets.items():
        assert assigned <= eligible(subscriptions[member], partitions)


@given(SAME_TOPICS, PARTITIONS, CURRENT)
def test_members_of_equal_topics_share_evenly(subscriptions, partitions, current):
    targets = assign(subscriptions, partitions, current)
    places = eligible(set().union(*subscriptions.values()), partitions)
    if not places or not targets:
        assert not counts(targets)
        return
    sharing = -(-len(targets) // len(places))
    shared = counts(targets)
    assert max(shared.values()) <= sharing
    if len(targets) <= len(places):
        assert shared == dict.fromkeys(places, 1)
        sizes = {len(assigned) for assigned in targets.values()}
        assert max(sizes) - min(sizes) <= 1


@given(SAME_TOPICS, PARTITIONS)
def test_from_nothing_every_partition_has_a_member_and_every_member_a_partition(subscriptions, partitions):
    targets = assign(subscriptions, partitions, {})
    places = eligible(set().union(*subscriptions.values()), partitions)
    if places and targets:
        assert counts(targets).keys() == places
        assert all(targets.values())


@given(ANY_TOPICS, PARTITIONS, CURRENT)
def test_what_was_assigned_stays(subscriptions, partitions, current):
    targets = assign(subscriptions, partitions, current)
    again = assign(subscriptions, partitions, targets)
    assert sum(map(len, again.values())) >= sum(map(len, targets.values()))
    if len(set(map(frozenset, subscriptions.values()))) <= 1:
        assert all(targets[member] <= again[member] for member in targets)


@given(ANY_TOPICS, PARTITIONS)
def test_each_topic_on_its_own_is_shared_evenly_when_topics_differ(subscriptions, partitions):
    if len(set(map(frozenset, subscriptions.values()))) <= 1:
        return
    shared = counts(assign(subscriptions, partitions, {}))
    for topic, numbers in partitions.items():
        subscribers = sum(topic in topics for topics in subscriptions.values())
        for partition in numbers if subscribers else ():
            assert 1 <= shared[topic, partition] <= -(-subscribers // len(numbers))


def test_a_new_member_takes_from_those_that_have_most():
    first = assign({"a": {"t"}}, {"t": range(6)}, {})
    assert first == {"a": {("t", number) for number in range(6)}}
    second = assign({"a": {"t"}, "b": {"t"}}, {"t": range(6)}, first)
    assert {member: len(assigned) for member, assigned in second.items()} == {"a": 3, "b": 3}
    assert second["a"] < first["a"]


def test_members_beyond_the_partitions_share_them():
    targets = assign({member: {"t"} for member in "abcde"}, {"t": range(2)}, {})
    assert sorted(map(len, targets.values())) == [1, 1, 1, 1, 2]
    assert counts(targets) == {("t", 0): 3, ("t", 1): 3}


def test_without_members_or_partitions_nothing_is_assigned():
    assert assign({}, {"t": [0]}, {}) == {}
    assert assign({"a": {"t"}}, {}, {"a": [("t", 0)]}) == {"a": set()}
