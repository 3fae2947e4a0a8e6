"""What log directories have for the rules that need more than the state log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.group_decoding import decode_groups
from sharelens.evidence.incarnations import newest_incarnation
from sharelens.evidence.reading import read_whole
from sharelens.evidence.schemas import GROUP_RECORD, ODD_GROUP_RECORD
from sharelens.kafka_log import reader
from sharelens.kafka_log.union import LogPartition
from sharelens.measures.settings.coordinator import coordinator_config
from sharelens.measures.settings.over_time import MAX_RECORD_LOCKS, largest
from sharelens.measures.settings.streams import bounds_of
from sharelens.tables.limits import size_text
from sharelens.tables.logs.directories import LogDirectories
from sharelens.tables.logs.state import StateLog, size_bytes
from state_model.audit.columnar.configured import ConfiguredAudit
from state_model.audit.columnar.continuation import KEYS
from state_model.audit.columnar.cross_checks import StateLogs, cross_check
from state_model.audit.columnar.group_audit import Groups, audit_groups
from state_model.audit.columnar.lives import TURN, Turns, lives_of
from state_model.audit.columnar.partition import PartitionAudit
from state_model.audit.columnar.places import DECIDING, count_of_keys
from state_model.audit.columnar.proofs import LogRecord, Place, Proofs
from state_model.audit.columnar.streams_audit import Completeness, transactional_streams_records
from state_model.audit.columnar.topic_metadata import (
    LogTimes,
    TopicMetadata,
    belongs_to,
    topic_metadata,
    unknown_topic_partitions,
)
from state_model.audit.columnar.user_topics import TopicAudit, TopicEnd, UserTopics, topic_records
from state_model.audit.coordinator_config import CoordinatorConfig
from state_model.audit.group_steps import TopicPartition
from state_model.audit.periods import BEGINNING, known_until
from state_model.audit.rule import Difference, Field, Need
from state_model.share_records import SharePartitionKey
from state_model.topics import INTERNAL_TOPICS, METADATA_TOPIC, OFFSETS_TOPIC, STATE_TOPIC
from state_model.uuids import ZERO_UUID

GIVEN_BY_LOGS = frozenset(
    {Need.GROUP_COORDINATOR, Need.USER_TOPIC, Need.METADATA, Need.COORDINATOR_CONFIG, Need.LOG_DIRECTORIES}
)
"""The needs of rules that logs beside the state log can meet, or the configuration of the brokers."""
CREATED_AGAIN = 71


@dataclass(slots=True, kw_only=True)
class BesideAudit:
    """The rules on the records of one state log that need more than this log; `proofs` counts their violations."""

    topics: TopicAudit
    configured: ConfiguredAudit | None
    proofs: Proofs
    turns: Turns = field(default_factory=Turns)

    def take(self, records: pa.Table) -> None:
        """The next records (SHARE_RECORD), which the audit has taken."""
        self.turns.take(records)
        self.topics.take(topic_records(records))
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
        self._contradictions = Proofs(between_ms)
        self.warnings: list[str] = []

    @cached_property
    def available(self) -> frozenset[Need]:
        """The needs of rules that the directories meet."""
        by_need = {
            Need.GROUP_COORDINATOR: bool(self._group_partitions),
            Need.USER_TOPIC: bool(self._user_partitions),
            Need.METADATA: self._metadata is not None,
            Need.COORDINATOR_CONFIG: self._config is not None,
        }
        return frozenset({Need.LOG_DIRECTORIES, *(need for need, is_met in by_need.items() if is_met)})

    @property
    def has_groups(self) -> bool:
        """Whether there is a log of groups, however large."""
        return any(partition.topic == OFFSETS_TOPIC for partition in self._partitions)

    def beside(self, audit: PartitionAudit) -> BesideAudit:
        """The rules on the records that `audit` takes that need other logs or the configuration."""
        proofs = Proofs(self._between_ms)
        config = self._config
        return BesideAudit(
            topics=TopicAudit(self._topics, proofs),
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
        state = self._state_logs(audited)
        if self._group_partitions:
            groups = self._groups(proofs)
            first = self._group_partitions[0]
            if self._is_of_cluster(first, first.log_start_offset, groups.first_ms) and audited:
                metadata = self._topics.metadata
                cross_check(state, groups, proofs, topic_exists=self._topic_exists, metadata=metadata)
        if self._topics.metadata is not None:
            unknown_topic_partitions(state.lives, self._topics.metadata, proofs)
        self._test_incarnations()
        proofs.take(self._contradictions)
        return proofs

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

    def _groups(self, proofs: Proofs) -> Groups:
        records, odd_records = [GROUP_RECORD.empty_table()], [ODD_GROUP_RECORD.empty_table()]
        complete = {partition.partition: Completeness() for partition in self._group_partitions}
        for partition in self._group_partitions:
            for chunk in read_whole(partition, include_uncommitted=False):
                rows = pa.Table.from_batches([chunk.records])
                complete[partition.partition].take(rows.column("offset"))
                transactional_streams_records(rows, proofs)
                decoded = decode_groups(rows)
                records.append(decoded.records)
                odd_records.append(decoded.odd_records)
        numbers = frozenset(partition.partition for partition in self._group_partitions)
        complete_from = {number: completeness.complete_from for number, completeness in complete.items()}
        groups = audit_groups(
            pa.concat_tables(records),
            pa.concat_tables(odd_records),
            numbers,
            proofs,
            complete_from=complete_from,
            metadata=self._topics.metadata,
            bounds_of=bounds_of(self._evidence.settings.groups),
        )
        return groups._replace(until_ms=self._known_until(groups.until_ms))

    def _known_until(self, newest_ms: Mapping[int, int]) -> dict[int, int]:
        is_one_copy = len(self._evidence.directories) == 1
        return known_until(newest_ms, is_one_copy=is_one_copy, read_until_ms=self._topics.read_until_ms)

    def _state_logs(self, audited: Sequence[AuditedLog]) -> StateLogs:
        auditors = [logged.audit.auditor for logged in audited]
        keys = pa.concat_tables([KEYS.empty_table(), *(auditor.keys for auditor in auditors)])
        owner = np.repeat([logged.log.number for logged in audited], [auditor.keys.num_rows for auditor in auditors])
        columns = (keys.column(name).to_pylist() for name in keys.column_names)
        from_ms_by_partition = {logged.log.number: _known_from_ms(logged) for logged in audited}
        return StateLogs(
            lives=lives_of(
                pa.concat_tables([TURN.empty_table(), *(logged.beside.turns.table() for logged in audited)])
            ),
            with_records=frozenset(SharePartitionKey(*key) for key in zip(*columns, strict=True)),
            known_from_ms={number: from_ms for number, from_ms in from_ms_by_partition.items() if from_ms is not None},
            until_ms=self._known_until({logged.log.number: _until_ms(logged) for logged in audited}),
            count=count_of_keys(keys.slice(0, DECIDING), owner[:DECIDING]),
        )

    def _topic_exists(self, topic_id: str) -> bool | None:
        metadata = self._topics.metadata
        if metadata is not None and topic_id in metadata.topics:
            return metadata.topics[topic_id].to_ms > metadata.until_ms
        return True if topic_id in {topic for topic, _ in self._user_partitions} else None

    @cached_property
    def _topics(self) -> UserTopics:
        groups = self._evidence.settings.groups
        is_of_cluster = all(
            self._is_of_cluster(log.partition, log.first_offset, _first_ms(log)) for log in self._evidence.logs[:1]
        )
        return UserTopics(
            end_of=self._end_of,
            span_at=self._span_at,
            locks_of=largest(groups, MAX_RECORD_LOCKS),
            metadata=self._metadata if is_of_cluster else None,
            read_until_ms=self._evidence.read_until_ms() if len(self._evidence.directories) == 1 else None,
        )

    @cached_property
    def _metadata(self) -> TopicMetadata | None:
        history = self._evidence.metadata.history
        if history is None or not history.has_beginning:
            return None
        is_one_copy = len(self._evidence.directories) == 1
        read_until_ms = self._evidence.read_until_ms() if is_one_copy else None
        return topic_metadata(history.validities, history.first_ms, read_until_ms)

    def _end_of(self, topic_partition: TopicPartition) -> TopicEnd | None:
        if topic_partition not in self._ends:
            partition = self._user_partitions.get(topic_partition)
            self._ends[topic_partition] = None if partition is None else _topic_end(partition)
        return self._ends[topic_partition]

    def _span_at(self, topic_partition: TopicPartition, offset: int) -> int | None:
        partition = self._user_partitions.get(topic_partition)
        if partition is None:
            return None
        for headers in reader.scan_batches(partition, offset, offset + 1):
            for row in headers.select(["base_offset", "last_offset"]).to_pylist():
                if row["base_offset"] <= offset <= row["last_offset"]:
                    return int(row["last_offset"] - row["base_offset"] + 1)
        return None

    def _is_of_cluster(self, partition: LogPartition, first_offset: int, first_ms: int) -> bool:
        """Tests that the metadata log knows an internal topic; `first_ms`: the time of its first record."""
        if self._metadata is None:
            return True
        log = LogRecord(partition.topic, partition.partition, first_offset)
        times = LogTimes(first_ms, reader.log_end(partition).newest_ms or 0)
        return belongs_to(self._metadata, log, partition.topic_id, times, self._contradictions)

    def _test_incarnations(self) -> None:
        """Tests that the state topic was created once."""
        first = {part.topic_id: part for part in self._partitions if part.topic == STATE_TOPIC}
        topic_ids = set(first) - {ZERO_UUID}
        if self._topics.metadata is not None:
            topic_ids |= self._topics.metadata.topic_ids.get(STATE_TOPIC, {}).keys()
        if len(topic_ids) > 1 and self._evidence.logs:
            log = self._evidence.logs[0]
            record = LogRecord(STATE_TOPIC, log.number, log.first_offset)
            difference = Difference(Field.TOPIC_IDS, 1, len(topic_ids))
            time_ms = log.log_end.newest_ms or 0
            self._contradictions.add(CREATED_AGAIN, Place(), difference, record, time_ms)


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


def _first_ms(log: StateLog) -> int:
    """The time of the first record of a state log; BEGINNING where it has none."""
    headers = reader.scan_batches(log.partition, log.first_offset, log.first_offset + 1)
    times = (row for header_batch in headers for row in header_batch.column("base_timestamp_ms").to_pylist())
    return next(times, BEGINNING)


def _known_from_ms(audited: AuditedLog) -> int | None:
    """From when on the log shows which share partitions live; None: records are missing."""
    log = audited.log
    if not audited.audit.auditor.is_without_losses:
        return None
    if log.first_offset == 0 and log.log_start_offset == 0:
        return BEGINNING
    return None if log.reading is None else log.reading.first_ms


def _until_ms(audited: AuditedLog) -> int:
    return int(pc.max(pa.array(audited.audit.auditor.last_ms)).as_py() or BEGINNING)
