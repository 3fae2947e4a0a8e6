"""The interfaces between the parts of the broker.

The core (logs, share partitions, coordinators) is synchronous: a single node appends to its own disk, so a write is
durable or refused when the call returns. Waiting happens at the edge, in the handlers of requests; time and timers
come in through `Timers`, so that the simulator runs the same code in virtual time.

Topic ids are the 22 characters that Kafka prints. Times are milliseconds since the epoch. Offsets are of the topic's
partition; a range has an inclusive last offset.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from state_model.answers import ErrorCode, ReadAnswer, SummaryAnswer
from state_model.coordinator import WriteRequest
from state_model.share_records import SharePartitionKey

IsolationLevel = Literal["read_uncommitted", "read_committed"]


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    """A partition of a topic by name, as in the names of partition folders."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Record(NamedTuple):
    """One record of a log; `offset` is -1 before it is appended. Header values may be null, keys may repeat."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int = -1
    offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSpan:
    """The facts of a record batch for a share partition: its range of offsets and its kind."""

    first_offset: int
    last_offset: int
    size_bytes: int
    is_control: bool = False
    is_transactional: bool = False
    producer_id: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """Whole record batches with the bytes of the segment, and their spans in order.

    The first batch has the requested offset and may begin before it. Empty at the end of the log.
    """

    data: bytes
    spans: tuple[BatchSpan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortedTransaction:
    """Records of this producer from `first_offset` up to its abort marker at `last_offset` do not count."""

    producer_id: int
    first_offset: int
    last_offset: int


class ProducerIdentity(NamedTuple):
    """The producer of a transaction in whose name a coordinator writes."""

    producer_id: int
    producer_epoch: int


class Handle(Protocol):
    """A timer that runs."""

    def cancel(self) -> None:
        """Cancel the timer; without effect after it has fired."""


class Timers(Protocol):
    """The clock and the timers of the broker, or of the simulator."""

    def now_ms(self) -> int:
        """Wall-clock time."""

    def after_ms(self, delay_ms: int, callback: Callable[[], None]) -> Handle:
        """Call `callback` once, not before `delay_ms` have passed. Callbacks never run inside this call."""


class Log(Protocol):
    """The log of one partition (implemented in sharelens/broker/storage/partition_log.py)."""

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition."""

    @property
    def topic_id(self) -> str:
        """The topic's id."""

    @property
    def leader_epoch(self) -> int:
        """The epoch that appended batches carry; each start of the broker raises it by 2."""

    @property
    def log_start_offset(self) -> int:
        """The first offset that may be read."""

    @property
    def high_watermark(self) -> int:
        """The end of what may be read; on a single node the end of the log."""

    @property
    def last_stable_offset(self) -> int:
        """The first offset of the oldest open transaction, else the high watermark."""

    def append_records(self, records: Sequence[Record], *, codec: int = 0, base_sequence: int = -1) -> int:
        """Append one atomic batch of the broker's own, stamped with the current time where a record has none.

        `base_sequence`: coordinators' batches carry 0 although they have no producer (CoordinatorRuntime).

        Returns the first record's offset. Raises sharelens.broker.errors.StorageError when the disk refuses; the log
        is then as it was. Raises sharelens.broker.errors.RecordTooLargeError above the topic's max.message.bytes.
        """

    def read(self, offset: int, *, max_bytes: int, end_offset: int | None = None) -> Fetched:
        """Whole batches from the one that holds `offset` on, those that begin below `end_offset` (None: the high
        watermark); at least one, however large, else at most `max_bytes`.

        Raises sharelens.broker.errors.OffsetOutOfRangeError below the log start offset or above the high watermark.
        """

    def records(self, first_offset: int, last_offset: int) -> list[Record]:
        """The data records of a range that are still there (decompressed within a bound), in order of offset."""

    def aborted_transactions(self, first_offset: int, last_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions that touch a range, in order of their markers."""

    def offset_for_timestamp(self, timestamp_ms: int) -> tuple[int, int] | None:
        """Timestamp and offset of the first record at or after a time; None when there is none."""

    def delete_records(self, before_offset: int) -> int:
        """Raise the log start offset (never lower it, never beyond the high watermark), drop whole segments below.

        Returns the log start offset.
        """

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` after each append; the returned function unsubscribes it."""


class TransactionalLog(Log, Protocol):
    """A log that coordinators of groups and transactions write (implemented in
    sharelens/broker/storage/partition_log.py)."""

    def append_records(
        self,
        records: Sequence[Record],
        *,
        codec: int = 0,
        base_sequence: int = -1,
        producer: ProducerIdentity | None = None,
    ) -> int:
        """As Log.append_records; with a producer the batch is part of its open transaction, or opens one."""

    def append_marker(self, producer_id: int, producer_epoch: int, *, commit: bool, coordinator_epoch: int) -> int:
        """End the producer's transaction in this partition, if one is open; the marker is written in any case.

        Returns its offset. Raises sharelens.broker.errors.StorageError, and ProducerFencedError or
        CoordinatorFencedError when a newer epoch has written here.
        """


class Logs(Protocol):
    """The logs of this broker."""

    def get(self, topic: str, partition: int) -> Log | None:
        """The log of a partition; None when there is none."""

    def by_id(self, topic_id: str, partition: int) -> Log | None:
        """The log of a partition by the topic's id; None when there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic of the catalogue. Partitions are 0 to `partitions` - 1."""

    name: str
    topic_id: str
    partitions: int
    is_internal: bool = False


class Topics(Protocol):
    """The topics that exist (implemented in sharelens/broker/storage/catalog.py)."""

    def by_name(self, name: str) -> Topic | None:
        """The topic of a name; None when there is none."""

    def by_id(self, topic_id: str) -> Topic | None:
        """The topic of an id; None when there is none."""

    def ensure_internal(self, name: str) -> Topic:
        """An internal topic, created with its own configuration when it does not exist."""


class Persister(Protocol):
    """The share coordinator, as share partitions and the group coordinator call it (KIP-932 Persister).

    Every call is durable or refused when it returns. Error codes are those of share-group-state-log §5.
    """

    def initialize(self, key: SharePartitionKey, *, state_epoch: int, start_offset: int) -> ErrorCode:
        """InitializeShareGroupState."""

    def read(self, key: SharePartitionKey, *, leader_epoch: int) -> ReadAnswer:
        """ReadShareGroupState; may append a record that raises the leader epoch."""

    def write(self, key: SharePartitionKey, request: WriteRequest) -> ErrorCode:
        """WriteShareGroupState."""

    def delete(self, key: SharePartitionKey) -> ErrorCode:
        """DeleteShareGroupState."""

    def read_summary(self, key: SharePartitionKey) -> SummaryAnswer:
        """ReadShareGroupStateSummary; never appends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupSettings:
    """The effective configuration of a share group: its own value, else the broker's, within bounds.

    `auto_offset_reset` is earliest, latest, or a duration in milliseconds (by_duration).
    `dead_letter_topic` is null when dead letters are off, which they are below share.version 2.
    """

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    record_lock_duration_ms: int = 30_000
    delivery_count_limit: int = 5
    partition_max_record_locks: int = 2_000
    auto_offset_reset: Literal["earliest", "latest"] | int = "latest"
    isolation_level: IsolationLevel = "read_uncommitted"
    renew_acknowledge_enable: bool = True
    assignment_interval_ms: int = 1_000
    dead_letter_topic: str | None = None
    dead_letter_copy_record: bool = False


GroupSettings = Callable[[str], ShareGroupSettings]
"""The current settings of a group id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetters:
    """A range of offsets of one share partition that is to go to the dead-letter topic (KIP-1191)."""

    key: SharePartitionKey
    first_offset: int
    last_offset: int
    delivery_count: int
    is_rejected: bool


class DeadLetterSink(Protocol):
    """Receives the records that a share group gave up."""

    def submit(self, letters: DeadLetters, done: Callable[[], None]) -> None:
        """Write the letters, with the attempts that KIP-1191 allows; then call `done`, whether they arrived or not.

        `done` never runs inside this call.
        """
