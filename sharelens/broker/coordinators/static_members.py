"""Members with an instance id (KIP-345): one that joins again under a new member id keeps its place.

Its old id is fenced. A stable group needs no rebalance as long as its protocol stays the same.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from kio.schema.errors import ErrorCode

from sharelens.broker.coordinators.classic_group import (
    ClassicGroup,
    GroupState,
    JoinAnswer,
    JoinDone,
    Member,
    Protocols,
    SyncAnswer,
)
from sharelens.broker.coordinators.rebalances import Rebalances
from sharelens.broker.errors import RecordTooLargeError, StorageError

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Return:
    """The join of a static member with a new member id."""

    group_instance_id: str
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    can_skip_assignment: bool


class StaticMembers:
    """Handles static members that join again."""

    def __init__(self, rebalances: Rebalances, new_id: Callable[[], str]) -> None:
        self._rebalances = rebalances
        self._new_id = new_id

    def take_back(self, group: ClassicGroup, back: Return, done: JoinDone) -> None:
        """Replace the member id of the instance."""
        old_id = group.static_members[back.group_instance_id]
        member = group.members[old_id]
        before = replace(member)
        led = group.leader
        fenced = ErrorCode.fenced_instance_id
        member.answer_join(JoinAnswer(error_code=fenced, member_id=old_id))
        member.answer_sync(SyncAnswer(error_code=fenced))
        group.rename(member, f"{back.group_instance_id}-{self._new_id()}")
        member.client_id, member.client_host = back.client_id, back.client_host
        member.session_timeout_ms = back.session_timeout_ms
        member.rebalance_timeout_ms = back.rebalance_timeout_ms
        member.protocols = back.protocols
        if group.state is not GroupState.STABLE or group.choose_protocol() != group.protocol_name:
            self._rebalances.rejoin(group, member, back.protocols, done)
        elif not self._is_stored(group):
            _restore(group, member, before)
            done(JoinAnswer(error_code=ErrorCode.coordinator_not_available))
        else:
            self._rebalances.touch(group, member)
            done(_answer(group, member, led, can_skip=back.can_skip_assignment))

    def _is_stored(self, group: ClassicGroup) -> bool:
        try:
            self._rebalances.store(group)
        except (StorageError, RecordTooLargeError) as error:
            _log.warning("a member of group %s could not come back: %s", group.group_id, error)
            return False
        return True


def _restore(group: ClassicGroup, member: Member, before: Member) -> None:
    group.rename(member, before.member_id)
    member.client_id, member.client_host = before.client_id, before.client_host
    member.session_timeout_ms = before.session_timeout_ms
    member.rebalance_timeout_ms = before.rebalance_timeout_ms
    member.protocols = before.protocols


def _answer(group: ClassicGroup, member: Member, led: str | None, *, can_skip: bool) -> JoinAnswer:
    """The answer with the current generation. A leader whose version can't skip the assignment gets the old leader's
    id, so that it computes no assignment.
    """
    if can_skip:
        return group.join_answer(member.member_id, skip_assignment=member.member_id == group.leader)
    return replace(group.join_answer(member.member_id), leader=led or "", members=())
