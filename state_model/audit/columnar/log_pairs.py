"""The rules between the state log, `__consumer_offsets`, user topics and the metadata log of one cluster.

They read what the audit of state partitions leaves behind: share partitions, and the records that it keeps.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from state_model.audit.columnar.continuation import matrix_of
from state_model.audit.columnar.cross_checks import StateLogs, cross_check
from state_model.audit.columnar.group_audit import Groups, audit_groups
from state_model.audit.columnar.kept_records import distinct, places_of, topic_records_of, turns_of
from state_model.audit.columnar.kept_schema import AHEAD, NEWEST, WINDOW
from state_model.audit.columnar.kernels.audit_kernel import LOSS_COUNT
from state_model.audit.columnar.lives import lives_of
from state_model.audit.columnar.partitions import PartitionsAudit
from state_model.audit.columnar.places import DECIDING, count_of_keys
from state_model.audit.columnar.proofs import LogRecord, Place, Proofs
from state_model.audit.columnar.topic_metadata import LogTimes, TopicMetadata, belongs_to, unknown_topic_partitions
from state_model.audit.columnar.user_topics import TopicAudit, UserTopics
from state_model.audit.group_steps import TopicPartition
from state_model.audit.periods import BEGINNING, known_until
from state_model.audit.rule import Difference, Field, Need, Rule
from state_model.audit.streams import table as streams
from state_model.audit.streams.bounds import BoundsOf
from state_model.audit.table import BY_ID
from state_model.share_records import SharePartitionKey
from state_model.topics import OFFSETS_TOPIC, STATE_TOPIC

CREATED_AGAIN: Final = 71
BETWEEN: Final[Sequence[Rule]] = tuple(
    BY_ID[rule]
    for rule in (
        *(CREATED_AGAIN, 200, 201, 240, 290, 350, 351, 360, 610, 650, 660, 661, 670, 680, 690, 691, 700, 710),
        *(720, 721, 730, 740, 750, 760, 761),
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
    `bounds_of`: configuration of streams groups; None: unknown.
    """

    topic_id: str
    partitions: frozenset[int]
    records: pa.Table
    odd_records: pa.Table
    first_offset: int
    bounds_of: BoundsOf | None = None


class OtherLogs(Protocol):
    """The logs of one cluster other than the state log: group coordinator, user topics and metadata.

    `metadata`: None without the beginning of the metadata log. `is_one_copy`: the logs were copied together, and
    `read_until_ms` is until when silence in them is known.
    """

    @property
    def metadata(self) -> TopicMetadata | None: ...

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


@dataclass(frozen=True, slots=True, kw_only=True)
class StateTopic:
    """The audited state topic of a cluster in its newest incarnation.

    `states`: STATES_READ by state partition. `topic_ids`: of all incarnations. `first_offset`: of the log of the lowest
    state partition. `kept_records`: KEPT_RECORD rows of other kinds than LIFE. `lives`: reads those of the kind LIFE.
    """

    topic_id: str
    topic_ids: frozenset[str]
    states: pa.Table
    first_offset: int
    kept_records: pa.Table
    lives: Callable[[], pa.Table]


class LogPairs:
    """The rules between the logs of one cluster."""

    def __init__(self, topic: StateTopic, other_logs: OtherLogs) -> None:
        self._topic = topic
        self._states = topic.states
        self._other_logs = other_logs
        self._metadata = other_logs.metadata

    def proofs(self) -> Proofs:
        """Violations of all rules between the logs of the cluster."""
        proofs = Proofs()
        state = self._states.slice(0, 1)
        number, newest_ms = (state.column(name)[0].as_py() for name in ("state_partition", "log_time_ms"))
        first = LogRecord(STATE_TOPIC, number, self._topic.first_offset)
        first_ms = int(PartitionsAudit.of_counts(state).auditor.first_ms.min(initial=newest_ms))
        metadata = self._metadata
        if metadata is not None and not belongs_to(
            metadata, first, self._topic.topic_id, LogTimes(first_ms, newest_ms), proofs
        ):
            metadata = None
        self._test_incarnations(metadata, first, newest_ms, proofs)
        self._test_groups(metadata, proofs)
        self._test_topics(metadata, proofs)
        if metadata is not None:
            unknown_topic_partitions(self._state_logs.lives, metadata, proofs)
        return proofs

    def _test_topics(self, metadata: TopicMetadata | None, proofs: Proofs) -> None:
        """Tests the rules on user topics on the records that can violate them."""
        records, newest = (
            topic_records_of(self._topic.kept_records.filter(pc.field("kind").isin(kinds)))
            for kinds in ((AHEAD, WINDOW), (NEWEST,))
        )
        topics = self._other_logs.user_topics(metadata, {*places_of(records), *places_of(newest)})
        numbers = [rows.column("state_partition").unique().to_pylist() for rows in (records, newest)]
        for number in sorted({*numbers[0], *numbers[1]}):
            in_partition = pc.field("state_partition") == number
            audit = TopicAudit(topics, proofs)
            audit.take(distinct(records.filter(in_partition)))
            audit.close(newest.filter(in_partition))

    def _test_incarnations(self, metadata: TopicMetadata | None, log: LogRecord, now_ms: int, proofs: Proofs) -> None:
        topic_ids = set(self._topic.topic_ids)
        if metadata is not None:
            topic_ids |= metadata.topic_ids.get(STATE_TOPIC, {}).keys()
        if len(topic_ids) > 1:
            proofs.add(CREATED_AGAIN, Place(), Difference(Field.TOPIC_IDS, 1, len(topic_ids)), log, now_ms)

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
                topic_exists=lambda topic: _exists(metadata, topic),
                metadata=metadata,
            )

    @cached_property
    def _state_logs(self) -> StateLogs:
        """The share partitions of the state log; read only where there is a log to compare them with."""
        keys, owner, known_from_ms = [], [], {}
        newest_ms = {}
        for number in range(self._states.num_rows):
            row = self._states.slice(number, 1)
            auditor = PartitionsAudit.of_counts(row).auditor
            state_partition = row.column("state_partition")[0].as_py()
            keys.append(auditor.keys)
            owner.append(np.full(auditor.keys.num_rows, state_partition))
            newest_ms[state_partition] = row.column("log_time_ms")[0].as_py()
            if _is_whole(row):
                is_from_zero = row.column("is_from_zero")[0].as_py() and row.column("log_start_offset")[0].as_py() == 0
                known_from_ms[state_partition] = BEGINNING if is_from_zero else int(auditor.first_ms.min())
        every = pa.concat_tables(keys)
        columns = (every.column(name).to_pylist() for name in every.column_names)
        return StateLogs(
            lives=lives_of(turns_of(self._topic.lives().sort_by(LIFE_ORDER))),
            with_records=frozenset(SharePartitionKey(*key) for key in zip(*columns, strict=True)),
            known_from_ms=known_from_ms,
            until_ms=self._known_until(newest_ms),
            count=count_of_keys(every.slice(0, DECIDING), np.concatenate(owner)[:DECIDING].astype(np.int64)),
        )

    def _known_until(self, newest_ms: Mapping[int, int]) -> dict[int, int]:
        return known_until(
            newest_ms, is_one_copy=self._other_logs.is_one_copy, read_until_ms=self._other_logs.read_until_ms
        )


def proofs_of_groups(other_logs: OtherLogs) -> Proofs:
    """Violations of the rules on records of groups, in a cluster without a state log."""
    proofs, log = Proofs(), other_logs.group_log()
    if log is not None:
        _audit_groups(log, other_logs.metadata, proofs)
    return proofs


def _audit_groups(log: GroupLog, metadata: TopicMetadata | None, proofs: Proofs) -> Groups:
    return audit_groups(
        log.records, log.odd_records, log.partitions, proofs, metadata=metadata, bounds_of=log.bounds_of
    )


def _is_whole(state: pa.Table) -> bool:
    """Whether no record is missing from an audited log."""
    has_losses = len(matrix_of(state, "first_losses", 2)) > 0 or int(matrix_of(state, "log", 1).ravel()[LOSS_COUNT]) > 0
    return not has_losses


def _exists(metadata: TopicMetadata | None, topic_id: str) -> bool | None:
    """Whether a topic is there by the metadata log; None: it does not say."""
    if metadata is None or topic_id not in metadata.topics:
        return None
    return metadata.topics[topic_id].to_ms > metadata.until_ms
