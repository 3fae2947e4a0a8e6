"""Rules between the state log and the logs and leader epochs of user topics: 24, 29, 35, 36, 61 and 65."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from state_model.audit.columnar.auditor import Auditor
from state_model.audit.columnar.kernels import layout
from state_model.audit.columnar.proofs import LogRecord, Place, Proofs
from state_model.audit.columnar.topic_metadata import TopicMetadata
from state_model.audit.complete_count import complete_count_beyond_end, negative_lag
from state_model.audit.epochs import leader_epoch_beyond_topic
from state_model.audit.group_steps import TopicPartition
from state_model.audit.offsets import batch_beyond_end, start_offset_beyond_end, window_over_locks
from state_model.audit.periods import BEGINNING, END, TOLERANCE_MS
from state_model.audit.rule import Difference
from state_model.columnar.keys import SHARE_PARTITION_KEY, Ints, number_keys, numbered_partitions
from state_model.columnar.schemas import SHARE_RECORD, column
from state_model.topics import STATE_TOPIC

LEADER_EPOCH, START_BEYOND, BATCH_BEYOND, BATCH_BEYOND_CUT = 240, 290, 350, 351
WINDOW, COUNT_BEYOND, LAG = 360, 610, 650
LOWEST_LOCKS: Final = 100
"""No broker takes a lower share.partition.max.record.locks."""
UNBOUNDED: Final = (1 << 63) - 1
Flags = npt.NDArray[np.bool_]
Epochs = Mapping[TopicPartition, Sequence[tuple[int, int]]]
"""The leader epochs of user partitions, with the times at which they began."""
TOPIC_RECORD: Final = pa.schema(
    [
        *(
            SHARE_RECORD.field(name)
            for name in ("group_id", "topic_id", "partition", "state_partition", "log_offset", "log_time_ms")
        ),
        *(SHARE_RECORD.field(name) for name in ("leader_epoch", "start_offset", "delivery_complete_count")),
        column("last_offset", pa.int64(), "largest last offset of its state batches; -1 = none", nullable=False),
    ]
)
"""What the rules read of a record of the state log."""


class TopicEnd(NamedTuple):
    """The end of a user partition: its first free offset, time and leader epoch of its newest batch."""

    topic: str
    end_offset: int
    newest_ms: int
    leader_epoch: int


class UserTopics(NamedTuple):
    """Look-ups of user topics for the rules: end of a partition, size of a log batch, record locks; None: not known.

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
        """Takes the next records (TOPIC_RECORD), in log order."""
        if records.num_rows == 0:
            return
        codes, places = numbered_partitions(records)
        for row in _rows(records, np.flatnonzero(_is_beyond(records, self._ends(places)[codes]))):
            self._test_end(row)
        self._test_leader_epochs(records, codes, places)
        self._keep_windows(records)

    def close(self, newest: pa.Table) -> None:
        """Tests the largest window of each share partition, and the newest states (TOPIC_RECORD)."""
        for _, row in self._windows.values():
            self._test_window(row)
        codes, places = numbered_partitions(newest)
        for row in _rows(newest, np.flatnonzero(_is_lagging(newest, self._ends(places)[codes]))):
            end = self._topics.end_of((row["topic_id"], row["partition"]))
            assert end is not None
            difference = negative_lag(row["start_offset"], row["delivery_complete_count"], end.end_offset)
            if difference is not None and self._is_known(end, row["log_time_ms"]):
                self._add(LAG, difference, row, _proof(end, row["partition"]))

    def _ends(self, places: Sequence[TopicPartition]) -> Ints:
        ends = map(self._topics.end_of, places)
        return np.array([UNBOUNDED if end is None else end.end_offset for end in ends], np.int64)

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

    def _test_leader_epochs(self, records: pa.Table, codes: Ints, places: list[TopicPartition]) -> None:
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
            for row in _rows(records, np.flatnonzero(indices == number)):
                difference = self._epoch_difference(places[pair >> 32], row["leader_epoch"], row["log_time_ms"])
                if difference is not None:
                    self._add(LEADER_EPOCH, difference, row, [])

    def _epoch_difference(self, place: TopicPartition, leader_epoch: int, time_ms: int) -> Difference | None:
        assert self._topics.metadata is not None
        epoch = self._topics.metadata.epoch_at(place, time_ms + TOLERANCE_MS)
        return None if epoch is None else leader_epoch_beyond_topic(leader_epoch, epoch)

    def _keep_windows(self, records: pa.Table) -> None:
        """Keeps the largest window of each share partition, the first of equal ones."""
        windows = _windows(records)
        wide = np.flatnonzero(windows > LOWEST_LOCKS)
        if not len(wide):
            return
        groups = records.column("group_id").take(pa.array(wide)).combine_chunks().cast(pa.string()).dictionary_encode()
        locks = [self._topics.locks_of(group_id) for group_id in groups.dictionary.to_pylist()]
        max_locks = np.array([UNBOUNDED if number is None else number for number in locks], np.int64)
        wide = wide[windows[wide] > max_locks[groups.indices.to_numpy()]]
        for row in _rows(records, wide[np.argsort(-windows[wide], kind="stable")]):
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


def topic_records(records: pa.Table) -> pa.Table:
    """TOPIC_RECORD rows of SHARE_RECORD rows."""
    columns = [records.column(name) for name in TOPIC_RECORD.names[:-1]]
    return pa.table([*columns, pa.array(_last_offsets(records))], names=TOPIC_RECORD.names)


def newest_states(auditor: Auditor, state_partitions: Ints) -> pa.Table:
    """TOPIC_RECORD rows of the newest states of the share partitions whose state is known.

    `state_partitions`: that of each log of the auditor.
    """
    numbers = auditor.live()
    values = auditor.matrix[numbers]
    columns = {name: auditor.keys.column(name).take(pa.array(numbers)) for name in SHARE_PARTITION_KEY}
    columns |= {
        "state_partition": state_partitions[auditor.log_of[numbers]],
        "log_offset": values[:, layout.LAST_AT],
        "log_time_ms": auditor.last_ms[numbers],
        "leader_epoch": values[:, layout.LEADER_EPOCH],
        "start_offset": values[:, layout.START],
        "delivery_complete_count": values[:, layout.DCC],
        "last_offset": np.full(len(numbers), -1),
    }
    return pa.table(columns).cast(TOPIC_RECORD)


def lagging(newest: pa.Table, ends: Mapping[TopicPartition, int]) -> Flags:
    """Mask of the newest states (TOPIC_RECORD) with a negative lag, by the ends of user partitions."""
    if not ends:
        return np.zeros(newest.num_rows, np.bool_)
    codes, places = numbered_partitions(newest)
    return _is_lagging(newest, np.array([ends.get(place, UNBOUNDED) for place in places], np.int64)[codes])


def ahead(records: pa.Table, ends: Mapping[TopicPartition, int], epochs: Epochs) -> Flags:
    """Mask of TOPIC_RECORD rows behind the ends of user partitions, or with leader epochs that began over 60 s later.

    All violations of the rules on ends and leader epochs are among them, also once the ends and epochs have grown.
    """
    if not ends and not epochs:
        return np.zeros(records.num_rows, np.bool_)
    codes, places = numbered_partitions(records)
    of_place = np.array([ends.get(place, UNBOUNDED) for place in places], np.int64)
    leader_epochs, times = _ints(records, "leader_epoch"), _ints(records, "log_time_ms")
    pairs = pa.array(codes << 32 | np.maximum(leader_epochs, 0)).dictionary_encode()
    begins = [_begin_ms(epochs.get(places[pair >> 32]), pair & 0xFFFFFFFF) for pair in pairs.dictionary.to_pylist()]
    is_early: Flags = times + TOLERANCE_MS < np.array(begins, np.int64)[pairs.indices.to_numpy()]
    return _is_beyond(records, of_place[codes]) | is_early


def widest(records: pa.Table) -> pa.Table:
    """The TOPIC_RECORD row of each share partition with the largest window, the first of equal ones, if it is wide."""
    windows = _windows(records)
    wide = np.flatnonzero(windows > LOWEST_LOCKS)
    rows = records.take(pa.array(wide))
    if len(wide) == 0:
        return rows
    (numbers,), _ = number_keys(rows.select(SHARE_PARTITION_KEY))
    places = numbers << 20 | rows.column("state_partition").to_numpy().astype(np.int64)
    order = np.lexsort((rows.column("log_offset").to_numpy(), -windows[wide], places))
    return rows.take(pa.array(order[np.diff(places[order], prepend=-1) != 0]))


def _begin_ms(epochs: Sequence[tuple[int, int]] | None, leader_epoch: int) -> int:
    """When a leader epoch, or a later one, began; BEGINNING where no epoch is known."""
    if epochs is None:
        return BEGINNING
    return min((begin_ms for begin_ms, epoch in epochs if epoch >= leader_epoch), default=END)


def _is_beyond(records: pa.Table, ends: Ints) -> Flags:
    """Mask of the TOPIC_RECORD rows that name offsets at or behind the ends of their user partitions."""
    start, last, count = (_ints(records, name) for name in ("start_offset", "last_offset", "delivery_complete_count"))
    counted = np.where((start >= 0) & (start <= ends) & (count > 0), start + count, -1)
    beyond: Flags = np.maximum(np.maximum(start, np.minimum(last, UNBOUNDED - 1) + 1), counted) > ends
    return beyond


def _is_lagging(newest: pa.Table, ends: Ints) -> Flags:
    start, count = _ints(newest, "start_offset"), _ints(newest, "delivery_complete_count")
    lags: Flags = (start >= 0) & (start > ends - np.maximum(count, 0))
    return lags


def _windows(records: pa.Table) -> Ints:
    """From the start offset to the last state of each TOPIC_RECORD row; 0 where the start offset is not known."""
    start, last = _ints(records, "start_offset"), _ints(records, "last_offset")
    return np.where(start >= 0, last - start + 1, 0)


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


def _rows(records: pa.Table, numbers: Ints) -> Iterator[dict[str, Any]]:
    """Some of the TOPIC_RECORD rows, without tombstones."""
    rows = records.take(pa.array(numbers))
    for batch in rows.to_batches(max_chunksize=10_000):
        for row in batch.to_pylist():
            if row["start_offset"] is not None:
                yield row


def _ints(records: pa.Table, name: str) -> Ints:
    values: Ints = pc.fill_null(records.column(name), -1).to_numpy().astype(np.int64)
    return values
