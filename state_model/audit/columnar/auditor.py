"""Audits the decoded records of one state partition (Arrow), chunk after chunk, with bounded memory.

Every rule of sections 2 to 7 of the specification that needs the state log alone; the violations of each chunk come as
VIOLATION rows. The state is the audit's own: it shares no code with the replay.
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from state_model.audit.columnar import audit_kernel, layout
from state_model.audit.columnar.continuation import AUDITED, COUNTS, KEYS, LOST, matrix_of, rows_of
from state_model.audit.columnar.step_kernels import NO_STATE
from state_model.audit.columnar.violations import NO_VIOLATIONS, NONE, VIOLATION, violation_rows
from state_model.audit.rule import Field
from state_model.columnar.keys import SHARE_PARTITION_KEY, Ints, number_keys
from state_model.columnar.values import Loss

RECORD_TYPES: Final = pa.array(["snapshot", "update", "tombstone"])
VALUE_COLUMNS: Final = (
    "snapshot_epoch",
    "state_epoch",
    "leader_epoch",
    "start_offset",
    "delivery_complete_count",
    "create_timestamp_ms",
    "write_timestamp_ms",
)
BATCH_COLUMNS: Final = ("first_offset", "last_offset", "delivery_state", "delivery_count")


class Auditor:
    """The audit of one state partition. By the number of a share partition: `keys`, `matrix` (its state; the columns
    are those of layout), and of all its records `count`, `first_at`, `last_at`, `first_ms`, `last_ms`.

    Args:
        is_from_zero: the log is there from offset 0 on, so that the first record of a share partition is a creation.
        limit_of_group: the delivery count limit of a group; None: unknown.
    """

    def __init__(self, *, is_from_zero: bool, limit_of_group: Callable[[str], int | None] = lambda group: None) -> None:
        self.keys = KEYS.empty_table()
        self.matrix = np.zeros((0, layout.STATE_COLUMNS), np.int64)
        self.count, self.first_at, self.last_at, self.first_ms, self.last_ms = (np.zeros(0, np.int64) for _ in COUNTS)
        self._first = layout.NEW if is_from_zero else layout.UNKNOWN
        self._limit_of_group = limit_of_group
        self._log = np.array([NONE, 0, 0, 0, 0], np.int64)
        self._at = np.zeros(64, np.int64)
        self._values = np.zeros(64, np.int64)
        self._used = 0
        self._losses: list[Loss] = []

    def take(self, records: pa.Table, losses: Sequence[Loss] = ()) -> pa.Table:
        """VIOLATION rows of the next records (SHARE_RECORD, in log order, none uncommitted).

        `losses`: offsets that the evidence lacks, up to the last of the records or behind it, ascending.
        """
        self._losses = sorted([*self._losses, *losses], key=lambda loss: loss.first_offset)
        lost = [loss for loss in self._losses if loss.group_id is not None]
        lost_keys = pa.table({name: [getattr(loss, name) for loss in lost] for name in SHARE_PARTITION_KEY})
        (_, numbers, of_lost), keys = number_keys(self.keys, records, lost_keys.cast(KEYS))
        self._add_keys(keys)
        by_loss = iter(of_lost.tolist())
        loss_rows = [(loss.first_offset, NONE if loss.group_id is None else next(by_loss)) for loss in self._losses]
        self._log[audit_kernel.LOSSES] = 0
        hits, count, self._at, self._values, self._used = audit_kernel.audit_records(
            _kinds(records),
            numbers,
            _ints(records, "log_offset"),
            _ints(records, "timestamp_ms"),
            _values(records),
            *_batches(records),
            np.array(loss_rows, np.int64).reshape(-1, 2),
            self._log,
            self.matrix,
            self._at,
            self._values,
            self._used,
        )
        self._losses = self._losses[int(self._log[audit_kernel.LOSSES]) :]
        self._count(numbers, _ints(records, "log_offset"), _ints(records, "log_time_ms"))
        return self._violations(records, numbers, hits[:count])

    def close(self) -> None:
        """Applies the losses behind the last record; the states are then those at the end of the log."""
        for loss in self._losses:
            self._log[audit_kernel.LOSS_COUNT] += 1
            if loss.group_id is None:
                self._log[audit_kernel.LAST_OF_ALL] = self._log[audit_kernel.LOSS_COUNT]
            else:
                key = pa.table({name: [getattr(loss, name)] for name in SHARE_PARTITION_KEY})
                (_, (number,)), _ = number_keys(self.keys, key.cast(KEYS))
                self.matrix[number, layout.STANDING] = layout.UNKNOWN
        self._losses = []

    def state(self) -> dict[str, object]:
        """Columns of AUDIT_STATE, the breakpoints close together; call it before `close`."""
        matrix = self.matrix.copy()
        sizes = matrix[:, layout.SIZE]
        begins = np.cumsum(sizes) - sizes
        places = np.arange(int(sizes.sum())) + np.repeat(matrix[:, layout.BEGIN] - begins, sizes)
        matrix[:, layout.BEGIN] = matrix[:, layout.SLOT] = begins
        matrix[:, layout.SLOT_ROOM] = sizes
        log = self._log.copy()
        log[audit_kernel.LOSSES] = 0  # of the last call alone
        losses = [{name: getattr(loss, name) for name in LOST.names} for loss in self._losses]
        counts = {name: getattr(self, name) for name in COUNTS}
        return {
            "is_from_zero": self.is_from_zero,
            "share_partitions": pa.table({**dict(zip(KEYS.names, self.keys.columns, strict=True)), **counts}),
            "states": matrix.ravel(),
            "breakpoint_offsets": self._at[places],
            "breakpoint_values": self._values[places],
            "log": log,
            "losses": pa.Table.from_pylist(losses, schema=LOST),
        }

    def resume(self, state: pa.Table) -> None:
        """Takes over the state of an audit of the records before (AUDIT_STATE)."""
        self.resume_counts(state)
        self._first = layout.NEW if state.column("is_from_zero")[0].as_py() else layout.UNKNOWN
        self.matrix = matrix_of(state, "states", layout.STATE_COLUMNS)
        self._at, self._values, self._log = (
            matrix_of(state, name, 1).ravel() for name in ("breakpoint_offsets", "breakpoint_values", "log")
        )
        self._used = len(self._at)
        self._losses = [Loss(**loss) for loss in rows_of(state, "losses", LOST).to_pylist()]

    def keep_below(self, state: pa.Table, begin: int) -> Ints:
        """Keeps the share partitions of an earlier audit with records below a log offset, without their states.

        By the earlier number of a share partition its number here, -1: none; one more entry for the number -1.
        """
        rows = rows_of(state, "share_partitions", AUDITED)
        is_below = rows.column("first_at").to_numpy() < begin
        numbers = np.append(np.where(is_below, np.cumsum(is_below) - 1, NONE), NONE)
        rows = rows.filter(pa.array(is_below))
        self._add_keys(rows.select(KEYS.names).cast(KEYS))
        for name in COUNTS:
            setattr(self, name, rows.column(name).to_numpy().copy())
        goes_on = self.last_at >= begin
        self.last_at[goes_on], self.last_ms[goes_on] = self.first_at[goes_on], self.first_ms[goes_on]
        self.count[goes_on] = 1
        return numbers

    def resume_counts(self, state: pa.Table) -> None:
        """Takes over the share partitions and the counts of their records alone."""
        rows = rows_of(state, "share_partitions", AUDITED)
        self.keys = rows.select(KEYS.names).cast(KEYS)
        for name in COUNTS:
            setattr(self, name, rows.column(name).to_numpy().copy())

    def _add_keys(self, keys: pa.Table) -> None:
        known = self.keys.num_rows
        if keys.num_rows == known:
            return
        new = keys.slice(known)
        self.keys = keys
        rows = np.zeros((new.num_rows, layout.STATE_COLUMNS), np.int64)
        rows[:, layout.STANDING] = self._first
        rows[:, [layout.SNAPSHOT_AT, layout.LAST_AT, layout.ARCHIVING_MS]] = NONE
        groups = new.column("group_id").combine_chunks().dictionary_encode()
        limits = [self._limit_of_group(group) for group in groups.dictionary.to_pylist()]
        known_limits = np.array([NONE if limit is None else limit for limit in limits], np.int64)
        rows[:, layout.LIMIT] = known_limits[groups.indices.to_numpy()]
        self.matrix = np.concatenate([self.matrix, rows])

        for name in COUNTS:
            setattr(self, name, np.concatenate([getattr(self, name), np.zeros(new.num_rows, np.int64)]))

    def _count(self, numbers: Ints, offsets: Ints, times: Ints) -> None:
        """Counts the records of each share partition; of equal numbers the last assignment counts."""
        new = self.count[numbers] == 0
        self.first_at[numbers[new][::-1]] = offsets[new][::-1]
        self.first_ms[numbers[new][::-1]] = times[new][::-1]
        self.last_at[numbers] = offsets
        self.last_ms[numbers] = times
        self.count += np.bincount(numbers, minlength=len(self.count))

    def _violations(self, records: pa.Table, numbers: Ints, hits: Ints) -> pa.Table:
        rows = hits[:, layout.HIT_ROW]
        columns = {
            "rule": hits[:, layout.HIT_RULE],
            "share_partition": numbers[rows],
            "log_offset": _ints(records, "log_offset")[rows],
            "log_time_ms": _ints(records, "log_time_ms")[rows],
            "field": hits[:, layout.HIT_FIELD],
            "at": hits[:, layout.HIT_AT],
            "expected": hits[:, layout.HIT_EXPECTED],
            "seen": hits[:, layout.HIT_SEEN],
            "snapshot_log_offset": hits[:, layout.HIT_SNAPSHOT],
            "previous_log_offset": hits[:, layout.HIT_PREVIOUS],
        }
        return pa.concat_tables([pa.table(columns, schema=VIOLATION), self._of_bytes(records, numbers)])

    def _of_bytes(self, records: pa.Table, numbers: Ints) -> pa.Table:
        """VIOLATION rows of trailing bytes and unknown tagged fields."""
        trailing = _ints(records, "trailing_bytes")
        tags = pc.list_value_length(records.column("unknown_tags")).fill_null(0).to_numpy().astype(np.int64)
        tables = [NO_VIOLATIONS]
        for rule, field, counts in ((12, Field.TRAILING_BYTES, trailing), (13, Field.UNKNOWN_TAGS, tags)):
            rows = np.flatnonzero(counts)
            if len(rows):
                tables.append(
                    violation_rows(
                        rule=rule,
                        share_partition=numbers[rows],
                        log_offset=_ints(records, "log_offset")[rows],
                        log_time_ms=_ints(records, "log_time_ms")[rows],
                        field=int(field),
                        expected=0,
                        seen=counts[rows],
                    )
                )
        return pa.concat_tables(tables)

    def live(self) -> Ints:
        """The numbers of the share partitions whose state is known, ascending."""
        standing = self.matrix[:, layout.STANDING]
        is_known = self.matrix[:, layout.LOSSES_SEEN] >= self._log[audit_kernel.LAST_OF_ALL]
        return np.flatnonzero((standing == layout.LIVE) & is_known)

    @property
    def is_from_zero(self) -> bool:
        """Whether the log is there from offset 0 on."""
        return self._first == layout.NEW

    @property
    def pool(self) -> tuple[Ints, Ints]:
        """Offsets and values of all breakpoints; a share partition's are from BEGIN on, SIZE of them."""
        return self._at, self._values

    @property
    def is_without_losses(self) -> bool:
        """Whether no record was missing so far."""
        return int(self._log[audit_kernel.LOSS_COUNT]) == 0

    def first_archiving(self, number: int) -> tuple[int, int] | None:
        """The first offset in state ARCHIVING with its value; None without one."""
        begin, size = (int(self.matrix[number, column]) for column in (layout.BEGIN, layout.SIZE))
        for row in range(begin, begin + size):
            value = int(self._values[row])
            if value != NO_STATE and (value + 128) % 256 - 128 == audit_kernel.ARCHIVING:
                return int(self._at[row]), value
        return None


def _kinds(records: pa.Table) -> Ints:
    column = records.column("record_type")
    kinds: Ints = pc.index_in(column, value_set=RECORD_TYPES).combine_chunks().to_numpy().astype(np.int64)
    return kinds


def _ints(records: pa.Table, name: str) -> Ints:
    values: Ints = pc.fill_null(records.column(name), NONE).to_numpy().astype(np.int64)
    return values


def _values(records: pa.Table) -> Ints:
    rows = np.empty((records.num_rows, len(VALUE_COLUMNS)), np.int64)
    for index, name in enumerate(VALUE_COLUMNS):
        rows[:, index] = _ints(records, name)
    return rows


def _batches(records: pa.Table) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Positions of each record's batches, and the batches' columns."""
    column = records.column("state_batches").combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    counts = pc.list_value_length(column).fill_null(0).to_numpy().astype(np.int64)
    at: Ints = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    flat = pc.list_flatten(column)
    first, last, states, counted = (
        np.ascontiguousarray(flat.field(name).to_numpy()).astype(np.int64) for name in BATCH_COLUMNS
    )
    return at, first, last, states, counted
