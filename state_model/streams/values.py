"""Values of streams groups: tasks, topology, members and the group itself (streams-group, consumer-offsets-records §4).

All are immutable and compare by content. Lists of a record keep their order where Kafka compares them in order (the
topology, §1.11); tasks are sets, as the group coordinator holds them.
"""

from collections.abc import Mapping
from enum import Enum, IntEnum
from typing import Final, NamedTuple, TypeAlias

from state_model.group_targets import NEW_TARGET, TargetMetadata
from state_model.key_map import KeyMap

NO_EPOCH: Final = -1
"""The epoch that a tombstone leaves: of a member after that of its assignment, of a target after that of the target."""
Pairs: TypeAlias = tuple[tuple[str, str], ...]
"""Keys and values in the order of the record."""


class MemberState(IntEnum):
    """The states of a member in a record of type 22 (consumer-offsets-records §4); they begin at 1."""

    STABLE = 1
    UNREVOKED_TASKS = 2
    UNRELEASED_TASKS = 3
    UNKNOWN = 127


class GroupState(Enum):
    """The states of a streams group; the value is the name that Kafka prints (streams-group §2.1)."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class TaskId(NamedTuple):
    """A task. The order is that of Kafka's record writer: by subtopology id as text, then by partition."""

    subtopology_id: str
    partition: int

    def __str__(self) -> str:
        """The task as Kafka Streams prints it: `0_3`."""
        return f"{self.subtopology_id}_{self.partition}"


Tasks: TypeAlias = frozenset[TaskId]
NO_TASKS: Final[Tasks] = frozenset()


class TasksByType(NamedTuple):
    """Tasks of a member by their type; warm-up tasks are always empty in 4.3 (streams-group §12)."""

    active: Tasks = NO_TASKS
    standby: Tasks = NO_TASKS
    warmup: Tasks = NO_TASKS

    @property
    def is_empty(self) -> bool:
        """Whether there is no task of any type."""
        return not (self.active or self.standby or self.warmup)

    def __and__(self, other: "TasksByType") -> "TasksByType":
        """The tasks that both have with the same type."""
        return TasksByType(self.active & other.active, self.standby & other.standby, self.warmup & other.warmup)

    def __or__(self, other: "TasksByType") -> "TasksByType":
        """The tasks of both, by their type."""
        return TasksByType(self.active | other.active, self.standby | other.standby, self.warmup | other.warmup)

    def __sub__(self, other: "TasksByType") -> "TasksByType":
        """The tasks that the other does not have with the same type."""
        return TasksByType(self.active - other.active, self.standby - other.standby, self.warmup - other.warmup)


NO_TASKS_BY_TYPE: Final = TasksByType()


class TopicInfo(NamedTuple):
    """An internal topic of a topology. `partitions` 0: derived from others; `replication_factor` 0: broker default."""

    name: str
    partitions: int = 0
    replication_factor: int = 0
    configs: Pairs = ()


class CopartitionGroup(NamedTuple):
    """Topics that must have as many partitions: indexes into the lists of their subtopology (streams-group §4.1)."""

    source_topics: tuple[int, ...] = ()
    source_topic_regex: tuple[int, ...] = ()
    repartition_source_topics: tuple[int, ...] = ()


class Subtopology(NamedTuple):
    """A subtopology as the first member sent it; all lists in that order (streams-group §4.1)."""

    subtopology_id: str
    source_topics: tuple[str, ...] = ()
    source_topic_regex: tuple[str, ...] = ()
    state_changelog_topics: tuple[TopicInfo, ...] = ()
    repartition_sink_topics: tuple[str, ...] = ()
    repartition_source_topics: tuple[TopicInfo, ...] = ()
    copartition_groups: tuple[CopartitionGroup, ...] = ()


class Topology(NamedTuple):
    """A topology as the group records it: the value of record type 23."""

    epoch: int
    subtopologies: tuple[Subtopology, ...] = ()


class Endpoint(NamedTuple):
    """`application.server` of a member."""

    host: str
    port: int


class MemberMetadata(NamedTuple):
    """The value of record type 19: what a member said of itself in its heartbeats."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    topology_epoch: int
    process_id: str
    user_endpoint: Endpoint | None = None
    client_tags: Pairs = ()


class MemberAssignment(NamedTuple):
    """The value of record type 22: the current assignment of a member (streams-group §7).

    Attributes:
        state: a MemberState; other numbers are kept as they are.
        assigned: the tasks that the member has or may take.
        pending: the tasks that the member must give up first.
        active_assignment_epochs: for each active task, assigned or pending, the epoch in which the member got it;
            offsets of the task are accepted from this epoch on (§8.3).
    """

    state: int
    member_epoch: int
    previous_member_epoch: int
    assigned: TasksByType = NO_TASKS_BY_TYPE
    active_assignment_epochs: Mapping[TaskId, int] = {}
    pending: TasksByType = NO_TASKS_BY_TYPE


LEFT_ASSIGNMENT: Final = MemberAssignment(MemberState.STABLE, NO_EPOCH, NO_EPOCH)
"""What the tombstone of record type 22 leaves of a member until that of type 19 (consumer-offsets-records §5)."""


class StreamsMember(NamedTuple):
    """A member. `metadata` is None before its record of type 19, `assignment` before that of type 22."""

    metadata: MemberMetadata | None = None
    assignment: MemberAssignment | None = None


class GroupMetadata(NamedTuple):
    """The value of record type 17. The description epochs are of 4.4."""

    epoch: int
    metadata_hash: int
    validated_topology_epoch: int = -1
    last_assignment_configs: Pairs | None = ()
    stored_description_topology_epoch: int = -1
    failed_description_topology_epoch: int = -1


NEW_METADATA: Final = GroupMetadata(epoch=1, metadata_hash=0, validated_topology_epoch=0)


class StreamsGroup(NamedTuple):
    """A streams group. The defaults are those of a new group, which no record says (streams-group §2.2)."""

    metadata: GroupMetadata = NEW_METADATA
    target: TargetMetadata = NEW_TARGET
    topology: Topology | None = None
    targets: KeyMap[str, TasksByType] = KeyMap()
    """The target assignment by member id; a member without one has no entry."""
    members: KeyMap[str, StreamsMember] = KeyMap()

    @property
    def group_epoch(self) -> int:
        """The epoch of record type 17."""
        return self.metadata.epoch

    @property
    def target_assignment_epoch(self) -> int:
        """The epoch of record type 20."""
        return self.target.assignment_epoch

    @property
    def validated_topology_epoch(self) -> int:
        """The topology epoch while the topics fit the topology, else -1; 0 in a new group (§2.6)."""
        return self.metadata.validated_topology_epoch

    @property
    def state(self) -> GroupState:
        """Kafka's state of the group: the first of §2.1 that applies. O(members)."""
        return self.state_with(
            sum(is_settled(member, self.target_assignment_epoch) for member in self.members.values())
        )

    def state_with(self, settled_count: int) -> GroupState:
        """The state of a group of which so many members are settled in the epoch of its target assignment."""
        if not self.members:
            return GroupState.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return GroupState.NOT_READY
        if self.group_epoch > self.target_assignment_epoch:
            return GroupState.ASSIGNING
        return GroupState.STABLE if settled_count == len(self.members) else GroupState.RECONCILING


def is_settled(member: StreamsMember, target_assignment_epoch: int) -> bool:
    """Whether a member has its target assignment: state STABLE in the epoch of the target."""
    return settled_epoch(member) == target_assignment_epoch


def settled_epoch(member: StreamsMember) -> int | None:
    """The epoch of a member in state STABLE; None: it has another state, or no current assignment."""
    assignment = member.assignment
    return assignment.member_epoch if assignment is not None and assignment.state == MemberState.STABLE else None
