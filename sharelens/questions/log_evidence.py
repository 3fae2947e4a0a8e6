"""Evidence straight from log directories: the columnar model in this process, nothing written, no Java."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import TracebackType
from typing import Self, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.as_of import DELIVERY_ORDER, LogPrefix, delivery_history_as_of
from sharelens.evidence.clock_steps import ClockStep, steps_around
from sharelens.evidence.conditions import all_of, filter_rows, with_value
from sharelens.evidence.read_until import read_until
from sharelens.kafka_log.layout import LogDirectory, scan_log_directory
from sharelens.kafka_log.reader import LogEnd, log_end
from sharelens.kafka_log.union import LogPartition, unite
from sharelens.lake.bounded_scan import Choice
from sharelens.measures.observed_settings import UNSET, Settings
from sharelens.measures.topics import TopicPartition
from sharelens.output import name_cell
from sharelens.questions import topic_evidence
from sharelens.questions.dead_letter_logs import DeadLetterLogs
from sharelens.questions.dlq_filter import DeadLetterFilter
from sharelens.questions.evidence import (
    COUNTED,
    PLACED,
    WORKERS,
    GroupLogCover,
    Keys,
    Span,
    StatePartitionCover,
    counted_places,
    of_places,
)
from sharelens.questions.group_names import (
    group_log_covers,
    group_logs,
    read_group_names,
    read_offset_commits,
    read_records_of_groups,
)
from sharelens.questions.log_metadata import LogMetadata
from sharelens.questions.misplaced import placed_states
from sharelens.questions.size_limits import MEMORY_PER_BYTE, size_text, too_much
from sharelens.questions.state_log import StateLog, of_state_log, partitions_of_key, size_bytes, state_logs
from sharelens.questions.without_cluster import WithoutCluster
from sharelens.settings.topic_names import read_topic_names
from sharelens.source.request import Source, dead_letter_topics
from state_model.columnar import schemas
from state_model.columnar.keys import LOG_ORDER, SHARE_PARTITION_KEY
from state_model.columnar.replay import Replayed, open_ranges, replay_records
from state_model.errors import UsageError
from state_model.threads import map_in_threads, threads_for
from state_model.topics import OFFSETS_TOPIC, UNKNOWN_CLUSTER
from state_model.uuids import ZERO_UUID

PROBE_ABOVE_BYTES = 64 << 20
KEPT_BYTES = 512 << 20
"""Arrow bytes of decoded records that are kept between two readings of the state logs; more are decoded again."""
Result = TypeVar("Result")


class LogEvidence(WithoutCluster):
    """Log directories of one cluster; reads only the partitions that a question needs."""

    def __init__(self, source: Source, directories: Sequence[LogDirectory]) -> None:
        self.source = source
        self.directories = directories
        self.cluster = _cluster_of(directories, source.cluster_id)
        self.metadata = LogMetadata(source, directories)
        if source.needs_state_log:
            _ = self.logs  # raises now where there is none

    @cached_property
    def logs(self) -> list[StateLog]:
        """The state logs, whose ends are read here."""
        has_group_log = any(part.topic == OFFSETS_TOPIC for each in self.directories for part in each.partitions)
        needed = self.source.needs_state_log and not (self.source.takes_group_log and has_group_log)
        return state_logs(self.directories, include_uncommitted=self.source.include_uncommitted, needed=needed)

    @property
    def place(self) -> str:
        """The log directories."""
        return ", ".join(directory.uri for directory in self.directories)

    @property
    def cluster_id(self) -> str | None:
        """The id that meta.properties or --cluster-id named."""
        return self.cluster

    @property
    def settings(self) -> Settings:
        """Those of the command line, and of groups by the metadata log."""
        return self.metadata.settings

    @property
    def measured_settings(self) -> Settings:
        """None: nothing was measured."""
        return UNSET

    @property
    def is_in_memory(self) -> bool:
        """Once `places` has kept the records of all state logs that it read."""
        return all(log.is_kept for log in self.logs if log.reading is not None)

    def names(self, topic_ids: Iterable[str]) -> Mapping[str, str]:
        """From --topic-names and the topics' folders; other logs are read when that is not enough."""
        if all(topic_id in self._folder_names for topic_id in topic_ids):
            return self._folder_names
        return self._group_names | self.metadata.names | self._folder_names

    def topic_ids(self, name: str) -> Sequence[str]:
        """Ids by folder, by the group coordinator's log, and by the metadata log."""
        names = self._group_names | self.metadata.names | self._folder_names
        return [topic_id for topic_id, topic_name in names.items() if topic_name == name]

    def topic_id_now(self, name: str) -> str | None:
        """By folder, else by the other logs."""
        ids = [topic_id for topic_id, value in self._folder_names.items() if value == name] or self.topic_ids(name)
        return ids[0] if len(ids) == 1 else None

    @cached_property
    def _group_names(self) -> dict[str, str]:
        """Names of topics in __consumer_offsets; none when it is larger than --max-bytes."""
        names: dict[str, str] = {}
        partitions = [partition for partition in unite(self.directories) if partition.topic == OFFSETS_TOPIC]
        if sum(size_bytes(partition) for partition in partitions) <= self.source.max_bytes:
            for partition in partitions:
                names |= read_group_names(partition, include_uncommitted=self.source.include_uncommitted)
        return names

    @cached_property
    def _folder_names(self) -> dict[str, str]:
        names = {} if self.source.topic_names is None else read_topic_names(self.source.topic_names)
        partitions = (partition for directory in self.directories for partition in directory.partitions)
        return names | {part.topic_id: part.topic for part in partitions if part.topic_id != ZERO_UUID}

    def share_partitions(self) -> pa.Table:
        """Every share partition that a record names."""
        parts = [schemas.SHARE_RECORD.empty_table().select(SHARE_PARTITION_KEY)]
        for log in self._chosen(Keys()):
            for records in log.read():
                parts.append(records.select(SHARE_PARTITION_KEY).group_by(SHARE_PARTITION_KEY).aggregate([]))
        return pa.concat_tables(parts).group_by(SHARE_PARTITION_KEY).aggregate([])

    def places(self, keys: Keys) -> pa.Table:
        """Counted in one reading, which keeps the records of a small log: its histories follow."""
        condition, logs = keys.expression(), self._chosen(keys)
        size = sum(log.size_bytes for log in logs)

        def counted(log: StateLog) -> pa.Table:
            tables = log.read_and_keep(keys, KEPT_BYTES * log.size_bytes // max(1, size))
            return counted_places(filter_rows(records, condition).select(COUNTED) for records in tables)

        return pa.concat_tables([PLACED.empty_table(), *self._each(counted, logs)])

    def histories(self, places: pa.Table, prefix: LogPrefix) -> tuple[pa.Table, pa.Table]:
        """Replayed from the records of the places alone; nothing is remembered."""
        replays = self._each(lambda log: _replayed(log, self._records_of(log, places)), self._logs_of(places))
        histories = [schemas.SHARE_PARTITION_HISTORY.empty_table(), *(replayed.history for replayed in replays)]
        ranges = _ranges(replays)
        deliveries = pa.concat_tables([schemas.DELIVERY_HISTORY.empty_table(), *ranges])
        return filter_rows(pa.concat_tables(histories), prefix.condition()), delivery_history_as_of(deliveries, prefix)

    def records_of(self, places: pa.Table, columns: Sequence[str]) -> pa.Table:
        """Decoded records."""
        tables = self._each(lambda log: self._records_of(log, places, columns), self._logs_of(places))
        return pa.concat_tables([schemas.SHARE_RECORD.empty_table().select(columns), *tables])

    def _logs_of(self, places: pa.Table) -> list[StateLog]:
        numbers = set(places.column("state_partition").to_pylist())
        return [log for log in self.logs if log.number in numbers]

    def _records_of(
        self, log: StateLog, places: pa.Table, columns: Sequence[str] = schemas.SHARE_RECORD.names
    ) -> pa.Table:
        of_log = with_value(places, "state_partition", log.number)
        only = Keys()
        if of_log.num_rows == 1:
            ((group, topic, number),) = (tuple(row[name] for name in SHARE_PARTITION_KEY) for row in of_log.to_pylist())
            only = Keys(groups=frozenset([group]), topics={topic: frozenset([number])})
        return self._kept_records(log, only, lambda rows: of_places(rows.select(columns), of_log))

    def each_record(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Decoded, state log after state log."""
        yield schemas.SHARE_RECORD.empty_table().select(columns)
        for log in self._chosen(Keys()):
            for records in log.read():
                yield records.select(columns)

    def measured_stream(self, table: str, schema: pa.Schema, keys: Keys, where: pc.Expression | None = None) -> None:
        """A log holds none."""

    def records(self, keys: Keys, span: Span) -> Iterator[pa.Table]:
        """Decoded records, as one table."""
        condition = all_of(keys.expression(), span.expression())
        logs = [
            log for log in self._chosen(keys) if span.state_partitions is None or log.number in span.state_partitions
        ]
        tables = self._each(lambda log: self._kept_records(log, keys, lambda rows: filter_rows(rows, condition)), logs)
        records = pa.concat_tables([schemas.SHARE_RECORD.empty_table(), *tables]).sort_by(LOG_ORDER)
        if records.num_rows:
            yield records

    def _kept_records(self, log: StateLog, keys: Keys, choose: Callable[[pa.Table], pa.Table]) -> pa.Table:
        tables = [choose(schemas.SHARE_RECORD.empty_table())]
        size = 0
        for records in log.read(keys):
            tables.append(choose(records))
            size += tables[-1].nbytes
            if size > self.source.max_bytes * MEMORY_PER_BYTE:
                raise too_much(f"the selected records take more than {size_text(size)}")
        return pa.concat_tables(tables)

    def states(self, keys: Keys, prefix: LogPrefix) -> pa.Table:
        """The state after the prefix, folded chunk after chunk."""
        return placed_states(lambda chosen: self._states(chosen, prefix), keys)

    def _states(self, keys: Keys, prefix: LogPrefix) -> pa.Table:
        tables = self._each(lambda log: log.states(keys, prefix), self._chosen(keys))
        return pa.concat_tables([schemas.SHARE_PARTITION_STATE.empty_table(), *tables])

    def history(self, keys: Keys) -> pa.Table:
        """The scalars after each record."""
        tables = [replayed.history for replayed in self._replayed(keys)]
        return pa.concat_tables([schemas.SHARE_PARTITION_HISTORY.empty_table(), *tables]).sort_by(LOG_ORDER)

    def history_in_parts(self, keys: Keys, columns: Sequence[str], choice: Choice | None = None) -> Iterator[pa.Table]:
        """The scalars after each record, as one table."""
        yield self.history(keys).select(list(columns))

    def delivery(self, keys: Keys, offset: int) -> pa.Table:
        """Closed and open ranges around the record offset."""
        around = (pc.field("first_offset") <= offset) & (pc.field("last_offset") >= offset)
        tables = _ranges(self._replayed(keys))
        return pa.concat_tables([schemas.DELIVERY_HISTORY.empty_table(), *tables]).filter(around)

    def deliveries(self, keys: Keys, prefix: LogPrefix) -> pa.Table:
        """Closed and open ranges."""
        tables = _ranges(self._replayed(keys))
        rows = pa.concat_tables([schemas.DELIVERY_HISTORY.empty_table(), *tables])
        return delivery_history_as_of(rows, prefix).sort_by(DELIVERY_ORDER)

    def topic_batches(self, begins: Mapping[TopicPartition, int]) -> Iterator[pa.Table]:
        """Batch headers from the topics' segments."""
        for place in sorted(begins):
            if place in self._partitions:
                uncommitted = self.source.include_uncommitted
                yield from topic_evidence.batches(self._partitions[place], begins[place], uncommitted)

    def topic_extents(self, partitions: Iterable[TopicPartition]) -> pa.Table:
        """By the checkpoints of the directories."""
        logs = [self._partitions[place] for place in sorted(partitions) if place in self._partitions]
        return topic_evidence.extents(logs)

    @cached_property
    def _partitions(self) -> dict[TopicPartition, LogPartition]:
        return {(part.topic_id, part.partition): part for part in unite(self.directories)}

    def group_records(self, groups: frozenset[str] | None = None) -> pa.Table:
        """Decoded from __consumer_offsets; those of all groups, or else of the latest ones, are kept."""
        if self._kept_groups is not None:
            kept_groups, records = self._kept_groups
            if kept_groups == groups:
                return records
            if kept_groups is None:
                return filter_rows(records, Keys(groups=groups).expression())
        records = read_records_of_groups(self._group_logs(), groups, self.source.include_uncommitted)
        if records.nbytes <= KEPT_BYTES:
            self._kept_groups = (groups, records)
        return records

    _kept_groups: tuple[frozenset[str] | None, pa.Table] | None = None

    def group_log_covers(self) -> Mapping[int, GroupLogCover]:
        """By the headers of batches."""
        logs = (log for log in self._partitions.values() if log.topic == OFFSETS_TOPIC)
        return group_log_covers(logs, include_uncommitted=self.source.include_uncommitted)

    def offset_commits(self, groups: frozenset[str]) -> pa.Table:
        """Read from __consumer_offsets."""
        return read_offset_commits(self._group_logs(), groups, self.source.include_uncommitted)

    def _group_logs(self) -> list[LogPartition]:
        return group_logs(self._partitions.values(), self.source.max_bytes)

    def dead_letters(self, letter_filter: DeadLetterFilter) -> pa.Table:
        """Read from the topics that --dlq-topic and --dlq-prefix choose."""
        return self._letters.letters(letter_filter)

    def dead_letter_partitions(self) -> pa.Table:
        """By the directories."""
        return self._letters.partitions()

    @cached_property
    def _letters(self) -> DeadLetterLogs:
        names = {*self.source.dlq_topics, *self.settings.dead_letter_topics}
        topics = dead_letter_topics(names, self.source.dlq_prefix)
        return DeadLetterLogs(self.source, [log for log in self._partitions.values() if topics.takes(log.topic)])

    def _replayed(self, keys: Keys) -> list[Replayed]:
        """The whole replay of the wanted share partitions; the last one is remembered."""
        if self._remembered is None or self._remembered[0] != keys:
            condition = keys.expression()
            replayed = self._each(
                lambda log: _replayed(log, self._kept_records(log, keys, lambda rows: filter_rows(rows, condition))),
                self._chosen(keys),
            )
            self._remembered = (keys, replayed)
        return self._remembered[1]

    _remembered: tuple[Keys, list[Replayed]] | None = None

    def cover(self) -> Sequence[StatePartitionCover]:
        """The evidence of each state partition with a record; reads all when the question has read none."""
        read = [log for log in self.logs if log.reading is not None]
        if not read:
            read = self.logs
            self._each(StateLog.read_through, read)
        return [log.cover() for log in read if log.read_through().first_ms is not None]

    def read_until_ms(self) -> int | None:
        """By the times of the checkpoint files."""
        log_ends = {(log.partition.topic_id, log.number): log.log_end for log in self.logs}

        def end_of(partition: LogPartition) -> LogEnd:
            return log_ends.get((partition.topic_id, partition.partition)) or log_end(partition)

        return read_until(self.directories, list(self._partitions.values()), end_of, time.time_ns() // 1_000_000)

    def clock_steps(self, moment_ms: int) -> Sequence[ClockStep]:
        """From the records whose own time lies over a minute behind the log's."""
        return [step for log in self.logs for step in steps_around(log.late_records(), moment_ms)]

    def problem_counts(self) -> list[tuple[str, int]]:
        """How often each reason code of a problem came up, by reason."""
        counts: Counter[str] = Counter()
        for log in self.logs:
            counts.update(log.read_through().reasons)
        return sorted(counts.items())

    def _chosen(self, keys: Keys) -> list[StateLog]:
        """The state logs to read: one if the hash determines it, else all. Refuses more than --max-bytes."""
        logs = self.logs
        if keys.only is not None and sum(log.size_bytes for log in logs) > PROBE_ABOVE_BYTES:
            numbers = partitions_of_key(logs, keys.only)
            logs = [log for log in logs if numbers is None or log.number in numbers]
        size = sum(log.size_bytes for log in logs)
        if size > self.source.max_bytes:
            raise too_much(
                f"{size_text(size)} of state log would have to be read, "
                f"--max-bytes allows {size_text(self.source.max_bytes)}"
            )
        return logs

    @staticmethod
    def _each(work: Callable[[StateLog], Result], logs: Sequence[StateLog]) -> list[Result]:
        """The work on every log, two at a time where they are large: kernels run without the interpreter's lock."""
        threads = threads_for(sum(log.size_bytes for log in logs), WORKERS)
        return map_in_threads(work, logs, threads)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


def _ranges(replays: Iterable[Replayed]) -> list[pa.Table]:
    """Closed and open DELIVERY_HISTORY rows."""
    return [table for replayed in replays for table in (replayed.closed, open_ranges(replayed.state))]


def _replayed(log: StateLog, records: pa.Table) -> Replayed:
    """The replay of the records that were kept of a log which was read to its end."""
    return replay_records(records, losses=log.read_through().losses, log_start_offset=log.log_start_offset)


def _cluster_of(directories: Sequence[LogDirectory], cluster_id: str | None) -> str:
    """The cluster's id; UsageError when a directory belongs to another cluster."""
    for directory in directories:
        if cluster_id is not None and directory.cluster_id not in (None, cluster_id):
            raise UsageError(
                f"{directory.uri} belongs to cluster {name_cell(directory.cluster_id)}, "
                f"not to {name_cell(cluster_id)}; correct --cluster-id or --log-dir"
            )
    named = [directory.cluster_id for directory in directories if directory.cluster_id is not None]
    return cluster_id or next(iter(named), UNKNOWN_CLUSTER)


def open_log_evidence(source: Source) -> LogEvidence:
    """Lists the log directories; records are read when a question asks for them."""
    return LogEvidence(source, log_directories(source))


def log_directories(source: Source) -> Sequence[LogDirectory]:
    """The log directories of a source that its evidence is made of."""
    directories = [scan_log_directory(uri, include_deleted=source.include_deleted) for uri in source.log_dirs]
    return of_state_log(directories) if source.sets_clusters_apart else directories
