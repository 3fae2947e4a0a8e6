"""Tables straight from log directories: the columnar model in this process, nothing written, no Java."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Self, TypeVar

import pyarrow as pa

from sharelens.evidence.as_of import LogPrefix, delivery_history_as_of
from sharelens.evidence.clock_steps import ClockStep, steps_around
from sharelens.evidence.conditions import all_of, filter_rows, with_value
from sharelens.kafka_log.layout import LogDirectory
from sharelens.kafka_log.union import LogPartition
from sharelens.measures.settings.observations import Settings
from sharelens.measures.topics.extents import TopicPartition
from sharelens.settings.topic_names import read_topic_names
from sharelens.source.request import Source, dead_letter_topics
from sharelens.tables.audits import AuditedEvidence
from sharelens.tables.cover import GroupLogCover, StatePartitionCover
from sharelens.tables.limits import MEMORY_PER_BYTE, PART_RECORDS, WORKERS, size_text, too_much
from sharelens.tables.logs import topics as topic_logs
from sharelens.tables.logs.dead_letters import DeadLetterLogs
from sharelens.tables.logs.directories import LogDirectories, log_directories
from sharelens.tables.logs.groups import (
    group_log_covers,
    group_logs,
    read_group_names,
    read_offset_commits,
    read_records_of_groups,
)
from sharelens.tables.logs.metadata import LogMetadata
from sharelens.tables.logs.missing import missing_of_logs
from sharelens.tables.logs.state import PROBE_ABOVE_BYTES, StateLog, partitions_of_key, size_bytes
from sharelens.tables.misplaced import placed_states
from sharelens.tables.missing import MissingEvidence
from sharelens.tables.parts import Part, Parts, parts_of
from sharelens.tables.places import COUNTED, PLACED, counted_places, of_places
from sharelens.tables.port import (
    BATCHES,
    DELIVERIES,
    GROUP_RECORDS,
    HISTORY,
    LETTER_PARTITIONS,
    LETTERS,
    OFFSET_COMMITS,
    PLACES,
    RECORDS,
    SHARE_PARTITIONS,
    STATES,
    TOPIC_EXTENTS,
    RunningCluster,
    Samples,
    schema_of,
)
from sharelens.tables.samples import NO_BATCHES
from sharelens.tables.where import ALL_KEYS, ALL_ROWS, Keys, Order, Where
from state_model.columnar import schemas
from state_model.columnar.keys import LOG_ORDER, SHARE_PARTITION_KEY, number_keys
from state_model.columnar.replay import Replayed, open_ranges, replay_records
from state_model.threads import map_in_threads, threads_for
from state_model.topics import OFFSETS_TOPIC
from state_model.uuids import ZERO_UUID

KEPT_BYTES = 512 << 20
"""Arrow bytes of decoded records that are kept between two readings of the state logs; more are decoded again."""
ENCODED_HISTORY = schemas.encoded(schemas.SHARE_PARTITION_HISTORY)
ENCODED_DELIVERIES = schemas.encoded(schemas.DELIVERY_HISTORY)
PART_RECORDS_IN_MEMORY = 1 << 15
"""As PART_RECORDS where another part reads nothing again: less memory, and caches of the processor that last."""
Result = TypeVar("Result")


class LogTables:
    """The tables of log directories of one cluster; reads only the partitions that a scan needs."""

    samples: Samples = NO_BATCHES
    cluster: RunningCluster | None = None
    publications: None = None

    def __init__(self, source: Source, directories: Sequence[LogDirectory]) -> None:
        self.origin = LogDirectories(source, directories)
        if source.needs_state_log:
            _ = self.origin.logs  # raises now where there is none
        self._scans: Mapping[str, Callable[[Where], Iterable[pa.Table]]] = {
            HISTORY: self._history,
            DELIVERIES: self._deliveries,
            GROUP_RECORDS: lambda where: [self._group_records(where.keys.groups)],
            OFFSET_COMMITS: lambda where: [self._offset_commits(where.keys.groups or frozenset())],
            BATCHES: self._batches,
            LETTERS: lambda where: [self._letters.letters(where.letters)],
            SHARE_PARTITIONS: lambda _: [self._share_partitions()],
            PLACES: lambda where: [self._places(where.keys)],
            TOPIC_EXTENTS: lambda where: [self._extents(where.user_partitions or {})],
            LETTER_PARTITIONS: lambda _: [self._letters.partitions()],
        }

    def scan(
        self, table: str, columns: Sequence[str] | None = None, where: Where = ALL_ROWS, order: Order = Order.ANY
    ) -> Iterator[pa.Table]:
        """Decoded or replayed rows; measures are computed from the histories (`stored`)."""
        schema = schema_of(table, columns)
        yield schema.empty_table()
        for rows in self._rows(table, where, schema.names, order):
            yield (rows.sort_by(LOG_ORDER) if order == Order.LOG else rows).select(schema.names).cast(schema)

    def _rows(self, table: str, where: Where, columns: Sequence[str], order: Order) -> Iterable[pa.Table]:
        if table == STATES:
            states = partial(self._states, prefix=where.cut, with_ranges="state_batches" in columns)
            return [placed_states(states, where.keys)]
        return self._records(where, columns, order) if table == RECORDS else self._scans[table](where)

    def stored(self, table: str) -> bool:
        """No: nothing was measured."""
        return False

    def audited(self, where: Where) -> AuditedEvidence:
        """Audited in this process, from the beginning of the logs."""
        from sharelens.tables.logs.audit import LogAudit

        return LogAudit(self.origin, where.span)

    @property
    def place(self) -> str:
        """The log directories."""
        return ", ".join(directory.uri for directory in self.origin.directories)

    @property
    def cluster_id(self) -> str | None:
        """The id that meta.properties or --cluster-id named."""
        return self.origin.cluster

    @property
    def settings(self) -> Settings:
        """Those of the command line, and of groups by the metadata log."""
        return self.origin.settings

    @property
    def metadata(self) -> LogMetadata:
        """That of the directories."""
        return self.origin.metadata

    @property
    def part_records(self) -> int:
        """Fewer once the records of all state logs that were read are kept."""
        is_in_memory = all(log.is_kept for log in self.origin.logs if log.reading is not None)
        return PART_RECORDS_IN_MEMORY if is_in_memory else PART_RECORDS

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
        partitions = [partition for partition in self.origin.united if partition.topic == OFFSETS_TOPIC]
        if sum(size_bytes(partition) for partition in partitions) <= self.origin.source.max_bytes:
            for partition in partitions:
                names |= read_group_names(partition, include_uncommitted=self.origin.source.include_uncommitted)
        return names

    @cached_property
    def _folder_names(self) -> dict[str, str]:
        names = {} if self.origin.source.topic_names is None else read_topic_names(self.origin.source.topic_names)
        partitions = (partition for directory in self.origin.directories for partition in directory.partitions)
        return names | {part.topic_id: part.topic for part in partitions if part.topic_id != ZERO_UUID}

    def _share_partitions(self) -> pa.Table:
        """Every share partition that a record names."""
        return number_keys(PLACED.empty_table(), *self._each(StateLog.places, self.origin.logs))[1]

    def _places(self, keys: Keys) -> pa.Table:
        """Counted in one reading, which keeps the records of a small log: its histories follow."""
        condition, logs = keys.expression(), self._chosen(keys)
        size = sum(log.size_bytes for log in logs)

        def counted(log: StateLog) -> pa.Table:
            tables = log.read_and_keep(keys, KEPT_BYTES * log.size_bytes // max(1, size))
            return counted_places(filter_rows(records, condition).select(COUNTED) for records in tables)

        return pa.concat_tables([PLACED.empty_table(), *self._each(counted, logs)])

    def histories(self, places: pa.Table, cut: LogPrefix) -> Parts:
        """Parts are replayed from the records of their places alone; nothing is remembered."""
        return parts_of(places, self.part_records, lambda of_part: self.read_part(of_part, cut))

    def read_part(self, places: pa.Table, prefix: LogPrefix) -> Part:
        """The part of some places."""
        replays = self._each(lambda log: _replayed(log, self._records_of(log, places)), self._logs_of(places))
        history = pa.concat_tables([ENCODED_HISTORY.empty_table(), *(replayed.history for replayed in replays)])
        deliveries = pa.concat_tables([ENCODED_DELIVERIES.empty_table(), *_ranges(replays)])
        return Part(
            places=places,
            history=filter_rows(history.unify_dictionaries(), prefix.condition()),
            deliveries=delivery_history_as_of(deliveries.unify_dictionaries(), prefix),
        )

    def _logs_of(self, places: pa.Table) -> list[StateLog]:
        numbers = set(places.column("state_partition").to_pylist())
        return [log for log in self.origin.logs if log.number in numbers]

    def _records_of(
        self, log: StateLog, places: pa.Table, columns: Sequence[str] = schemas.SHARE_RECORD.names
    ) -> pa.Table:
        of_log = with_value(places, "state_partition", log.number)
        if log.is_read_through and of_log.num_rows == log.places().num_rows:
            return self._kept_records(log, ALL_KEYS, lambda rows: rows.select(columns))
        only = Keys()
        if of_log.num_rows == 1:
            ((group, topic, number),) = (tuple(row[name] for name in SHARE_PARTITION_KEY) for row in of_log.to_pylist())
            only = Keys(groups=frozenset([group]), topics={topic: frozenset([number])})
        return self._kept_records(log, only, lambda rows: of_places(rows.select(columns), of_log))

    def _records(self, where: Where, columns: Sequence[str], order: Order) -> Iterator[pa.Table]:
        """Decoded records: of places, as they are read, or in one table where they have an order."""
        places = where.places
        if places is not None:
            yield from self._each(lambda log: self._records_of(log, places, columns), self._logs_of(places))
        elif order == Order.ANY:
            rows = (records for log in self._chosen(where.keys) for records in log.read(where.keys))
            yield from (filter_rows(records, where.expression()).select(list(columns)) for records in rows)
        else:
            yield self._whole_records(where)

    def _whole_records(self, where: Where) -> pa.Table:
        condition, numbers = where.expression(), where.span.state_partitions
        logs = [log for log in self._chosen(where.keys) if numbers is None or log.number in numbers]

        def records(log: StateLog) -> pa.Table:
            return self._kept_records(log, where.keys, lambda rows: filter_rows(rows, condition))

        return pa.concat_tables([schemas.ENCODED_RECORD.empty_table(), *self._each(records, logs)])

    def _kept_records(self, log: StateLog, keys: Keys, choose: Callable[[pa.Table], pa.Table]) -> pa.Table:
        tables = [choose(schemas.ENCODED_RECORD.empty_table())]
        size = 0
        for records in log.read(keys):
            tables.append(choose(records))
            size += tables[-1].nbytes
            if size > self.origin.source.max_bytes * MEMORY_PER_BYTE:
                raise too_much(f"the selected records take more than {size_text(size)}")
        return pa.concat_tables(tables)

    def _states(self, keys: Keys, prefix: LogPrefix, *, with_ranges: bool) -> pa.Table:
        tables = self._each(lambda log: log.states(keys, prefix, with_ranges=with_ranges), self._chosen(keys))
        return pa.concat_tables([schemas.SHARE_PARTITION_STATE.empty_table(), *tables])

    def _history(self, where: Where) -> Iterator[pa.Table]:
        """The scalars after each record, as one table."""
        tables = [replayed.history for replayed in self._replayed(where.keys)]
        history = pa.concat_tables([ENCODED_HISTORY.empty_table(), *tables])
        yield filter_rows(history, all_of(where.cut.condition(), where.columns))

    def _deliveries(self, where: Where) -> Iterator[pa.Table]:
        """Closed and open ranges as they stood at the cut."""
        rows = pa.concat_tables([ENCODED_DELIVERIES.empty_table(), *_ranges(self._replayed(where.keys))])
        yield delivery_history_as_of(filter_rows(rows, all_of(where.around(), where.columns)), where.cut)

    def _batches(self, where: Where) -> Iterator[pa.Table]:
        """Batch headers from the topics' segments."""
        begins = where.user_partitions or {}
        for place in sorted(begins):
            if place in self.origin.partitions:
                uncommitted = self.origin.source.include_uncommitted
                yield from topic_logs.batches(self.origin.partitions[place], begins[place], uncommitted)

    def _extents(self, begins: Mapping[TopicPartition, int]) -> pa.Table:
        """By the checkpoints of the directories."""
        return topic_logs.extents(
            [self.origin.partitions[place] for place in sorted(begins) if place in self.origin.partitions]
        )

    def _group_records(self, groups: frozenset[str] | None) -> pa.Table:
        """Decoded from __consumer_offsets; those of all groups, or else of the latest ones, are kept."""
        if self._kept_groups is not None:
            kept_groups, records = self._kept_groups
            if kept_groups == groups:
                return records
            if kept_groups is None:
                return filter_rows(records, Keys(groups=groups).expression())
        records = read_records_of_groups(self._group_logs(), groups, self.origin.source.include_uncommitted)
        if records.nbytes <= KEPT_BYTES:
            self._kept_groups = (groups, records)
        return records

    _kept_groups: tuple[frozenset[str] | None, pa.Table] | None = None
    undecoded_group_records = 0

    def group_log_covers(self) -> Mapping[int, GroupLogCover]:
        """By the headers of batches."""
        logs = (log for log in self.origin.partitions.values() if log.topic == OFFSETS_TOPIC)
        return group_log_covers(logs, include_uncommitted=self.origin.source.include_uncommitted)

    def _offset_commits(self, groups: frozenset[str]) -> pa.Table:
        """Read from __consumer_offsets."""
        return read_offset_commits(self._group_logs(), groups, self.origin.source.include_uncommitted)

    def _group_logs(self) -> list[LogPartition]:
        return group_logs(self.origin.partitions.values(), self.origin.source.max_bytes)

    @cached_property
    def _letters(self) -> DeadLetterLogs:
        names = {*self.origin.source.dlq_topics, *self.settings.dead_letter_topics}
        topics = dead_letter_topics(names, self.origin.source.dlq_prefix)
        return DeadLetterLogs(
            self.origin.source, [log for log in self.origin.partitions.values() if topics.takes(log.topic)]
        )

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
        """The evidence of each state partition that is not empty; reads all when the question has read none."""
        read = [log for log in self.origin.logs if log.reading is not None]
        if not read:
            read = self.origin.logs
            self._each(StateLog.read_through, read)
        covers = [part for part in (log.cover() for log in read) if not part.is_empty]
        return [*covers, *self.origin.unreadable_covers()]

    @cached_property
    def missing(self) -> MissingEvidence:
        """By the group coordinator's log and the metadata log."""
        return missing_of_logs(self.origin, self.cover)

    def read_until_ms(self) -> int | None:
        """By the times of the checkpoint files."""
        return self.origin.read_until_ms()

    def clock_steps(self, moment_ms: int) -> Sequence[ClockStep]:
        """From the records whose own time lies over a minute behind the log's."""
        return [step for log in self.origin.logs for step in steps_around(log.late_records(), moment_ms)]

    def _chosen(self, keys: Keys) -> list[StateLog]:
        """The state logs to read: one if the hash determines it, else all. Refuses more than --max-bytes."""
        logs = self.origin.logs
        if keys.only is not None and sum(log.size_bytes for log in logs) > PROBE_ABOVE_BYTES:
            numbers = partitions_of_key(logs, keys.only)
            logs = [log for log in logs if numbers is None or log.number in numbers]
        size = sum(log.size_bytes for log in logs)
        if size > self.origin.source.max_bytes:
            raise too_much(
                f"{size_text(size)} of state log would have to be read, "
                f"--max-bytes allows {size_text(self.origin.source.max_bytes)}"
            )
        return logs

    @staticmethod
    def _each(work: Callable[[StateLog], Result], logs: Sequence[StateLog]) -> list[Result]:
        """The work on every log, two at a time where they are large: kernels run without the interpreter's lock."""
        threads = threads_for(sum(log.size_bytes for log in logs), WORKERS)
        return map_in_threads(work, logs, threads)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        return None


def _ranges(replays: Iterable[Replayed]) -> list[pa.Table]:
    """Closed and open DELIVERY_HISTORY rows, text dictionary-encoded."""
    tables = (table for replayed in replays for table in (replayed.closed, open_ranges(replayed.state)))
    return [table.cast(ENCODED_DELIVERIES) for table in tables]


def _replayed(log: StateLog, records: pa.Table) -> Replayed:
    """The replay of the records that were kept of a log which was read to its end."""
    losses, start = log.read_through().losses, log.log_start_offset
    return replay_records(records, losses=losses, log_start_offset=start, encoded=True)


def open_log_tables(source: Source) -> LogTables:
    """Lists the log directories; records are read when a question asks for them."""
    return LogTables(source, log_directories(source))
