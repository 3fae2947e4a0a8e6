"""Administration of share groups: describe, alter and delete their offsets, delete the group (rpcs.md §4).

Every change appends a record, calls the share coordinator, and appends a second record. When the share coordinator
refuses, the first record stays, and the next call of the kind retries.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from kio.schema.errors import ErrorCode

from sharelens.broker.coordinators import share_state_partitions
from sharelens.broker.coordinators.share_group import GroupError, NamedPartitions, ShareGroup
from sharelens.broker.coordinators.share_group_records import group_tombstones
from sharelens.broker.coordinators.share_groups import ShareGroups
from sharelens.broker.ports import Logs, Persister, Topics
from state_model import answers
from state_model.share_records import NOT_DETERMINED, UNKNOWN_COUNT, SharePartitionKey

UNKNOWN_LAG = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionOffset:
    """Start offset and lag of a group in a partition; -1 for unknown."""

    partition: int
    start_offset: int = NOT_DETERMINED
    leader_epoch: int = 0
    lag: int = UNKNOWN_LAG


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicOffsets:
    """Start offsets of a group in a topic; `topic_id` is null for a topic that does not exist."""

    name: str
    topic_id: str | None
    partitions: tuple[PartitionOffset, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicErrors:
    """Error codes of a change of a topic, by partition; under None that of the whole topic."""

    name: str
    topic_id: str | None
    errors: Mapping[int | None, ErrorCode]


class ShareOffsets:
    """Admin operations on the offsets of share groups."""

    def __init__(self, groups: ShareGroups, *, topics: Topics, logs: Logs, persister: Persister) -> None:
        self._groups = groups
        self._topics = topics
        self._logs = logs
        self._persister = persister

    def describe(self, group_id: str, requested: Mapping[str, Collection[int]] | None) -> list[TopicOffsets]:
        """Start offsets and lags of requested partitions, by topic name; None means all initialized ones.

        Unknown values are -1, not an error. Raises GroupError.
        """
        group = self._groups.require(group_id)
        if requested is None:
            return [
                self._offsets_of_topic(group_id, named.name, topic_id, named.partitions)
                for topic_id, named in group.initialized.items()
            ]
        topics = []
        for name, partitions in requested.items():
            topic = self._topics.by_name(name)
            topic_id = None if topic is None else topic.topic_id
            topics.append(self._offsets_of_topic(group_id, name, topic_id, partitions))
        return topics

    def alter(self, group_id: str, offsets: Mapping[str, Mapping[int, int]]) -> list[TopicErrors]:
        """Set start offsets of an empty group, by topic name and partition; they are not checked against the log.

        A group that does not exist is created. Raises GroupError.
        """
        group = self._groups.get_or_new(group_id)
        _require_empty(group)
        starts: dict[tuple[str, int], int] = {}
        partitions: dict[str, NamedPartitions] = {}
        for name, new_offsets in offsets.items():
            topic = self._topics.by_name(name)
            if topic is None:
                continue
            existing_partitions = [partition for partition in new_offsets if 0 <= partition < topic.partitions]
            if existing_partitions:
                starts |= {(topic.topic_id, partition): new_offsets[partition] for partition in existing_partitions}
                partitions[topic.topic_id] = NamedPartitions(name=name, partitions=frozenset(existing_partitions))
        errors: Mapping[tuple[str, int], answers.ErrorCode] = {}
        if partitions:
            self._groups.commit(group_id, [share_state_partitions.begin_initializing(group, partitions)])
            errors = self._groups.initialize_state(group_id, group.epoch, starts)
        return [self._altered(name, new_offsets, errors) for name, new_offsets in offsets.items()]

    def delete_offsets(self, group_id: str, names: Iterable[str]) -> list[TopicErrors]:
        """Delete the offsets of an empty group in whole topics. Raises GroupError."""
        group = self._groups.require(group_id)
        _require_empty(group)
        topics = {name: self._topics.by_name(name) for name in dict.fromkeys(names)}
        names_by_id = {
            topic.topic_id: name
            for name, topic in topics.items()
            if topic is not None and (topic.topic_id in group.initialized or topic.topic_id in group.deleting)
        }
        results = {}
        if names_by_id:
            places = _state_of(group, names_by_id, self._topics)
            self._groups.commit(group_id, [share_state_partitions.begin_deleting(group, names_by_id.keys())])
            results = self._delete_state(group_id, places)
            gone = [topic_id for topic_id in names_by_id if results.get(topic_id, ErrorCode.none) is ErrorCode.none]
            if gone:
                record = share_state_partitions.end_deleting(self._groups.require(group_id), gone)
                self._groups.commit(group_id, [record])
        return [
            TopicErrors(
                name=name,
                topic_id=None if topic is None else topic.topic_id,
                errors={
                    None: results.get(topic.topic_id, ErrorCode.none)
                    if topic is not None and topic.topic_id in names_by_id
                    else ErrorCode.unknown_topic_or_partition
                },
            )
            for name, topic in topics.items()
        ]

    def delete_group(self, group_id: str) -> None:
        """Delete an empty group and all of its state. Raises GroupError."""
        group = self._groups.require(group_id)
        _require_empty(group)
        topic_ids = group.initializing.keys() | group.initialized.keys() | group.deleting.keys()
        if topic_ids:
            places = _state_of(group, topic_ids, self._topics)
            self._groups.commit(group_id, [share_state_partitions.begin_deleting(group, topic_ids)])
            failed = [code for code in self._delete_state(group_id, places).values() if code is not ErrorCode.none]
            if failed:
                raise GroupError(failed[0], f"The state of group {group_id} could not be deleted.")
        self._groups.commit(group_id, group_tombstones(self._groups.require(group_id)))

    def _offsets_of_topic(
        self, group_id: str, name: str, topic_id: str | None, partitions: Collection[int]
    ) -> TopicOffsets:
        offsets = tuple(
            PartitionOffset(partition=partition) if topic_id is None else self._offset(group_id, topic_id, partition)
            for partition in sorted(partitions)
        )
        return TopicOffsets(name=name, topic_id=topic_id, partitions=offsets)

    def _offset(self, group_id: str, topic_id: str, partition: int) -> PartitionOffset:
        key = SharePartitionKey(group_id=group_id, topic_id=topic_id, partition=partition)
        summary = self._persister.read_summary(key)
        if summary.error_code or summary.start_offset == NOT_DETERMINED:
            return PartitionOffset(partition=partition)
        log = self._logs.by_id(topic_id, partition)
        count = summary.delivery_complete_count
        lag = UNKNOWN_LAG
        if log is not None and count != UNKNOWN_COUNT:
            lag = log.high_watermark - summary.start_offset - count
        return PartitionOffset(
            partition=partition, start_offset=summary.start_offset, leader_epoch=summary.leader_epoch, lag=lag
        )

    def _altered(
        self, name: str, partitions: Iterable[int], errors: Mapping[tuple[str, int], answers.ErrorCode]
    ) -> TopicErrors:
        topic = self._topics.by_name(name)
        topic_id = None if topic is None else topic.topic_id
        unknown = answers.ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        codes: dict[int | None, ErrorCode] = {
            partition: ErrorCode(errors.get((topic_id or "", partition), unknown).value) for partition in partitions
        }
        return TopicErrors(name=name, topic_id=topic_id, errors=codes)

    def _delete_state(self, group_id: str, places: Iterable[tuple[str, int]]) -> dict[str, ErrorCode]:
        """DeleteShareGroupState for partitions; of each topic the first error."""
        results: dict[str, ErrorCode] = {}
        for topic_id, partition in places:
            code = self._persister.delete(SharePartitionKey(group_id=group_id, topic_id=topic_id, partition=partition))
            if results.get(topic_id, ErrorCode.none) is ErrorCode.none:
                results[topic_id] = ErrorCode(code.value)
        return results


def _require_empty(group: ShareGroup) -> None:
    if group.members:
        raise GroupError(ErrorCode.non_empty_group, f"Group {group.group_id} is not empty.")


def _state_of(group: ShareGroup, topic_ids: Collection[str], topics: Topics) -> list[tuple[str, int]]:
    """The partitions of topics that may have state: all of a topic that is being deleted."""
    places: set[tuple[str, int]] = set()
    for topic_id in topic_ids:
        topic = topics.by_id(topic_id)
        if topic is None:
            continue
        for listed in (group.initializing, group.initialized):
            if topic_id in listed:
                places |= {(topic_id, partition) for partition in listed[topic_id].partitions}
        if topic_id in group.deleting:
            places |= {(topic_id, partition) for partition in range(topic.partitions)}
    return sorted(places)
