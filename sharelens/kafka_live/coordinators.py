"""What the coordinators of groups say: FindCoordinator, ShareGroupDescribe, StreamsGroupDescribe and
DescribeShareGroupOffsets.

FindCoordinator creates __consumer_offsets where there is none, so send it only once the topic exists. It is sent for
groups alone: the coordinator of share state (type 2) is a matter between brokers, and needs CLUSTER_ACTION.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from kafka.protocol.metadata import FindCoordinatorRequest

from sharelens.kafka_formats.messages.api_keys import ApiKey
from sharelens.kafka_live.connection import Connection
from sharelens.kafka_live.group_now import GroupNow, MemberNow, OffsetNow, SharePartition
from sharelens.kafka_live.kio_messages import KioRequest
from state_model.uuids import uuid_text

OF_GROUPS, WITH_MANY_KEYS = 0, 4
"""The type of a coordinator of groups, and the first version of FindCoordinator that takes several of them."""
TASK_TYPES = ("active", "standby", "warmup")
Result = TypeVar("Result")


class Coordinators:
    """The group coordinators of a cluster. Groups that they do not describe are left out of all answers."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def nodes(self, groups: Iterable[str]) -> Mapping[str, int]:
        """The node that coordinates each group.

        Raises:
            ClusterError: the cluster does not answer.
        """
        keys = sorted(set(groups))
        if not keys:
            return {}
        request = FindCoordinatorRequest(
            key_type=OF_GROUPS, coordinator_keys=keys, min_version=WITH_MANY_KEYS, max_version=WITH_MANY_KEYS
        )
        return self._connection.ask(
            self._connection.nodes()[0],
            request,
            lambda answer: {each.key: each.node_id for each in answer.coordinators if not each.error_code},
        )

    def share_groups(self, groups: Iterable[str]) -> Mapping[str, GroupNow]:
        """The share groups by id. Raises ClusterError."""

        def request(ids: Sequence[str]) -> KioRequest:
            return KioRequest(ApiKey.SHARE_GROUP_DESCRIBE, (1, 1), {"group_ids": ids})

        return dict(self._described(groups, request, lambda each: [(each.group_id, _group(each, _of_partitions))]))

    def consumer_groups(self, groups: Iterable[str]) -> Mapping[str, GroupNow]:
        """The consumer groups by id. Raises ClusterError."""

        def request(ids: Sequence[str]) -> KioRequest:
            return KioRequest(ApiKey.CONSUMER_GROUP_DESCRIBE, (0, 1), {"group_ids": ids})

        return dict(self._described(groups, request, lambda each: [(each.group_id, _group(each, _of_partitions))]))

    def streams_groups(self, groups: Iterable[str]) -> Mapping[str, GroupNow]:
        """The streams groups by id. Raises ClusterError."""

        def request(ids: Sequence[str]) -> KioRequest:
            return KioRequest(ApiKey.STREAMS_GROUP_DESCRIBE, (0, 0), {"group_ids": ids})

        return dict(self._described(groups, request, lambda each: [(each.group_id, _group(each, _of_tasks))]))

    def offsets(self, groups: Iterable[str]) -> Mapping[SharePartition, OffsetNow]:
        """The initialized share partitions of groups. Raises ClusterError."""

        def request(ids: Sequence[str]) -> KioRequest:
            whole_groups = [{"group_id": name, "topics": None} for name in ids]
            return KioRequest(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, (0, 1), {"groups": whole_groups})

        return dict(self._described(groups, request, _offsets))

    def _described(
        self,
        groups: Iterable[str],
        request: Callable[[Sequence[str]], KioRequest],
        of_group: Callable[[Any], Iterable[Result]],
    ) -> Iterator[Result]:
        """What `of_group` makes of each group of the answers to a request for the groups of each coordinator."""
        of_node: dict[int, list[str]] = defaultdict(list)
        for group, node in self.nodes(groups).items():
            of_node[node].append(group)
        requests = {node: request(names) for node, names in of_node.items()}

        def described(answer: Any) -> list[Result]:
            return [each for group in answer.groups if not group.error_code for each in of_group(group)]

        for results in self._connection.ask_all(requests, described).values() if requests else ():
            yield from results


def _group(described: Any, assigned: Callable[[Any], frozenset[tuple[object, ...]]]) -> GroupNow:
    members = {
        member.member_id: MemberNow(member.member_epoch, assigned(member.assignment)) for member in described.members
    }
    return GroupNow(described.group_state, described.group_epoch, described.assignment_epoch, members)


def _offsets(group: Any) -> list[tuple[SharePartition, OffsetNow]]:
    return [
        (
            SharePartition(group.group_id, uuid_text(topic.topic_id.bytes), partition.partition_index),
            OffsetNow(partition.start_offset, _lag(partition)),
        )
        for topic in group.topics
        for partition in topic.partitions
        if not partition.error_code and topic.topic_id is not None
    ]


def _of_partitions(assignment: Any) -> frozenset[tuple[object, ...]]:
    return frozenset(
        (uuid_text(topic.topic_id.bytes), int(number))
        for topic in assignment.topic_partitions
        for number in topic.partitions
    )


def _of_tasks(assignment: Any) -> frozenset[tuple[object, ...]]:
    return frozenset(
        (kind, tasks.subtopology_id, int(number))
        for kind in TASK_TYPES
        for tasks in getattr(assignment, f"{kind}_tasks")
        for number in tasks.partitions
    )


def _lag(partition: Any) -> int | None:
    lag = getattr(partition, "lag", -1)
    return None if lag < 0 else int(lag)
