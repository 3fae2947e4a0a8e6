"""One partition of the state topic, read from log directories and decoded chunk by chunk."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.as_of import WHOLE_LOG, LogPrefix, mark_below_log_start
from sharelens.evidence.clock_steps import LATE_RECORD
from sharelens.evidence.conditions import all_of, filter_rows
from sharelens.evidence.decoding import decode_rows
from sharelens.evidence.incarnations import newest_incarnation
from sharelens.evidence.log_time import Ints
from sharelens.evidence.placement import fitting_counts, possible_counts
from sharelens.evidence.reading import Reading, first_offset, read_chunks
from sharelens.kafka_log import reader
from sharelens.kafka_log.layout import LogDirectory
from sharelens.kafka_log.reader import Chunk
from sharelens.kafka_log.union import LogPartition, unite
from sharelens.tables.cover import StatePartitionCover, Undecoded
from sharelens.tables.where import ALL_KEYS, Keys
from state_model.columnar import schemas
from state_model.columnar.decode import key_mask
from state_model.columnar.keys import SHARE_PARTITION_KEY, number_keys
from state_model.columnar.replay import replay_states
from state_model.errors import SharelensError
from state_model.java import partition_for
from state_model.topics import STATE_TOPIC

PROBE_ABOVE_BYTES = 64 << 20
"""A question about one share partition probes larger state logs, to read the one that has it."""
FOLD_BYTES = 64 << 20
PROBED_BYTES = 1 << 20
PROBED_OFFSETS = 1000


class StateLog:
    """A state partition; `reading` is the last one that came to the end."""

    def __init__(self, partition: LogPartition, *, include_uncommitted: bool) -> None:
        self.partition = partition
        self.include_uncommitted = include_uncommitted
        self.number = partition.partition
        self.log_start_offset = partition.log_start_offset
        self.first_offset = first_offset(partition)
        self.size_bytes = size_bytes(partition)
        self.log_end = reader.log_end(partition)
        readable_end = self.log_end.readable(partition.committed_end, include_uncommitted=include_uncommitted)
        self.end_offset = max(self.first_offset, readable_end)
        self._held_back = max(0, self.log_end.end_offset - self.end_offset)
        committed_end = self.end_offset if partition.committed_end is None else partition.committed_end
        self._uncommitted = max(0, self.end_offset - max(self.first_offset, committed_end))
        self.reading: Reading | None = None
        self._kept_tables: tuple[pa.Table, ...] | None = None
        self._share_partitions: pa.Table | None = None

    def read(self, keys: Keys = ALL_KEYS, prefix: LogPrefix = WHOLE_LOG) -> Iterator[pa.Table]:
        """Decoded records (schemas.ENCODED_RECORD) in offset order, in bounded chunks.

        Records of other share partitions than those of `keys`, and behind `prefix`, may be among them. `reading` is set
        once the last chunk was taken.
        """
        if self._kept_tables is not None and prefix == WHOLE_LOG:
            yield from self._kept_tables
            return
        reading = Reading(self.partition, self.end_offset, prefix)
        named: list[pa.Table] = []
        pending = [schemas.ENCODED_RECORD.empty_table()]
        for chunk in self.read_raw():
            times = reading.take(chunk.records, chunk.problems)
            pending.append(self._decoded(chunk.records, times, keys, reading))
            if sum(table.nbytes for table in pending) > FOLD_BYTES:
                named.append(number_keys(*pending)[1])
                yield pa.concat_tables(pending)
                pending = pending[:1]
        named.append(number_keys(*pending)[1])
        yield pa.concat_tables(pending)
        reading.close()
        self.reading = reading
        if keys.only is None:
            self._share_partitions = number_keys(*named)[1]

    def read_and_keep(self, keys: Keys, most_bytes: int) -> Iterator[pa.Table]:
        """As `read` of the whole log; records of at most so many bytes are kept for the readings that follow."""
        kept_tables: list[pa.Table] = []
        size = 0
        for records in self.read(keys):
            size += records.nbytes
            kept_tables = [*kept_tables, records] if size <= most_bytes else []
            yield records
        if keys.only is None and size <= most_bytes:
            self._kept_tables = tuple(kept_tables)

    @property
    def is_read_through(self) -> bool:
        """Whether a reading has decoded the records of all share partitions."""
        return self._share_partitions is not None

    def places(self) -> pa.Table:
        """PLACE_KEY of every share partition with a record; reads the log where no reading has decoded all of it."""
        if self._share_partitions is None:
            for _ in self.read():
                pass
        assert self._share_partitions is not None
        number = pa.scalar(self.number, pa.int32())
        return self._share_partitions.append_column("state_partition", pa.repeat(number, len(self._share_partitions)))

    @property
    def is_kept(self) -> bool:
        """Whether `read` takes the records from memory."""
        return self._kept_tables is not None

    def read_raw(self) -> Iterator[Chunk]:
        """The records of the log and its unreadable batches, in offset order, in bounded chunks."""
        uncommitted = self.include_uncommitted
        return read_chunks(self.partition, self.first_offset, self.end_offset, include_uncommitted=uncommitted)

    def states(self, keys: Keys, prefix: LogPrefix, *, with_ranges: bool = True) -> pa.Table:
        """SHARE_PARTITION_STATE rows after the prefix; without ranges `state_batches` are empty.

        Chunk after chunk; losses are marked at the end, with the same result as marking them on the way.
        """
        condition = all_of(keys.expression(), prefix.of_state_partition(self.number).condition())
        state = schemas.SHARE_PARTITION_STATE.empty_table()
        for records in self.read(keys, prefix):
            state = replay_states(filter_rows(records, condition), seed=state, with_ranges=with_ranges)
        losses = self.read_through().losses_in_prefix()
        if losses:
            state = replay_states(schemas.SHARE_RECORD.empty_table(), seed=state, losses=losses)
        return mark_below_log_start(state, {self.number: self.log_start_offset})

    def _decoded(self, records: pa.RecordBatch, times: Ints, keys: Keys, reading: Reading) -> pa.Table:
        if (only := keys.only) is not None:
            mask = key_mask(records, group_id=only[0], topic_id=only[1], partition=only[2])
            records, times = records.filter(mask), times[mask.to_numpy(zero_copy_only=False)]
        decoded = decode_rows(pa.Table.from_batches([records]), times)
        reading.take_undecodable(decoded.problems)
        return decoded.records.cast(schemas.ENCODED_RECORD)

    def read_through(self) -> Reading:
        """The last reading; reads the partition when there was none."""
        if self.reading is None:
            for _ in self.read():
                pass
        assert self.reading is not None
        return self.reading

    def late_records(self) -> pa.Table:
        """LATE_RECORD rows of the last reading."""
        return pa.concat_tables([LATE_RECORD.empty_table(), *(self.reading.late if self.reading is not None else [])])

    def newest_ms(self) -> int | None:
        """The largest timestamp by the batch headers; None for an empty log."""
        batches = reader.scan_batches(self.partition, self.first_offset, self.end_offset)
        times = (pc.max(batch.column("max_timestamp_ms")).as_py() for batch in batches)
        return max((time for time in times if time is not None), default=None)

    def cover(self) -> StatePartitionCover:
        """The covered range of the last read."""
        reading = self.read_through()
        return StatePartitionCover(
            log_topic_id=self.partition.topic_id,
            state_partition=self.number,
            first_offset=self.first_offset,
            end_offset_exclusive=self.end_offset,
            log_start_offset=self.log_start_offset,
            first_ms=reading.first_ms,
            last_ms=reading.last_ms,
            held_back=self._held_back,
            uncommitted=self._uncommitted,
            quarantined=reading.quarantined,
            losses=tuple(reading.losses),
            undecoded_losses=tuple(reading.undecoded_losses),
            undecoded=tuple(
                Undecoded(reason, reading.details[reason], count) for reason, count in sorted(reading.undecoded.items())
            ),
            unreadable_bytes=self.log_end.unreadable_bytes,
            size_bytes=self.size_bytes,
        )

    def probe(self) -> list[tuple[str, str, int]]:
        """Some share partitions at the beginning of the log."""
        probed = min(self.end_offset, self.first_offset + PROBED_OFFSETS)
        for part in reader.splits(self.partition, self.first_offset, probed, PROBED_BYTES)[:1]:
            for chunk in reader.read_split(part, include_uncommitted=True, batch_bytes=PROBED_BYTES):
                records = decode_rows(pa.Table.from_batches([chunk.records])).records
                keys = records.group_by(SHARE_PARTITION_KEY).aggregate([]).to_pylist()
                return [(row["group_id"], row["topic_id"], row["partition"]) for row in keys]
        return []


def state_logs(
    directories: Sequence[LogDirectory],
    *,
    include_uncommitted: bool,
    needed: bool = True,
    topic_id: str | None = None,
) -> list[StateLog]:
    """The partitions of the incarnation of the state topic with an id, by number; without it, of the newest one.

    Raises:
        SharelensError: no directory holds any, and the question needs them.
    """
    partitions = [partition for partition in unite(directories) if partition.topic == STATE_TOPIC]
    if not partitions and not needed:
        return []
    if not partitions:
        places = ", ".join(directory.uri for directory in directories)
        raise SharelensError(f"no {STATE_TOPIC} partition in {places}; copy the brokers' {STATE_TOPIC}-N folders too")
    incarnations: dict[str, list[LogPartition]] = {}
    for partition in partitions:
        incarnations.setdefault(partition.topic_id, []).append(partition)
    logs = {
        key: [StateLog(partition, include_uncommitted=include_uncommitted) for partition in parts]
        for key, parts in incarnations.items()
    }
    if len(logs) == 1:  # most of the time, and the headers need not be read
        return sorted(*logs.values(), key=lambda log: log.number)
    if topic_id not in logs:
        topic_id = newest_incarnation((key, log.newest_ms()) for key, parts in logs.items() for log in parts)
    return sorted(logs[str(topic_id)], key=lambda log: log.number)


def of_state_log(directories: Sequence[LogDirectory]) -> Sequence[LogDirectory]:
    """Those of the one cluster with a state log, and those that name none; all, where several clusters have one."""
    topics = {directory: {partition.topic for partition in directory.partitions} for directory in directories}
    clusters = {directory.cluster_id for directory, names in topics.items() if STATE_TOPIC in names}
    return [d for d in directories if d.cluster_id in (None, *clusters)] if len(clusters - {None}) == 1 else directories


def size_bytes(partition: LogPartition) -> int:
    """Bytes of the largest copy."""
    return max((sum(segment.size_bytes for segment in copy.segments) for copy in partition.copies), default=0)


def partitions_of_key(logs: Sequence[StateLog], key: tuple[str, str, int]) -> frozenset[int] | None:
    """State partitions that can hold the share partition; None when the number of state partitions is unknown.

    The number is any above the largest index that puts every key seen at the beginning of each log where it lies.
    """
    counts = possible_counts(max((log.number for log in logs), default=0))
    for log in logs:
        for probed_key in log.probe():
            counts = fitting_counts(counts, probed_key, log.number)
    return frozenset(partition_for(*key, count) for count in counts.tolist()) or None
