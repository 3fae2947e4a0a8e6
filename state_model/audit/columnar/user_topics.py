"""Rules between the state log and the logs and leader epochs of user topics: 24, 29, 35, 36, 61 and 65."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from state_model.audit.columnar import layout
from state_model.audit.columnar.auditor import Auditor
from state_model.audit.columnar.proofs import LogRecord, Place, Proofs
from state_model.audit.columnar.topic_metadata import TopicMetadata
from state_model.audit.complete_count import complete_count_beyond_end, negative_lag
from state_model.audit.epochs import leader_epoch_beyond_topic
from state_model.audit.group_steps import TopicPartition
from state_model.audit.offsets import batch_beyond_end, start_offset_beyond_end, window_over_locks
from state_model.audit.periods import TOLERANCE_MS
from state_model.audit.rule import Difference
from state_model.columnar.keys import Ints
from state_model.topics import STATE_TOPIC

LEADER_EPOCH, START_BEYOND, BATCH_BEYOND, BATCH_BEYOND_CUT = 240, 290, 350, 351
WINDOW, COUNT_BEYOND, LAG = 360, 610, 650
LOWEST_LOCKS: Final = 100
"""No broker takes a lower share.partition.max.record.locks."""
UNBOUNDED: Final = (1 << 63) - 1
READ: Final = (
    "group_id",
    "topic_id",
    "partition",
    "state_partition",
    "log_offset",
    "log_time_ms",
    "leader_epoch",
    "start_offset",
    "delivery_complete_count",
)


class TopicEnd(NamedTuple):
    """The end of a user partition: its first free offset, time and leader epoch of its newest batch."""

    topic: str
    end_offset: int
    newest_ms: int
    leader_epoch: int


class UserTopics(NamedTuple):
    """What is known of user topics; None: not known.

    `end_of`: of a user partition. `span_at`: the number of offsets of the log batch with an offset. `locks_of`: the
    record locks of a group. `read_until_ms`: until when silence in the logs is known.
    """

    end_of: Callable[[TopicPartition], TopicEnd | None] = lambda topic_partition: None
    span_at: Callable[[TopicPartition, int], int | None] = lambda topic_partition, offset: None
    locks_of: Callable[[str], int | None] = lambda group_id: None
    metadata: TopicMetadata | None = None
    read_until_ms: int | None = None


class TopicAudit:
    """Takes the records of one state partition in log order."""

    def __init__(self, topics: UserTopics, proofs: Proofs) -> None:
        self._topics = topics
        self._proofs = proofs
        self._windows: dict[tuple[str, str, int], tuple[int, Mapping[str, Any]]] = {}

    def take(self, records: pa.Table) -> None:
        """The next records (SHARE_RECORD)."""
        if records.num_rows == 0:
            return
        codes, places = _topic_partitions(records)
        last, start = _last_offsets(records), _ints(records, "start_offset")
        count = _ints(records, "delivery_complete_count")
        ends = np.array([self._end_offset(place) for place in places], np.int64)[codes]
        counted = np.where((start >= 0) & (start <= ends) & (count > 0), start + count, -1)
        beyond = np.flatnonzero(np.maximum(np.maximum(start, np.minimum(last, UNBOUNDED - 1) + 1), counted) > ends)
        for row in _rows(records, beyond, last):
            self._test_end(row)
        self._test_leader_epochs(records, codes, places, last)
        self._keep_windows(records, start, last)

    def close(self, auditor: Auditor, state_partition: int) -> None:
        """Tests the newest state of each share partition, and its largest window."""
        for _, row in self._windows.values():
            self._test_window(row)
        numbers = auditor.live()
        keys = auditor.keys.take(pa.array(numbers)).to_pylist()
        for number, key in zip(numbers.tolist(), keys, strict=True):
            end = self._topics.end_of((key["topic_id"], key["partition"]))
            start, count = (int(auditor.matrix[number, column]) for column in (layout.START, layout.DCC))
            difference = None if end is None else negative_lag(start, count, end.end_offset)
            time_ms = int(auditor.last_ms[number])
            if end is None or difference is None or not self._is_known(end, time_ms):
                continue
            record = LogRecord(STATE_TOPIC, state_partition, int(auditor.matrix[number, layout.LAST_AT]))
            place = Place(**key, state_partition=state_partition)
            self._proofs.add(LAG, place, difference, record, time_ms, _proof(end, key["partition"]))

    def _end_offset(self, place: TopicPartition) -> int:
        end = self._topics.end_of(place)
        return UNBOUNDED if end is None else end.end_offset

    def _is_known(self, end: TopicEnd, time_ms: int) -> bool:
        """Whether the user partition is known until 60 s behind a time."""
        return max(end.newest_ms, self._topics.read_until_ms or 0) >= time_ms + TOLERANCE_MS

    def _test_end(self, row: Mapping[str, Any]) -> None:
        end = self._topics.end_of((row["topic_id"], row["partition"]))
        assert end is not None
        if not self._is_known(end, row["log_time_ms"]):
            return
        is_newer = end.newest_ms >= row["log_time_ms"] + TOLERANCE_MS
        is_uncut = is_newer and end.leader_epoch == row["leader_epoch"]
        for rule, difference in _beyond(row, end.end_offset, is_uncut):
            self._add(rule, difference, row, _proof(end, row["partition"]))

    def _add(self, rule: int, difference: Difference, row: Mapping[str, Any], proof: list[LogRecord]) -> None:
        place = Place(row["group_id"], row["topic_id"], row["partition"], row["state_partition"])
        record = LogRecord(STATE_TOPIC, row["state_partition"], row["log_offset"])
        self._proofs.add(rule, place, difference, record, row["log_time_ms"], proof)

    def _test_leader_epochs(self, records: pa.Table, codes: Ints, places: list[TopicPartition], last: Ints) -> None:
        metadata = self._topics.metadata
        if metadata is None:
            return
        epochs, times = _ints(records, "leader_epoch"), _ints(records, "log_time_ms")
        pairs = pa.array(codes << 32 | np.maximum(epochs, 0)).dictionary_encode()
        indices = pairs.indices.to_numpy()
        first_ms = np.full(len(pairs.dictionary), UNBOUNDED)
        np.minimum.at(first_ms, indices, times)
        for number, pair in enumerate(pairs.dictionary.to_pylist()):
            if self._epoch_difference(places[pair >> 32], pair & 0xFFFFFFFF, int(first_ms[number])) is None:
                continue
            for row in _rows(records, np.flatnonzero(indices == number), last):
                difference = self._epoch_difference(places[pair >> 32], row["leader_epoch"], row["log_time_ms"])
                if difference is not None:
                    self._add(LEADER_EPOCH, difference, row, [])

    def _epoch_difference(self, place: TopicPartition, leader_epoch: int, time_ms: int) -> Difference | None:
        assert self._topics.metadata is not None
        epoch = self._topics.metadata.epoch_at(place, time_ms + TOLERANCE_MS)
        return None if epoch is None else leader_epoch_beyond_topic(leader_epoch, epoch)

    def _keep_windows(self, records: pa.Table, start: Ints, last: Ints) -> None:
        """Keeps the largest window of each share partition, the first of equal ones."""
        windows = np.where(start >= 0, last - start + 1, 0)
        wide = np.flatnonzero(windows > LOWEST_LOCKS)
        if not len(wide):
            return
        groups = records.column("group_id").take(pa.array(wide)).combine_chunks().cast(pa.string()).dictionary_encode()
        locks = [self._topics.locks_of(group_id) for group_id in groups.dictionary.to_pylist()]
        most = np.array([UNBOUNDED if number is None else number for number in locks], np.int64)
        wide = wide[windows[wide] > most[groups.indices.to_numpy()]]
        for row in _rows(records, wide[np.argsort(-windows[wide], kind="stable")], last):
            key = (row["group_id"], row["topic_id"], row["partition"])
            window = row["last_offset"] - row["start_offset"]
            if key not in self._windows or self._windows[key][0] < window:
                self._windows[key] = (window, row)

    def _test_window(self, row: Mapping[str, Any]) -> None:
        span = self._topics.span_at((row["topic_id"], row["partition"]), row["last_offset"])
        locks = self._topics.locks_of(row["group_id"])
        if span is None or locks is None:
            return
        difference = window_over_locks(row["start_offset"], row["last_offset"], locks, span)
        if difference is not None:
            self._add(WINDOW, difference, row, [])


def _beyond(row: Mapping[str, Any], end_offset: int, is_uncut: bool) -> Iterator[tuple[int, Difference]]:
    """The rules on the topic's end that a record violates; `is_uncut`: no election can have cut off the end."""
    start, last = row["start_offset"], row["last_offset"]
    start_difference = start_offset_beyond_end(start, end_offset)
    if start_difference is not None:
        yield START_BEYOND, start_difference
    last_difference = batch_beyond_end(last, end_offset) if last >= 0 else None
    if last_difference is not None:
        yield BATCH_BEYOND if is_uncut else BATCH_BEYOND_CUT, last_difference
    count = row["delivery_complete_count"]
    count_difference = complete_count_beyond_end(start, -1 if count is None else count, end_offset)
    if count_difference is not None and is_uncut:
        yield COUNT_BEYOND, count_difference


def _proof(end: TopicEnd, partition: int) -> list[LogRecord]:
    return [LogRecord(end.topic, partition, end.end_offset - 1)]


def _topic_partitions(records: pa.Table) -> tuple[Ints, list[TopicPartition]]:
    """The number of each record's user partition, and the user partitions by number."""
    topics = records.column("topic_id").combine_chunks()
    if not isinstance(topics, pa.DictionaryArray):
        topics = topics.dictionary_encode()
    indices = pc.fill_null(topics.indices, 0).to_numpy().astype(np.int64)
    partitions = records.column("partition").to_numpy().astype(np.int64) & 0xFFFFFFFF
    numbered = pa.array(indices << 32 | partitions).dictionary_encode()
    names = topics.dictionary.to_pylist()
    places = [(names[code >> 32], code & 0xFFFFFFFF) for code in numbered.dictionary.to_pylist()]
    return numbered.indices.to_numpy().astype(np.int64), places


def _last_offsets(records: pa.Table) -> Ints:
    """The largest last offset of each record's state batches; -1 without any."""
    column = records.column("state_batches").combine_chunks()
    counts = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    last = np.full(len(counts), -1, np.int64)
    rows = np.flatnonzero(counts)
    if len(rows):
        offsets = np.ascontiguousarray(pc.list_flatten(column).field("last_offset").to_numpy()).astype(np.int64)
        last[rows] = np.maximum.reduceat(offsets, (np.cumsum(counts) - counts)[rows])
    return last


def _rows(records: pa.Table, numbers: Ints, last: Ints) -> Iterator[dict[str, Any]]:
    """Rows of records with their last offsets."""
    rows = records.select(READ).take(pa.array(numbers)).append_column("last_offset", pa.array(last[numbers]))
    for batch in rows.to_batches(max_chunksize=10_000):
        for row in batch.to_pylist():
            if row["start_offset"] is not None:
                yield row


def _ints(records: pa.Table, name: str) -> Ints:
    values: Ints = pc.fill_null(records.column(name), -1).to_numpy().astype(np.int64)
    return values
