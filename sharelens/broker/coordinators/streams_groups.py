"""The group coordinator's streams groups: kept in memory, changed after a record in `__consumer_offsets` (KIP-1071).

The rules are those of state_model.streams.coordinator; this part has the log, the timers and the internal topics.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Protocol

from kio.schema.errors import ErrorCode

from sharelens.broker.config.groups import StreamsGroupSettings
from sharelens.broker.coordinators.classic_records import group_key
from sharelens.broker.coordinators.group_log import GroupLog, KeyValue
from sharelens.broker.coordinators.group_offsets import GroupOffsets
from sharelens.broker.coordinators.internal_topics import InternalTopics
from sharelens.broker.coordinators.member_timers import MemberTimers
from sharelens.broker.coordinators.share_group import GroupError
from sharelens.broker.errors import RecordTooLargeError, StorageError
from sharelens.broker.metrics import BrokerMetrics
from sharelens.broker.ports import Handle, Timers, Topic, Topics
from state_model.group_heartbeat import JOINING, LEAVING
from state_model.group_records import GroupRecord, encode_record
from state_model.group_schemas import GroupKind
from state_model.streams import coordinator
from state_model.streams.group import apply
from state_model.streams.heartbeat import Answer, Heartbeat, check, check_topic_names
from state_model.streams.soft_state import SoftState
from state_model.streams.topology import Status, StatusCode, TopicMetadata, required_topics
from state_model.streams.values import MemberState, StreamsGroup
from state_model.uuids import uuid_bytes

_log = logging.getLogger(__name__)


class ReplaceableGroups(Protocol):
    """Classic groups, which a streams group of the same id may replace while they are empty."""

    def is_empty(self, group_id: str) -> bool:
        """Whether the group has no members and expects none."""

    def discard(self, group_id: str) -> None:
        """Forget the group after its tombstone; its offsets stay."""


class StreamsGroups:
    """All streams groups of this broker."""

    def __init__(
        self,
        *,
        log: GroupLog,
        topics: Topics,
        timers: Timers,
        group_settings: Callable[[str], StreamsGroupSettings],
        offsets: GroupOffsets,
        classic_groups: ReplaceableGroups,
        internal_topics: InternalTopics,
        rack: str = "",
        metrics: BrokerMetrics | None = None,
    ) -> None:
        """`rack` is that of the broker, whose replicas are the only ones; empty without one."""
        self._log = log
        self._topics = topics
        self._timers = timers
        self._group_settings = group_settings
        self._offsets = offsets
        self._classic_groups = classic_groups
        self._internal_topics = internal_topics
        self._racks = (rack,) if rack else ()
        self._metrics = metrics or BrokerMetrics()
        self._groups: dict[str, StreamsGroup] = {}
        self._soft: dict[str, SoftState] = {}
        self._sessions = MemberTimers(timers, self._session_expired)
        self._revocations: dict[tuple[str, str], Handle] = {}
        self._delays: dict[str, Handle] = {}

    # Load

    def replay(self, record: GroupRecord) -> None:
        """Apply a record of a streams group (sharelens.broker.coordinators.group_log.Replay)."""
        group = apply(self._groups.get(record.group_id), record)
        if group is None:
            self._remove(record.group_id)
        else:
            self._groups[record.group_id] = group

    def start(self) -> None:
        """After the load: all members get a full session, and their whole time to revoke tasks."""
        for group_id, group in self._groups.items():
            self._log.ids.claim(group_id, GroupKind.STREAMS)
            for member_id, member in group.members.items():
                self._restart_session(group_id, member_id)
                assignment = member.assignment
                if (
                    assignment is not None
                    and assignment.state == MemberState.UNREVOKED_TASKS
                    and member.metadata is not None
                ):
                    self._await_revocation(
                        group_id, member_id, assignment.member_epoch, member.metadata.rebalance_timeout_ms
                    )

    # Groups

    def get(self, group_id: str) -> StreamsGroup | None:
        """A streams group; None when there is none of that id."""
        return self._groups.get(group_id)

    def soft_state(self, group_id: str) -> SoftState:
        """The state of a group that its records do not have."""
        return self._soft.get(group_id, SoftState())

    def __iter__(self) -> Iterator[tuple[str, StreamsGroup]]:
        return iter(list(self._groups.items()))

    def __len__(self) -> int:
        return len(self._groups)

    def delete(self, group_id: str) -> ErrorCode:
        """DeleteGroups of one group: its offsets and its records are deleted; a group with members is refused."""
        group = self._groups.get(group_id)
        if group is None:
            return ErrorCode.group_id_not_found
        if group.members:
            return ErrorCode.non_empty_group
        ended = [*self._offsets.tombstones(group_id), *map(encode_record, coordinator.group_tombstones(group_id))]
        try:
            self._append(group_id, ended)
        except GroupError as error:
            return error.code
        self._offsets.forget(group_id)
        self._remove(group_id)
        return ErrorCode.none

    def replace_by_classic(self, group_id: str) -> bool:
        """End a group without members, whose id a classic group takes; its offsets stay. Whether that was possible."""
        group = self._groups.get(group_id)
        if group is None or group.members:
            return False
        try:
            self._append(group_id, [encode_record(record) for record in coordinator.group_tombstones(group_id)])
        except GroupError:
            return False
        self._remove(group_id)
        return True

    def _remove(self, group_id: str) -> None:
        if self._groups.pop(group_id, None) is not None:
            self._soft.pop(group_id, None)
            delay = self._delays.pop(group_id, None)
            if delay is not None:
                delay.cancel()
            self._log.ids.release(group_id, GroupKind.STREAMS)

    # Members

    def heartbeat(self, request: Heartbeat, may_create: Callable[[str], bool] = lambda name: True) -> Answer:
        """A member joins, stays or leaves. Raises HeartbeatError or GroupError; nothing has changed then.

        may_create: whether the member may create the internal topic of a name.
        """
        if request.topology is not None:
            check_topic_names(request.topology)
        check(request)
        group_id, group = request.group_id, self._groups.get(request.group_id)
        if request.member_epoch == LEAVING:
            return self._leave(request)
        replaced = self._replaced_records(request)
        settings = self._group_settings(group_id)
        outcome = coordinator.heartbeat(
            group, self.soft_state(group_id), request, self._metadata, settings.machine, self._timers.now_ms()
        )
        self._commit(group_id, request.member_id, outcome, replaced)
        self._metrics.streams_group_rebalances += group is None or outcome.group.group_epoch > group.group_epoch
        self._restart_session(group_id, request.member_id)
        if outcome.starts_delay:
            delay_ms = settings.machine.initial_rebalance_delay_ms
            self._delays[group_id] = self._timers.after_ms(delay_ms, partial(self._end_delay, group_id))
        return self._with_internal_topics(outcome, may_create)

    def _leave(self, request: Heartbeat) -> Answer:
        group = self._groups.get(request.group_id)
        if group is None:
            group_kind = self._log.ids.kind(request.group_id)
            problem = "not found." if group_kind is None else "is not a streams group."
            raise GroupError(ErrorCode.group_id_not_found, f"Group {request.group_id} {problem}")
        outcome = coordinator.leave(group, self.soft_state(request.group_id), request)
        self._commit(request.group_id, request.member_id, outcome)
        self._sessions.stop(request.group_id, request.member_id)
        return outcome.answer

    def _replaced_records(self, request: Heartbeat) -> list[KeyValue]:
        """The tombstone of an empty classic group that a join replaces. Raises GroupError for groups of other kinds."""
        group_id = request.group_id
        kind = self._log.ids.kind(group_id)
        if kind in (None, GroupKind.STREAMS):
            return []
        is_replaceable = kind is GroupKind.CLASSIC and self._classic_groups.is_empty(group_id)
        if request.member_epoch != JOINING or not is_replaceable:
            raise GroupError(ErrorCode.group_id_not_found, f"Group {group_id} is not a streams group.")
        return [(group_key(group_id), None)]

    def _commit(
        self, group_id: str, member_id: str, outcome: coordinator.Outcome, replaced: Sequence[KeyValue] = ()
    ) -> None:
        """Append the records of an operation as one batch; then its state and its timers are in force."""
        self._append(group_id, [*replaced, *map(encode_record, outcome.records)])
        if replaced:
            self._classic_groups.discard(group_id)
        self._groups[group_id], self._soft[group_id] = outcome.group, outcome.soft
        self._log.ids.claim(group_id, GroupKind.STREAMS)
        if outcome.ends_revocation or outcome.revocation is not None:
            self._end_revocation(group_id, member_id)
        if outcome.revocation is not None:
            self._await_revocation(group_id, member_id, *outcome.revocation)

    def _append(self, group_id: str, records: Sequence[KeyValue]) -> None:
        """Raises GroupError: UNKNOWN_SERVER_ERROR for too large records, COORDINATOR_NOT_AVAILABLE for a bad log."""
        try:
            self._log.append(group_id, records)
        except RecordTooLargeError as error:
            raise GroupError(ErrorCode.unknown_server_error, f"The change fits into no batch: {error}") from error
        except StorageError as error:
            _log.warning("could not record a change of the streams group %s: %s", group_id, error)
            raise GroupError(ErrorCode.coordinator_not_available, "The change could not be recorded.") from error

    # Topics

    def topic_changed(self, topic: Topic) -> None:
        """A topic was created, changed or deleted: the next heartbeat of groups that need it looks at their topics."""
        for group_id, group in self._groups.items():
            if group.topology is not None and topic.name in required_topics(group.topology):
                self._soft[group_id] = self.soft_state(group_id)._replace(is_stale=True)

    def _metadata(self, name: str) -> TopicMetadata | None:
        topic = self._topics.by_name(name)
        if topic is None:
            return None
        return TopicMetadata(topic.name, uuid_bytes(topic.topic_id), topic.partitions, self._racks)

    def _with_internal_topics(self, outcome: coordinator.Outcome, may_create: Callable[[str], bool]) -> Answer:
        """The answer; missing internal topics are created after it, and what failed before is in the status.

        None is created when the member may not create one of them (KafkaApis.handleStreamsGroupHeartbeat).
        """
        configured = outcome.soft.configured
        if configured is None or not configured.missing_topics:
            return outcome.answer
        interval_ms = outcome.answer.heartbeat_interval_ms
        refused = [topic.name for topic in configured.missing_topics if not may_create(topic.name)]
        if refused:
            problems = f"; Unauthorized to CREATE on topics {', '.join(refused)}."
        else:
            problems = self._internal_topics.problems(configured.missing_topics)
            self._internal_topics.create_later(configured.missing_topics, remember_ms=2 * interval_ms)
        statuses = tuple(
            Status(status.code, status.detail + problems)
            if status.code is StatusCode.MISSING_INTERNAL_TOPICS
            else status
            for status in outcome.answer.statuses
        )
        return outcome.answer._replace(statuses=statuses)

    # Timers

    def _restart_session(self, group_id: str, member_id: str) -> None:
        self._sessions.restart(group_id, member_id, self._group_settings(group_id).session_timeout_ms)

    def _session_expired(self, group_id: str, member_id: str) -> None:
        if not self._fence(group_id, member_id, "its session expired"):
            self._restart_session(group_id, member_id)

    def _await_revocation(self, group_id: str, member_id: str, member_epoch: int, timeout_ms: int) -> None:
        expired = partial(self._revocation_expired, group_id, member_id, member_epoch, timeout_ms)
        self._revocations[group_id, member_id] = self._timers.after_ms(timeout_ms, expired)

    def _end_revocation(self, group_id: str, member_id: str) -> None:
        handle = self._revocations.pop((group_id, member_id), None)
        if handle is not None:
            handle.cancel()

    def _revocation_expired(self, group_id: str, member_id: str, member_epoch: int, timeout_ms: int) -> None:
        del self._revocations[group_id, member_id]
        group = self._groups.get(group_id)
        assignment = None if group is None or member_id not in group.members else group.members[member_id].assignment
        if assignment is None or assignment.member_epoch != member_epoch:
            return
        if self._fence(group_id, member_id, "it did not revoke its tasks in time"):
            self._sessions.stop(group_id, member_id)
        else:
            self._await_revocation(group_id, member_id, member_epoch, timeout_ms)

    def _fence(self, group_id: str, member_id: str, why: str) -> bool:
        """Whether the end of a member could be recorded; true when there is no such member."""
        group = self._groups.get(group_id)
        if group is None or member_id not in group.members:
            return True
        _log.info("member %s of the streams group %s ends: %s", member_id, group_id, why)
        try:
            self._commit(group_id, member_id, coordinator.fence(group_id, group, self.soft_state(group_id), member_id))
        except GroupError:
            return False
        return True

    def _end_delay(self, group_id: str) -> None:
        del self._delays[group_id]
        group = self._groups[group_id]
        soft = self.soft_state(group_id)._replace(is_delayed=False)
        settings = self._group_settings(group_id).machine
        self._soft[group_id] = soft
        records = coordinator.delayed_target(group_id, group, soft, settings, self._timers.now_ms())
        try:
            self._append(group_id, [encode_record(record) for record in records])
        except GroupError:
            return
        for record in records:
            self.replay(record)
