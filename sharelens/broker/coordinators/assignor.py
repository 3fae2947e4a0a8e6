"""The "simple" assignor of share groups: it spreads partitions evenly and moves as few as possible.

Its guarantees are those of rpcs.md §3 (org.apache.kafka.coordinator.group.assignor.SimpleAssignor as shipped, which
does not hash): no partition has more members than needed, the members' numbers of partitions differ by at most
1, a partition moves only for balance. Members are numbered in the order of their ids.
"""

from collections.abc import Collection, Iterable, Mapping
from itertools import cycle, pairwise

TopicPartition = tuple[str, int]
"""A partition of a topic, by the topic's id."""
Targets = dict[str, set[TopicPartition]]
"""The target assignment of each member."""


def assign(
    subscriptions: Mapping[str, Collection[str]],
    partitions: Mapping[str, Collection[int]],
    current: Mapping[str, Iterable[TopicPartition]],
) -> Targets:
    """The target of every member.

    Args:
        subscriptions: of each member the ids of its topics.
        partitions: of each topic the partitions that may be assigned; topics that are missing have none.
        current: the current assignment; members may be missing.
    """
    had = {member: set(current.get(member, ())) for member in sorted(subscriptions)}
    by_member = {member: frozenset(topics) for member, topics in subscriptions.items()}
    if len(set(by_member.values())) <= 1:
        topics = sorted(set().union(*by_member.values()))
        return _spread(had, _partitions_of(topics, partitions))
    targets: Targets = {member: set() for member in had}
    for topic in sorted(set().union(*by_member.values())):
        subscribers = {member: had[member] for member in had if topic in by_member[member]}
        for member, assigned in _spread(subscribers, _partitions_of([topic], partitions)).items():
            targets[member] |= assigned
    return targets


def _partitions_of(topics: Iterable[str], partitions: Mapping[str, Collection[int]]) -> list[TopicPartition]:
    return [(topic, partition) for topic in topics for partition in sorted(partitions.get(topic, ()))]


def _spread(had: Mapping[str, set[TopicPartition]], partitions: list[TopicPartition]) -> Targets:
    """Spread partitions over members that all may have all of them, each to the same number of members.

    With fewer partitions than members several members share a partition. The quotas come from rounding a straight
    line, so that they differ by at most 1.
    """
    if not partitions or not had:
        return {member: set() for member in had}
    sharing = -(-len(had) // len(partitions))
    quotas = _quotas(len(had), sharing * len(partitions))
    assignable = set(partitions)
    targets: Targets = {}
    members_of: dict[TopicPartition, list[str]] = {partition: [] for partition in partitions}
    for (member, previous_partitions), want in zip(had.items(), quotas, strict=True):
        targets[member] = set(sorted(previous_partitions & assignable)[:want])
        for partition in targets[member]:
            members_of[partition].append(member)
    for partition, members in members_of.items():
        for member in members[sharing:]:
            targets[member].remove(partition)
        del members[sharing:]
    _fill(targets, members_of, sharing, dict(zip(had, quotas, strict=True)))
    return targets


def _quotas(members: int, places: int) -> list[int]:
    """The quota of each member: `places` in all, with the remainder spread evenly."""
    bounds = [-(-places * index // members) for index in range(members + 1)]
    return [after - before for before, after in pairwise(bounds)]


def _fill(
    targets: Targets, members_of: Mapping[TopicPartition, list[str]], sharing: int, quotas: Mapping[str, int]
) -> None:
    """Assign free places in turns to members below their quota; a place that no member can take stays free."""
    below_quota = dict.fromkeys(member for member, assigned in targets.items() if len(assigned) < quotas[member])
    turns = cycle(list(below_quota))
    for partition, members in members_of.items():
        for _ in range(sharing - len(members)):
            member = _next_taker(turns, below_quota, len(quotas), targets, partition)
            if member is None:
                break
            targets[member].add(partition)
            if len(targets[member]) >= quotas[member]:
                del below_quota[member]


def _next_taker(
    turns: Iterable[str], below_quota: Mapping[str, None], most_turns: int, targets: Targets, partition: TopicPartition
) -> str | None:
    """The next member below its quota without the partition; None after a full turn."""
    for _, member in zip(range(most_turns), turns):  # noqa: B905 - the cycle never ends
        if member in below_quota and partition not in targets[member]:
            return member
    return None
