"""The group coordinator's streams groups: kept in memory, changed after a record in `__consumer_offsets` (KIP-1071).

The rules are those of state_model.streams.coordinator; this part has the log, the timers and the internal topics.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from sharelens.broker.config.groups import StreamsGroupSettings
from sharelens.broker.coordinators.epoch_groups import EpochGroups, GroupSurroundings
from sharelens.broker.coordinators.internal_topics import InternalTopics
from sharelens.broker.coordinators.share_group import GroupError
from sharelens.broker.ports import Handle, Topic, TopicPartition
from state_model.group_heartbeat import JOINING, LEAVING
from state_model.group_records import GroupRecord
from state_model.group_schemas import GroupKind
from state_model.streams import coordinator
from state_model.streams.group import apply
from state_model.streams.heartbeat import Answer, Heartbeat, check, check_topic_names
from state_model.streams.soft_state import SoftState
from state_model.streams.topology import Status, StatusCode, input_topics, required_topics
from state_model.streams.values import MemberState, StreamsGroup, TaskId

NEW_SOFT_STATE: Final = SoftState()


class StreamsGroups(EpochGroups[StreamsGroup, SoftState]):
    """All streams groups of this broker."""

    kind = GroupKind.STREAMS
    unrevoked_state = MemberState.UNREVOKED_TASKS

    def __init__(
        self,
        surroundings: GroupSurroundings,
        *,
        group_settings: Callable[[str], StreamsGroupSettings],
        internal_topics: InternalTopics,
    ) -> None:
        super().__init__(surroundings)
        self._group_settings = group_settings
        self._internal_topics = internal_topics
        self._delays: dict[str, Handle] = {}

    def apply(self, group: StreamsGroup | None, record: GroupRecord) -> StreamsGroup | None:
        """See EpochGroups."""
        return apply(group, record)

    def new_soft_state(self) -> SoftState:
        """See EpochGroups."""
        return NEW_SOFT_STATE

    def session_timeout_ms(self, group_id: str) -> int:
        """See EpochGroups."""
        return self._group_settings(group_id).session_timeout_ms

    def fenced(self, group_id: str, group: StreamsGroup, member_id: str) -> coordinator.Outcome:
        """See EpochGroups."""
        return coordinator.fence(group_id, group, self.soft_state(group_id), member_id)

    def tombstones(self, group_id: str, group: StreamsGroup) -> Iterable[GroupRecord]:
        """See EpochGroups."""
        return coordinator.group_tombstones(group_id)

    def assignment_epoch(self, group: StreamsGroup, member_id: str, at: TopicPartition) -> int | None:
        """The earliest epoch of the member's active tasks that read the partition; None without one."""
        assignment = group.members[member_id].assignment
        if assignment is None:
            return None
        tasks = assignment.assigned.active | assignment.pending.active
        readers = {TaskId(name, at.partition) for name in _readers(group, at.topic)}
        return min((assignment.active_assignment_epochs[task] for task in readers & tasks), default=None)

    def reads_topic(self, group: StreamsGroup, topic: str) -> bool:
        """See EpochGroups."""
        return bool(group.members) and bool(_readers(group, topic))

    def topic_changed(self, topic: Topic) -> None:
        """See EpochGroups."""
        for group_id, group in self._groups.items():
            if group.topology is not None and topic.name in required_topics(group.topology):
                self._soft[group_id] = self.soft_state(group_id)._replace(is_stale=True)

    def removed(self, group_id: str) -> None:
        """See EpochGroups."""
        delay = self._delays.pop(group_id, None)
        if delay is not None:
            delay.cancel()

    # Members

    def heartbeat(self, request: Heartbeat, may_create: Callable[[str], bool] = lambda name: True) -> Answer:
        """A member joins, stays or leaves. Raises HeartbeatError or GroupError; nothing has changed then.

        may_create: whether the member may create the internal topic of a name.
        """
        if request.topology is not None:
            check_topic_names(request.topology)
        check(request)
        group_id = request.group_id
        if request.member_epoch == LEAVING:
            return self._leave(request)
        replaced = self._replaced_records(group_id, is_joining=request.member_epoch == JOINING)
        settings = self._group_settings(group_id).machine
        outcome = coordinator.heartbeat(
            self._groups.get(group_id),
            self.soft_state(group_id),
            request,
            self._metadata,
            settings,
            self._timers.now_ms(),
        )
        self._accept(group_id, request.member_id, outcome, replaced)
        if outcome.starts_delay:
            delay_ms = settings.initial_rebalance_delay_ms
            self._delays[group_id] = self._timers.after_ms(delay_ms, partial(self._end_delay, group_id))
        return self._with_internal_topics(outcome, may_create)

    def _leave(self, request: Heartbeat) -> Answer:
        group = self.require(request.group_id)
        outcome = coordinator.leave(group, self.soft_state(request.group_id), request)
        self._commit(request.group_id, request.member_id, outcome)
        self._sessions.stop(request.group_id, request.member_id)
        return outcome.answer

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

    def _end_delay(self, group_id: str) -> None:
        del self._delays[group_id]
        group = self._groups[group_id]
        soft = self.soft_state(group_id)._replace(is_delayed=False)
        settings = self._group_settings(group_id).machine
        self._soft[group_id] = soft
        records = coordinator.delayed_target(group_id, group, soft, settings, self._timers.now_ms())
        try:
            self._append_records(group_id, records)
        except GroupError:
            return
        for record in records:
            self.replay(record)


def _readers(group: StreamsGroup, topic: str) -> list[str]:
    """The subtopologies that read a topic."""
    subtopologies = () if group.topology is None else group.topology.subtopologies
    return [each.subtopology_id for each in subtopologies if topic in input_topics(each)]
