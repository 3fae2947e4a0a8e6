"""The group coordinator's consumer groups: kept in memory, changed after a record in `__consumer_offsets` (KIP-848).

The rules are those of state_model.consumer.coordinator; this part has the log, the timers and the regular expressions.
A classic group with members is not converted: a join to it is refused.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from kio.schema.errors import ErrorCode

from sharelens.broker.config.groups import ConsumerGroupSettings
from sharelens.broker.coordinators.epoch_groups import EpochGroups, GroupSurroundings
from sharelens.broker.coordinators.share_group import GroupError
from sharelens.broker.coordinators.topic_expressions import MISSING, has_re2, matching_topics
from sharelens.broker.ports import Handle, Topic, TopicPartition
from state_model.consumer import coordinator
from state_model.consumer.classic_members import named_member
from state_model.consumer.expressions import expressions_to_resolve
from state_model.consumer.group import apply
from state_model.consumer.group_values import ConsumerGroup, ResolvedExpression, member_assignment
from state_model.consumer.heartbeat import Answer, Heartbeat, HeartbeatError, check
from state_model.consumer.reconciliation import MemberState, Partition
from state_model.consumer.soft_state import SoftState
from state_model.consumer.targets import preferred_assignor
from state_model.group_heartbeat import JOINING, LEAVING
from state_model.group_records import GroupRecord
from state_model.group_schemas import GroupKind

NEW_SOFT_STATE: Final = SoftState()

_log = logging.getLogger(__name__)


class ConsumerGroups(EpochGroups[ConsumerGroup, SoftState]):
    """All consumer groups of this broker."""

    kind = GroupKind.CONSUMER
    unrevoked_state = MemberState.UNREVOKED_PARTITIONS

    def __init__(
        self,
        surroundings: GroupSurroundings,
        *,
        group_settings: Callable[[str], ConsumerGroupSettings],
        all_topics: Callable[[], Iterable[Topic]],
        new_id: Callable[[], str],
    ) -> None:
        """all_topics: those that exist. new_id: the id of a member whose client makes none."""
        super().__init__(surroundings)
        self._group_settings = group_settings
        self._all_topics = all_topics
        self._new_id = new_id
        self._topic_ids: set[str] = set()
        self._topics_version = 0
        self._used: dict[str, tuple[ConsumerGroup, frozenset[str]]] = {}
        self._resolutions: dict[str, Handle] = {}

    def apply(self, group: ConsumerGroup | None, record: GroupRecord) -> ConsumerGroup | None:
        """See EpochGroups."""
        return apply(group, record)

    def new_soft_state(self) -> SoftState:
        """See EpochGroups."""
        return NEW_SOFT_STATE

    def session_timeout_ms(self, group_id: str) -> int:
        """See EpochGroups."""
        return self._group_settings(group_id).session_timeout_ms

    def fenced(self, group_id: str, group: ConsumerGroup, member_id: str) -> coordinator.Outcome:
        """See EpochGroups."""
        return coordinator.fence(group_id, group, self.soft_state(group_id), member_id, self._metadata)

    def tombstones(self, group_id: str, group: ConsumerGroup) -> Iterable[GroupRecord]:
        """See EpochGroups."""
        return coordinator.group_tombstones(group_id, group)

    def assignment_epoch(self, group: ConsumerGroup, member_id: str, at: TopicPartition) -> int | None:
        """See EpochGroups."""
        topic = self._topics.by_name(at.topic)
        if topic is None:
            return None
        assignment, partition = member_assignment(group.members[member_id]), Partition(topic.topic_id, at.partition)
        return assignment.assigned.get(partition, assignment.pending.get(partition))

    def reads_topic(self, group: ConsumerGroup, topic: str) -> bool:
        """See EpochGroups."""
        return topic in group.topic_names

    def topic_changed(self, topic: Topic) -> None:
        """See EpochGroups."""
        if self._topics.by_id(topic.topic_id) is None:
            self._topic_ids.discard(topic.topic_id)
        elif topic.topic_id not in self._topic_ids:
            self._topic_ids.add(topic.topic_id)
            self._topics_version += 1
        for group_id, group in self._groups.items():
            if topic.name in group.topic_names:
                self._soft[group_id] = NEW_SOFT_STATE

    def removed(self, group_id: str) -> None:
        """See EpochGroups."""
        self._used.pop(group_id, None)
        resolution = self._resolutions.pop(group_id, None)
        if resolution is not None:
            resolution.cancel()

    def start(self) -> None:
        """After the load: see EpochGroups; topics count as new for expressions that were resolved before."""
        super().start()
        self._topic_ids.update(topic.topic_id for topic in self._all_topics())
        versions = [expression.version for _, group in self for expression in group.resolved.values()]
        self._topics_version = 1 + max(versions, default=0)
        if not has_re2() and any(group.regex_subscribers for _, group in self):
            _log.warning("regular expressions of consumer groups are not resolved: %s", MISSING)

    # Groups

    def assignor_of(self, group_id: str, group: ConsumerGroup) -> str:
        """The assignor that the members of a group prefer, else the broker's first."""
        return preferred_assignor(group, self._group_settings(group_id).machine.assignors)

    # Members

    def heartbeat(
        self, request: Heartbeat, *, version: int, may_describe: Callable[[str], bool] = lambda name: True
    ) -> Answer:
        """A member joins, stays or leaves. Raises HeartbeatError or GroupError; nothing has changed then.

        Args:
            version: of the request.
            may_describe: whether the member may see a topic that its regular expression matches.
        """
        group_id = request.group_id
        settings = self._group_settings(group_id)
        check(request, version, settings.machine.assignors)
        if request.member_epoch < JOINING:
            return self._leave(request)
        replaced = self._replaced_records(group_id, is_joining=request.member_epoch == JOINING)
        request = request._replace(member_id=request.member_id or self._new_id())
        before, now_ms = self._groups.get(group_id), self._timers.now_ms()
        soft = self.soft_state(group_id)
        outcome = coordinator.heartbeat(before, soft, request, self._metadata, settings.machine, now_ms)
        self._accept(group_id, request.member_id, outcome, replaced)
        due = expressions_to_resolve(
            {} if before is None else before.resolved,
            frozenset() if before is None else self._used_expressions(group_id, before),
            self._used_expressions(group_id, outcome.group),
            topics_version=self._topics_version,
            refresh_interval_ms=settings.regex_refresh_interval_ms,
            now_ms=now_ms,
        )
        if due and has_re2() and group_id not in self._resolutions:
            resolution = _Resolution(
                expressions=sorted(due),
                may_describe=may_describe,
                topic_names=[topic.name for topic in self._all_topics()],
                topics_version=self._topics_version,
                begun_ms=now_ms,
            )
            self._resolutions[group_id] = self._timers.after_ms(0, partial(self._resolve, group_id, resolution))
        return outcome.answer

    def _leave(self, request: Heartbeat) -> Answer:
        group = self.require(request.group_id)
        outcome = coordinator.leave(group, self.soft_state(request.group_id), request, self._metadata)
        self._commit(request.group_id, request.member_id, outcome)
        if request.member_epoch == LEAVING:
            self._sessions.stop(request.group_id, request.member_id)
        return outcome.answer._replace(member_epoch=request.member_epoch)

    def remove(self, group_id: str, members: Iterable[tuple[str, str | None]]) -> list[ErrorCode]:
        """LeaveGroup of members by member id and instance id: the code of each, in their order.

        An instance id without a member id is an administrator's removal. Raises GroupError: none is removed then.
        """
        group = self.require(group_id)
        codes, leaving = [], []
        for member_id, instance_id in members:
            try:
                leaving.append(named_member(group_id, group, member_id, instance_id))
                codes.append(ErrorCode.none)
            except HeartbeatError as error:
                codes.append(ErrorCode(error.code))
        if leaving:
            member_ids = list(dict.fromkeys(leaving))
            soft = self.soft_state(group_id)
            self._commit(group_id, "", coordinator.fence_all(group_id, group, soft, member_ids, self._metadata))
            for member_id in member_ids:
                self._sessions.stop(group_id, member_id)
                self._end_revocation(group_id, member_id)
        return codes

    # Regular expressions

    def _used_expressions(self, group_id: str, group: ConsumerGroup) -> frozenset[str]:
        """The expressions that members subscribe to, counted once for each change of a group: that takes O(members)."""
        counted = self._used.get(group_id)
        if counted is None or counted[0] is not group:
            counted = group, frozenset(group.regex_subscribers)
            self._used[group_id] = counted
        return counted[1]

    def _resolve(self, group_id: str, resolution: "_Resolution") -> None:
        """Resolve the next expression, apart from the heartbeat that needs it; other requests may come between two."""
        if resolution.expressions:
            expression = resolution.expressions.pop()
            matches = matching_topics(expression, resolution.topic_names, resolution.may_describe)
            resolved = ResolvedExpression(matches, resolution.topics_version, resolution.begun_ms)
            resolution.resolved[expression] = resolved
            self._resolutions[group_id] = self._timers.after_ms(0, partial(self._resolve, group_id, resolution))
        else:
            del self._resolutions[group_id]
            self._record_resolution(group_id, resolution.resolved)

    def _record_resolution(self, group_id: str, resolved: Mapping[str, ResolvedExpression]) -> None:
        group, soft = self._groups[group_id], self.soft_state(group_id)
        outcome = coordinator.resolve(group_id, group, soft, resolved, self._metadata, self._timers.now_ms())
        try:
            self._append_records(group_id, outcome.records)
        except GroupError:
            return
        self._groups[group_id], self._soft[group_id] = outcome.group, outcome.soft
        self._metrics.group_rebalances[self.kind] += outcome.group.group_epoch > group.group_epoch


@dataclass(slots=True, kw_only=True)
class _Resolution:
    """The expressions of a group that are still to resolve, and what the others match, as of `begun_ms`."""

    expressions: list[str]
    may_describe: Callable[[str], bool]
    topic_names: list[str]
    topics_version: int
    begun_ms: int
    resolved: dict[str, ResolvedExpression] = field(default_factory=dict)
