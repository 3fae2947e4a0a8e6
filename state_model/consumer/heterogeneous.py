"""The assignor `uniform` for members with different subscriptions (UniformHeterogeneousAssignmentBuilder of Kafka).

Three steps: previous partitions stay with members that still subscribe to their topic; each partition without a
member goes to the subscriber with the fewest partitions; then topic after topic, partitions move from the subscribers
with the most partitions to those with the fewest, until a round over all topics moves none.

A topic is balanced when the numbers of partitions of its subscribers, over all topics, differ by at most 1. Chains of
members that share topics pairwise can differ by more from end to end.
"""

from collections.abc import Iterator, Mapping, Sequence

from state_model.consumer.group_spec import GroupSpec, Targets
from state_model.consumer.hash_order import members_in_hash_order
from state_model.uuids import uuid_bytes

MAX_ROUNDS = 16
"""Rounds over all topics that move partitions; the result of the last one stands, balanced or not."""
NO_MEMBER = -1


def assign_heterogeneous(spec: GroupSpec) -> Targets:
    """The targets of the members of a group, whose subscriptions may differ.

    Raises:
        PartitionAssignorError: a subscribed topic has no number of partitions.
    """
    assignment = _Assignment(spec)
    assignment.assign_remaining()
    assignment.balance()
    return assignment.targets()


class _SubscribersByLoad:
    """Subscribers of a topic by their numbers of partitions, while partitions are assigned to them.

    Members are indexes into `counts`, the numbers of partitions, which the caller changes after each step.

        count ^                     x
              |              ######xx    with_most: from the right, where x has no partition of the topic
              |       #############xx
              |####################xx    with_fewest: from the left
              +---------------------> members
    """

    def __init__(self, subscribers: Sequence[int], counts: Sequence[int]) -> None:
        self._counts = counts
        self._ordered = sorted(subscribers, key=lambda member: (counts[member], member))

    @property
    def imbalance(self) -> int:
        """The largest number of partitions less the smallest."""
        return self._counts[self._ordered[-1]] - self._counts[self._ordered[0]]

    def with_fewest(self) -> Iterator[tuple[int, int]]:
        """Members that get a partition each, with the number of partitions they have before; without end.

        Invariant: the members before `end_exclusive` have had `count` partitions at the start of a turn.
        """
        count = self._counts[self._ordered[0]]
        end_exclusive = 0
        while True:
            while end_exclusive < len(self._ordered) and self._counts[self._ordered[end_exclusive]] == count:
                end_exclusive += 1
            for place in range(end_exclusive):
                yield self._ordered[place], count
            count += 1

    def with_most(self, partitions: Mapping[int, Sequence[int]]) -> Iterator[tuple[int, int]]:
        """Members that give up a partition each, with the number of partitions they have before.

        Invariant: the members from `start` to `end_exclusive` have had `count` partitions at the start of a turn. A
        member without partitions of the topic changes places with the last of them and is passed over from then on.

        partitions: those of the topic by member; the caller removes them.
        """
        start = end_exclusive = len(self._ordered)
        count = 0
        while end_exclusive > 0:
            # After a turn each member of the range has one partition less. Where all were passed over, the range
            # begins anew with the next member, whose count may be larger than expected: it may have got partitions.
            count = count - 1 if start < end_exclusive else self._counts[self._ordered[start - 1]]
            while start > 0 and self._counts[self._ordered[start - 1]] == count:
                start -= 1
            for place in range(end_exclusive - 1, start - 1, -1):
                if partitions.get(self._ordered[place]):
                    yield self._ordered[place], count
                    continue
                end_exclusive -= 1
                self._exchange(place, end_exclusive)

    def _exchange(self, place: int, other_place: int) -> None:
        ordered = self._ordered
        ordered[place], ordered[other_place] = ordered[other_place], ordered[place]


class _Assignment:
    """An assignment while it is computed. Members are numbered in the order of Kafka's hash table of members."""

    def __init__(self, spec: GroupSpec) -> None:
        self._member_ids = members_in_hash_order(spec.members)
        self._counts = [0] * len(self._member_ids)
        self._subscribers: dict[str, list[int]] = {}
        for index, member_id in enumerate(self._member_ids):
            for topic_id in spec.members[member_id].subscribed_topic_ids:
                self._subscribers.setdefault(topic_id, []).append(index)
        self._members_of = {
            topic_id: [NO_MEMBER] * spec.partition_count(topic_id) for topic_id in sorted(self._subscribers)
        }
        self._topic_ids = sorted(self._subscribers, key=self._topic_order)
        for index, member_id in enumerate(self._member_ids):
            member = spec.members[member_id]
            for topic_id in member.subscribed_topic_ids & member.assignment.keys():
                for partition in member.assignment[topic_id]:
                    self._move(topic_id, partition, index)

    def _topic_order(self, topic_id: str) -> tuple[float, int, int, int]:
        """Most partitions for each subscriber first, then fewest subscribers, then by id as two signed numbers."""
        subscribers = len(self._subscribers[topic_id])
        raw = uuid_bytes(topic_id)
        high, low = (int.from_bytes(half, signed=True) for half in (raw[:8], raw[8:]))
        return -len(self._members_of[topic_id]) / subscribers, subscribers, high, low

    def _move(self, topic_id: str, partition: int, member: int) -> None:
        previous_member = self._members_of[topic_id][partition]
        if previous_member != NO_MEMBER:
            self._counts[previous_member] -= 1
        self._members_of[topic_id][partition] = member
        self._counts[member] += 1

    def assign_remaining(self) -> None:
        """Assigns each partition without a member to the subscriber with the fewest partitions."""
        for topic_id in self._topic_ids:
            members = self._members_of[topic_id]
            remaining = [partition for partition, member in enumerate(members) if member == NO_MEMBER]
            subscribers = _SubscribersByLoad(self._subscribers[topic_id], self._counts)
            for partition, (member, _) in zip(remaining, subscribers.with_fewest(), strict=False):
                self._move(topic_id, partition, member)

    def balance(self) -> None:
        """Balances topic after topic until a round from the last topic with a move to itself has none."""
        topic_ids = [topic_id for topic_id in self._topic_ids if len(self._subscribers[topic_id]) > 1]
        last_moved: str | None = None
        for _ in range(MAX_ROUNDS):
            for topic_id in topic_ids:
                if topic_id == last_moved:
                    return
                if self._balance_topic(topic_id) or last_moved is None:
                    last_moved = topic_id

    def _balance_topic(self, topic_id: str) -> bool:
        """Moves partitions of a topic from members with the most to members with the fewest; whether any moved.

        A member gives up its partition with the highest number.
        """
        subscribers = _SubscribersByLoad(self._subscribers[topic_id], self._counts)
        if subscribers.imbalance <= 1:
            return False
        partitions: dict[int, list[int]] = {}
        for partition, member in enumerate(self._members_of[topic_id]):
            partitions.setdefault(member, []).append(partition)
        has_moved = False
        takers = subscribers.with_fewest()
        for giver, giver_count in subscribers.with_most(partitions):
            taker, taker_count = next(takers)
            if giver_count - taker_count <= 1:
                break
            self._move(topic_id, partitions[giver].pop(), taker)
            has_moved = True
        return has_moved

    def targets(self) -> Targets:
        """The computed target of each member."""
        numbers: dict[str, dict[str, list[int]]] = {member_id: {} for member_id in sorted(self._member_ids)}
        for topic_id, members in self._members_of.items():
            for partition, member in enumerate(members):
                numbers[self._member_ids[member]].setdefault(topic_id, []).append(partition)
        return {
            member_id: {topic_id: tuple(partitions) for topic_id, partitions in by_topic.items()}
            for member_id, by_topic in numbers.items()
        }
