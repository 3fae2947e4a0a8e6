"""A classic consumer group: its members, its state and their common protocol (Kafka's ClassicGroup).

Permissions, timers and the log are in classic_groups.py and rebalances.py.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from kio.schema.errors import ErrorCode

from sharelens.broker.coordinators.classic_records import StoredGroup, StoredMember
from sharelens.broker.ports import Handle
from state_model.consumer import classic_group as consumer

Protocols = tuple[tuple[str, bytes], ...]
"""The protocols of a member in the order of its preference: name and metadata."""


class GroupState(Enum):
    """The state of a group; the value is its name in DescribeGroups and ListGroups."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedMember:
    """A member in the list that the leader gets, with its metadata for the chosen protocol."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinAnswer:
    """Answer to JoinGroup; `members` is empty except for the leader."""

    error_code: ErrorCode = ErrorCode.none
    member_id: str = ""
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    members: tuple[JoinedMember, ...] = ()
    skip_assignment: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncAnswer:
    """Answer to SyncGroup."""

    error_code: ErrorCode = ErrorCode.none
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


JoinDone = Callable[[JoinAnswer], None]
SyncDone = Callable[[SyncAnswer], None]


@dataclass(slots=True, kw_only=True)
class Member:
    """A member. `join` and `sync` are callbacks of waiting requests; `session` is its timer."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    join: JoinDone | None = None
    sync: SyncDone | None = None
    session: Handle | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether a request of the member waits for an answer; its session can't expire meanwhile."""
        return self.join is not None or self.sync is not None

    def metadata(self, protocol_name: str | None) -> bytes:
        """Its metadata for a protocol; empty for a protocol that it does not have."""
        return next((metadata for name, metadata in self.protocols if name == protocol_name), b"")

    def answer_join(self, answer: JoinAnswer) -> None:
        """Answer the waiting JoinGroup, if there is one."""
        done, self.join = self.join, None
        if done is not None:
            done(answer)

    def answer_sync(self, answer: SyncAnswer) -> None:
        """Answer the waiting SyncGroup, if there is one."""
        done, self.sync = self.sync, None
        if done is not None:
            done(answer)

    def stop_session(self) -> None:
        """Stop the session timer."""
        if self.session is not None:
            self.session.cancel()
            self.session = None


@dataclass(slots=True, kw_only=True)
class ClassicGroup:
    """A group. Members are in the order of their joins; a group with members has a leader.

    `pending_joins` are member ids that no join has used yet, with the timer that removes them; `pending_syncs`
    are members that joined this generation and have not sent their SyncGroup.
    """

    group_id: str
    state_since_ms: int
    state: GroupState = GroupState.EMPTY
    is_initial_rebalance: bool = False
    generation: int = 0
    protocol_type: str = ""
    protocol_name: str | None = None
    leader: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    pending_joins: dict[str, Handle] = field(default_factory=dict)
    pending_syncs: set[str] = field(default_factory=set)
    has_newcomer: bool = False
    join_timer: Handle | None = None
    sync_timer: Handle | None = None

    def enter(self, state: GroupState, now_ms: int) -> None:
        """Change the state. The first rebalance of an empty group is an initial one until it is done."""
        self.is_initial_rebalance = self.state is GroupState.EMPTY and state is GroupState.PREPARING_REBALANCE
        self.state = state
        self.state_since_ms = now_ms

    def add(self, member: Member) -> None:
        """Add a member; the first member leads."""
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id

    def remove(self, member_id: str) -> Member:
        """Remove a member; the next one in order leads if it was the leader."""
        member = self.members.pop(member_id)
        member.stop_session()
        self.pending_syncs.discard(member_id)
        if member.group_instance_id is not None and self.static_members.get(member.group_instance_id) == member_id:
            del self.static_members[member.group_instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        return member

    def rename(self, member: Member, member_id: str) -> None:
        """Replace the member id of a static member that joins again; it keeps its place."""
        old_id, member.member_id = member.member_id, member_id
        self.members = {
            (member_id if current_id == old_id else current_id): each for current_id, each in self.members.items()
        }
        assert member.group_instance_id is not None
        self.static_members[member.group_instance_id] = member_id
        self.pending_syncs.discard(old_id)
        if self.leader == old_id:
            self.leader = member_id

    def rebalance_timeout_ms(self) -> int:
        """The rebalance timeout of the group: the longest of its members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def have_all_joined(self) -> bool:
        """Whether all members have joined."""
        return not self.pending_joins and all(member.join is not None for member in self.members.values())

    def common_protocols(self) -> list[str]:
        """The protocols that all members have."""
        names = Counter(name for member in self.members.values() for name in {name for name, _ in member.protocols})
        return [name for name, count in names.items() if count == len(self.members)]

    def supports(self, protocol_type: str, names: list[str]) -> bool:
        """Whether a member with these protocols may join."""
        if not protocol_type or not names:
            return False
        if not self.members:
            return True
        return protocol_type == self.protocol_type and not set(names).isdisjoint(self.common_protocols())

    def choose_protocol(self) -> str:
        """The protocol with the most votes; each member votes for the first of its own that all members have."""
        common = set(self.common_protocols())
        votes = Counter(
            next(name for name, _ in member.protocols if name in common) for member in self.members.values()
        )
        return votes.most_common(1)[0][0]

    def elect_joined_leader(self) -> bool:
        """Whether the group has a leader that joined; one is chosen when the old one did not."""
        if self.leader is not None and self.members[self.leader].join is None:
            joined = (member.member_id for member in self.members.values() if member.join is not None)
            self.leader = next(joined, None) or self.leader
        return self.leader is not None and self.members[self.leader].join is not None

    def next_generation(self, now_ms: int) -> None:
        """Begin the next generation with the current members."""
        self.generation += 1
        self.pending_syncs.clear()
        if self.members:
            self.protocol_name = self.choose_protocol()
            self.enter(GroupState.COMPLETING_REBALANCE, now_ms)
        else:
            self.protocol_name = None
            self.leader = None
            self.enter(GroupState.EMPTY, now_ms)

    def joined_members(self) -> tuple[JoinedMember, ...]:
        """The list of members for the leader."""
        return tuple(
            JoinedMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata(self.protocol_name),
            )
            for member in self.members.values()
        )

    def join_answer(self, member_id: str, *, skip_assignment: bool = False) -> JoinAnswer:
        """The answer to a join of a member of the current generation."""
        return JoinAnswer(
            member_id=member_id,
            generation_id=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader=self.leader or "",
            members=self.joined_members() if member_id == self.leader else (),
            skip_assignment=skip_assignment,
        )

    def sync_answer(self, member: Member) -> SyncAnswer:
        """The assignment of a member."""
        return SyncAnswer(
            protocol_type=self.protocol_type, protocol_name=self.protocol_name, assignment=member.assignment
        )

    def timers(self) -> Iterator[Handle]:
        """All running timers of the group."""
        yield from self.pending_joins.values()
        yield from (timer for timer in (self.join_timer, self.sync_timer) if timer is not None)
        yield from (member.session for member in self.members.values() if member.session is not None)

    def value(self) -> consumer.ClassicGroup:
        """The group as a consumer group is made of it."""
        members = tuple(
            consumer.ClassicMember(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                member.rebalance_timeout_ms,
                member.session_timeout_ms,
                member.protocols,
                member.assignment,
            )
            for member in self.members.values()
        )
        return consumer.ClassicGroup(self.generation, self.protocol_type, self.protocol_name, members)

    def stored(self, assignments: Mapping[str, bytes] | None = None) -> StoredGroup:
        """The group's record with these assignments instead of the members' own."""
        return StoredGroup(
            protocol_type=self.protocol_type,
            generation=self.generation,
            protocol_name=self.protocol_name,
            leader=self.leader,
            state_since_ms=self.state_since_ms,
            members=tuple(
                StoredMember(
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                    session_timeout_ms=member.session_timeout_ms,
                    subscription=member.metadata(self.protocol_name),
                    assignment=member.assignment if assignments is None else assignments[member.member_id],
                )
                for member in self.members.values()
            ),
        )


def of_value(group_id: str, value: consumer.ClassicGroup) -> ClassicGroup:
    """The stable group that a consumer group becomes."""
    group = ClassicGroup(
        group_id=group_id,
        state_since_ms=value.state_since_ms,
        state=GroupState.STABLE,
        generation=value.generation,
        protocol_type=value.protocol_type,
        protocol_name=value.protocol_name,
    )
    for member in value.members:
        group.add(
            Member(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                session_timeout_ms=member.session_timeout_ms,
                protocols=member.protocols,
                assignment=member.assignment,
            )
        )
    return group


def restored(group_id: str, stored: StoredGroup) -> ClassicGroup:
    """The group of a record: stable with its members, or empty."""
    group = ClassicGroup(
        group_id=group_id,
        state_since_ms=stored.state_since_ms,
        state=GroupState.STABLE if stored.members else GroupState.EMPTY,
        generation=stored.generation,
        protocol_type=stored.protocol_type,
        protocol_name=stored.protocol_name,
        leader=stored.leader
        if any(stored_member.member_id == stored.leader for stored_member in stored.members)
        else None,
    )
    for stored_member in stored.members:
        group.add(
            Member(
                member_id=stored_member.member_id,
                group_instance_id=stored_member.group_instance_id,
                client_id=stored_member.client_id,
                client_host=stored_member.client_host,
                rebalance_timeout_ms=stored_member.rebalance_timeout_ms,
                session_timeout_ms=stored_member.session_timeout_ms,
                protocols=((stored.protocol_name or "", stored_member.subscription),),
                assignment=stored_member.assignment,
            )
        )
    return group
