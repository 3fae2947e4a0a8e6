"""Session timeouts of group members with few timers: a heartbeat only moves a deadline."""

from collections.abc import Callable

from sharelens.broker.ports import Handle, Timers


class _Session:
    __slots__ = ("deadline_ms", "fires_ms", "handle")

    def __init__(self, deadline_ms: int, handle: Handle) -> None:
        self.deadline_ms = deadline_ms
        self.fires_ms = deadline_ms
        self.handle = handle


class MemberTimers:
    """Calls `expired(group_id, member_id)` for members whose session timed out.

    A heartbeat only moves the deadline; the timer fires at the old deadline and is restarted for the rest.
    """

    def __init__(self, timers: Timers, expired: Callable[[str, str], None]) -> None:
        self._timers = timers
        self._expired = expired
        self._sessions: dict[tuple[str, str], _Session] = {}

    def restart(self, group_id: str, member_id: str, timeout_ms: int) -> None:
        """Restart the session of a member."""
        session = self._sessions.get((group_id, member_id))
        deadline_ms = self._timers.now_ms() + timeout_ms
        if session is not None and session.fires_ms <= deadline_ms:
            session.deadline_ms = deadline_ms
            return
        self.stop(group_id, member_id)
        self._sessions[group_id, member_id] = _Session(deadline_ms, self._set(group_id, member_id, timeout_ms))

    def is_running(self, group_id: str, member_id: str) -> bool:
        """Whether the time of a member is measured."""
        return (group_id, member_id) in self._sessions

    def stop(self, group_id: str, member_id: str) -> None:
        """End the session of a member."""
        session = self._sessions.pop((group_id, member_id), None)
        if session is not None:
            session.handle.cancel()

    def _set(self, group_id: str, member_id: str, delay_ms: int) -> Handle:
        return self._timers.after_ms(delay_ms, lambda: self._fired(group_id, member_id))

    def _fired(self, group_id: str, member_id: str) -> None:
        session = self._sessions[group_id, member_id]
        left_ms = session.deadline_ms - self._timers.now_ms()
        if left_ms > 0:
            session.fires_ms = session.deadline_ms
            session.handle = self._set(group_id, member_id, left_ms)
        else:
            del self._sessions[group_id, member_id]
            self._expired(group_id, member_id)
