"""Groups whose members have epochs: kept in memory, changed after a record in `__consumer_offsets` (KIP-848, KIP-1071).

The rules of a kind are pure functions of state_model; this part has what consumer and streams groups share: the log,
the timers of sessions and of revocations, and the end of groups.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar

from kio.schema.errors import ErrorCode

from sharelens.broker.coordinators.classic_group import ClassicGroup
from sharelens.broker.coordinators.classic_records import group_key
from sharelens.broker.coordinators.group_log import GroupLog, KeyValue
from sharelens.broker.coordinators.group_offsets import GroupOffsets
from sharelens.broker.coordinators.member_timers import MemberTimers
from sharelens.broker.coordinators.share_group import GroupError
from sharelens.broker.coordinators.topic_metadata import topic_metadata
from sharelens.broker.errors import RecordTooLargeError, StorageError
from sharelens.broker.metrics import BrokerMetrics
from sharelens.broker.ports import Handle, Timers, Topic, TopicPartition, Topics
from state_model.group_records import GroupRecord, encode_record
from state_model.group_schemas import GroupKind
from state_model.group_topics import TopicMetadata

_log = logging.getLogger(__name__)


class ReplaceableGroups(Protocol):
    """Classic groups, which a group of the same id may replace while they are empty."""

    def is_empty(self, group_id: str) -> bool:
        """Whether the group has no members."""

    def get(self, group_id: str) -> ClassicGroup | None:
        """A group; None when there is none."""

    def adopt(self, group: ClassicGroup, *, rebalances: bool) -> None:
        """Take over a group of another kind, after its record."""

    def discard(self, group_id: str) -> None:
        """Forget the group after its tombstone; its offsets stay."""


class MemberAssignment(Protocol):
    """The current assignment of a member."""

    @property
    def state(self) -> int:
        """Its state."""

    @property
    def member_epoch(self) -> int:
        """Its epoch."""


class MemberMetadata(Protocol):
    """What a member said of itself."""

    @property
    def rebalance_timeout_ms(self) -> int:
        """The time in which it must revoke what it lost."""


class Member(Protocol):
    """A member; a part is None before its record."""

    @property
    def metadata(self) -> MemberMetadata | None:
        """What it said of itself."""

    @property
    def assignment(self) -> MemberAssignment | None:
        """What it has."""


class GroupState(Protocol):
    """The state of a group."""

    @property
    def value(self) -> str:
        """The name that Kafka prints."""


class EpochGroup(Protocol):
    """A group of one kind."""

    @property
    def members(self) -> Mapping[str, Member]:
        """By member id."""

    @property
    def group_epoch(self) -> int:
        """Its epoch."""

    @property
    def state(self) -> GroupState:
        """Its state."""


G = TypeVar("G", bound=EpochGroup)
S = TypeVar("S")
G_co = TypeVar("G_co", covariant=True)
S_co = TypeVar("S_co", covariant=True)


class Outcome(Protocol[G_co, S_co]):
    """The result of an operation of a member."""

    @property
    def records(self) -> tuple[GroupRecord, ...]:
        """To append as one operation."""

    @property
    def group(self) -> G_co:
        """The group after them."""

    @property
    def soft(self) -> S_co:
        """Its state without records after them."""

    @property
    def revocation(self) -> tuple[int, int] | None:
        """Member epoch and time of a revocation that begins; None: none does."""

    @property
    def ends_revocation(self) -> bool:
        """Whether the member has revoked what it lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSurroundings:
    """What groups of all kinds rest on. `rack` is that of the broker, whose replicas are the only ones; empty: none."""

    log: GroupLog
    topics: Topics
    timers: Timers
    offsets: GroupOffsets
    classic_groups: ReplaceableGroups
    rack: str = ""
    metrics: BrokerMetrics = field(default_factory=BrokerMetrics)


class EpochGroups(ABC, Generic[G, S]):
    """All groups of one kind."""

    kind: ClassVar[GroupKind]
    unrevoked_state: ClassVar[int]
    """The state of members that must revoke what they lost."""

    def __init__(self, surroundings: GroupSurroundings) -> None:
        self._log = surroundings.log
        self._topics = surroundings.topics
        self._timers = surroundings.timers
        self._offsets = surroundings.offsets
        self._classic_groups = surroundings.classic_groups
        self._metrics = surroundings.metrics
        self._racks = (surroundings.rack,) if surroundings.rack else ()
        self._groups: dict[str, G] = {}
        self._soft: dict[str, S] = {}
        self._sessions = MemberTimers(surroundings.timers, self._session_expired)
        self._revocations: dict[tuple[str, str], Handle] = {}

    # The rules of a kind

    @abstractmethod
    def apply(self, group: G | None, record: GroupRecord) -> G | None:
        """The group after a record of its kind; None: no such group."""

    @abstractmethod
    def new_soft_state(self) -> S:
        """The state of a group that its records do not have, after a restart."""

    @abstractmethod
    def session_timeout_ms(self, group_id: str) -> int:
        """The silence after which a member of a group has left."""

    @abstractmethod
    def fenced(self, group_id: str, group: G, member_id: str) -> Outcome[G, S]:
        """The outcome of removing a member."""

    @abstractmethod
    def tombstones(self, group_id: str, group: G) -> Iterable[GroupRecord]:
        """The tombstones of a group without members."""

    def has_generation(self, group: G, member_id: str) -> bool:
        """Whether a member is one of the classic protocol, whose generation is its epoch."""
        return False

    @abstractmethod
    def assignment_epoch(self, group: G, member_id: str, at: TopicPartition) -> int | None:
        """The epoch since which a member has a partition, perhaps still to revoke; None: it hasn't."""

    @abstractmethod
    def reads_topic(self, group: G, topic: str) -> bool:
        """Whether members of a group read a topic: its offsets must stay."""

    @abstractmethod
    def topic_changed(self, topic: Topic) -> None:
        """A topic was created, changed or deleted: the next heartbeat of groups that need it looks at their topics."""

    def removed(self, group_id: str) -> None:
        """A group is gone: forget what belongs to it."""

    # Load

    def replay(self, record: GroupRecord) -> None:
        """Apply a record of a group (sharelens.broker.coordinators.group_log.Replay)."""
        group = self.apply(self._groups.get(record.group_id), record)
        if group is None:
            self._remove(record.group_id)
        else:
            self._groups[record.group_id] = group

    def start(self) -> None:
        """After the load: all members get a full session, and their whole time to revoke what they lost."""
        for group_id, group in self._groups.items():
            self._log.ids.claim(group_id, self.kind)
            for member_id, member in group.members.items():
                self._restart_session(group_id, member_id)
                metadata, assignment = member.metadata, member.assignment
                if assignment is not None and assignment.state == self.unrevoked_state and metadata is not None:
                    self._await_revocation(group_id, member_id, assignment.member_epoch, metadata.rebalance_timeout_ms)

    # Groups

    def get(self, group_id: str) -> G | None:
        """A group; None when there is none of that id."""
        return self._groups.get(group_id)

    def require(self, group_id: str) -> G:
        """A group. Raises GroupError with GROUP_ID_NOT_FOUND."""
        group = self._groups.get(group_id)
        if group is None:
            problem = "not found." if self._log.ids.kind(group_id) is None else f"is not a {self.kind.value} group."
            raise GroupError(ErrorCode.group_id_not_found, f"Group {group_id} {problem}")
        return group

    def soft_state(self, group_id: str) -> S:
        """The state of a group that its records do not have."""
        soft = self._soft.get(group_id)
        return self.new_soft_state() if soft is None else soft

    def __iter__(self) -> Iterator[tuple[str, G]]:
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
        try:
            self._append_records(group_id, self.tombstones(group_id, group), self._offsets.tombstones(group_id))
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
            self._append_records(group_id, self.tombstones(group_id, group))
        except GroupError:
            return False
        self._remove(group_id)
        return True

    def _remove(self, group_id: str) -> None:
        if self._groups.pop(group_id, None) is not None:
            self._soft.pop(group_id, None)
            self.removed(group_id)
            self._log.ids.release(group_id, self.kind)

    # Members

    def _replaced_records(self, group_id: str, *, is_joining: bool) -> list[KeyValue]:
        """The tombstone of an empty classic group that a join replaces. Raises GroupError for groups of other kinds."""
        kind = self._log.ids.kind(group_id)
        if kind in (None, self.kind):
            return []
        is_replaceable = kind is GroupKind.CLASSIC and self._classic_groups.is_empty(group_id)
        if not is_joining or not is_replaceable:
            raise GroupError(ErrorCode.group_id_not_found, f"Group {group_id} is not a {self.kind.value} group.")
        return [(group_key(group_id), None)]

    def _accept(self, group_id: str, member_id: str, outcome: Outcome[G, S], replaced: Sequence[KeyValue]) -> None:
        """Commit the outcome of a heartbeat; the member's session starts again."""
        group = self._groups.get(group_id)
        self._commit(group_id, member_id, outcome, replaced)
        self._metrics.group_rebalances[self.kind] += group is None or outcome.group.group_epoch > group.group_epoch
        self._restart_session(group_id, member_id)

    def _commit(self, group_id: str, member_id: str, outcome: Outcome[G, S], replaced: Sequence[KeyValue] = ()) -> None:
        """Append the records of an operation as one batch; then its state and its timers are in force."""
        self._append_records(group_id, outcome.records, replaced)
        if replaced:
            self._classic_groups.discard(group_id)
        self._groups[group_id], self._soft[group_id] = outcome.group, outcome.soft
        self._log.ids.claim(group_id, self.kind)
        if outcome.ends_revocation or outcome.revocation is not None:
            self._end_revocation(group_id, member_id)
        if outcome.revocation is not None:
            self._await_revocation(group_id, member_id, *outcome.revocation)

    def _append_records(self, group_id: str, records: Iterable[GroupRecord], before: Sequence[KeyValue] = ()) -> None:
        """Append records as one batch, those of other kinds first.

        Raises GroupError: UNKNOWN_SERVER_ERROR for too large records, COORDINATOR_NOT_AVAILABLE for a bad log.
        """
        try:
            self._log.append(group_id, [*before, *map(encode_record, records)])
        except RecordTooLargeError as error:
            raise GroupError(ErrorCode.unknown_server_error, f"The change fits into no batch: {error}") from error
        except StorageError as error:
            _log.warning("could not record a change of the %s group %s: %s", self.kind.value, group_id, error)
            raise GroupError(ErrorCode.coordinator_not_available, "The change could not be recorded.") from error

    # Topics

    def _metadata(self, name: str) -> TopicMetadata | None:
        return topic_metadata(self._topics, name, self._racks)

    # Timers

    def _restart_session(self, group_id: str, member_id: str) -> None:
        self._sessions.restart(group_id, member_id, self.session_timeout_ms(group_id))

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
        if self._fence(group_id, member_id, "it did not revoke its assignment in time"):
            self._sessions.stop(group_id, member_id)
        else:
            self._await_revocation(group_id, member_id, member_epoch, timeout_ms)

    def _fence(self, group_id: str, member_id: str, why: str) -> bool:
        """Whether the end of a member could be recorded; true when there is no such member."""
        group = self._groups.get(group_id)
        if group is None or member_id not in group.members:
            return True
        _log.info("member %s of the %s group %s ends: %s", member_id, self.kind.value, group_id, why)
        try:
            self._commit(group_id, member_id, self.fenced(group_id, group, member_id))
        except GroupError:
            return False
        return True


AnyEpochGroups: TypeAlias = EpochGroups[Any, Any]
"""The groups of one kind, for what all kinds have in common."""


def groups_with(kinds: Iterable[AnyEpochGroups], group_id: str) -> AnyEpochGroups | None:
    """The groups of the kind that has a group id; None when none of the kinds has it."""
    return next((groups for groups in kinds if groups.get(group_id) is not None), None)


def replace_by_classic(kinds: Iterable[AnyEpochGroups], group_id: str) -> bool:
    """End a group without members, whose id a classic group takes; whether there was one."""
    groups = groups_with(kinds, group_id)
    return groups is not None and groups.replace_by_classic(group_id)
