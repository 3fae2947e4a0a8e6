"""Committed offsets: OffsetCommit, OffsetFetch, TxnOffsetCommit."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from kio.schema.errors import ErrorCode

from sharelens.broker.coordinators import epoch_offsets
from sharelens.broker.coordinators.classic_records import ZERO_TOPIC_ID, CommittedOffset
from sharelens.broker.coordinators.epoch_groups import groups_with
from sharelens.broker.handlers.classic_groups import member_call
from sharelens.broker.ports import ProducerIdentity, Topic, TopicPartition
from sharelens.broker.protocol.messages import topic_id_text
from sharelens.broker.protocol.registry import ELEMENTS_MAX_AT_ONCE, Answer, RequestContext, handles
from sharelens.broker.protocol.steps import LazyArray
from sharelens.kafka_formats.messages.api_keys import ApiKey
from state_model.group_schemas import GroupKind
from state_model.topics import OFFSETS_TOPIC

if TYPE_CHECKING:
    from sharelens.broker.broker import Broker

_TOPIC_ID_VERSION = 10
_BATCHED_VERSION = 8
_NO_TOP_ERROR_VERSION = 1
_NO_OFFSET = CommittedOffset(offset=-1)


@handles(ApiKey.OFFSET_COMMIT, (2, 10), elements_max=ELEMENTS_MAX_AT_ONCE)
def offset_commit(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """Topics by name, from version 10 on by id; missing partitions are refused, the others are committed together."""
    call = member_call(request, request.generation_id_or_member_epoch)
    has_ids = context.api_version >= _TOPIC_ID_VERSION
    offsets = _existing(broker, request.topics, has_ids=has_ids)
    codes = broker.offset_commits.commit(call, offsets, version=context.api_version)
    return {"topics": _commit_answers(broker, request.topics, codes, has_ids=has_ids)}


@handles(ApiKey.TXN_OFFSET_COMMIT, (0, 4), elements_max=ELEMENTS_MAX_AT_ONCE)
def txn_offset_commit(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """Offsets that count when the transaction commits; the group must have been added to it."""
    offsets = _existing(broker, request.topics, has_ids=False, is_transactional=True)
    partition = TopicPartition(OFFSETS_TOPIC, broker.group_log.partition_for(request.group_id))
    error = broker.transactions.verify(request.producer_id, request.producer_epoch, [partition])
    if error is ErrorCode.none:
        codes = broker.offset_commits.commit_in_transaction(
            member_call(request, getattr(request, "generation_id", -1)),
            offsets,
            ProducerIdentity(request.producer_id, request.producer_epoch),
        )
    else:
        codes = dict.fromkeys(offsets, error)
    return {"topics": _commit_answers(broker, request.topics, codes, has_ids=False)}


@handles(ApiKey.OFFSET_DELETE, (0, 0), elements_max=ELEMENTS_MAX_AT_ONCE)
def offset_delete(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """Delete committed offsets of partitions of topics to which no member subscribes."""
    requested = [
        TopicPartition(topic.name, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
    ]
    existing = [each for each in requested if broker.logs.get(each.topic, each.partition) is not None]
    error, codes = broker.offset_commits.delete(request.group_id, existing)
    if error is not ErrorCode.none:
        return {"error_code": error, "topics": []}
    unknown = ErrorCode.unknown_topic_or_partition
    topics = [
        {
            "name": topic.name,
            "partitions": [
                {
                    "partition_index": partition.partition_index,
                    "error_code": codes.get(TopicPartition(topic.name, partition.partition_index), unknown),
                }
                for partition in topic.partitions
            ],
        }
        for topic in request.topics
    ]
    return {"error_code": error, "topics": topics}


def _existing(
    broker: "Broker", topics: Iterable[Any], *, has_ids: bool, is_transactional: bool = False
) -> dict[TopicPartition, CommittedOffset]:
    """The offsets of existing partitions. Transactional commits keep no topic id."""
    now_ms = broker.timers.now_ms()
    offsets = {}
    for requested in topics:
        topic = _topic(broker, requested, has_ids=has_ids)
        for partition in requested.partitions:
            if topic is not None and 0 <= partition.partition_index < topic.partitions:
                offsets[TopicPartition(topic.name, partition.partition_index)] = CommittedOffset(
                    offset=partition.committed_offset,
                    leader_epoch=getattr(partition, "committed_leader_epoch", -1),
                    metadata=partition.committed_metadata or "",
                    commit_timestamp_ms=now_ms,
                    topic_id=ZERO_TOPIC_ID if is_transactional else topic.topic_id,
                )
    return offsets


def _commit_answers(
    broker: "Broker", topics: Iterable[Any], codes: Mapping[TopicPartition, ErrorCode], *, has_ids: bool
) -> list[Answer]:
    missing = ErrorCode.unknown_topic_id if has_ids else ErrorCode.unknown_topic_or_partition
    answers: list[Answer] = []
    for requested in topics:
        topic = _topic(broker, requested, has_ids=has_ids)
        no_topic = missing if topic is None else ErrorCode.unknown_topic_or_partition
        name = "" if topic is None else topic.name
        answers.append(
            {
                **_named(requested, has_ids=has_ids),
                "partitions": [
                    {
                        "partition_index": partition.partition_index,
                        "error_code": codes.get(TopicPartition(name, partition.partition_index), no_topic),
                    }
                    for partition in requested.partitions
                ],
            }
        )
    return answers


@handles(ApiKey.OFFSET_FETCH, (1, 10))
def offset_fetch(broker: "Broker", request: Any, context: RequestContext) -> Answer:
    """Committed offsets of groups; a partition without one has -1. From version 8 on of several groups."""
    is_stable = getattr(request, "require_stable", False)
    if context.api_version >= _BATCHED_VERSION:
        has_ids = context.api_version >= _TOPIC_ID_VERSION

        def group_offsets(group: Any) -> Answer:
            error = _membership_error(broker, group)
            if error is not ErrorCode.none:
                return {"group_id": group.group_id, "error_code": error, "topics": []}
            return _fetch(broker, group.group_id, group.topics, is_stable=is_stable, has_ids=has_ids)

        return {"groups": LazyArray(group_offsets, request.groups)}
    if context.api_version == _NO_TOP_ERROR_VERSION and _is_foreign(broker, request.group_id):
        return {"topics": [_refused(topic, ErrorCode.group_id_not_found) for topic in request.topics]}
    fetched = _fetch(broker, request.group_id, request.topics, is_stable=is_stable, has_ids=False)
    return {"error_code": fetched["error_code"], "topics": fetched["topics"]}


def _is_foreign(broker: "Broker", group_id: str) -> bool:
    return broker.group_log.ids.kind(group_id) is GroupKind.SHARE


def _membership_error(broker: "Broker", group: Any) -> ErrorCode:
    """The error of a fetch that names another member or epoch, as it can from version 9 on."""
    epoch_groups = groups_with(broker.epoch_groups, group.group_id)
    if epoch_groups is None:
        return ErrorCode.none
    member_id, member_epoch = getattr(group, "member_id", None), getattr(group, "member_epoch", -1)
    return epoch_offsets.fetch_error(epoch_groups, group.group_id, member_id, member_epoch)


def _refused(topic: Any, error: ErrorCode) -> Answer:
    partitions = [_fetched_partition(partition, _NO_OFFSET, error) for partition in topic.partition_indexes]
    return {"name": topic.name, "partitions": partitions}


def _fetch(
    broker: "Broker", group_id: str, topics: Iterable[Any] | None, *, is_stable: bool, has_ids: bool
) -> dict[str, Any]:
    if _is_foreign(broker, group_id):
        return {"group_id": group_id, "error_code": ErrorCode.group_id_not_found, "topics": []}
    offsets = broker.classic_groups.offsets
    waiting = offsets.waiting(group_id) if is_stable else set()

    def committed_offset(topic_name: str | None, partition: int) -> Answer:
        topic_partition = TopicPartition(topic_name or "", partition)
        error = ErrorCode.unknown_topic_id if topic_name is None else ErrorCode.none
        if topic_partition in waiting:
            error = ErrorCode.unstable_offset_commit
        committed = offsets.get(group_id, topic_partition) if error is ErrorCode.none else None
        return _fetched_partition(partition, committed or _NO_OFFSET, error)

    answers = [
        {**name_or_id, "partitions": LazyArray(partial(committed_offset, topic_name), partitions)}
        for name_or_id, topic_name, partitions in _requested(broker, group_id, topics, has_ids=has_ids)
    ]
    return {"group_id": group_id, "error_code": ErrorCode.none, "topics": answers}


def _fetched_partition(partition: int, committed: CommittedOffset, error: ErrorCode) -> Answer:
    return {
        "partition_index": partition,
        "committed_offset": committed.offset,
        "committed_leader_epoch": committed.leader_epoch,
        "metadata": committed.metadata,
        "error_code": error,
    }


def _requested(
    broker: "Broker", group_id: str, topics: Iterable[Any] | None, *, has_ids: bool
) -> Iterable[tuple[Answer, str | None, list[int]]]:
    """Of each topic the field that names it in the answer, its name (None for an unknown id) and its partitions.

    Null topics mean all that have committed offsets; those with one of an open transaction alone have none
    (OffsetMetadataManager.fetchAllOffsets).
    """
    if topics is not None:
        for requested in topics:
            topic = _topic(broker, requested, has_ids=True) if has_ids else None
            name = (topic.name if topic else None) if has_ids else requested.name
            yield _named(requested, has_ids=has_ids), name, list(requested.partition_indexes)
        return
    offsets = broker.classic_groups.offsets
    partitions_by_topic: dict[str, list[int]] = {}
    for topic_partition in sorted(offsets.of_group(group_id)):
        partitions_by_topic.setdefault(topic_partition.topic, []).append(topic_partition.partition)
    for name, partitions in partitions_by_topic.items():
        topic = broker.catalog.by_name(name)
        if not has_ids:
            yield {"name": name}, name, partitions
        elif topic is not None:
            yield {"topic_id": topic.topic_id}, name, partitions


def _topic(broker: "Broker", requested: Any, *, has_ids: bool) -> Topic | None:
    if not has_ids:
        topic: Topic | None = broker.catalog.by_name(requested.name)
        return topic
    topic_id = topic_id_text(requested.topic_id)
    return None if topic_id is None else broker.catalog.by_id(topic_id)


def _named(requested: Any, *, has_ids: bool) -> dict[str, Any]:
    return {"topic_id": requested.topic_id} if has_ids else {"name": requested.name}
