"""The rules between the state log, `__consumer_offsets`, user topics and the metadata log of one cluster.

They read what the audit of state partitions leaves behind: share partitions, and the records that it keeps.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from state_model.audit.columnar.auditor import Auditor
from state_model.audit.columnar.continuation import KEYS, matrix_of
from state_model.audit.columnar.cross_checks import StateLogs, cross_check
from state_model.audit.columnar.group_audit import Groups, audit_groups
from state_model.audit.columnar.kept_records import distinct, places_of, topic_records_of, turns_of
from state_model.audit.columnar.kept_schema import AHEAD, NEWEST, WINDOW
from state_model.audit.columnar.kernels.audit_kernel import LOSS_COUNT
from state_model.audit.columnar.lives import Life, lives_of
from state_model.audit.columnar.partitions import PartitionsAudit
from state_model.audit.columnar.places import DECIDING, count_of_keys
from state_model.audit.columnar.proofs import LogRecord, Place, Proofs
from state_model.audit.columnar.topic_metadata import LogTimes, TopicMetadata, belongs_to, unknown_topic_partitions
from state_model.audit.columnar.user_topics import TopicAudit, UserTopics
from state_model.audit.group_steps import TopicPartition
from state_model.audit.model_groups.bounds import BoundsOf
from state_model.audit.periods import BEGINNING, known_until
from state_model.audit.rule import Difference, Field, Need, Rule
from state_model.audit.streams import table as streams
from state_model.audit.table import BY_ID
from state_model.columnar.keys import Ints
from state_model.share_records import SharePartitionKey
from state_model.topics import OFFSETS_TOPIC, STATE_TOPIC

CREATED_AGAIN: Final = 71
BETWEEN: Final[Sequence[Rule]] = tuple(
    BY_ID[rule]
    for rule in (
        *(CREATED_AGAIN, 200, 201, 202, 240, 290, 350, 351, 360, 610, 650, 660, 661, 670, 680, 690, 691, 700, 710),
        *(720, 721, 722, 723, 724, 730, 740, 750, 751, 760, 761),
        *(rule.id for rule in streams.RULES if Need.LOG_DIRECTORIES not in rule.needs),
    )
)
"""The rules of this module; each run judges them for all logs."""
LIFE_ORDER: Final = [
    (name, "ascending") for name in ("group_id", "topic_id", "partition", "state_partition", "log_offset")
]
"""By share partition, then by log offset."""
STATES_READ: Final = ["cluster_id", "log_topic_id", "state_partition", "is_from_zero", "log_start_offset",
    "last_log_offset", "log_time_ms", "log", "share_partitions", "first_losses"]  # fmt: skip
"""The columns of gold.audit_state that these rules read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLog:
    """The newest incarnation of `__consumer_offsets`: its partitions, and its rows that are not uncommitted.

    `records`, `odd_records`: GROUP_RECORD and ODD_GROUP_RECORD. `first_offset`: of the log of the lowest partition.
    `complete_from`: by partition the log offset from which on no record is missing; None: records may be missing.
    `bounds_of`: configuration of streams groups; None: unknown.
    """

    topic_id: str
    partitions: frozenset[int]
    records: pa.Table
    odd_records: pa.Table
    first_offset: int
    complete_from: Mapping[int, int] | None = None
    bounds_of: BoundsOf | None = None


class OtherLogs(Protocol):
    """The logs of one cluster other than the state log: group coordinator, user topics and metadata.

    `metadata`: None without the beginning of the metadata log. `topic_ids`: user topics that are there at the end of
    the evidence whatever the metadata log says. `is_one_copy`: the logs were copied together, and
    `read_until_ms` is until when silence in them is known.
    """

    @property
    def metadata(self) -> TopicMetadata | None: ...

    @property
    def topic_ids(self) -> Collection[str]: ...

    @property
    def is_one_copy(self) -> bool: ...

    @property
    def read_until_ms(self) -> int | None: ...

    def group_log(self) -> GroupLog | None:
        """The log of the group coordinator; None: it is not there."""

    def user_topics(self, metadata: TopicMetadata | None, places: set[TopicPartition]) -> UserTopics:
        """Ends, record locks and metadata of user topics, with which the rules compare records of the state log.

        `metadata`: that of the cluster of the state log; `places`: the user partitions of the records.
        """


class StatePartition(NamedTuple):
    """An audited state partition: its counts, whether no record is missing, and from when on it shows who lives.

    `first_ms`: the time of its first record, BEGINNING where it is there from log offset 0 on.
    """

    number: int
    auditor: Auditor
    is_whole: bool
    first_ms: int
    newest_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StateTopic:
    """The audited state topic of a cluster in its newest incarnation.

    Args:
        topic_ids: of all incarnations.
        first: the first record of the lowest state partition.
        times: of that state partition.
        partitions: ascending; called where there is a log to compare them with.
        lives: of its share partitions; called as `partitions`.
        earlier_places: share partitions (KEYS) of other incarnations, and the state partition of each; called where
            those of this one are too few to say how many state partitions there are.
        test_topics: adds the violations of rules on user topics; takes the metadata of the topic's cluster.
    """

    topic_id: str
    topic_ids: Collection[str]
    first: LogRecord
    times: LogTimes
    partitions: Callable[[], Sequence[StatePartition]]
    lives: Callable[[], Mapping[SharePartitionKey, Sequence[Life]]]
    earlier_places: Callable[[], tuple[pa.Table, Ints]]
    test_topics: Callable[[TopicMetadata | None, Proofs], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTopic:
    """What an audit stored of a state topic in its newest incarnation.

    `states`: STATES_READ by state partition; `earlier_states`: those of other incarnations. `first_offset`: of the log
    of the lowest state partition. `kept_records`: KEPT_RECORD rows of other kinds than LIFE. `lives`: reads those of
    the kind LIFE.
    """

    topic_id: str
    states: pa.Table
    earlier_states: pa.Table
    first_offset: int
    kept_records: pa.Table
    lives: Callable[[], pa.Table]

    def topic(self, other_logs: "OtherLogs") -> StateTopic:
        """The topic; rules on user topics are tested on the records that the audit kept."""
        state = self.states.slice(0, 1)
        number, newest_ms = (state.column(name)[0].as_py() for name in ("state_partition", "log_time_ms"))
        first_ms = int(PartitionsAudit.of_counts(state).auditor.first_ms.min(initial=newest_ms))
        return StateTopic(
            topic_id=self.topic_id,
            topic_ids={self.topic_id, *self.earlier_states.column("log_topic_id").to_pylist()},
            first=LogRecord(STATE_TOPIC, number, self.first_offset),
            times=LogTimes(first_ms, newest_ms),
            partitions=lambda: _stored_partitions(self.states),
            lives=lambda: lives_of(turns_of(self.lives().sort_by(LIFE_ORDER))),
            earlier_places=lambda: placed_keys(_stored_partitions(self.earlier_states)),
            test_topics=lambda metadata, proofs: self._test_topics(other_logs, metadata, proofs),
        )

    def _test_topics(self, other_logs: "OtherLogs", metadata: TopicMetadata | None, proofs: Proofs) -> None:
        records, newest = (
            topic_records_of(self.kept_records.filter(pc.field("kind").isin(kinds)))
            for kinds in ((AHEAD, WINDOW), (NEWEST,))
        )
        topics = other_logs.user_topics(metadata, {*places_of(records), *places_of(newest)})
        numbers = [rows.column("state_partition").unique().to_pylist() for rows in (records, newest)]
        for number in sorted({*numbers[0], *numbers[1]}):
            in_partition = pc.field("state_partition") == number
            audit = TopicAudit(topics, proofs)
            audit.take(distinct(records.filter(in_partition)))
            audit.close(newest.filter(in_partition))


def _stored_partitions(states: pa.Table) -> list[StatePartition]:
    """By row of STATES_READ."""
    return [_stored_partition(states.slice(row, 1)) for row in range(states.num_rows)]


def placed_keys(partitions: Sequence[StatePartition]) -> tuple[pa.Table, Ints]:
    """The share partitions (KEYS) of state partitions, and the state partition of each."""
    keys = pa.concat_tables([KEYS.empty_table(), *(partition.auditor.keys for partition in partitions)])
    counts = [partition.auditor.keys.num_rows for partition in partitions]
    return keys, np.repeat(np.array([partition.number for partition in partitions], np.int64), counts)


def _stored_partition(row: pa.Table) -> StatePartition:
    """One row of STATES_READ."""
    names = ("state_partition", "is_from_zero", "log_start_offset", "log_time_ms")
    number, is_from_zero, log_start_offset, newest_ms = (row.column(name)[0].as_py() for name in names)
    auditor = PartitionsAudit.of_counts(row).auditor
    begins = is_from_zero and log_start_offset == 0
    has_losses = len(matrix_of(row, "first_losses", 2)) > 0 or int(matrix_of(row, "log", 1).ravel()[LOSS_COUNT]) > 0
    first_ms = BEGINNING if begins else int(auditor.first_ms.min(initial=newest_ms))
    return StatePartition(number, auditor, not has_losses, first_ms, newest_ms)


class LogPairs:
    """The rules between the logs of one cluster; `between_ms`: violations between two log times alone."""

    def __init__(
        self, topic: StateTopic, other_logs: OtherLogs, between_ms: tuple[int | None, int | None] = (None, None)
    ) -> None:
        self._topic = topic
        self._other_logs = other_logs
        self._metadata = other_logs.metadata
        self._between_ms = between_ms

    def proofs(self) -> Proofs:
        """Violations of all rules between the logs of the cluster."""
        proofs = Proofs(self._between_ms)
        topic, metadata = self._topic, self._metadata
        if metadata is not None and not belongs_to(metadata, topic.first, topic.topic_id, topic.times, proofs):
            metadata = None
        self._test_incarnations(metadata, proofs)
        self._test_groups(metadata, proofs)
        topic.test_topics(metadata, proofs)
        if metadata is not None:
            unknown_topic_partitions(self._state_logs.lives, metadata, proofs)
        return proofs

    def _test_incarnations(self, metadata: TopicMetadata | None, proofs: Proofs) -> None:
        topic_ids = set(self._topic.topic_ids)
        if metadata is not None:
            topic_ids |= metadata.topic_ids.get(STATE_TOPIC, {}).keys()
        if len(topic_ids) > 1:
            difference = Difference(Field.TOPIC_IDS, 1, len(topic_ids))
            proofs.add(CREATED_AGAIN, Place(), difference, self._topic.first, self._topic.times.newest_ms)

    def _test_groups(self, metadata: TopicMetadata | None, proofs: Proofs) -> None:
        log = self._other_logs.group_log()
        if log is None:
            return
        groups = _audit_groups(log, metadata, proofs)
        times = LogTimes(groups.first_ms, max(groups.until_ms.values(), default=0))
        groups = groups._replace(until_ms=self._known_until(groups.until_ms))
        first = LogRecord(OFFSETS_TOPIC, min(log.partitions), log.first_offset)
        if self._metadata is None or belongs_to(self._metadata, first, log.topic_id, times, proofs):
            cross_check(
                self._state_logs,
                groups,
                proofs,
                topic_exists=lambda topic: _exists(metadata, self._other_logs.topic_ids, topic),
                metadata=metadata,
            )

    @cached_property
    def _state_logs(self) -> StateLogs:
        """The share partitions of the state log; read only where there is a log to compare them with."""
        partitions = self._topic.partitions()
        keys, owner = placed_keys(partitions)
        columns = (keys.column(name).to_pylist() for name in keys.column_names)
        return StateLogs(
            lives=self._topic.lives(),
            with_records=frozenset(SharePartitionKey(*key) for key in zip(*columns, strict=True)),
            known_from_ms={partition.number: partition.first_ms for partition in partitions if partition.is_whole},
            until_ms=self._known_until({partition.number: partition.newest_ms for partition in partitions}),
            count=self._state_partition_count(keys, owner),
        )

    def _state_partition_count(self, keys: pa.Table, owner: Ints) -> int | None:
        """The number of state partitions: by the metadata log, else by the places of share partitions.

        A topic that was created again has few at first; then those of an earlier incarnation decide.
        """
        count = None if self._metadata is None else self._metadata.partition_count(self._topic.topic_id)
        count = count or count_of_keys(keys.slice(0, DECIDING), owner[:DECIDING])
        if count is None and len(self._topic.topic_ids) > 1:
            earlier_keys, earlier_owner = self._topic.earlier_places()
            count = count_of_keys(earlier_keys.slice(0, DECIDING), earlier_owner[:DECIDING])
        return count

    def _known_until(self, newest_ms: Mapping[int, int]) -> dict[int, int]:
        return known_until(
            newest_ms, is_one_copy=self._other_logs.is_one_copy, read_until_ms=self._other_logs.read_until_ms
        )


def proofs_of_groups(other_logs: OtherLogs, between_ms: tuple[int | None, int | None] = (None, None)) -> Proofs:
    """Violations of the rules on records of groups, in a cluster without a state log."""
    proofs, log = Proofs(between_ms), other_logs.group_log()
    if log is not None:
        _audit_groups(log, other_logs.metadata, proofs)
    return proofs


def _audit_groups(log: GroupLog, metadata: TopicMetadata | None, proofs: Proofs) -> Groups:
    return audit_groups(
        log.records,
        log.odd_records,
        log.partitions,
        proofs,
        complete_from=log.complete_from,
        metadata=metadata,
        bounds_of=log.bounds_of,
    )


def _exists(metadata: TopicMetadata | None, topic_ids: Collection[str], topic_id: str) -> bool | None:
    """Whether a topic is there, by the metadata log, else by its own log; None: neither says it."""
    if metadata is not None and topic_id in metadata.topics:
        return metadata.topics[topic_id].to_ms > metadata.until_ms
    return True if topic_id in topic_ids else None
