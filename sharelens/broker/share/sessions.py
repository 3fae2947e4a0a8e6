"""Share sessions (§9; kafka.server.share.SharePartitionManager, ShareSessionCache).

A session of a member remembers the partitions that it fetches, so that requests have changes only. It has no timeout:
it lives until it or its connection is closed, or a new session replaces it.
"""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from sharelens.broker.errors import BrokerError
from sharelens.broker.share.codes import ShareErrorCode

FINAL_EPOCH = -1
INITIAL_EPOCH = 0
MAX_PARTITIONS = 10_000
"""Bound of the partitions of one session, which clients add."""
_MAX_EPOCH = (1 << 31) - 1

TopicIdPartition: TypeAlias = tuple[str, int]
"""Topic id and partition."""


class ShareSessionError(BrokerError):
    """Raised when a request fits no session; `code` is its top-level error."""

    def __init__(self, code: ShareErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class ShareSession:
    """A member's session.

    Attributes:
        epoch: the epoch of the next request. waiting: callbacks at the end of the session.
    """

    __slots__ = ("connection_id", "epoch", "group_id", "is_closed", "member_id", "partitions", "waiting")

    def __init__(self, group_id: str, member_id: str, connection_id: int) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.connection_id = connection_id
        self.epoch = 1
        self.is_closed = False
        self.partitions: dict[TopicIdPartition, None] = {}
        self.waiting: dict[Callable[[], None], None] = {}

    def update(self, added: Iterable[TopicIdPartition], forgotten: Iterable[TopicIdPartition]) -> None:
        """Apply the changes of a request; partitions that are added again keep their place.

        Raises:
            ShareSessionError: INVALID_REQUEST, too many partitions.
        """
        for partition in added:
            self.partitions.setdefault(partition)
        for partition in forgotten:
            self.partitions.pop(partition, None)
        if len(self.partitions) > MAX_PARTITIONS:
            self.partitions = dict.fromkeys(list(self.partitions)[:MAX_PARTITIONS])
            raise ShareSessionError(
                ShareErrorCode.INVALID_REQUEST, f"a share session has at most {MAX_PARTITIONS} partitions"
            )

    def rotated(self) -> list[TopicIdPartition]:
        """All partitions, rotated with each request, so that none is always served last."""
        order = list(self.partitions)
        if not order:
            return order
        begin = self.epoch % len(order)
        return order[begin:] + order[:begin]


class ShareSessions:
    """All share sessions of this broker, at most `max_sessions` of them."""

    def __init__(self, max_sessions: int) -> None:
        self._max_sessions = max_sessions
        self._sessions: dict[tuple[str, str], ShareSession] = {}
        self._members: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, group_id: str, member_id: str, connection_id: int) -> ShareSession | None:
        """A new session in place of the member's old one; None when there are too many."""
        self.close(self._sessions.get((group_id, member_id)))
        if len(self._sessions) >= self._max_sessions:
            return None
        session = ShareSession(group_id, member_id, connection_id)
        self._sessions[group_id, member_id] = session
        self._members[group_id] = self._members.get(group_id, 0) + 1
        return session

    def get(self, group_id: str, member_id: str) -> ShareSession:
        """The session of a request that closes it.

        Raises:
            ShareSessionError: SHARE_SESSION_NOT_FOUND.
        """
        session = self._sessions.get((group_id, member_id))
        if session is None:
            raise ShareSessionError(
                ShareErrorCode.SHARE_SESSION_NOT_FOUND, f"member {member_id} of group {group_id} has no share session"
            )
        return session

    def go_on(self, group_id: str, member_id: str, epoch: int) -> ShareSession:
        """The session of a request; advances its epoch (1 after the largest).

        Raises:
            ShareSessionError: SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH.
        """
        session = self.get(group_id, member_id)
        if session.epoch != epoch:
            raise ShareSessionError(
                ShareErrorCode.INVALID_SHARE_SESSION_EPOCH,
                f"the share session of member {member_id} of group {group_id} is at epoch {session.epoch}, not {epoch}",
            )
        session.epoch = 1 if epoch == _MAX_EPOCH else epoch + 1
        return session

    def close(self, session: ShareSession | None) -> None:
        """End a session; without effect on an ended one and on None."""
        if session is None or session.is_closed:
            return
        session.is_closed = True
        del self._sessions[session.group_id, session.member_id]
        self._members[session.group_id] -= 1
        if self._members[session.group_id] == 0:
            del self._members[session.group_id]
        for wake in list(session.waiting):
            wake()

    def of_connection(self, connection_id: int) -> list[ShareSession]:
        """The open sessions of a connection."""
        return [session for session in self._sessions.values() if session.connection_id == connection_id]

    def has_group(self, group_id: str) -> bool:
        """Whether any member of a group has a session."""
        return group_id in self._members
