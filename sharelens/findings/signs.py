"""What rules judge: the signs of trouble of one cluster at the end of the evidence, as small tables and values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.now import Now
from sharelens.groups.schemas import CONSUMER, STREAMS
from sharelens.tables.cover import StatePartitionCover
from sharelens.tables.missing import MissingEvidence
from state_model.streams.values import TaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """AUDITED rows, errors first, then by number of the rule; how many more are suppressed.

    `warnings`: suppressions that have expired.
    """

    rows: pa.Table
    suppressed: int = 0
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """The lag of a group: None where it is known of no partition; `growth` since the moment before, None: unknown.

    `finished`: offsets that it committed since then, as far as known.
    """

    records: int | None
    unknown: int
    partitions: int
    growth: int | None = None
    finished: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSign:
    """A streams or consumer group that exists.

    `now_ms`: not before its newest record. `since_ms`: since when it has its state, or is ASSIGNING or RECONCILING in
    turns; `epochs`: group epochs since then. `unsettled_ms`: how long it was ASSIGNING or RECONCILING in the window
    from `window_ms` on, with `window_epochs` group epochs.
    """

    group_type: ClassVar[str]
    group_id: str
    now_ms: int
    state: str
    members: int
    since_ms: int
    epochs: int
    unsettled_ms: int
    window_ms: int
    window_epochs: int
    lag: Lag


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsSign(GroupSign):
    """A streams group that exists.

    `tasks`: the active tasks of the target assignment and those that had an owner before; none without members.
    `without_owner`: those of them that no member has, each with the time since when; while the group is not ready none
    count.
    """

    group_type: ClassVar[str] = STREAMS
    topology_epoch: int | None
    validated_topology_epoch: int
    tasks: int
    without_owner: Mapping[TaskId, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingMember:
    """A member that lacks partitions of its target, or must give up some, since then at least."""

    member_id: str
    since_ms: int
    partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSign(GroupSign):
    """A consumer group that exists.

    `partitions`: how many members have, those that they must give up, too. `idle_members`: members without any.
    `without_owner`: topic and partition that no member has: of the target assignment, or with a committed offset in a
    topic to which members subscribe; a topic without a known name has its id. `rebalance_timeout_ms`: the largest one
    of the members; None: unknown. `epochs_ms`: log times of the group epochs within the window of `epoch_loop`.
    """

    group_type: ClassVar[str] = CONSUMER
    partitions: int
    idle_members: int
    without_owner: Sequence[tuple[str, int]]
    waiting: Sequence[WaitingMember]
    rebalance_timeout_ms: int | None
    epochs_ms: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class LagSample:
    """The lag at an earlier moment (epoch ms): rows of the share partition key and `lag`."""

    at_ms: int
    rows: pa.Table


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareCoordination:
    """What the group coordinator's log says of a share group that has members or initializations.

    `changed_ms`: time of its newest record. `initializing`: (topic id, partition; -1: the whole topic) in status
    INITIALIZING or DELETING, with the time of the newest record of initializations (`initialized_ms`): they have been
    so since then at least. `repeated`: user partitions that came into initialization REPEATS times or more lately.
    `assigned`: user partitions that a member has. `initialized`: those that are initialized.
    """

    group_id: str
    members: int
    changed_ms: int
    initializing: Sequence[tuple[str, int, str]]
    initialized_ms: int | None
    repeated: Sequence[tuple[str, int]]
    initialized: frozenset[tuple[str, int]]
    assigned: frozenset[tuple[str, int]]
    epochs_ms: Sequence[int]
    """Log times of the group epochs within the window of `epoch_loop`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalPartition:
    """A partition of __share_group_state or __consumer_offsets by the metadata log that can't be written to.

    `why`: without a leader, or fewer in-sync replicas than the topic needs.
    """

    topic: str
    partition: int
    why: str
    since_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UnprunedState:
    """A state partition, and the share partition whose newest snapshot is the oldest: Kafka can't prune it from there.

    `since_ms`: log time of that snapshot, `held_up_ms` before the end of the state partition. `written_bytes`: keys and
    values of the records since.
    """

    state_partition: int
    group_id: str
    topic_id: str
    partition: int
    since_ms: int
    held_up_ms: int
    written_bytes: int


@dataclass(frozen=True, kw_only=True)
class Signs:
    """Tables of one cluster, of the share partitions that were selected.

    `lag`: rows of gold.lag. `samples`: the lag before, the oldest first. `stalls`: rows of gold.stall that last, of any
    duration, without idle ones. `attempts`: settled records by hour, of the last day. Recent are `archived` (rows of
    gold.poison_record without gaps, with `hour_ms` and `records`) and `events` (rows of gold.life_event).
    `not_started`: lag rows without a start offset, with `has_records`: whether the user partition has any (null:
    unknown). `missing_letters`: `records` by share partition whose dead letter is missing; `unjudged_letters`: those of
    which the dead-letter topic is not in the evidence. `groups`: GROUPS rows; None: no record of the group coordinator
    is in the evidence. `share_groups`: those with state or with a record of the group coordinator. `streams`: the
    streams groups that exist. `consumers`: the consumer groups that exist, where `signs` reads them.
    `audited`: the findings of the audit; None: nobody has audited the evidence.
    `unwritable`: None: no metadata log. `unpruned`: of state partitions that are large enough for a finding, and at the
    end of the evidence alone. `log_starts`: log start offsets of user partitions, as far as known.
    `retention_ms`: by topic id, as far as known. `with_headers`: the user partitions that the evidence has.
    """

    now: Now
    first_ms: int
    last_ms: int
    lag: pa.Table
    samples: Sequence[LagSample]
    stalls: pa.Table
    attempts: pa.Table
    archived: pa.Table
    events: pa.Table
    not_started: pa.Table
    missing_letters: pa.Table
    unjudged_letters: pa.Table
    groups: pa.Table | None
    share_groups: Sequence[str]
    coordination: Sequence[ShareCoordination]
    streams: Sequence[StreamsSign]
    consumers: Sequence[ConsumerSign] = ()
    audited: Audited | None
    unwritable: Sequence[InternalPartition] | None
    unpruned: Sequence[UnprunedState]
    log_starts: Mapping[tuple[str, int], int]
    retention_ms: Mapping[str, int]
    with_headers: frozenset[tuple[str, int]]
    cover: Sequence[StatePartitionCover]
    missing: MissingEvidence
    names: Mapping[str, str]
    warnings: tuple[str, ...]

    @property
    def now_ms(self) -> int:
        """Now (epoch ms)."""
        return self.now.ms

    @cached_property
    def groups_by_id(self) -> Mapping[str, Mapping[str, Any]]:
        """The rows of groups; empty without a record of the group coordinator."""
        return {} if self.groups is None else {row["group_id"]: row for row in self.groups.to_pylist()}

    @cached_property
    def work(self) -> pa.ChunkedArray:
        """The lag of each row of `lag`: Kafka's count, else the one counted again; null where neither is known."""
        return pc.coalesce(self.lag.column("lag"), self.lag.column("lag_recounted"))

    @cached_property
    def groups_without_record(self) -> frozenset[str]:
        """The groups with share partitions of which the group coordinator's log has no record here."""
        return frozenset(self.lag.column("group_id").unique().to_pylist()) - self.groups_by_id.keys()
