"""The assignors of consumer groups against Kafka's own classes, over random histories of groups: equal targets."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from state_model.consumer.assignors import ASSIGNORS
from state_model.consumer.group_spec import GroupSpec, MemberSpec, SubscriptionType
from state_model.consumer.hash_order import members_in_hash_order, partitions_in_hash_order, topics_in_hash_order
from state_model.uuids import uuid_text
from tests.broker.java import java_machine

pytestmark = pytest.mark.components

STEPS = 8
MOST_TOPICS = 11  # a HashSet that is a copy of 12 keys has another order in Java 17 than in Java 25
CHANGES = ("member joins", "member joins", "member leaves", "partitions added", "topic added", "subscription changes")


class KafkaAssignors:
    """Kafka's assignors, and the Java objects they take."""

    def __init__(self, jvm):
        self._jvm = jvm
        group = jvm.org.apache.kafka.coordinator.group
        self._modern, self._types = group.modern, group.api.assignor.SubscriptionType
        self._assignors = {"uniform": group.assignor.UniformAssignor(), "range": group.assignor.RangeAssignor()}
        self._uuids = {}

    def assign(self, name, spec):
        """Kafka's targets, members without partitions included."""
        kind = self._types.HOMOGENEOUS if spec.is_homogeneous else self._types.HETEROGENEOUS
        group = self._modern.GroupSpecImpl(self._members(spec), kind, self._inverted(spec))
        members = self._assignors[name].assign(group, Describer(spec.partition_counts)).members()
        return {
            member_id: _partitions(members[member_id].partitions()) if member_id in members else {}
            for member_id in sorted(spec.members)
        }

    def _members(self, spec):
        optional, members = self._jvm.java.util.Optional, self._jvm.java.util.HashMap()
        for member_id, member in sorted(spec.members.items()):
            members[member_id] = self._modern.MemberSubscriptionAndAssignmentImpl(
                optional.ofNullable(member.rack_id),
                optional.ofNullable(member.instance_id),
                self._set(self._uuid(topic_id) for topic_id in sorted(member.subscribed_topic_ids)),
                self._modern.Assignment(self._assignment(member)),
            )
        return members

    def _assignment(self, member):
        assignment = self._jvm.java.util.HashMap()
        for topic_id, partitions in sorted(member.assignment.items()):
            assignment[self._uuid(topic_id)] = self._set(sorted(partitions))
        return assignment

    def _inverted(self, spec):
        inverted = self._jvm.java.util.HashMap()
        for member_id, member in spec.members.items():
            for topic_id, partitions in member.assignment.items():
                if self._uuid(topic_id) not in inverted:
                    inverted[self._uuid(topic_id)] = self._jvm.java.util.HashMap()
                by_partition = inverted[self._uuid(topic_id)]
                for partition in partitions:
                    by_partition[partition] = member_id
        return inverted

    def _set(self, values):
        """A HashSet that is filled in the order of the values, which keys of one bucket keep."""
        hash_set = self._jvm.java.util.HashSet()
        for value in values:
            hash_set.add(value)
        return hash_set

    def order_of(self, values):
        """The order of a HashSet of texts or numbers."""
        return list(self._set(sorted(values)))

    def order_of_topics(self, topic_ids):
        """The order of a HashSet of topic ids."""
        return [uuid.toString() for uuid in self._set(map(self._uuid, sorted(topic_ids)))]

    def _uuid(self, topic_id):
        if topic_id not in self._uuids:
            self._uuids[topic_id] = self._jvm.org.apache.kafka.common.Uuid.fromString(topic_id)
        return self._uuids[topic_id]


class Describer:
    """Tells Kafka's assignors the numbers of partitions."""

    def __init__(self, partition_counts):
        self._counts = partition_counts

    def numPartitions(self, topic_id):  # noqa: N802 - Java's name
        return self._counts.get(topic_id.toString(), -1)

    class Java:
        implements = ["org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber"]


def _partitions(by_topic):
    topics = {topic_id.toString(): tuple(sorted(by_topic[topic_id])) for topic_id in by_topic}
    return dict(sorted(topics.items()))


@pytest.fixture(scope="module")
def kafka():
    return KafkaAssignors(java_machine().jvm)


class History:
    """A random group: members join and leave, topics and partitions are added, subscriptions change."""

    def __init__(self, seed, *, is_homogeneous):
        self.random = Random(seed)
        self._is_homogeneous = is_homogeneous
        self._joined = 0
        self.spec = GroupSpec(members={}, partition_counts={})
        for _ in range(self.random.randint(0, 6)):
            self._add_topic()
        self._shared = self._subscription()
        for _ in range(self.random.randint(1, 5)):
            self._join()

    def change(self):
        """One of CHANGES; which one."""
        kind = self.random.choice(CHANGES)
        match kind:
            case "member joins":
                for _ in range(self.random.choice((1, 1, 1, 12))):
                    self._join()
            case "member leaves" if self.spec.members:
                self._leave()
            case "partitions added":
                for topic_id in self._sample(self.spec.partition_counts):
                    self._count(topic_id, self.spec.partition_counts[topic_id] + self.random.randint(1, 30))
            case "topic added":
                self._add_topic()
            case "subscription changes":
                self._subscribe()
        return kind

    def remember(self, targets):
        """Makes targets the assignment before."""
        members = {
            member_id: replace(member, assignment=targets[member_id]) for member_id, member in self.spec.members.items()
        }
        self.spec = replace(self.spec, members=members)

    def _sample(self, values):
        ordered = sorted(values)
        return frozenset(self.random.sample(ordered, self.random.randint(0, len(ordered))))

    def _subscription(self):
        return self._shared if self._is_homogeneous and self.spec.members else self._sample(self.spec.partition_counts)

    def _join(self):
        self._joined += 1
        member_id = uuid_text(self.random.randbytes(16))
        instance_id = self.random.choice((None, f"instance-{self._joined}"))
        subscribed = self._shared if self._is_homogeneous else self._subscription()
        member = MemberSpec(subscribed_topic_ids=subscribed, instance_id=instance_id, rack_id="rack-1")
        self.spec = replace(self.spec, members={**self.spec.members, member_id: member})

    def _leave(self):
        """A member leaves; the place of a static member is sometimes taken by a new member with its assignment."""
        member_id = self.random.choice(sorted(self.spec.members))
        members = dict(self.spec.members)
        member = members.pop(member_id)
        if member.instance_id is not None and self.random.random() < 0.5:
            members[uuid_text(self.random.randbytes(16))] = member
        self.spec = replace(self.spec, members=members)

    def _add_topic(self):
        if len(self.spec.partition_counts) == MOST_TOPICS:
            return
        # Equal numbers are frequent, so that the order of topics often depends on subscribers and ids.
        self._count(uuid_text(self.random.randbytes(16)), self.random.choice((4, 4, 8, self.random.randint(1, 24))))

    def _count(self, topic_id, count):
        self.spec = replace(self.spec, partition_counts={**self.spec.partition_counts, topic_id: count})

    def _subscribe(self):
        members = dict(self.spec.members)
        self._shared = self._sample(self.spec.partition_counts)
        changed = members if self._is_homogeneous else self._sample(members)
        for member_id in changed:
            subscribed = self._shared if self._is_homogeneous else self._sample(self.spec.partition_counts)
            members[member_id] = replace(members[member_id], subscribed_topic_ids=subscribed)
        self.spec = replace(self.spec, members=members)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("is_homogeneous", [True, False], ids=["homogeneous", "heterogeneous"])
@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_targets_are_those_of_kafka(kafka, assignor, is_homogeneous, seed):
    history = History(seed, is_homogeneous=is_homogeneous)
    changes = ["members subscribe"]
    for _ in range(STEPS):
        targets = ASSIGNORS[assignor](history.spec)
        assert targets == kafka.assign(assignor, history.spec), changes
        history.remember(targets)
        changes.append(history.change())


@pytest.mark.parametrize("seed", range(8))
def test_topics_with_equal_numbers_for_each_subscriber_are_taken_in_the_order_of_kafka(kafka, seed):
    random = Random(seed)
    topic_ids = [uuid_text(random.randbytes(16)) for _ in range(6)]
    members = {
        f"m{number}": MemberSpec(subscribed_topic_ids=frozenset(random.sample(topic_ids, random.randint(1, 4))))
        for number in range(5)
    }
    subscribers = Counter(topic_id for member in members.values() for topic_id in member.subscribed_topic_ids)
    counts = {topic_id: 3 * subscribers[topic_id] for topic_id in subscribers}
    spec = GroupSpec(members=members, partition_counts=counts)
    assert ASSIGNORS["uniform"](spec) == kafka.assign("uniform", spec)


def test_an_equal_subscription_may_count_as_heterogeneous(kafka):
    """So it is when a member subscribes to a name without a topic."""
    topic_id = uuid_text(b"\1" * 16)
    member = MemberSpec(subscribed_topic_ids=frozenset({topic_id}))
    by_ids = GroupSpec(members={"m1": member, "m2": member}, partition_counts={topic_id: 4})
    by_names = replace(by_ids, subscription_type=SubscriptionType.HETEROGENEOUS)
    assert ASSIGNORS["uniform"](by_ids) == {"m1": {topic_id: (0, 1)}, "m2": {topic_id: (2, 3)}}
    assert ASSIGNORS["uniform"](by_names) == {"m1": {topic_id: (0, 2)}, "m2": {topic_id: (1, 3)}}
    assert kafka.assign("uniform", by_names) == ASSIGNORS["uniform"](by_names)


@pytest.mark.parametrize("size", [0, 1, 12, 13, 24, 25, 100])
def test_keys_are_in_the_order_of_java(kafka, size):
    random = Random(size)
    ids = {uuid_text(random.randbytes(16)) for _ in range(size)}
    numbers = random.sample(range(2000), size)
    assert members_in_hash_order(ids) == kafka.order_of(ids)
    assert topics_in_hash_order(ids) == kafka.order_of_topics(ids)
    assert partitions_in_hash_order(numbers) == kafka.order_of(numbers)


@pytest.mark.parametrize("size", [8, 9, 16, 17, 32])
def test_every_sixteenth_partition_is_in_the_order_of_java(kafka, size):
    """Members of a heterogeneous group have them, all in one bucket of a table of 16 until that doubles."""
    numbers = [5, *range(1, 16 * size, 16)]
    assert partitions_in_hash_order(numbers) == kafka.order_of(numbers)
