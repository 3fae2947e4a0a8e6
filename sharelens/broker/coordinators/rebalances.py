"""The rebalance of classic groups: joins, their timeouts, complete generations.

The rules are those of Kafka's GroupMetadataManager for classic groups: a rebalance waits until all known members have
joined again, at most the rebalance timeout; the first one of an empty group waits for
group.initial.rebalance.delay.ms. A generation then waits for the SyncGroup of its leader. A membership ends after its
session timeout, except while a request of the member waits for an answer.
"""

import logging
from collections.abc import Callable, Mapping

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
from sharelens.broker.coordinators.classic_records import group_key, group_value
from sharelens.broker.coordinators.group_log import GroupLog
from sharelens.broker.errors import RecordTooLargeError, StorageError
from sharelens.broker.ports import Timers

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""The session timeout of a new member until its first generation is complete."""

_log = logging.getLogger(__name__)


class Rebalances:
    """Drives the rebalances of groups: it starts their timers and writes their records."""

    def __init__(self, log: GroupLog, timers: Timers, *, initial_delay_ms: int) -> None:
        self._log = log
        self._timers = timers
        self._initial_delay_ms = initial_delay_ms

    def store(self, group: ClassicGroup, assignments: Mapping[str, bytes] | None = None) -> None:
        """Write the group's record, with these assignments instead of the members' own.

        Raises sharelens.broker.errors.StorageError or RecordTooLargeError; nothing was written then.
        """
        record = (group_key(group.group_id), group_value(group.stored(assignments)))
        self._log.append(group.group_id, [record])

    def touch(self, group: ClassicGroup, member: Member) -> None:
        """Restart the member's session."""
        member.stop_session()
        member.session = self._timers.after_ms(
            member.session_timeout_ms, lambda: self._expire(group, member, is_new=False)
        )

    def expect(self, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
        """Remember a new member id until its session timeout."""
        group.pending_joins[member_id] = self._timers.after_ms(timeout_ms, lambda: self.forget(group, member_id))

    def forget(self, group: ClassicGroup, member_id: str) -> None:
        """Remove a pending member id."""
        group.pending_joins.pop(member_id).cancel()
        self._maybe_complete_join(group)

    def add(self, group: ClassicGroup, member: Member, done: JoinDone) -> None:
        """A new member joins."""
        pending = group.pending_joins.pop(member.member_id, None)
        if pending is not None:
            pending.cancel()
        if group.is_initial_rebalance:
            group.has_newcomer = True
        group.add(member)
        member.join = done
        member.session = self._timers.after_ms(
            NEW_MEMBER_JOIN_TIMEOUT_MS, lambda: self._expire(group, member, is_new=True)
        )
        self.join_again(group)

    def rejoin(self, group: ClassicGroup, member: Member, protocols: Protocols, done: JoinDone) -> None:
        """A member joins again, perhaps with other protocols; its waiting JoinGroup is ended with an error."""
        member.protocols = protocols
        member.answer_join(JoinAnswer(error_code=ErrorCode.rebalance_in_progress, member_id=member.member_id))
        member.join = done
        self.join_again(group)

    def join_again(self, group: ClassicGroup) -> None:
        """Begin a rebalance, or complete the running one when all have joined."""
        if group.state is GroupState.PREPARING_REBALANCE:
            self._maybe_complete_join(group)
        else:
            self.prepare(group)

    def remove(self, group: ClassicGroup, member: Member) -> None:
        """Remove a member that left or timed out; the others rebalance."""
        group.remove(member.member_id)
        member.answer_join(JoinAnswer(error_code=ErrorCode.unknown_member_id))
        member.answer_sync(SyncAnswer(error_code=ErrorCode.unknown_member_id))
        self.join_again(group)

    def prepare(self, group: ClassicGroup) -> None:
        """Begin a rebalance that all members must join."""
        if group.state is GroupState.COMPLETING_REBALANCE:
            self._fail_syncs(group, ErrorCode.rebalance_in_progress)
        self._stop(group)
        group.enter(GroupState.PREPARING_REBALANCE, self._timers.now_ms())
        if group.is_initial_rebalance:
            remaining_ms = max(0, group.rebalance_timeout_ms() - self._initial_delay_ms)
            group.has_newcomer = False
            self._wait_for_newcomers(group, self._initial_delay_ms, remaining_ms)
        elif group.have_all_joined():
            self._complete_join(group)
        else:
            self._complete_join_later(group)

    def _wait_for_newcomers(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        """Extend the initial delay while new members join, at most to the rebalance timeout."""

        def look() -> None:
            if group.has_newcomer and remaining_ms > 0:
                group.has_newcomer = False
                next_ms = min(self._initial_delay_ms, remaining_ms)
                self._wait_for_newcomers(group, next_ms, max(0, remaining_ms - delay_ms))
            else:
                self._complete_join(group)

        group.join_timer = self._timers.after_ms(delay_ms, look)

    def _complete_join_later(self, group: ClassicGroup) -> None:
        group.join_timer = self._timers.after_ms(group.rebalance_timeout_ms(), lambda: self._complete_join(group))

    def _maybe_complete_join(self, group: ClassicGroup) -> None:
        is_waiting = group.state is GroupState.PREPARING_REBALANCE and not group.is_initial_rebalance
        if is_waiting and group.have_all_joined():
            self._complete_join(group)

    def _complete_join(self, group: ClassicGroup) -> None:
        """Begin the generation with the members that joined; others are removed, except static members."""
        self._stop(group)
        for member in [member for member in group.members.values() if member.join is None]:
            if member.group_instance_id is None:
                group.remove(member.member_id)
        if group.members and not group.elect_joined_leader():
            self._complete_join_later(group)
            return
        group.next_generation(self._timers.now_ms())
        if not group.members:
            self._store_empty(group)
            return
        for member in list(group.members.values()):
            self.touch(group, member)
            group.pending_syncs.add(member.member_id)
            member.answer_join(group.join_answer(member.member_id))
        self._expect_syncs(group)

    def _store_empty(self, group: ClassicGroup) -> None:
        """Write the record of a group that became empty; when the log refuses, the next record corrects it."""
        try:
            self.store(group)
        except (StorageError, RecordTooLargeError) as error:
            _log.warning("the group %s became empty, and its record was refused: %s", group.group_id, error)

    def _expect_syncs(self, group: ClassicGroup) -> None:
        def expire() -> None:
            group.sync_timer = None
            if not group.pending_syncs:
                return
            for member_id in list(group.pending_syncs):
                group.remove(member_id).answer_sync(SyncAnswer(error_code=ErrorCode.unknown_member_id))
            self.prepare(group)

        group.sync_timer = self._timers.after_ms(group.rebalance_timeout_ms(), expire)

    def synced(self, group: ClassicGroup, member: Member) -> None:
        """Note that the member has sent its SyncGroup."""
        group.pending_syncs.discard(member.member_id)
        if not group.pending_syncs and group.sync_timer is not None:
            group.sync_timer.cancel()
            group.sync_timer = None

    def complete_sync(self, group: ClassicGroup, assignments: Mapping[str, bytes]) -> None:
        """Write the leader's assignments, then answer all members; when the log refuses, they rebalance."""
        complete = {member_id: assignments.get(member_id, b"") for member_id in group.members}
        try:
            self.store(group, complete)
        except (StorageError, RecordTooLargeError) as error:
            _log.warning("the assignment of group %s was refused: %s", group.group_id, error)
            self._fail_syncs(group, ErrorCode.coordinator_not_available)
            self.prepare(group)
            return
        group.enter(GroupState.STABLE, self._timers.now_ms())
        for member in list(group.members.values()):
            member.assignment = complete[member.member_id]
            if member.sync is not None:
                self.touch(group, member)
                member.answer_sync(group.sync_answer(member))

    def _fail_syncs(self, group: ClassicGroup, error_code: ErrorCode) -> None:
        for member in list(group.members.values()):
            member.assignment = b""
            if member.sync is not None:
                self.touch(group, member)
                member.answer_sync(SyncAnswer(error_code=error_code))

    def _expire(self, group: ClassicGroup, member: Member, *, is_new: bool) -> None:
        if group.members.get(member.member_id) is not member or (member.is_waiting and not is_new):
            return
        _log.info("member %s of group %s has been silent too long", member.member_id, group.group_id)
        self.remove(group, member)

    def _stop(self, group: ClassicGroup) -> None:
        for timer in (group.join_timer, group.sync_timer):
            if timer is not None:
                timer.cancel()
        group.join_timer = group.sync_timer = None


def stop_all(group: ClassicGroup) -> None:
    """Cancel all timers of a deleted group."""
    timers: list[Callable[[], None]] = [timer.cancel for timer in group.timers()]
    for cancel in timers:
        cancel()
