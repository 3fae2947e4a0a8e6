"""What a question may ask its evidence for. A lake and a log directory both answer with the same Arrow schemas."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.as_of import LogPrefix
from sharelens.evidence.clock_steps import ClockStep
from sharelens.evidence.conditions import all_of
from sharelens.lake.bounded_scan import Choice
from sharelens.measures.file_ends import EndOffsets
from sharelens.measures.headers import SampledBatches
from sharelens.measures.observed_settings import Settings
from sharelens.measures.places import places_of
from sharelens.measures.topics import Ints, TopicPartition
from sharelens.questions.dlq_filter import DeadLetterFilter
from state_model.columnar.keys import PLACE_KEY
from state_model.columnar.values import Loss
from state_model.errors import SharelensError

if TYPE_CHECKING:
    from sharelens.evidence.metadata_events import MetadataHistory
    from sharelens.live.check import LiveCheck


class TooMuchError(SharelensError):
    """Raised when more would have to be read than --max-bytes allows."""


WORKERS = 2
"""The most threads that read and compute for a question."""
PLACED = pa.schema(
    [
        pa.field("group_id", pa.string()),
        pa.field("topic_id", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("state_partition", pa.int32()),
        pa.field("records", pa.int64()),
        pa.field("log_time_ms", pa.int64()),
        pa.field("start_offset", pa.int64()),
    ]
)
"""Share partitions in state partitions: about how many records, log time of the newest one, a start offset.

`start_offset`: the largest one of its records or a later one; null or negative: no record has any.
"""
COUNTED = [*PLACE_KEY, "log_time_ms", "start_offset"]
"""The columns that are read to count them, one row a record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The share partitions that a question is about; None puts no condition. Topics are ids with their partitions."""

    groups: frozenset[str] | None = None
    topics: Mapping[str, frozenset[int] | None] | None = None
    partitions: frozenset[int] | None = None

    def expression(self) -> pc.Expression | None:
        """The condition on the columns group_id, topic_id and partition; None when there is no condition."""
        parts: list[pc.Expression] = []
        if self.groups is not None:
            parts.append(pc.field("group_id").isin(pa.array(sorted(self.groups), pa.string())))
        if self.topics is not None:
            parts.append(self._topic_condition(self.topics))
        if self.partitions is not None:
            parts.append(pc.field("partition").isin(pa.array(sorted(self.partitions), pa.int32())))
        return all_of(*parts)

    @staticmethod
    def _topic_condition(topics: Mapping[str, frozenset[int] | None]) -> pc.Expression:
        whole_topics = sorted(topic for topic, partitions in topics.items() if partitions is None)
        condition = pc.field("topic_id").isin(pa.array(whole_topics, pa.string()))
        for topic, partitions in sorted(topics.items()):
            if partitions is not None:
                numbers = pa.array(sorted(partitions), pa.int32())
                condition |= (pc.field("topic_id") == topic) & pc.field("partition").isin(numbers)
        return condition

    @property
    def only(self) -> tuple[str, str, int] | None:
        """(group, topic id, partition) when exactly one share partition is meant."""
        if self.groups is None or self.topics is None or len(self.groups) != 1 or len(self.topics) != 1:
            return None
        (group,), ((topic, named),) = self.groups, self.topics.items()
        numbers = named if self.partitions is None else self.partitions if named is None else named & self.partitions
        return (group, topic, next(iter(numbers))) if numbers is not None and len(numbers) == 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Which records are wanted: log times and log offsets, half-open, and state partitions; None puts no condition."""

    from_ms: int | None = None
    to_ms: int | None = None
    from_offset: int | None = None
    to_offset: int | None = None
    state_partitions: frozenset[int] | None = None

    def expression(self) -> pc.Expression | None:
        """The condition on log_time_ms, log_offset and state_partition; None when there is none."""
        parts: list[pc.Expression] = []
        if self.from_ms is not None:
            parts.append(pc.field("log_time_ms") >= self.from_ms)
        if self.to_ms is not None:
            parts.append(pc.field("log_time_ms") < self.to_ms)
        if self.from_offset is not None:
            parts.append(pc.field("log_offset") >= self.from_offset)
        if self.to_offset is not None:
            parts.append(pc.field("log_offset") < self.to_offset)
        if self.state_partitions is not None:
            parts.append(pc.field("state_partition").isin(pa.array(sorted(self.state_partitions), pa.int32())))
        return all_of(*parts)


def counted_places(parts: Iterable[pa.Table]) -> pa.Table:
    """PLACED rows from tables with COUNTED, one row a record, taken one at a time."""
    counted = PLACED.empty_table()
    for part in parts:
        rows = part.append_column("records", pa.repeat(pa.scalar(1, pa.int64()), part.num_rows))
        united_rows = pa.concat_tables([counted, rows.select(PLACED.names).cast(PLACED)])
        largest = [(name, "max") for name in ("log_time_ms", "start_offset")]
        largest_of = united_rows.group_by(PLACE_KEY).aggregate([("records", "sum"), *largest])
        counted = largest_of.rename_columns(
            [name.removesuffix("_sum").removesuffix("_max") for name in largest_of.column_names]
        )
        counted = counted.select(PLACED.names).cast(PLACED)
    return counted


def of_places(rows: pa.Table, places: pa.Table) -> pa.Table:
    """The rows (with PLACE_KEY) of these places, in their order."""
    (of_rows, chosen), _ = places_of(rows, places)
    is_chosen = np.isin(of_rows, chosen)
    return rows if is_chosen.all() else rows.filter(pa.array(is_chosen))


@dataclass(frozen=True, slots=True, kw_only=True)
class StatePartitionCover:
    """The evidence of one state partition.

    Offsets are those of the state topic's log; `end_offset_exclusive` is where the evidence ends. Times are
    log times (None: no record held). `held_back` counts offsets at or above the high watermark that were left out,
    `unreadable_bytes` those of an append in progress behind the last complete batch.
    `closed_gates`: tables of the lake with a closed quality gate, each with its unmet expectations; empty when none is.
    `dropped_ms`: by group of tables (`--retain`) the log time before which upkeep dropped rows.
    """

    log_topic_id: str
    state_partition: int
    first_offset: int
    end_offset_exclusive: int
    log_start_offset: int
    first_ms: int | None
    last_ms: int | None
    held_back: int = 0
    quarantined: int = 0
    losses: tuple[Loss, ...] = ()
    unreadable_bytes: int = 0
    closed_gates: str = ""
    dropped_ms: Mapping[str, int] = field(default_factory=dict)

    def row(self) -> dict[str, str | int | None]:
        """The state partition, its offsets and held-back offsets, with the field names of answers."""
        return {
            "state_partition": self.state_partition,
            "log_topic_id": self.log_topic_id,
            "first_log_offset": self.first_offset,
            "end_log_offset_exclusive": self.end_offset_exclusive,
            "log_start_offset": self.log_start_offset,
            "first_log_time_ms": self.first_ms,
            "last_log_time_ms": self.last_ms,
            "held_back": self.held_back,
        }


class GroupLogCover(NamedTuple):
    """The evidence of one partition of __consumer_offsets: times of its first and newest record, in ms.

    `held_back` counts offsets at or above the high watermark that were left out.
    """

    first_ms: int
    last_ms: int
    held_back: int


class Metadata(Protocol):
    """The metadata log beside the other logs."""

    @property
    def history(self) -> "MetadataHistory | None":
        """The metadata over time; None when there is no metadata log."""

    @property
    def doubtful_groups(self) -> frozenset[str]:
        """The groups with settings that a gap of the metadata log could have changed."""


class Evidence(Protocol):
    """A lake at its published cut, or log directories. Rows are those of one cluster."""

    @property
    def place(self) -> str:
        """Where the evidence lies, for messages."""

    @property
    def cluster_id(self) -> str | None:
        """Id of the cluster; None when nothing says it."""

    @property
    def settings(self) -> Settings:
        """The settings of groups that answers take: those of the command line count before those of the lake."""

    @property
    def measured_settings(self) -> Settings:
        """The settings with which `measured_stream` was measured."""

    @property
    def metadata(self) -> Metadata:
        """The metadata log."""

    @property
    def is_in_memory(self) -> bool:
        """Whether `histories` computes from records in memory, without reading anything again."""

    def names(self, topic_ids: Iterable[str]) -> Mapping[str, str]:
        """Names by topic id, of these ids at least, as far as known."""

    def topic_ids(self, name: str) -> Sequence[str]:
        """Every id of the name: a recreated topic has a new id."""

    def topic_id_now(self, name: str) -> str | None:
        """The id of the topic that has the name at the end of the evidence; None where that is not known."""

    def share_partitions(self) -> pa.Table:
        """Every share partition ever seen: group_id, topic_id, partition, without repetition."""

    def places(self, keys: Keys) -> pa.Table:
        """PLACED rows of the share partitions, one each, in any order."""

    def histories(self, places: pa.Table, cut: LogPrefix) -> tuple[pa.Table, pa.Table]:
        """SHARE_PARTITION_HISTORY and DELIVERY_HISTORY rows of these places (PLACE_KEY) up to the cut.

        The first in (state_partition, log_offset) order, the others in any order; what ended after the cut is open.
        Memory depends on the records of the places.
        """

    def records_of(self, places: pa.Table, columns: Sequence[str]) -> pa.Table:
        """These columns of the SHARE_RECORD rows of these places (PLACE_KEY), in any order; PLACE_KEY is among them."""

    def each_record(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """These columns of all SHARE_RECORD rows, in bounded tables, in any order; one table at least."""

    def measured_stream(
        self, table: str, schema: pa.Schema, keys: Keys, where: pc.Expression | None = None
    ) -> Iterator[pa.Table] | None:
        """Columns of a measure (a gold table) of the share partitions at the end of the evidence, in bounded tables.

        They are what the histories give with `measured_settings`. None: no run took the measure. `where`: only rows
        that meet a condition on columns of the table.
        """

    def records(self, keys: Keys, span: Span) -> Iterator[pa.Table]:
        """SHARE_RECORD rows in (state_partition, log_offset) order, read as they are taken; none when there are none.

        A lake gives bounded tables, log directories one.
        """

    def states(self, keys: Keys, cut: LogPrefix) -> pa.Table:
        """PLACED_STATE rows of the live share partitions after the records of the cut, in any order.

        Each share partition has one row that is not misplaced.
        """

    def history(self, keys: Keys) -> pa.Table:
        """SHARE_PARTITION_HISTORY rows in (state_partition, log_offset) order."""

    def history_in_parts(self, keys: Keys, columns: Sequence[str], choice: Choice | None = None) -> Iterator[pa.Table]:
        """These columns, LOG_ORDER's among them, of the rows of `history` in their order, read as they are taken.

        A lake gives bounded tables and reads only row groups that `choice` takes; log directories give one table.
        """

    def delivery(self, keys: Keys, offset: int) -> pa.Table:
        """DELIVERY_HISTORY rows whose range covers the record offset, in any order."""

    def deliveries(self, keys: Keys, cut: LogPrefix) -> pa.Table:
        """DELIVERY_HISTORY rows that began inside the cut, by state partition and share partition, then as they began.

        What ended after the cut is open.
        """

    def topic_batches(self, begins: Mapping[TopicPartition, int]) -> Iterator[pa.Table]:
        """TOPIC_BATCH rows of user partitions that reach the given offset or lie above, in bounded tables.

        Together they come by (topic id, partition), then in offset order. A lake holds none below the smallest start
        offset that share state ever named for a partition, so that is the lowest beginning to ask for.
        """

    def topic_extents(self, partitions: Iterable[TopicPartition]) -> pa.Table:
        """TOPIC_EXTENT rows of those of the user partitions that the evidence has, by (topic id, partition)."""

    def unknown_name(self, text: str, topic: str | None = None) -> SharelensError:
        """The error for a name of the command line that the evidence lacks; `topic`: the name, where it is a topic's.

        Raises:
            SharelensError: one may not see the topic.
        """

    @property
    def fetched(self) -> str:
        """What was fetched for the answer, as the end of a line; empty where nothing was."""

    def coordinators(self) -> "LiveCheck | None":
        """The coordinators of a running cluster, to compare an answer with; None: there are none to ask."""

    def stable_offsets(self) -> EndOffsets:
        """Last stable offsets of user partitions whose headers are not in the evidence, as far as they are known."""

    def ends_at(self, moment_ms: int, topics: Iterable[str]) -> EndOffsets:
        """The first offsets with a timestamp behind the moment, or the ends, where headers do not say them."""

    def sampled(self, offsets: Mapping[TopicPartition, Ints]) -> SampledBatches:
        """What single batches say of ascending offsets in `sampled_partitions`."""

    def sampled_partitions(self) -> Set[TopicPartition]:
        """User partitions of which single batches can be read, though their headers are not in the evidence."""

    def group_records(self, groups: frozenset[str] | None = None) -> pa.Table:
        """GROUP_RECORD rows of these groups (None: all), by (partition of __consumer_offsets, log offset)."""

    def group_log_covers(self) -> Mapping[int, GroupLogCover]:
        """The evidence of each partition of __consumer_offsets with a record, by partition."""

    def offset_commits(self, groups: frozenset[str]) -> pa.Table:
        """COMMIT_COLUMNS rows of the groups' offset commits and their transaction markers, by (partition, offset)."""

    def dead_letters(self, letter_filter: DeadLetterFilter) -> pa.Table:
        """DLQ_RECORD rows of these dead letters, by (topic, id, partition, offset) of where they lie."""

    def dead_letter_partitions(self) -> pa.Table:
        """DLQ_PARTITION rows of the partitions searched for dead letters, by (topic, id, partition)."""

    def cover(self) -> Sequence[StatePartitionCover]:
        """The evidence of each state partition (newest incarnation of the state topic), in order."""

    def read_until_ms(self) -> int | None:
        """Until when the evidence was read (epoch ms): silence up to then is known; None: nothing says it."""

    def clock_steps(self, moment_ms: int) -> Sequence[ClockStep]:
        """Steps of the writers' clocks that blur what `as of` this moment means; one per state partition at most."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
