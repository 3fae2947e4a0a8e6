"""When share partitions lived, with which state epoch, from the snapshots and tombstones of state partitions."""

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from state_model.audit.columnar.auditor import NO_EPOCH
from state_model.audit.periods import BEGINNING, END, Period
from state_model.columnar.keys import PLACE_KEY, Ints, number_keys
from state_model.share_records import SharePartitionKey

TURN: Final = pa.schema(
    [
        pa.field("group_id", pa.string()),
        pa.field("topic_id", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("state_partition", pa.int32()),
        pa.field("log_offset", pa.int64()),
        pa.field("log_time_ms", pa.int64()),
        pa.field("state_epoch", pa.int64()),
        pa.field("is_creation", pa.bool_()),
    ]
)
"""A record that begins or ends a life, or changes its state epoch; `state_epoch` is null in a tombstone."""
TURNING: Final = pa.array(["snapshot", "tombstone"])
"""The record types that turns are made of."""
READ: Final = frozenset({*TURN.names, "record_type", "snapshot_epoch"})
"""The columns of SHARE_RECORD that turns are made of; to filter its lists, too, would cost more than all the rest."""
FOLDED_ROWS: Final = 200_000


class Life(NamedTuple):
    """A share partition with one state epoch. The period begins at BEGINNING where its first record is not there."""

    state_partition: int
    state_epoch: int
    first_ms: int
    period: Period


class Turns:
    """Takes the records of state partitions; memory grows with lives and state epochs, not with records."""

    def __init__(self) -> None:
        self._tables = [TURN.empty_table()]
        self._rows = 0

    def take(self, records: pa.Table) -> None:
        """Takes the next records (SHARE_RECORD columns, in the order of each state partition)."""
        is_kept = pc.is_in(records.column("record_type"), value_set=TURNING)
        turning_records = records.select([name for name in records.column_names if name in READ]).filter(is_kept)
        if turning_records.num_rows == 0:
            return
        is_creation = pc.fill_null(pc.equal(turning_records.column("snapshot_epoch"), 0), False)
        columns = {name: turning_records.column(name) for name in TURN.names if name != "is_creation"}
        turns = pa.table({**columns, "is_creation": is_creation}).cast(TURN)
        self._tables.append(without_repetition(turns))
        self._rows += self._tables[-1].num_rows
        if self._rows > FOLDED_ROWS:
            self._tables = [self.table()]
            self._rows = 0

    def table(self) -> pa.Table:
        """TURN rows by share partition, then by log offset."""
        return without_repetition(pa.concat_tables(self._tables))


def without_repetition(turns: pa.Table) -> pa.Table:
    """The rows by place and log offset, without snapshots that leave the state epoch as it is."""
    (numbers,), _ = number_keys(turns)
    places = numbers << 20 | turns.column("state_partition").to_numpy().astype(np.int64)
    order = np.lexsort((turns.column("log_offset").to_numpy(), places))
    epochs: Ints = pc.fill_null(turns.column("state_epoch"), NO_EPOCH).to_numpy()[order]
    is_same = (np.diff(places[order], prepend=-1) == 0) & (np.diff(epochs, prepend=0) == 0)
    if len(is_same):
        is_same[0] = False
    return turns.take(pa.array(order[~is_same]))


def lives_of(turns: pa.Table) -> Mapping[SharePartitionKey, list[Life]]:
    """The lives of each share partition from TURN rows, in the order of the log."""
    lives: dict[SharePartitionKey, list[Life]] = {}
    before: tuple[object, ...] | None = None
    for row in turns.to_pylist():
        place = tuple(row[name] for name in PLACE_KEY)
        key = SharePartitionKey(row["group_id"], row["topic_id"], row["partition"])
        partition_lives = lives.setdefault(key, [])
        is_first = place != before
        before = place
        if not is_first and partition_lives and partition_lives[-1].period.to_ms == END:
            partition_lives[-1] = partition_lives[-1]._replace(
                period=partition_lives[-1].period._replace(to_ms=row["log_time_ms"])
            )
        if row["state_epoch"] is not None:
            begin = BEGINNING if is_first and not row["is_creation"] else row["log_time_ms"]
            period = Period(begin, END, row["log_offset"])
            partition_lives.append(Life(row["state_partition"], row["state_epoch"], row["log_time_ms"], period))
        elif is_first:
            partition_lives.append(
                Life(row["state_partition"], -1, row["log_time_ms"], Period(BEGINNING, row["log_time_ms"], -1))
            )
    return lives
