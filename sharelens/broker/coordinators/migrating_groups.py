"""Consumer groups that change to and from the classic protocol while they have members, and classic members in them.

The rules are those of state_model.consumer.migration and classic_members; this part has the log and the timers. Times
for the next join and for the sync after a join end a classic member as its session does.

Kafka differs in two points: after a restart it gives classic members the session timeout of their group until their
next request, and it ends joins and syncs that wait in a classic group also when the upgrade is then refused.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

from kio.schema.errors import ErrorCode

from sharelens.broker.coordinators.classic_group import JoinAnswer, SyncAnswer, of_value
from sharelens.broker.coordinators.classic_groups import JoinRequest, MemberCall
from sharelens.broker.coordinators.classic_records import group_key, group_value
from sharelens.broker.coordinators.consumer_groups import ConsumerGroups
from sharelens.broker.coordinators.epoch_groups import GroupSurroundings, Outcome
from sharelens.broker.coordinators.group_log import KeyValue
from sharelens.broker.coordinators.member_timers import MemberTimers
from sharelens.broker.coordinators.share_group import GroupError
from state_model.consumer import classic_members, coordinator
from state_model.consumer.classic_group import ClassicGroup, classic_session_timeout_ms
from state_model.consumer.group_values import ConsumerGroup, member_metadata, uses_classic_protocol
from state_model.consumer.heartbeat import Answer, Heartbeat, HeartbeatError, check
from state_model.consumer.migration import join_classic_group, with_downgrade
from state_model.consumer.records import ASSIGNMENT
from state_model.consumer.soft_state import SoftState
from state_model.consumer_protocol import PROTOCOL_TYPE
from state_model.group_forms import name_of
from state_model.group_heartbeat import JOINING
from state_model.group_records import GroupRecord, decode_record, encode_record


class MigratingGroups(ConsumerGroups):
    """All consumer groups of this broker, with members of both protocols."""

    def __init__(self, surroundings: GroupSurroundings, **settings: Any) -> None:
        """`settings`: those of ConsumerGroups."""
        super().__init__(surroundings, **settings)
        self._joins = MemberTimers(surroundings.timers, self._session_expired)
        self._syncs = MemberTimers(surroundings.timers, self._session_expired)

    def has_generation(self, group: ConsumerGroup, member_id: str) -> bool:
        """See EpochGroups."""
        return uses_classic_protocol(group.members[member_id])

    # Members of the consumer protocol

    def heartbeat(
        self, request: Heartbeat, *, version: int, may_describe: Callable[[str], bool] = lambda name: True
    ) -> Answer:
        """See ConsumerGroups; a consumer that joins a classic group makes it a consumer group."""
        classic = self._classic_groups.get(request.group_id)
        is_upgrade = classic is not None and not self._classic_groups.is_empty(request.group_id)
        if classic is None or not is_upgrade or request.member_epoch != JOINING:
            return super().heartbeat(request, version=version, may_describe=may_describe)
        check(request, version, self._group_settings(request.group_id).machine.assignors)
        return self._upgrade(classic.value(), request._replace(member_id=request.member_id or self._new_id()))

    def _upgrade(self, classic: ClassicGroup, request: Heartbeat) -> Answer:
        """Raises HeartbeatError or GroupError: the group stays a classic one."""
        group_id = request.group_id
        settings = self._group_settings(group_id).machine
        outcome = join_classic_group(classic, request, self._metadata, settings, self._timers.now_ms())
        replaced = [encode_record(record) for record in outcome.records[:1]]
        self._accept(group_id, request.member_id, outcome._replace(records=outcome.records[1:]), replaced)
        for member_id in outcome.group.members:
            self._restart_session(group_id, member_id)
        return outcome.answer

    # Members of the classic protocol

    def join(self, request: JoinRequest) -> JoinAnswer | None:
        """JoinGroup of a classic member, answered at once; None: no consumer group of that id has members."""
        group_id = request.group_id
        group = self._groups.get(group_id)
        if group is None or not group.members:
            return None
        call = classic_members.Join(
            group_id,
            request.member_id or self._new_id(),
            request.session_timeout_ms,
            request.rebalance_timeout_ms,
            request.protocol_type,
            request.protocols,
            request.client_id,
            request.client_host,
            request.group_instance_id,
            is_new_id=not request.member_id,
            needs_known_id=request.requires_known_member,
        )
        try:
            outcome = self._joined(group, call)
        except (HeartbeatError, GroupError) as error:
            code = ErrorCode(error.code)
            is_new = code is ErrorCode.member_id_required
            return JoinAnswer(error_code=code, member_id=call.member_id if is_new else request.member_id)
        return JoinAnswer(
            member_id=call.member_id,
            generation_id=outcome.answer.member_epoch,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=request.protocols[0][0],
        )

    def _joined(self, group: ConsumerGroup, call: classic_members.Join) -> coordinator.Outcome:
        """Commits a join. Raises HeartbeatError or GroupError."""
        group_id, member_id = call.group_id, call.member_id
        soft, settings = self.soft_state(group_id), self._group_settings(group_id).machine
        outcome = classic_members.join(
            group, soft, call, self._metadata, self._topic_name, settings, self._timers.now_ms()
        )
        self._commit(group_id, member_id, outcome)
        self._joins.stop(group_id, member_id)
        if outcome.downgrade is None:
            self._restart_session(group_id, member_id)
            self._syncs.restart(group_id, member_id, call.rebalance_timeout_ms)
            self._metrics.group_rebalances[self.kind] += outcome.group.group_epoch > group.group_epoch
        return outcome

    def sync(
        self, call: MemberCall, *, protocol_type: str | None = None, protocol_name: str | None = None
    ) -> SyncAnswer:
        """SyncGroup of a classic member of a group that exists: its assignment, at once."""
        named = _named(call)._replace(protocol_type=protocol_type, protocol_name=protocol_name)
        try:
            assignment = classic_members.sync(self._groups[call.group_id], named, self._topic_name)
        except HeartbeatError as error:
            code = ErrorCode(error.code)
            if code is ErrorCode.rebalance_in_progress:
                self._await_join(call.group_id, call.member_id)
            return SyncAnswer(error_code=code)
        self._syncs.stop(call.group_id, call.member_id)
        self._restart_session(call.group_id, call.member_id)
        return SyncAnswer(protocol_type=protocol_type, protocol_name=protocol_name, assignment=assignment)

    def classic_heartbeat(self, call: MemberCall) -> ErrorCode:
        """Heartbeat of a classic member of a group that exists; after REBALANCE_IN_PROGRESS it must join again."""
        try:
            must_join = classic_members.must_rejoin(self._groups[call.group_id], _named(call))
        except HeartbeatError as error:
            return ErrorCode(error.code)
        self._restart_session(call.group_id, call.member_id)
        if not must_join:
            return ErrorCode.none
        self._await_join(call.group_id, call.member_id)
        return ErrorCode.rebalance_in_progress

    # Commits and timers

    def _commit(
        self,
        group_id: str,
        member_id: str,
        outcome: Outcome[ConsumerGroup, SoftState],
        replaced: Sequence[KeyValue] = (),
    ) -> None:
        """See EpochGroups; the removal of the last consumer makes the group a classic one."""
        after = cast(coordinator.Outcome, outcome)
        before = self._groups.get(group_id)
        if before is not None and _removed_ids(after):
            after = self._with_downgrade(group_id, before, after)
        if after.downgrade is None:
            super()._commit(group_id, member_id, after, replaced)
        else:
            classic = of_value(group_id, after.downgrade.group)
            record = decode_record(group_key(group_id), group_value(classic.stored()))
            self._append_records(group_id, (*after.records, cast(GroupRecord, record)))
            self._remove(group_id)
            self._classic_groups.adopt(classic, rebalances=after.downgrade.rebalances)
        for removed_id in _removed_ids(after):
            self._stop_timers(group_id, removed_id)

    def _with_downgrade(
        self, group_id: str, before: ConsumerGroup, outcome: coordinator.Outcome
    ) -> coordinator.Outcome:
        """Raises GroupError: the metadata of a classic member are malformed."""
        settings = self._group_settings(group_id).machine
        try:
            return with_downgrade(group_id, before, outcome, self._topic_name, settings, self._timers.now_ms())
        except HeartbeatError as error:
            raise GroupError(ErrorCode(error.code), error.text) from error

    def _stop_timers(self, group_id: str, member_id: str) -> None:
        for timers in (self._sessions, self._joins, self._syncs):
            timers.stop(group_id, member_id)
        self._end_revocation(group_id, member_id)

    def _await_join(self, group_id: str, member_id: str) -> None:
        if not self._joins.is_running(group_id, member_id):
            member = self._groups[group_id].members[member_id]
            self._joins.restart(group_id, member_id, member_metadata(member).rebalance_timeout_ms)

    def _restart_session(self, group_id: str, member_id: str) -> None:
        group = self._groups.get(group_id)
        member = None if group is None else group.members.get(member_id)
        timeout_ms = None if member is None else classic_session_timeout_ms(member)
        self._sessions.restart(group_id, member_id, timeout_ms or self.session_timeout_ms(group_id))

    def _topic_name(self, topic_id: str) -> str | None:
        topic = self._topics.by_id(topic_id)
        return None if topic is None else topic.name


def _named(call: MemberCall) -> classic_members.ClassicCall:
    return classic_members.ClassicCall(call.group_id, call.member_id, call.generation_id, call.group_instance_id)


def _removed_ids(outcome: coordinator.Outcome) -> list[str]:
    """The members that an operation removes, by its records: most operations have few, and groups many members."""
    ended = (record for record in outcome.records if record.record_type == ASSIGNMENT and record.is_tombstone)
    return [member_id for record in ended if (member_id := name_of(record)) not in outcome.group.members]
