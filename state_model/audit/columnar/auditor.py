"""Audits the decoded records of state partitions (Arrow), chunk after chunk, with bounded memory.

Every rule of sections 2 to 7 of the specification that needs the state log alone; the violations of each chunk come as
VIOLATION rows. The state is the audit's own: it shares no code with the replay.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from state_model.audit.columnar.continuation import (
    AUDITED,
    COUNTS,
    KEYS,
    LOST,
    lengths_of,
    lists_of,
    lists_of_numbers,
    matrix_of,
    rows_of,
    states_of,
)
from state_model.audit.columnar.kernels import audit_kernel, layout
from state_model.audit.columnar.kernels.step_kernels import NO_STATE, Breakpoints
from state_model.audit.columnar.passed_offsets import NO_PASSED, passed_rows
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
BREAKPOINTS: Final = ("breakpoint_offsets", "breakpoint_values")
NO_EPOCH: Final = -(1 << 40)
"""Below all state epochs."""
NO_LOSSES: Final = np.empty((0, 2), np.int64)
BATCH_COLUMNS: Final = ("first_offset", "last_offset", "delivery_state", "delivery_count")


class Auditor:
    """The audit of some state partitions, called logs here and numbered from 0 on. By the number of a share partition:
    `keys`, `log_of`, `matrix` (its state; the columns are those of layout), and of all its records `count`, `first_at`,
    `last_at`, `first_ms`, `last_ms`. A share partition has a number in each log that has records of it. `is_from_zero`:
    whether each log is there from offset 0 on. `passed`: PASSED rows of the records that it took last.

    Args:
        is_from_zero: the log is there from offset 0 on, so that the first record of a share partition is a creation;
            several values: of each log.
        limit_of_group: the delivery count limit of a group; None: unknown.
    """

    def __init__(
        self, *, is_from_zero: bool | Sequence[bool], limit_of_group: Callable[[str], int | None] = lambda group: None
    ) -> None:
        self.keys = KEYS.empty_table()
        self.log_of = np.zeros(0, np.int64)
        self.matrix = np.zeros((0, layout.STATE_COLUMNS), np.int64)
        self.count, self.first_at, self.last_at, self.first_ms, self.last_ms = (np.zeros(0, np.int64) for _ in COUNTS)
        self.is_from_zero = np.array(is_from_zero, np.bool_).reshape(-1)
        self._limit_of_group = limit_of_group
        self._logs = np.tile(np.array([NONE, 0, 0, 0, 0], np.int64), (len(self.is_from_zero), 1))
        self._pool = Breakpoints(np.zeros(64, np.int64), np.zeros(64, np.int64))
        self._used = 0
        self._losses: dict[int, list[Loss]] = {}
        self.passed = NO_PASSED

    def take(self, records: pa.Table, losses: Sequence[Loss] = ()) -> pa.Table:
        """VIOLATION rows of the next records (SHARE_RECORD, in log order, none uncommitted) of the only log.

        `losses`: offsets that the evidence lacks, up to the last of the records or behind it, ascending.
        """
        return self.take_logs(records, np.zeros(records.num_rows, np.int64), {0: losses})

    def take_logs(self, records: pa.Table, logs: Ints, losses: Mapping[int, Sequence[Loss]]) -> pa.Table:
        """VIOLATION rows of the next records of several logs, by log. `logs`: the log of each record, ascending."""
        for log, log_losses in losses.items():
            all_losses = [*self._losses.get(log, ()), *log_losses]
            if all_losses:
                self._losses[log] = sorted(all_losses, key=lambda loss: loss.first_offset)
        numbers, loss_rows = self._numbered(records, logs)
        offsets = _ints(records, "log_offset")
        kinds, times, values = _kinds(records), _ints(records, "timestamp_ms"), _values(records)
        batch_at, batches = _batches(records)
        hits = [np.empty((0, layout.HIT_COLUMNS), np.int64)]
        passed = [np.empty((0, layout.PASSED_COLUMNS), np.int64)]
        bounds = np.searchsorted(logs, np.arange(len(self._logs) + 1)).tolist()
        for log, (begin, end) in enumerate(itertools.pairwise(bounds)):
            if begin == end:
                continue
            self._logs[log, audit_kernel.LOSSES] = 0
            audited = layout.AuditedRecords(
                kinds=kinds[begin:end],
                keys=numbers[begin:end],
                log_offsets=offsets[begin:end],
                times=times[begin:end],
                rows=values[begin:end],
                batch_at=batch_at[begin : end + 1],
            )
            of_log, count, ranges, range_count, self._pool, self._used = audit_kernel.audit_records(
                audited,
                batches,
                loss_rows.get(log, NO_LOSSES),
                self._logs[log],
                self.matrix,
                self._pool,
                self._used,
            )
            of_log[:count, layout.HIT_ROW] += begin
            hits.append(of_log[:count])
            ranges[:range_count, layout.PASSED_ROW] += begin
            passed.append(ranges[:range_count])
            if log in self._losses:
                self._losses[log] = self._losses[log][int(self._logs[log, audit_kernel.LOSSES]) :]
        self._count(numbers, offsets, _ints(records, "log_time_ms"))
        self.passed = passed_rows(records, np.concatenate(passed))
        return self._violations(records, numbers, np.concatenate(hits))

    def _numbered(self, records: pa.Table, logs: Ints) -> tuple[Ints, dict[int, Ints]]:
        """The number of the share partition of each record, and the losses of each log as the kernel takes them."""
        lost = [(log, loss) for log, losses in self._losses.items() for loss in losses if loss.group_id is not None]
        lost_keys = key_rows([loss for _, loss in lost])
        log_of_lost = np.array([log for log, _ in lost], np.int64)
        (numbers, of_lost), keys, log_of = self._number([records, lost_keys], [logs, log_of_lost])
        self._add_keys(keys, log_of)
        by_loss = iter(of_lost.tolist())
        rows = {
            log: [(loss.first_offset, NONE if loss.group_id is None else next(by_loss)) for loss in losses]
            for log, losses in self._losses.items()
        }
        return numbers, {log: np.array(of_log, np.int64).reshape(-1, 2) for log, of_log in rows.items()}

    def _number(self, tables: Sequence[pa.Table], logs: Sequence[Ints]) -> tuple[list[Ints], pa.Table, Ints]:
        """The numbers of the rows' share partitions, and all share partitions with their logs; known ones are first."""
        (key_numbers, *table_numbers), keys = number_keys(self.keys, *tables)
        if len(self._logs) == 1:
            return table_numbers, keys, np.zeros(keys.num_rows, np.int64)
        codes = [
            log * max(1, keys.num_rows) + key
            for log, key in zip((self.log_of, *logs), (key_numbers, *table_numbers), strict=True)
        ]
        coded = pa.array(np.concatenate(codes)).dictionary_encode()  # in the order in which they first occur
        distinct_codes = coded.dictionary.to_numpy()
        ends = np.cumsum([len(part) for part in codes])
        _, *numbers, _ = np.split(coded.indices.to_numpy().astype(np.int64), ends)
        return (
            numbers,
            keys.take(pa.array(distinct_codes % max(1, keys.num_rows))),
            distinct_codes // max(1, keys.num_rows),
        )

    def numbers_of(self, rows: pa.Table, logs: Ints) -> Ints:
        """The number of the share partition of each row in its log; NONE where the log has none of it."""
        (numbers,), _, _ = self._number([rows.select(SHARE_PARTITION_KEY)], [logs])
        return np.where(numbers < self.keys.num_rows, numbers, NONE)

    def close(self) -> None:
        """Applies the losses behind the last record; the states are then those at the end of the log."""
        for log, losses in self._losses.items():
            for loss in losses:
                self._logs[log, audit_kernel.LOSS_COUNT] += 1
                if loss.group_id is None:
                    self._logs[log, audit_kernel.LAST_OF_ALL] = self._logs[log, audit_kernel.LOSS_COUNT]
                else:
                    (number,) = self.numbers_of(key_rows([loss]), np.array([log]))
                    self.matrix[number, layout.STANDING] = layout.UNKNOWN
        self._losses = {}

    def state(self) -> dict[str, pa.Array]:
        """Columns of AUDIT_STATE, one row a log, the breakpoints close together; call it before `close`."""
        order, sizes = self.by_log()
        matrix = self.matrix[order]
        breakpoints = matrix[:, layout.SIZE]
        begins = np.cumsum(breakpoints) - breakpoints
        places = np.arange(int(breakpoints.sum())) + np.repeat(matrix[:, layout.BEGIN] - begins, breakpoints)
        ends = np.concatenate([[0], np.cumsum(sizes)])
        first_begins = np.append(begins, breakpoints.sum())[ends]
        matrix[:, layout.BEGIN] = matrix[:, layout.SLOT] = begins - np.repeat(first_begins[:-1], sizes)
        matrix[:, layout.SLOT_ROOM] = breakpoints
        logs = self._logs.copy()
        logs[:, audit_kernel.LOSSES] = 0  # of the last call alone
        lost = [(log, {name: getattr(loss, name) for name in LOST.names}) for log in sorted(self._losses)
                for loss in self._losses[log]]  # fmt: skip
        keys = self.keys.take(pa.array(order))
        counts = {name: getattr(self, name)[order] for name in COUNTS}
        of_breakpoints = np.diff(first_begins)
        return {
            "is_from_zero": pa.array(self.is_from_zero),
            "share_partitions": lists_of(pa.table({**dict(zip(KEYS.names, keys.columns, strict=True)), **counts}),
                                         AUDITED, sizes),
            "states": lists_of_numbers(matrix.ravel(), sizes * layout.STATE_COLUMNS),
            "breakpoint_offsets": lists_of_numbers(self._pool.at[places], of_breakpoints),
            "breakpoint_values": lists_of_numbers(self._pool.values[places], of_breakpoints),
            "log": lists_of_numbers(logs.ravel(), np.full(len(logs), logs.shape[1])),
            "losses": lists_of(pa.Table.from_pylist([row for _, row in lost], schema=LOST), LOST,
                               np.bincount(np.array([log for log, _ in lost], np.int64), minlength=len(logs))),
        }  # fmt: skip

    def by_log(self) -> tuple[Ints, Ints]:
        """The numbers of the share partitions by log, in their order, and how many each log has."""
        sizes = np.bincount(self.log_of, minlength=len(self._logs))
        return np.argsort(self.log_of, kind="stable"), sizes

    def resume(self, state: pa.Table, logs: Ints) -> None:
        """Takes over the states of audits of the records before (AUDIT_STATE), one row for each of the logs."""
        self.resume_counts(state, logs)
        self.is_from_zero[logs] = state.column("is_from_zero").to_numpy()
        self.matrix = states_of(state)
        self._pool = Breakpoints(*(matrix_of(state, name, 1).ravel() for name in BREAKPOINTS))
        sizes = lengths_of(state, BREAKPOINTS[0])
        begins = np.repeat(np.cumsum(sizes) - sizes, lengths_of(state, "share_partitions"))
        self.matrix[:, layout.BEGIN] += begins
        self.matrix[:, layout.SLOT] += begins
        self._logs[logs] = matrix_of(state, "log", self._logs.shape[1])
        self._used = len(self._pool.at)
        of_losses = np.repeat(logs, lengths_of(state, "losses")).tolist()
        for log, loss in zip(of_losses, rows_of(state, "losses", LOST).to_pylist(), strict=True):
            self._losses.setdefault(log, []).append(Loss(**loss))

    def keep_below(self, state: pa.Table, begin: int) -> Ints:
        """Keeps the share partitions of an earlier audit of the only log with records below a log offset, without their
        states.

        By the earlier number of a share partition its number here, -1: none; one more entry for the number -1.
        """
        rows = rows_of(state, "share_partitions", AUDITED)
        is_below = rows.column("first_at").to_numpy() < begin
        numbers = np.append(np.where(is_below, np.cumsum(is_below) - 1, NONE), NONE)
        rows = rows.filter(pa.array(is_below))
        self._add_keys(rows.select(KEYS.names).cast(KEYS), np.zeros(rows.num_rows, np.int64))
        for name in COUNTS:
            setattr(self, name, rows.column(name).to_numpy().copy())
        goes_on = self.last_at >= begin
        self.last_at[goes_on], self.last_ms[goes_on] = self.first_at[goes_on], self.first_ms[goes_on]
        self.count[goes_on] = 1
        return numbers

    def resume_counts(self, state: pa.Table, logs: Ints) -> None:
        """Takes over the share partitions and the counts of their records alone, one row for each of the logs."""
        rows = rows_of(state, "share_partitions", AUDITED)
        self.keys = rows.select(KEYS.names).cast(KEYS)
        self.log_of = np.repeat(logs, lengths_of(state, "share_partitions"))
        for name in COUNTS:
            setattr(self, name, rows.column(name).to_numpy().copy())

    def _add_keys(self, keys: pa.Table, log_of: Ints) -> None:
        known_count = self.keys.num_rows
        if keys.num_rows == known_count:
            return
        new = keys.slice(known_count)
        self.keys, self.log_of = keys, log_of
        rows = np.zeros((new.num_rows, layout.STATE_COLUMNS), np.int64)
        rows[:, layout.STANDING] = np.where(self.is_from_zero, layout.NEW, layout.UNKNOWN)[log_of[known_count:]]
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

    def state_epochs(self) -> Ints:
        """The state epoch of each share partition; NO_EPOCH where it is deleted or not known."""
        is_live = self.matrix[:, layout.STANDING] == layout.LIVE
        return np.where(is_live, self.matrix[:, layout.STATE_EPOCH], NO_EPOCH)

    def live(self) -> Ints:
        """The numbers of the share partitions whose state is known, ascending."""
        standing = self.matrix[:, layout.STANDING]
        is_known = self.matrix[:, layout.LOSSES_SEEN] >= self._logs[self.log_of, audit_kernel.LAST_OF_ALL]
        return np.flatnonzero((standing == layout.LIVE) & is_known)

    @property
    def pool(self) -> Breakpoints:
        """Offsets and values of all breakpoints; a share partition's are from BEGIN on, SIZE of them."""
        return self._pool

    @property
    def is_without_losses(self) -> bool:
        """Whether no record was missing so far."""
        return not self.has_losses.any()

    @property
    def has_losses(self) -> npt.NDArray[np.bool_]:
        """Whether records of each log were missing so far."""
        return self._logs[:, audit_kernel.LOSS_COUNT] > 0

    def first_archiving(self, number: int) -> tuple[int, int] | None:
        """The first offset in state ARCHIVING with its value; None without one."""
        begin, size = (int(self.matrix[number, column]) for column in (layout.BEGIN, layout.SIZE))
        for row in range(begin, begin + size):
            value = int(self._pool.values[row])
            if value != NO_STATE and (value + 128) % 256 - 128 == audit_kernel.ARCHIVING:
                return int(self._pool.at[row]), value
        return None


def key_rows(losses: Sequence[Loss]) -> pa.Table:
    """The share partitions of losses as rows (KEYS)."""
    return pa.table({name: [getattr(loss, name) for loss in losses] for name in SHARE_PARTITION_KEY}, schema=KEYS)


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


def _batches(records: pa.Table) -> tuple[Ints, layout.StateBatches]:
    """Positions of each record's batches, and the batches."""
    column = records.column("state_batches").combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    counts = pc.list_value_length(column).fill_null(0).to_numpy().astype(np.int64)
    at: Ints = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    flat = pc.list_flatten(column)
    columns = (np.ascontiguousarray(flat.field(name).to_numpy()).astype(np.int64) for name in BATCH_COLUMNS)
    return at, layout.StateBatches(*columns)
