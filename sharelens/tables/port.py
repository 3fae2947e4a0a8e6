"""The port between evidence and questions: tables by name, as lakes, log directories and clusters give them.

Arrow schemas are the same whatever the source is. Nothing here is named after a question.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from types import TracebackType
from typing import TYPE_CHECKING, Final, Protocol, Self

import pyarrow as pa

from sharelens.evidence.as_of import LogPrefix
from sharelens.evidence.clock_steps import ClockStep
from sharelens.evidence.offset_commit_rows import COMMIT_COLUMNS
from sharelens.evidence.schemas import GROUP_RECORD
from sharelens.groups.whole_logs import IS_LOG_WHOLE
from sharelens.kafka_log.dead_letter_records import DLQ_RECORD
from sharelens.kafka_log.schemas import LOG_RECORD, TOPIC_BATCH
from sharelens.lake.dlq_partitions import DLQ_PARTITION
from sharelens.lake.tables import TABLES
from sharelens.measures.settings.observations import Settings
from sharelens.measures.topics.extents import TOPIC_EXTENT, Ints, TopicPartition
from sharelens.measures.topics.file_ends import EndOffsets
from sharelens.measures.topics.headers import SampledBatches
from sharelens.tables.cover import GroupLogCover, StatePartitionCover
from sharelens.tables.missing import MissingEvidence
from sharelens.tables.parts import Parts
from sharelens.tables.places import PLACED
from sharelens.tables.where import ALL_ROWS, Keys, Order, Where
from state_model.columnar import schemas
from state_model.columnar.keys import SHARE_PARTITION_KEY

if TYPE_CHECKING:
    from sharelens.evidence.metadata_events import MetadataHistory
    from sharelens.live.check import LiveCheck
    from sharelens.tables.audits import AuditedEvidence
    from sharelens.tables.origins import Origin


RECORDS = "silver.share_record"
HISTORY = "gold.share_partition_history"
DELIVERIES = "gold.delivery_history"
STATES = "gold.share_partition_state"
GROUP_RECORDS = "silver.group_record"
OFFSET_COMMITS = "bronze.log_record"
BATCHES = "bronze.topic_batch"
LETTERS = "silver.dlq_record"
SHARE_PARTITIONS, PLACES = "share_partition", "place"
TOPIC_EXTENTS, LETTER_PARTITIONS = "topic_extent", "dlq_partition"

SCHEMAS: Final[Mapping[str, pa.Schema]] = {
    RECORDS: schemas.SHARE_RECORD,
    HISTORY: schemas.SHARE_PARTITION_HISTORY,
    DELIVERIES: schemas.DELIVERY_HISTORY,
    STATES: schemas.PLACED_STATE,
    GROUP_RECORDS: GROUP_RECORD.append(IS_LOG_WHOLE),
    OFFSET_COMMITS: pa.schema([*(LOG_RECORD.field(name) for name in COMMIT_COLUMNS), IS_LOG_WHOLE]),
    BATCHES: TOPIC_BATCH,
    LETTERS: DLQ_RECORD,
    SHARE_PARTITIONS: pa.schema([PLACED.field(name) for name in SHARE_PARTITION_KEY]),
    PLACES: PLACED,
    TOPIC_EXTENTS: TOPIC_EXTENT,
    LETTER_PARTITIONS: DLQ_PARTITION,
}
"""The tables that every source has, some of them without a row, and what a scan of each gives:

- `silver.share_record`: decoded records of the state log.
- `gold.share_partition_history`, `gold.delivery_history`: the two histories.
- `gold.share_partition_state`: live share partitions after the records of the cut; each has one row that is not
  misplaced.
- `silver.group_record`: by (partition of __consumer_offsets, log offset).
- `bronze.log_record`: offset commits of the groups and their transaction markers, by (partition, offset).
- `bronze.topic_batch`: batches of `user_partitions` that reach the given offset or lie above, by (topic id,
  partition), then in offset order. A lake holds none below the smallest start offset that share state ever named for a
  partition, so that is the lowest offset to ask for.
- `silver.dlq_record`: dead letters, by (topic, id, partition, offset) of where they lie.
- `share_partition`: every share partition ever seen, once. `place`: the same in each state partition, counted.
- `topic_extent`: those of `user_partitions` that the evidence has, by (topic id, partition).
- `dlq_partition`: the partitions searched for dead letters, by (topic, id, partition).

The other tables are measures: `Tables.stored` says whether there are rows of them.
"""


def schema_of(table: str, columns: Sequence[str] | None = None) -> pa.Schema:
    """The schema of a scan's rows: that of the table, or of some columns in their order."""
    schema = SCHEMAS[table] if table in SCHEMAS else TABLES[table].schema
    return schema if columns is None else pa.schema([schema.field(name) for name in columns])


class Metadata(Protocol):
    """The metadata log beside the other logs."""

    @property
    def history(self) -> "MetadataHistory | None":
        """The metadata over time; None when there is no metadata log."""

    @property
    def doubtful_groups(self) -> frozenset[str]:
        """The groups with settings that a gap of the metadata log could have changed."""


class Samples(Protocol):
    """Single batches of user partitions whose headers are not in the evidence."""

    @property
    def partitions(self) -> Set[TopicPartition]:
        """User partitions of which single batches can be read."""

    def of(self, offsets: Mapping[TopicPartition, Ints]) -> SampledBatches:
        """What the batches at some ascending offsets say."""


class RunningCluster(Protocol):
    """What only a running cluster can answer."""

    @property
    def fetched(self) -> str:
        """What was fetched for the answer, as the end of a line."""

    def coordinators(self) -> "LiveCheck":
        """The coordinators, to compare an answer with."""

    def stable_offsets(self) -> EndOffsets:
        """Last stable offsets of user partitions whose headers are not in the evidence, as far as they are known."""

    def ends_at(self, moment_ms: int, topics: Iterable[str]) -> EndOffsets:
        """The first offsets with a timestamp behind the moment, or the ends, where headers do not say them."""

    def ensure_visible(self, topic: str) -> None:
        """Raises SharelensError where one may not describe a topic."""


class Publications(Protocol):
    """What only a lake can answer: its tables at earlier published cuts."""

    def earlier_rows(
        self, table: str, columns: Sequence[str], ages_ms: Sequence[int], keys: Keys
    ) -> Sequence[tuple[int, pa.Table]]:
        """Rows of a gold table at the newest publications that are so much older than the open cut, or older still.

        Each with the newest log time (epoch ms) of its evidence, in the order of the ages; a publication that serves
        several ages comes once. Empty where one of them can't be read any more.
        """


class Tables(Protocol):
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
    def metadata(self) -> Metadata:
        """The metadata log."""

    @property
    def origin(self) -> "Origin":
        """The files or the publication that the rows come from."""

    @property
    def samples(self) -> Samples:
        """Single batches where headers are not in the evidence."""

    @property
    def cluster(self) -> RunningCluster | None:
        """The cluster that the logs were fetched from; None: there is none to ask."""

    @property
    def publications(self) -> Publications | None:
        """Earlier published cuts; None: nothing is published."""

    def scan(
        self, table: str, columns: Sequence[str] | None = None, where: Where = ALL_ROWS, order: Order = Order.ANY
    ) -> Iterator[pa.Table]:
        """The rows of a table (`SCHEMAS`, or a measure) that `where` selects, in bounded tables, read lazily.

        There is one table at least. Log directories give the rows of what is decoded or replayed in one table.
        """

    def stored(self, table: str) -> bool:
        """Whether a run computed a measure, at the end of the evidence, with the settings that answers take."""

    def histories(self, places: pa.Table, cut: LogPrefix) -> Parts:
        """Both histories of these places (PLACED) up to the cut, in bounded parts of whole share partitions.

        Both come from one reading of a part.
        """

    def audited(self, where: Where) -> "AuditedEvidence":
        """The audit of the evidence; `where.span`: findings that were seen in it.

        Raises:
            SharelensError: nothing was audited, or nothing can be.
        """

    def names(self, topic_ids: Iterable[str]) -> Mapping[str, str]:
        """Names by topic id, of these ids at least, as far as known."""

    def topic_ids(self, name: str) -> Sequence[str]:
        """Every id of the name: a recreated topic has a new id."""

    def topic_id_now(self, name: str) -> str | None:
        """The id of the topic that has the name at the end of the evidence; None where that is not known."""

    def cover(self) -> Sequence[StatePartitionCover]:
        """The evidence of each state partition (newest incarnation of the state topic), in order."""

    @property
    def missing(self) -> MissingEvidence:
        """What other logs list and the evidence lacks at its end; ask for it after the answer, as for `cover`."""

    @property
    def undecoded_group_records(self) -> int:
        """Records of consumer groups that a lake took and did not decode: without them no consumer group is known."""

    def group_log_covers(self) -> Mapping[int, GroupLogCover]:
        """The evidence of each partition of __consumer_offsets with a record, by partition."""

    def read_until_ms(self) -> int | None:
        """Until when the evidence was read (epoch ms): silence up to then is known; None: nothing says it."""

    def clock_steps(self, moment_ms: int) -> Sequence[ClockStep]:
        """Steps of the writers' clocks that blur what `as of` this moment means; one per state partition at most."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
