"""What log directories have for the rules that need more than the state log."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.decoding import decode_rows
from sharelens.evidence.group_decoding import decode_groups
from sharelens.evidence.incarnations import newest_incarnation
from sharelens.evidence.reading import read_whole
from sharelens.evidence.schemas import GROUP_RECORD, ODD_GROUP_RECORD
from sharelens.kafka_log import reader
from sharelens.kafka_log.union import LogPartition
from sharelens.measures.settings.coordinator import coordinator_config
from sharelens.measures.settings.over_time import MAX_RECORD_LOCKS, largest
from sharelens.measures.settings.streams import bounds_of
from sharelens.measures.topics.record_ranges import NO_RECORDS, RecordRanges, record_ranges
from sharelens.tables.limits import size_text
from sharelens.tables.logs.directories import LogDirectories
from sharelens.tables.logs.state import StateLog, size_bytes
from state_model.audit.columnar.classic_group_audit import ClassicGroupAudit
from state_model.audit.columnar.configured import ConfiguredAudit
from state_model.audit.columnar.continuation import KEYS
from state_model.audit.columnar.lives import Turns, lives_of
from state_model.audit.columnar.log_pairs import GroupLog, LogPairs, StatePartition, StateTopic, proofs_of_groups
from state_model.audit.columnar.model_group_audit import transactional_group_records
from state_model.audit.columnar.partition import PartitionAudit
from state_model.audit.columnar.passed_offsets import PassedOffsets
from state_model.audit.columnar.proofs import LogRecord, Proofs
from state_model.audit.columnar.topic_metadata import LogTimes, TopicMetadata, belongs_to, topic_metadata
from state_model.audit.columnar.user_topics import TopicAudit, TopicEnd, UserTopics, topic_records
from state_model.audit.coordinator_config import CoordinatorConfig
from state_model.audit.group_steps import TopicPartition
from state_model.audit.periods import BEGINNING
from state_model.audit.rule import Need
from state_model.columnar.completeness import Completeness
from state_model.columnar.keys import Ints
from state_model.topics import INTERNAL_TOPICS, METADATA_TOPIC, OFFSETS_TOPIC, STATE_TOPIC
from state_model.uuids import ZERO_UUID

GIVEN_BY_LOGS = frozenset(
    {Need.GROUP_COORDINATOR, Need.USER_TOPIC, Need.METADATA, Need.COORDINATOR_CONFIG, Need.LOG_DIRECTORIES}
)
"""The needs of rules that logs beside the state log can meet, or the configuration of the brokers."""


@dataclass(slots=True, kw_only=True)
class BesideAudit:
    """The rules on the records of one state log that need more than this log; `proofs` counts their violations.

    `audit`: that of the state log alone, which takes the records first.
    """

    audit: PartitionAudit
    topics: TopicAudit
    passed: PassedOffsets
    configured: ConfiguredAudit | None
    proofs: Proofs
    turns: Turns = field(default_factory=Turns)

    def take(self, records: pa.Table) -> None:
        """The next records (SHARE_RECORD), which the audit has taken."""
        self.turns.take(records)
        self.topics.take(topic_records(records))
        self.passed.take(self.audit.auditor.passed)
        if self.configured is not None:
            self.configured.take(records)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedLog:
    """A state log after its audit, with what it has for rules between logs."""

    log: StateLog
    audit: PartitionAudit
    beside: BesideAudit


class OtherLogs:
    """The logs of log directories besides the state log, as far as the audit reads them."""

    def __init__(self, evidence: LogDirectories, between_ms: tuple[int | None, int | None]) -> None:
        self._evidence = evidence
        self._between_ms = between_ms
        self._ends: dict[TopicPartition, TopicEnd | None] = {}
        self._record_ranges: dict[TopicPartition, RecordRanges] = {}
        self._of_raw_records = Proofs(between_ms)
        self.warnings: list[str] = []

    @cached_property
    def available(self) -> frozenset[Need]:
        """The needs of rules that the directories meet."""
        by_need = {
            Need.GROUP_COORDINATOR: bool(self._group_partitions),
            Need.USER_TOPIC: bool(self._user_partitions),
            Need.METADATA: self.metadata is not None,
            Need.COORDINATOR_CONFIG: self._config is not None,
        }
        return frozenset({Need.LOG_DIRECTORIES, *(need for need, is_met in by_need.items() if is_met)})

    @cached_property
    def metadata(self) -> TopicMetadata | None:
        """What the metadata log says; None without its beginning."""
        history = self._evidence.metadata.history
        if history is None or not history.has_beginning:
            return None
        return topic_metadata(history.validities, history.first_ms, self.read_until_ms)

    @property
    def topic_ids(self) -> frozenset[str]:
        """The user topics with a folder."""
        return frozenset(topic_id for topic_id, _ in self._user_partitions)

    @property
    def is_one_copy(self) -> bool:
        """Whether one broker's directory is all there is."""
        return len(self._evidence.directories) == 1

    @cached_property
    def read_until_ms(self) -> int | None:
        """Until when silence is known, of one copy alone."""
        return self._evidence.read_until_ms() if self.is_one_copy else None

    @property
    def has_groups(self) -> bool:
        """Whether there is a log of groups, however large."""
        return any(partition.topic == OFFSETS_TOPIC for partition in self._partitions)

    def beside(self, audit: PartitionAudit) -> BesideAudit:
        """The rules on the records that `audit` takes that need other logs or the configuration."""
        proofs = Proofs(self._between_ms)
        config = self._config
        passed = PassedOffsets(
            proofs,
            known_until_ms=self._known_until_ms,
            records_in=self._records_in,
            topic_of=lambda place: self._user_partitions[place].topic,
        )
        return BesideAudit(
            audit=audit,
            topics=TopicAudit(self._topics, proofs),
            passed=passed,
            configured=None if config is None else ConfiguredAudit(config, audit),
            proofs=proofs,
        )

    @cached_property
    def _config(self) -> CoordinatorConfig | None:
        files = self._evidence.source.settings_files
        return None if files is None else coordinator_config(files.observations)

    def prove(self, audited: Sequence[AuditedLog]) -> Proofs:
        """The violations of rules that need other logs."""
        proofs = Proofs(self._between_ms)
        for logged in audited:
            proofs.take(logged.beside.proofs)
        between = (
            LogPairs(self._state_topic(audited), self, self._between_ms).proofs()
            if audited
            else proofs_of_groups(self, self._between_ms)
        )
        proofs.take(between)
        proofs.take(self._of_raw_records)
        return proofs

    def _state_topic(self, audited: Sequence[AuditedLog]) -> StateTopic:
        """The state topic, whose records were compared with user topics while they were read."""
        log = audited[0].log
        topic_id = log.partition.topic_id
        incarnations = [part for part in self._partitions if part.topic == STATE_TOPIC and part.topic_id != ZERO_UUID]
        return StateTopic(
            topic_id=topic_id,
            topic_ids={part.topic_id for part in incarnations},
            first=LogRecord(STATE_TOPIC, log.number, log.first_offset),
            times=_times(log),
            partitions=lambda: list(map(_state_partition, audited)),
            lives=lambda: lives_of(pa.concat_tables([logged.beside.turns.table() for logged in audited])),
            earlier_places=lambda: _places([part for part in incarnations if part.topic_id != topic_id]),
            test_topics=lambda *_: None,
        )

    @cached_property
    def _partitions(self) -> tuple[LogPartition, ...]:
        return self._evidence.united

    @cached_property
    def _user_partitions(self) -> dict[TopicPartition, LogPartition]:
        internal = INTERNAL_TOPICS | {METADATA_TOPIC}
        return {
            (part.topic_id, part.partition): part
            for part in self._partitions
            if part.topic not in internal and part.topic_id != ZERO_UUID
        }

    @cached_property
    def _group_partitions(self) -> list[LogPartition]:
        """The partitions of the newest __consumer_offsets, unless they are too large."""
        partitions = [part for part in self._partitions if part.topic == OFFSETS_TOPIC]
        if len({part.topic_id for part in partitions}) > 1:
            newest = newest_incarnation([(part.topic_id, reader.log_end(part).newest_ms) for part in partitions])
            partitions = [part for part in partitions if part.topic_id == newest]
        size = sum(size_bytes(partition) for partition in partitions)
        max_bytes = self._evidence.source.max_bytes
        if size > max_bytes:
            self.warnings.append(
                f"{size_text(size)} of {OFFSETS_TOPIC} were not read, --max-bytes allows {size_text(max_bytes)}; "
                "raise it to test the rules on groups"
            )
            return []
        return partitions

    def group_log(self) -> GroupLog | None:
        """Decoded from the partitions; rules on raw records are tested on the way."""
        if not self._group_partitions:
            return None
        records, odd_records = [GROUP_RECORD.empty_table()], [ODD_GROUP_RECORD.empty_table()]
        complete = {partition.partition: Completeness() for partition in self._group_partitions}
        for partition in self._group_partitions:
            classic_groups = ClassicGroupAudit(self._of_raw_records)
            for chunk in read_whole(partition, include_uncommitted=False):
                rows = pa.Table.from_batches([chunk.records])
                complete[partition.partition].take(rows.column("offset"))
                transactional_group_records(rows, self._of_raw_records)
                classic_groups.take(rows)
                decoded = decode_groups(rows)
                records.append(decoded.records)
                odd_records.append(decoded.odd_records)
        first = self._group_partitions[0]
        return GroupLog(
            topic_id=first.topic_id,
            partitions=frozenset(complete),
            records=pa.concat_tables(records),
            odd_records=pa.concat_tables(odd_records),
            first_offset=first.log_start_offset,
            complete_from={number: completeness.complete_from for number, completeness in complete.items()},
            bounds_of=bounds_of(self._evidence.settings.groups),
        )

    def user_topics(self, metadata: TopicMetadata | None, places: set[TopicPartition]) -> UserTopics:
        """Ends and batches of user topics, read where a record needs them; `places` are not needed for it."""
        return UserTopics(
            end_of=self._end_of,
            span_at=self._span_at,
            locks_of=largest(self._evidence.settings.groups, MAX_RECORD_LOCKS),
            metadata=metadata,
            read_until_ms=self.read_until_ms,
        )

    @cached_property
    def _topics(self) -> UserTopics:
        """The user topics; without the metadata log where the state log is of another cluster than it."""
        metadata = self.metadata
        for log in self._evidence.logs[:1]:
            first = LogRecord(STATE_TOPIC, log.number, log.first_offset)
            if metadata is not None and not belongs_to(metadata, first, log.partition.topic_id, _times(log), Proofs()):
                metadata = None
        return self.user_topics(metadata, set())

    def _end_of(self, topic_partition: TopicPartition) -> TopicEnd | None:
        if topic_partition not in self._ends:
            partition = self._user_partitions.get(topic_partition)
            self._ends[topic_partition] = None if partition is None else _topic_end(partition)
        return self._ends[topic_partition]

    def _known_until_ms(self, topic_partition: TopicPartition) -> int | None:
        end = self._end_of(topic_partition)
        return None if end is None else max(end.newest_ms, self.read_until_ms or 0)

    def _records_in(self, topic_partition: TopicPartition, firsts: Ints, lasts: Ints) -> Ints:
        if topic_partition not in self._record_ranges:
            self._record_ranges[topic_partition] = _record_ranges(self._user_partitions[topic_partition])
        return self._record_ranges[topic_partition].first_in(firsts, lasts)

    def _span_at(self, topic_partition: TopicPartition, offset: int) -> int | None:
        partition = self._user_partitions.get(topic_partition)
        if partition is None:
            return None
        for headers in reader.scan_batches(partition, offset, offset + 1):
            for row in headers.select(["base_offset", "last_offset"]).to_pylist():
                if row["base_offset"] <= offset <= row["last_offset"]:
                    return int(row["last_offset"] - row["base_offset"] + 1)
        return None


def _places(partitions: Sequence[LogPartition]) -> tuple[pa.Table, Ints]:
    """The share partitions (KEYS) that have records in state partitions, and the state partition of each."""
    place = [*KEYS.names, "state_partition"]
    places = [decode_rows(pa.Table.from_batches([chunk.records])).records.select(place).group_by(place).aggregate([])
              for partition in partitions for chunk in read_whole(partition, include_uncommitted=False)]  # fmt: skip
    if not places:
        return KEYS.empty_table(), np.zeros(0, np.int64)
    distinct = pa.concat_tables(places).group_by(place).aggregate([])
    return distinct.select(KEYS.names).cast(KEYS), distinct.column("state_partition").to_numpy().astype(np.int64)


def _topic_end(partition: LogPartition) -> TopicEnd | None:
    """The end of a user partition, with its newest committed batch; None where bytes at its end can't be read."""
    end = reader.log_end(partition)
    if end.unreadable_bytes:
        return None
    newest = (-1, -1)
    committed_end = end.readable(partition.committed_end, include_uncommitted=False)
    for headers in reader.scan_batches(partition, max(0, committed_end - 1), committed_end):
        for row in headers.select(["max_timestamp_ms", "leader_epoch"]).to_pylist():
            newest = (row["max_timestamp_ms"], row["leader_epoch"])
    return TopicEnd(partition.topic, end.end_offset, *newest)


def _record_ranges(partition: LogPartition) -> RecordRanges:
    """The committed records of a user partition; none where a copy does not say where the log starts."""
    if not all(copy.log_start_known for copy in partition.copies):
        return NO_RECORDS
    begin, end = partition.log_start_offset, reader.readable_end(partition, include_uncommitted=False)
    return record_ranges(reader.scan_batches(partition, begin, end), begin)


def _first_ms(log: StateLog) -> int:
    """The time of the first record of a state log; BEGINNING where it has none."""
    headers = reader.scan_batches(log.partition, log.first_offset, log.first_offset + 1)
    times = (row for header_batch in headers for row in header_batch.column("base_timestamp_ms").to_pylist())
    return next(times, BEGINNING)


def _times(log: StateLog) -> LogTimes:
    return LogTimes(_first_ms(log), log.log_end.newest_ms or 0)


def _state_partition(audited: AuditedLog) -> StatePartition:
    log, auditor = audited.log, audited.audit.auditor
    begins = log.first_offset == 0 and log.log_start_offset == 0
    first_ms = BEGINNING if begins or log.reading is None else log.reading.first_ms
    return StatePartition(
        number=log.number,
        auditor=auditor,
        is_whole=auditor.is_without_losses and first_ms is not None,
        first_ms=BEGINNING if first_ms is None else first_ms,
        newest_ms=int(pc.max(pa.array(auditor.last_ms)).as_py() or BEGINNING),
    )
