"""Permission to commit offsets, and their retention (Kafka's OffsetMetadataManager).

A group's members commit in their generation; a request without member and generation commits for a group without
members, which need not exist.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from kio.schema.errors import ErrorCode

from sharelens.broker.coordinators import epoch_offsets
from sharelens.broker.coordinators.classic_group import ClassicGroup, GroupState
from sharelens.broker.coordinators.classic_groups import MAX_GROUPS, ClassicGroups, MemberCall, member_error
from sharelens.broker.coordinators.epoch_groups import AnyEpochGroups, EpochGroup, groups_with
from sharelens.broker.coordinators.group_log import GroupLog
from sharelens.broker.coordinators.group_offsets import Offsets
from sharelens.broker.errors import RecordTooLargeError, StorageError
from sharelens.broker.ports import ProducerIdentity, Timers, TopicPartition
from state_model.consumer_protocol import PROTOCOL_TYPE, subscribed_topics
from state_model.group_schemas import GroupKind

_log = logging.getLogger(__name__)

Codes = dict[TopicPartition, ErrorCode]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetSettings:
    """The broker's configuration for committed offsets: offset.metadata.max.bytes, offsets.retention.minutes and
    offsets.retention.check.interval.ms.
    """

    metadata_max_bytes: int = 4_096
    retention_ms: int = 604_800_000
    retention_check_interval_ms: int = 600_000


class OffsetCommits:
    """Commits offsets to `groups.offsets` and expires them."""

    def __init__(
        self,
        log: GroupLog,
        groups: ClassicGroups,
        kinds: Sequence[AnyEpochGroups],
        timers: Timers,
        settings: OffsetSettings | None = None,
    ) -> None:
        """`kinds`: the groups whose members have epochs."""
        self._log = log
        self._groups = groups
        self._kinds = kinds
        self._offsets = groups.offsets
        self._timers = timers
        self._settings = settings or OffsetSettings()

    def start(self) -> None:
        """After the replay: start the periodic check for expired offsets."""
        self._timers.after_ms(self._settings.retention_check_interval_ms, self._look_after_expiry)

    def commit(self, call: MemberCall, offsets: Offsets, *, version: int = 9) -> Codes:
        """OffsetCommit in a version of the API, of existing partitions; a code for each."""
        group_id = call.group_id
        epoch_groups = groups_with(self._kinds, group_id)
        if epoch_groups is not None:
            error = epoch_offsets.commit_error(epoch_groups, call, self._fitting(offsets), version=version)
        else:
            error = self._commit_error(call, version)
            if error is ErrorCode.none:
                group = self._groups.ensure(group_id)
                if call.member_id in group.members:
                    self._groups.touch(group, call.member_id)
        return self._store(offsets, error, lambda fitting: self._offsets.commit(group_id, fitting))

    def commit_in_transaction(self, call: MemberCall, offsets: Offsets, producer: ProducerIdentity) -> Codes:
        """TxnOffsetCommit: the offsets count when the producer's transaction commits; a code for each partition."""
        group_id = call.group_id
        epoch_groups = groups_with(self._kinds, group_id)
        if epoch_groups is not None:
            error = epoch_offsets.transactional_error(epoch_groups, call, self._fitting(offsets))
        else:
            error = self._transactional_error(call)
            if error is ErrorCode.none:
                self._groups.ensure(group_id)
        return self._store(
            offsets, error, lambda fitting: self._offsets.commit_in_transaction(group_id, fitting, producer)
        )

    def _fitting(self, offsets: Offsets) -> Offsets:
        """The offsets whose metadata is not too large."""
        limit = self._settings.metadata_max_bytes
        return {at: committed for at, committed in offsets.items() if len(committed.metadata) <= limit}

    def _store(self, offsets: Offsets, error: ErrorCode, store: Callable[[Offsets], None]) -> Codes:
        """Store the offsets unless the commit is refused as a whole; the code of each."""
        if error is not ErrorCode.none:
            return dict.fromkeys(offsets, error)
        codes = dict.fromkeys(offsets, ErrorCode.offset_metadata_too_large)
        fitting = self._fitting(offsets)
        try:
            store(fitting)
        except RecordTooLargeError:
            error = ErrorCode.invalid_commit_offset_size
        except StorageError as refused:
            _log.warning("offsets could not be committed: %s", refused)
            error = ErrorCode.coordinator_not_available
        codes.update(dict.fromkeys(fitting, error))
        return codes

    def _commit_error(self, call: MemberCall, version: int) -> ErrorCode:
        if self._is_foreign(call.group_id):
            return ErrorCode.group_id_not_found
        group = self._groups.get(call.group_id)
        if group is None:
            if call.generation_id < 0:
                return self._new_group_error()
            return ErrorCode.group_id_not_found if version >= 9 else ErrorCode.illegal_generation
        if _is_nobody(call) and group.state is not GroupState.EMPTY:
            return ErrorCode.unknown_member_id
        error = _committer_error(group, call)
        if error is ErrorCode.none and group.state is GroupState.COMPLETING_REBALANCE:
            return ErrorCode.rebalance_in_progress
        return error

    def _transactional_error(self, call: MemberCall) -> ErrorCode:
        if self._is_foreign(call.group_id):
            return ErrorCode.group_id_not_found
        group = self._groups.get(call.group_id)
        if group is None:
            return self._new_group_error() if call.generation_id < 0 else ErrorCode.illegal_generation
        return _committer_error(group, call)

    def _new_group_error(self) -> ErrorCode:
        return ErrorCode.coordinator_not_available if len(self._groups) >= MAX_GROUPS else ErrorCode.none

    def _is_foreign(self, group_id: str) -> bool:
        return self._log.ids.kind(group_id) not in (None, GroupKind.CLASSIC)

    def delete(self, group_id: str, topic_partitions: Iterable[TopicPartition]) -> tuple[ErrorCode, Codes]:
        """OffsetDelete of existing partitions: an error of the whole request, or a code for each partition."""
        epoch_groups = groups_with(self._kinds, group_id)
        if epoch_groups is not None:
            reads_topic = partial(epoch_groups.reads_topic, epoch_groups.require(group_id))
            return self._delete(group_id, topic_partitions, reads_topic)
        group = self._groups.get(group_id)
        if group is None or self._is_foreign(group_id):
            return ErrorCode.group_id_not_found, {}
        if group.state is not GroupState.EMPTY and group.protocol_type != PROTOCOL_TYPE:
            return ErrorCode.non_empty_group, {}
        return self._delete(group_id, topic_partitions, partial(_is_subscribed, group))

    def _delete(
        self, group_id: str, topic_partitions: Iterable[TopicPartition], is_subscribed: Callable[[str], bool]
    ) -> tuple[ErrorCode, Codes]:
        codes = {
            at: ErrorCode.group_subscribed_to_topic if is_subscribed(at.topic) else ErrorCode.none
            for at in topic_partitions
        }
        doomed = {at for at, code in codes.items() if code is ErrorCode.none}
        if doomed and not self._forget(group_id, doomed):
            return ErrorCode.coordinator_not_available, {}
        return ErrorCode.none, codes

    def topic_deleted(self, topic: str) -> None:
        """Delete the offsets of all groups for a deleted topic."""
        for group_id, topic_partitions in self._offsets.of_topic(topic).items():
            self._forget(group_id, topic_partitions)

    def _forget(self, group_id: str, topic_partitions: set[TopicPartition]) -> bool:
        """Whether the offsets were deleted; the log may refuse the tombstones."""
        try:
            self._log.append(group_id, self._offsets.tombstones(group_id, topic_partitions))
        except (StorageError, RecordTooLargeError) as error:
            _log.warning("offsets of group %s could not be removed: %s", group_id, error)
            return False
        self._offsets.forget(group_id, topic_partitions)
        return True

    def _look_after_expiry(self) -> None:
        for group in self._groups:
            if group.state is GroupState.EMPTY and not group.pending_joins:
                self._expire(group)
        for epoch_groups in self._kinds:
            for group_id, epoch_group in epoch_groups:
                self._expire_epoch_group(epoch_groups, group_id, epoch_group)
        self._timers.after_ms(self._settings.retention_check_interval_ms, self._look_after_expiry)

    def _expire(self, group: ClassicGroup) -> None:
        """Delete the expired offsets of an empty group, and the group when it has no offsets left."""
        self._expire_offsets(group.group_id, since_ms=group.state_since_ms)
        if not self._has_offsets(group.group_id):
            self._groups.delete(group.group_id)

    def _expire_epoch_group(self, epoch_groups: AnyEpochGroups, group_id: str, group: EpochGroup) -> None:
        """Delete expired offsets by their commit time, but those of topics that members read; then an empty group."""
        self._expire_offsets(group_id, is_kept=partial(epoch_groups.reads_topic, group))
        if not group.members and not self._has_offsets(group_id):
            epoch_groups.delete(group_id)

    def _expire_offsets(
        self, group_id: str, *, since_ms: int = 0, is_kept: Callable[[str], bool] = lambda topic: False
    ) -> None:
        """Delete the offsets that were committed too long ago; none of a topic that `is_kept` protects.

        since_ms: the time counts from here at the earliest.
        """
        expired_ms = self._timers.now_ms() - self._settings.retention_ms
        waiting = self._offsets.waiting(group_id)
        old = {
            at
            for at, committed in self._offsets.of_group(group_id).items()
            if at not in waiting
            and max(committed.commit_timestamp_ms, since_ms) <= expired_ms
            and not is_kept(at.topic)
        }
        if old:
            self._forget(group_id, old)

    def _has_offsets(self, group_id: str) -> bool:
        return bool(self._offsets.waiting(group_id) or self._offsets.of_group(group_id))


def _is_subscribed(group: ClassicGroup, topic: str) -> bool:
    """Whether a member subscribes to a topic; true for metadata that can't be read."""
    for member in group.members.values():
        for _, metadata in member.protocols:
            topics = subscribed_topics(metadata)
            if topics is None or topic in topics:
                return True
    return False


def _is_nobody(call: MemberCall) -> bool:
    return call.generation_id < 0 and not call.member_id and call.group_instance_id is None


def _committer_error(group: ClassicGroup, call: MemberCall) -> ErrorCode:
    """The error of a request that names a generation, a member or an instance, but no current member."""
    if _is_nobody(call) or (call.generation_id < 0 and group.state is GroupState.EMPTY):
        return ErrorCode.none
    error = member_error(group, call.member_id, call.group_instance_id)
    if error is ErrorCode.none and call.generation_id != group.generation:
        return ErrorCode.illegal_generation
    return error
