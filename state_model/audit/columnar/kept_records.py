"""The records of a state log that rules between logs compare again in each run, so that no run reads the history.

    life     a snapshot or tombstone that begins or ends a life, or changes its state epoch
    ahead    a record that lies behind the end of its topic, or has a leader epoch that had not begun
    window   the record with the largest window of a share partition
    newest   the newest state of a share partition whose lag is negative
    topic    a user partition of the state partition, with the leader epoch that the records were compared with

While the ends and leader epochs of topics grow, they refute records that are kept, and never make others violations.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from state_model.audit.columnar.auditor import NO_EPOCH
from state_model.audit.columnar.kept_schema import AHEAD, KEPT_RECORD, LIFE, NEWEST, TOPIC, WINDOW
from state_model.audit.columnar.lives import TURN, Turns
from state_model.audit.columnar.partitions import PartitionsAudit
from state_model.audit.columnar.user_topics import (
    TOPIC_RECORD,
    Epochs,
    ahead,
    lagging,
    newest_states,
    topic_records,
    widest,
)
from state_model.audit.group_steps import TopicPartition
from state_model.columnar.keys import SHARE_PARTITION_KEY

LAST: Final = TOPIC_RECORD.names[-1]
NO_BATCH: Final = -1
"""The last offset of a TOPIC_RECORD row without state batches; null in a kept record."""


class KnownTopics(NamedTuple):
    """Committed ends of user partitions, and their leader epochs (None: no metadata log), as a run knows them."""

    ends: Mapping[TopicPartition, int] = {}
    epochs: Epochs | None = None


class RecordKeeper:
    """Takes the records of state partitions, of each in log order, and keeps those that later runs compare again.

    `audit`: of the same records, before the first of them. The lives of the states that it goes on from are kept.
    """

    def __init__(self, known_topics: KnownTopics, audit: PartitionsAudit) -> None:
        self._known_topics = known_topics
        self._audit = audit
        self._epochs = audit.auditor.state_epochs()
        self._turns = Turns()
        self._ahead = [TOPIC_RECORD.empty_table()]
        self._widest = TOPIC_RECORD.empty_table()

    def take(self, records: pa.Table) -> None:
        """Takes the next records (SHARE_RECORD), in log order, and keeps those that rules compare again."""
        if records.num_rows == 0:
            return
        self._turns.take(records)
        topic_rows = topic_records(records)
        is_ahead = ahead(topic_rows, self._known_topics.ends, self._known_topics.epochs or {})
        if is_ahead.any():
            self._ahead.append(topic_rows.filter(pa.array(is_ahead)).cast(TOPIC_RECORD))
        self._widest = widest(pa.concat_tables([self._widest, widest(topic_rows).cast(TOPIC_RECORD)]))

    def rows(self) -> pa.Table:
        """KEPT_RECORD rows; call it when the audit is closed."""
        parts = {
            LIFE: self._new_turns(),
            AHEAD: pa.concat_tables(self._ahead),
            WINDOW: self._widest,
            NEWEST: self._lagging(),
        }
        return pa.concat_tables([*(as_kept_records(rows, kind) for kind, rows in parts.items()), self._topics()])

    def _lagging(self) -> pa.Table:
        if not self._known_topics.ends:
            return TOPIC_RECORD.empty_table()
        newest = newest_states(self._audit.auditor, self._audit.state_partitions)
        return newest.filter(pa.array(lagging(newest, self._known_topics.ends)))

    def _new_turns(self) -> pa.Table:
        """The turns but for the first one of a share partition, if it goes on with the state epoch of before."""
        turns = self._turns.table()
        if not len(self._epochs) or not turns.num_rows:
            return turns
        numbers = self._audit.auditor.numbers_of(turns, self._audit.logs_of(turns))
        before = np.append(self._epochs, np.full(self._audit.auditor.keys.num_rows - len(self._epochs), NO_EPOCH))
        is_first = np.diff(numbers, prepend=-1) != 0
        epochs = pc.fill_null(turns.column("state_epoch"), NO_EPOCH).to_numpy()
        goes_on = is_first & (epochs == before[numbers]) & (epochs != NO_EPOCH)
        return turns.filter(pa.array(~goes_on))

    def _topics(self) -> pa.Table:
        epochs = self._known_topics.epochs
        if epochs is None:
            return KEPT_RECORD.empty_table()
        auditor = self._audit.auditor
        places = auditor.keys.select(SHARE_PARTITION_KEY[1:])
        numbers = pa.array(self._audit.state_partitions[auditor.log_of])
        places = places.append_column("state_partition", numbers)
        places = places.group_by(places.column_names, use_threads=False).aggregate([])
        return with_epochs(as_kept_records(places, TOPIC), epochs)


def as_kept_records(rows: pa.Table, kind: str) -> pa.Table:
    """Rows with some of its columns as KEPT_RECORD of a kind."""
    columns = {name: rows.column(name) for name in rows.column_names} | {"kind": pa.repeat(kind, rows.num_rows)}
    if LAST in columns:
        columns[LAST] = pc.if_else(pc.less(columns[LAST], 0), None, columns[LAST])
    absent = {field.name: pa.nulls(rows.num_rows, field.type) for field in KEPT_RECORD if field.name not in columns}
    return pa.table(columns | absent).select(KEPT_RECORD.names).cast(KEPT_RECORD)


def turns_of(rows: pa.Table) -> pa.Table:
    """TURN of KEPT_RECORD rows of the kind LIFE."""
    return rows.select(TURN.names).cast(TURN)


def topic_records_of(rows: pa.Table) -> pa.Table:
    """TOPIC_RECORD of KEPT_RECORD rows of the kinds AHEAD, WINDOW or NEWEST."""
    last = pc.fill_null(rows.column(LAST), NO_BATCH)
    index = rows.column_names.index(LAST)
    return rows.set_column(index, LAST, last).select(TOPIC_RECORD.names).cast(TOPIC_RECORD)


def distinct(rows: pa.Table) -> pa.Table:
    """The rows by state partition and log offset, each once."""
    places = [rows.column(name).to_numpy() for name in ("log_offset", "state_partition")]
    order = np.lexsort(places)
    is_new = np.ones(len(order), np.bool_)
    is_new[1:] = np.any([np.diff(place[order]) != 0 for place in places], axis=0)
    return rows.take(pa.array(order[is_new]))


def with_epochs(topics: pa.Table, epochs: Epochs) -> pa.Table:
    """KEPT_RECORD rows of the kind TOPIC with the largest leader epochs of today."""
    largest_epochs = [largest_epoch(epochs.get(place)) for place in places_of(topics)]
    values = {
        "leader_epoch": [None if pair is None else pair[0] for pair in largest_epochs],
        "log_time_ms": [None if pair is None else pair[1] for pair in largest_epochs],
    }
    for name, column_values in values.items():
        index = KEPT_RECORD.get_field_index(name)
        topics = topics.set_column(
            index, KEPT_RECORD.field(index), pa.array(column_values, KEPT_RECORD.field(index).type)
        )
    return topics


def is_outdated(topics: pa.Table, epochs: Epochs) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Mask of the rows of the kind TOPIC whose stored leader epoch is older than the known one, or missing."""
    stored = zip(topics.column("leader_epoch").to_pylist(), topics.column("log_time_ms").to_pylist(), strict=True)
    now = [largest_epoch(epochs.get(place)) for place in places_of(topics)]
    return np.array([_is_lower(pair, before) for pair, before in zip(now, stored, strict=True)], np.bool_)


def _is_lower(now: tuple[int, int] | None, before: tuple[int | None, int]) -> bool:
    if before[0] is None:
        return now is not None
    return now is None or now[0] < before[0] or (now[0] == before[0] and now[1] > before[1])


def places_of(rows: pa.Table) -> list[TopicPartition]:
    """The user partition of each row."""
    return list(zip(*(rows.column(name).to_pylist() for name in SHARE_PARTITION_KEY[1:]), strict=True))


def largest_epoch(epochs: Sequence[tuple[int, int]] | None) -> tuple[int, int] | None:
    """The largest leader epoch, and when it began first."""
    if not epochs:
        return None
    largest = max(epoch for _, epoch in epochs)
    return largest, min(begin_ms for begin_ms, epoch in epochs if epoch == largest)
