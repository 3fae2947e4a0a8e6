"""The group coordinator for classic groups: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, DeleteGroups.

The rules and error codes are those of Kafka's GroupMetadataManager. A join or a sync that must wait for others is
answered through its callback, perhaps within the call. Everything else is answered at once.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from uuid import uuid4

from kio.schema.errors import ErrorCode

from sharelens.broker.coordinators.classic_group import (
    ClassicGroup,
    GroupState,
    JoinAnswer,
    JoinDone,
    Member,
    Protocols,
    SyncAnswer,
    SyncDone,
    restored,
)
from sharelens.broker.coordinators.classic_records import GROUP_METADATA, group_key, read_group
from sharelens.broker.coordinators.group_log import GroupLog
from sharelens.broker.coordinators.group_offsets import GroupOffsets
from sharelens.broker.coordinators.rebalances import Rebalances, stop_all
from sharelens.broker.coordinators.static_members import Return, StaticMembers
from sharelens.broker.errors import RecordTooLargeError, StorageError
from sharelens.broker.ports import Timers
from state_model.group_records import GroupRecord
from state_model.group_schemas import GroupKind

MAX_GROUPS = 100_000
MAX_PENDING_JOINS = 10_000
"""Bounds of groups and pending member ids, which clients create: requests above them are refused."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicGroupSettings:
    """The broker's configuration for classic groups, under Kafka's names with `_` for `.`."""

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2_147_483_647


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRequest:
    """A JoinGroup. `requires_known_member` (version 4 on): a new member first gets an id and joins again with it;
    `can_skip_assignment` (version 9 on): a static leader that joins again need not compute the assignment.
    """

    group_id: str
    member_id: str
    group_instance_id: str | None = None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    requires_known_member: bool = True
    can_skip_assignment: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberCall:
    """The sender of SyncGroup, Heartbeat and OffsetCommit; generation -1 without a member id means no membership."""

    group_id: str
    member_id: str
    generation_id: int
    group_instance_id: str | None = None


class ClassicGroups:
    """All classic groups and all committed offsets of this broker."""

    def __init__(
        self,
        log: GroupLog,
        timers: Timers,
        settings: ClassicGroupSettings | None = None,
        new_id: Callable[[], str] = lambda: str(uuid4()),
    ) -> None:
        self.offsets = GroupOffsets(log)
        self._log = log
        self._timers = timers
        self._settings = settings or ClassicGroupSettings()
        self._new_id = new_id
        self._groups: dict[str, ClassicGroup] = {}
        self._rebalances = Rebalances(log, timers, initial_delay_ms=self._settings.group_initial_rebalance_delay_ms)
        self._static = StaticMembers(self._rebalances, new_id)
        self.replace_foreign: Callable[[str], bool] = lambda group_id: False
        """Ends an empty group of another kind, whose id a classic group takes; whether it did."""
        self.join_foreign: Callable[[JoinRequest], JoinAnswer | None] = lambda request: None
        """The answer of a consumer group that has members; None: there is none."""

    # Load

    def replay(self, record: GroupRecord) -> None:
        """Apply a record of `__consumer_offsets` outside of open transactions."""
        if record.record_type == GROUP_METADATA:
            self._replay_group(record)
        else:
            self.offsets.replay(record)

    def _replay_group(self, record: GroupRecord) -> None:
        if record.is_tombstone:
            self._groups.pop(record.group_id, None)
            self._log.ids.release(record.group_id, GroupKind.CLASSIC)
            return
        stored = read_group(record)
        if stored is not None:
            self._groups[record.group_id] = restored(record.group_id, stored)

    def start(self) -> None:
        """After the replay: members of stable groups get a full session timeout."""
        for group_id in self.offsets.groups():
            if self._log.ids.kind(group_id) in (None, GroupKind.CLASSIC):
                self.ensure(group_id)
        for group in self._groups.values():
            for member in group.members.values():
                self._rebalances.touch(group, member)
            self._log.ids.claim(group.group_id, GroupKind.CLASSIC)

    # Membership

    def join(self, request: JoinRequest, done: JoinDone) -> None:
        """JoinGroup; `done` gets the answer when the generation is complete, or at once."""
        error = self._join_error(request)
        is_foreign = error is ErrorCode.inconsistent_group_protocol
        if is_foreign and (answer := self.join_foreign(request)) is not None:
            done(answer)
            return
        if is_foreign and self.replace_foreign(request.group_id):
            error = self._join_error(request)
        if error is not ErrorCode.none:
            done(JoinAnswer(error_code=error, member_id=request.member_id))
            return
        group = self._groups.get(request.group_id)
        if group is None:
            group = self.ensure(request.group_id)
            if not self._is_stored(group):
                self._remove(group)
                done(JoinAnswer(error_code=ErrorCode.coordinator_not_available))
                return
        if not group.supports(request.protocol_type, [name for name, _ in request.protocols]):
            done(JoinAnswer(error_code=ErrorCode.inconsistent_group_protocol, member_id=request.member_id))
        elif not self._has_room(group, request.member_id):
            done(JoinAnswer(error_code=ErrorCode.group_max_size_reached, member_id=request.member_id))
        elif request.member_id:
            self._join_known(group, request, done)
        else:
            self._join_new(group, request, done)

    def _is_stored(self, group: ClassicGroup) -> bool:
        try:
            self._rebalances.store(group)
        except (StorageError, RecordTooLargeError) as error:
            _log.warning("the group %s could not be created: %s", group.group_id, error)
            return False
        return True

    def _join_error(self, request: JoinRequest) -> ErrorCode:
        settings = self._settings
        session_ms = request.session_timeout_ms
        if not request.group_id:
            return ErrorCode.invalid_group_id
        if not settings.group_min_session_timeout_ms <= session_ms <= settings.group_max_session_timeout_ms:
            return ErrorCode.invalid_session_timeout
        if self._log.ids.kind(request.group_id) not in (None, GroupKind.CLASSIC):
            return ErrorCode.inconsistent_group_protocol
        if request.group_id not in self._groups:
            if request.member_id:
                return ErrorCode.unknown_member_id
            if len(self._groups) >= MAX_GROUPS:
                return ErrorCode.coordinator_not_available
        return ErrorCode.none

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        if not member_id and len(group.pending_joins) >= MAX_PENDING_JOINS:
            return False
        if group.state is GroupState.EMPTY:
            return True
        if group.state is not GroupState.PREPARING_REBALANCE:
            return member_id in group.members or len(group.members) < self._settings.group_max_size
        joined = [joined_id for joined_id, member in group.members.items() if member.join is not None]
        return member_id in joined or len(joined) < self._settings.group_max_size

    def _join_new(self, group: ClassicGroup, request: JoinRequest, done: JoinDone) -> None:
        if request.group_instance_id is not None and request.group_instance_id in group.static_members:
            self._static.take_back(group, _return(request, request.group_instance_id), done)
            return
        member_id = f"{request.group_instance_id or request.client_id}-{self._new_id()}"
        if request.requires_known_member and request.group_instance_id is None:
            self._rebalances.expect(group, member_id, request.session_timeout_ms)
            done(JoinAnswer(error_code=ErrorCode.member_id_required, member_id=member_id))
        else:
            self._add(group, request, member_id, done)

    def _join_known(self, group: ClassicGroup, request: JoinRequest, done: JoinDone) -> None:
        if request.member_id in group.pending_joins and request.group_instance_id is None:
            self._add(group, request, request.member_id, done)
            return
        error = member_error(group, request.member_id, request.group_instance_id)
        if error is not ErrorCode.none:
            done(JoinAnswer(error_code=error, member_id=request.member_id))
            return
        member = group.members[request.member_id]
        is_same = member.protocols == request.protocols
        may_stay = group.state is GroupState.COMPLETING_REBALANCE or (
            group.state is GroupState.STABLE and member.member_id != group.leader
        )
        if is_same and may_stay:
            done(group.join_answer(member.member_id))
            return
        member.session_timeout_ms = request.session_timeout_ms
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        self._rebalances.rejoin(group, member, request.protocols, done)

    def _add(self, group: ClassicGroup, request: JoinRequest, member_id: str, done: JoinDone) -> None:
        if not group.members:
            group.protocol_type = request.protocol_type
        member = Member(
            member_id=member_id,
            group_instance_id=request.group_instance_id,
            client_id=request.client_id,
            client_host=request.client_host,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocols=request.protocols,
        )
        self._rebalances.add(group, member, done)

    def sync(
        self,
        call: MemberCall,
        assignments: Mapping[str, bytes],
        done: SyncDone,
        *,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
    ) -> None:
        """SyncGroup; `done` gets the assignment when the leader has sent it, or at once."""
        group = self._groups.get(call.group_id)
        error = self._call_error(group, call)
        if error is not ErrorCode.none or group is None:
            done(SyncAnswer(error_code=error))
            return
        is_other_type = protocol_type is not None and protocol_type != group.protocol_type
        if is_other_type or (protocol_name is not None and protocol_name != group.protocol_name):
            done(SyncAnswer(error_code=ErrorCode.inconsistent_group_protocol))
        elif group.state is GroupState.PREPARING_REBALANCE:
            done(SyncAnswer(error_code=ErrorCode.rebalance_in_progress))
        else:
            self._sync(group, group.members[call.member_id], assignments, done)

    def _sync(self, group: ClassicGroup, member: Member, assignments: Mapping[str, bytes], done: SyncDone) -> None:
        self._rebalances.synced(group, member)
        if group.state is GroupState.STABLE:
            done(group.sync_answer(member))
            return
        member.answer_sync(SyncAnswer(error_code=ErrorCode.rebalance_in_progress))
        member.sync = done
        if member.member_id == group.leader:
            self._rebalances.complete_sync(group, assignments)

    def heartbeat(self, call: MemberCall) -> ErrorCode:
        """Heartbeat; after REBALANCE_IN_PROGRESS the member must join again."""
        group = self._groups.get(call.group_id)
        error = self._call_error(group, call)
        if error is not ErrorCode.none or group is None:
            return error
        self._rebalances.touch(group, group.members[call.member_id])
        if group.state is GroupState.PREPARING_REBALANCE:
            return ErrorCode.rebalance_in_progress
        return ErrorCode.none

    def _call_error(self, group: ClassicGroup | None, call: MemberCall) -> ErrorCode:
        if not call.group_id:
            return ErrorCode.invalid_group_id
        if group is None:
            return ErrorCode.unknown_member_id
        error = member_error(group, call.member_id, call.group_instance_id)
        if error is ErrorCode.none and call.generation_id != group.generation:
            return ErrorCode.illegal_generation
        return error

    def leave(self, group_id: str, member_id: str, group_instance_id: str | None = None) -> ErrorCode:
        """LeaveGroup of one member. An instance id without a member id is an administrator's removal."""
        group = self._groups.get(group_id)
        if not group_id:
            return ErrorCode.invalid_group_id
        if group is None:
            return ErrorCode.unknown_member_id
        if not member_id and group_instance_id is not None:
            member_id = group.static_members.get(group_instance_id, "")
        elif member_id in group.pending_joins:
            self._rebalances.forget(group, member_id)
            return ErrorCode.none
        error = member_error(group, member_id, group_instance_id)
        if error is ErrorCode.none:
            self._rebalances.remove(group, group.members[member_id])
        return error

    def touch(self, group: ClassicGroup, member_id: str) -> None:
        """Restart the session of a member after a request other than a heartbeat."""
        self._rebalances.touch(group, group.members[member_id])

    # Groups as a whole

    def get(self, group_id: str) -> ClassicGroup | None:
        """A group; None when there is none."""
        return self._groups.get(group_id)

    def __len__(self) -> int:
        return len(self._groups)

    def __iter__(self) -> Iterator[ClassicGroup]:
        return iter(list(self._groups.values()))

    def delete(self, group_id: str) -> ErrorCode:
        """DeleteGroups of one group: its offsets and its record are deleted; a group with members is refused."""
        group = self._groups.get(group_id)
        if group is None:
            return ErrorCode.group_id_not_found
        if group.state is not GroupState.EMPTY:
            return ErrorCode.non_empty_group
        try:
            self._log.append(group_id, [*self.offsets.tombstones(group_id), (group_key(group_id), None)])
        except (StorageError, RecordTooLargeError) as error:
            _log.warning("the group %s could not be deleted: %s", group_id, error)
            return ErrorCode.coordinator_not_available
        self.offsets.forget(group_id)
        self._remove(group)
        return ErrorCode.none

    def is_empty(self, group_id: str) -> bool:
        """Whether a group has no members; those that may still join with the id they got do not count, as in Kafka."""
        group = self._groups.get(group_id)
        return group is not None and group.state is GroupState.EMPTY

    def discard(self, group_id: str) -> None:
        """Forget a group whose tombstone was appended; its offsets stay, and requests that wait are ended."""
        self._remove(group := self._groups[group_id])
        for member in group.members.values():
            member.answer_join(JoinAnswer(error_code=ErrorCode.rebalance_in_progress, member_id=member.member_id))
            member.answer_sync(SyncAnswer(error_code=ErrorCode.rebalance_in_progress))

    def adopt(self, group: ClassicGroup, *, rebalances: bool) -> None:
        """Take over a group that was a consumer group, after its record; perhaps it rebalances at once."""
        self._groups[group.group_id] = group
        self._log.ids.claim(group.group_id, GroupKind.CLASSIC)
        for member in group.members.values():
            self._rebalances.touch(group, member)
        if rebalances:
            self._rebalances.prepare(group)

    def ensure(self, group_id: str) -> ClassicGroup:
        """The classic group of an id, a new one when the id is free."""
        group = self._groups.get(group_id)
        if group is None:
            group = ClassicGroup(group_id=group_id, state_since_ms=self._timers.now_ms())
            self._groups[group_id] = group
            self._log.ids.claim(group_id, GroupKind.CLASSIC)
        return group

    def _remove(self, group: ClassicGroup) -> None:
        stop_all(group)
        del self._groups[group.group_id]
        self._log.ids.release(group.group_id, GroupKind.CLASSIC)


def member_error(group: ClassicGroup, member_id: str, group_instance_id: str | None) -> ErrorCode:
    """The error of a request that names no current member: UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID."""
    if group_instance_id is not None:
        static_member_id = group.static_members.get(group_instance_id)
        if static_member_id is not None and static_member_id != member_id:
            return ErrorCode.fenced_instance_id
    if member_id not in group.members:
        return ErrorCode.unknown_member_id
    return ErrorCode.none


def _return(request: JoinRequest, group_instance_id: str) -> Return:
    return Return(
        group_instance_id=group_instance_id,
        client_id=request.client_id,
        client_host=request.client_host,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        protocols=request.protocols,
        can_skip_assignment=request.can_skip_assignment,
    )
