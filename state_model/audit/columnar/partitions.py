"""The audit of state partitions from their log records: bytes, offsets, states, and what is left at their ends."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from state_model.audit.columnar.auditor import Auditor, key_rows
from state_model.audit.columnar.continuation import (
    AUDIT_STATE,
    FORMAT,
    HOLE,
    lengths_of,
    lists_of,
    lists_of_numbers,
    matrix_of,
    rows_of,
)
from state_model.audit.columnar.kernels import layout
from state_model.audit.columnar.log_ends import archiving_too_long, pruned_snapshots
from state_model.audit.columnar.log_records import losses_of_unknown_type, odd_batches, of_known_type, undecodable
from state_model.audit.columnar.replayed import disagreements
from state_model.audit.columnar.tally import Tally, below
from state_model.audit.columnar.violations import (
    COUNTED,
    NO_VIOLATIONS,
    NONE,
    VIOLATION,
    log_of_violations,
    of_log,
    violation_rows,
)
from state_model.audit.rule import Field
from state_model.columnar import replay, schemas
from state_model.columnar.decode import losses_of
from state_model.columnar.keys import Ints
from state_model.columnar.values import Loss

NO_TIME_MS: Final = -(1 << 63)
"""The log time before the first record."""
NEVER: Final = (1 << 63) - 1
"""Above all log offsets."""
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFacts:
    """The bounds of the log of a state partition, as they are known before its audit.

    `first_offset`: where the log begins. `log_start_offset`: the log start offset, below which the broker serves no
    record. `has_newest`: the records up to the end of the log are there and committed, so that rule 17 can be tested.
    """

    state_partition: int
    first_offset: int
    log_start_offset: int
    has_newest: bool


class PartitionsAudit:
    """Takes the records of some state partitions in log order; `tally` counts the violations, `auditor` has the states.

    The state partitions are numbered from 0 on, in ascending order (a log, below). `state_partitions`, `last_offsets`,
    `last_times`: by log its partition, and log offset and log time of its last record; those before the first one,
    without any. `first_losses`: the first log offset that the evidence lacks, by the number of the share partition that
    the loss names, or by violations.of_log where it touches all of a log.

    Args:
        logs: by state partition, ascending.
        limit_of_group: the delivery count limit of a group; None: unknown.
        between_ms: log times from the first up to, and without, the second; only violations in it count.
        replays: whether it replays the records, too, and compares the states; else `compare` does that once. For one
            state partition alone.
        states: states (AUDIT_STATE) of audits that took the records before, at most one for each state partition. Then
            its `first_offset` and `limit_of_group` are those of the earlier audit.
    """

    def __init__(
        self,
        logs: Sequence[LogFacts],
        *,
        limit_of_group: Callable[[str], int | None] = lambda group: None,
        between_ms: tuple[int | None, int | None] = (None, None),
        replays: bool = False,
        states: pa.Table | None = None,
    ) -> None:
        self.state_partitions: Ints = np.array([log.state_partition for log in logs], np.int64)
        first_offsets: Ints = np.array([log.first_offset for log in logs], np.int64)
        self.auditor = Auditor(is_from_zero=(first_offsets == 0).tolist(), limit_of_group=limit_of_group)
        self.tally = Tally(between_ms)
        self.last_offsets = first_offsets - 1
        self.last_times = np.full(len(logs), NO_TIME_MS)
        self._log_starts: Ints = np.array([log.log_start_offset for log in logs], np.int64)
        self._has_newest: Flags = np.array([log.has_newest for log in logs], np.bool_)
        self._replays = replays
        self._replayed = schemas.SHARE_PARTITION_STATE.empty_table()
        self._holes = np.zeros((0, 1 + len(HOLE)), np.int64)  # the log before the columns of HOLE
        self._at_log_start = NO_VIOLATIONS
        self.first_losses: dict[int, int] = {}
        if states is not None and states.num_rows:
            self._resume(states)

    def _resume(self, states: pa.Table) -> None:
        """Takes over the states of earlier audits. The log starts may have moved since."""
        logs = self.logs_of(states)
        self.auditor.resume(states, logs)
        self.tally.resume(self._counted(states, logs))
        self.last_offsets[logs], self.last_times[logs] = (
            states.column(name).to_numpy() for name in ("last_log_offset", "log_time_ms")
        )
        holes = np.repeat(logs, lengths_of(states, "holes") // len(HOLE))
        self._holes = np.column_stack([holes, matrix_of(states, "holes", len(HOLE))])
        self._resume_losses(states, logs)
        stays = states.column("log_start_offset").to_numpy() == self._log_starts[logs]
        at_log_start = rows_of(states, "at_log_start", VIOLATION)
        is_kept = np.repeat(stays, lengths_of(states, "at_log_start"))
        self._at_log_start = self._with_numbers(at_log_start, states, logs, "at_log_start").filter(pa.array(is_kept))

    def _resume_losses(self, states: pa.Table, logs: Ints) -> None:
        losses = matrix_of(states, "first_losses", 2)
        if len(losses):
            numbers = self._numbers(losses[:, 0], states, logs, lengths_of(states, "first_losses") // 2)
            self.first_losses = dict(zip(numbers.tolist(), losses[:, 1].tolist(), strict=True))

    def _counted(self, states: pa.Table, logs: Ints) -> pa.Table:
        """The counted violations of states with the numbers of this audit."""
        return self._with_numbers(rows_of(states, "violations", COUNTED), states, logs, "violations")

    def _with_numbers(self, rows: pa.Table, states: pa.Table, logs: Ints, name: str) -> pa.Table:
        numbers = self._numbers(rows.column("share_partition").to_numpy(), states, logs, lengths_of(states, name))
        return with_share_partitions(rows, numbers)

    @staticmethod
    def _numbers(of_state: Ints, states: pa.Table, logs: Ints, lengths: Ints) -> Ints:
        """Numbers of share partitions in states as numbers of this audit; `lengths`: how many each state has."""
        sizes = lengths_of(states, "share_partitions")
        begins, log = np.repeat(np.cumsum(sizes) - sizes, lengths), np.repeat(logs, lengths)
        return np.where(of_state == NONE, of_log(log), of_state + begins)

    def keep_below(self, state: pa.Table, begin: int) -> None:
        """Keeps what an earlier audit (AUDIT_STATE) of the only log noted below an offset, where records are gone.

        Call it before the first record. What was counted on both sides of `begin` counts once below it.
        """
        numbers = self.auditor.keep_below(state, begin)
        violations = below(rows_of(state, "violations", COUNTED), begin)
        kept_numbers = numbers[violations.column("share_partition").to_numpy()]  # the last entry is that of NONE
        self.tally.add_counted(with_share_partitions(violations, kept_numbers))
        holes = matrix_of(state, "holes", len(HOLE))
        holes = holes[holes[:, HOLE.index("missing")] < begin]
        self._holes = np.column_stack([np.zeros(len(holes), np.int64), holes])
        for number, first in matrix_of(state, "first_losses", 2).tolist():
            if first < begin and (number == NONE or numbers[number] != NONE):
                self.first_losses[int(numbers[number])] = first

    @classmethod
    def of_counts(cls, states: pa.Table) -> "PartitionsAudit":
        """The share partitions and losses of states, without violations: for rules over all state partitions.

        `states`: the columns state_partition, share_partitions and first_losses of AUDIT_STATE, by state partition.
        """
        logs = [
            LogFacts(state_partition=number, first_offset=0, log_start_offset=0, has_newest=False)
            for number in states.column("state_partition").to_pylist()
        ]
        audit = cls(logs)
        numbers = np.arange(len(logs))
        audit.auditor.resume_counts(states, numbers)
        audit._resume_losses(states, numbers)
        return audit

    def logs_of(self, rows: pa.Table, column: str = "state_partition") -> Ints:
        """The log of each row by its state partition."""
        if len(self.state_partitions) == 1:
            return np.zeros(rows.num_rows, np.int64)
        logs: Ints = np.searchsorted(self.state_partitions, rows.column(column).to_numpy())
        return logs

    def state(self) -> pa.Table:
        """AUDIT_STATE: by state partition all that an audit of its next records needs; call it before `close`."""
        counts = len(self.state_partitions)
        order, sizes = self.auditor.by_log()
        places = np.empty(len(order) + 1, np.int64)  # by number its place in the log; the last entry is that of NONE
        places[order] = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        places[-1] = NONE
        lists = {}
        for name, rows, schema in (
            ("at_log_start", self._at_log_start, VIOLATION),
            ("violations", self.tally.counted, COUNTED),
        ):
            numbers = rows.column("share_partition").to_numpy()
            logs = log_of_violations(numbers, self.auditor.log_of)
            placed_rows = with_share_partitions(rows, places[np.maximum(numbers, NONE)])
            by_log = (
                placed_rows
                if (np.diff(logs) >= 0).all()
                else placed_rows.take(pa.array(np.argsort(logs, kind="stable")))
            )
            lists[name] = lists_of(by_log, schema, np.bincount(logs, minlength=counts))
        losses = np.array(sorted(self.first_losses.items()), np.int64).reshape(-1, 2)
        log_of_losses = log_of_violations(losses[:, 0], self.auditor.log_of)
        losses[:, 0] = places[np.maximum(losses[:, 0], NONE)]
        losses = losses[np.lexsort((losses[:, 0], log_of_losses))]
        holes = self._holes[np.argsort(self._holes[:, 0], kind="stable")]
        own_columns = {
            "state_partition": pa.array(self.state_partitions, pa.int32()),
            "format": pa.repeat(pa.scalar(FORMAT, pa.int32()), counts),
            "log_start_offset": pa.array(self._log_starts),
            "last_log_offset": pa.array(self.last_offsets),
            "log_time_ms": pa.array(self.last_times),
            "holes": lists_of_numbers(holes[:, 1:].ravel(), len(HOLE) * np.bincount(holes[:, 0], minlength=counts)),
            "first_losses": lists_of_numbers(losses.ravel(), 2 * np.bincount(log_of_losses, minlength=counts)),
        }
        columns = {**own_columns, **lists, **self.auditor.state()}
        return pa.Table.from_arrays([columns[name] for name in AUDIT_STATE.names], schema=AUDIT_STATE)

    def take_logs(
        self, log_records: pa.RecordBatch, logs: Ints, times: Ints, records: pa.Table, problems: pa.Table
    ) -> None:
        """The next log records (LOG_RECORD, by log, none uncommitted) with their logs and log times, and what decoding
        made of them.
        """
        if log_records.num_rows == 0:
            return
        offsets = log_records.column("offset").to_numpy()
        self.tally.add(odd_batches(log_records, logs, offsets, times))
        losses = self._offsets(logs, offsets, times)
        for log, batch in self._by_log(problems):
            losses.setdefault(log, []).extend(losses_of(batch.to_batches()[0]))
        records, of_unknown_type = of_known_type(records)
        for log, rows in self._by_log(of_unknown_type):
            losses.setdefault(log, []).extend(losses_of_unknown_type(rows))
        self.tally.add(self.auditor.take_logs(records, self.logs_of(records), losses))
        self._note_losses(losses)
        for rows in (problems, of_unknown_type):
            self.tally.add(undecodable(self.auditor, rows, self.logs_of(rows)))
        self.take_log_start(records)
        if records.num_rows and self._replays:
            self._replayed = replay.replay_states(records, seed=self._replayed)
            self.compare(self._replayed)
        last = np.flatnonzero(np.diff(logs, append=-1))
        self.last_offsets[logs[last]] = offsets[last]
        self.last_times[logs[last]] = np.maximum(self.last_times[logs[last]], times[last])

    def _by_log(self, rows: pa.Table) -> list[tuple[int, pa.Table]]:
        """The rows of each log that has any."""
        if rows.num_rows == 0:
            return []
        logs = self.logs_of(rows)
        return [(log, rows.filter(pa.array(logs == log)).combine_chunks()) for log in np.unique(logs).tolist()]

    def take_log_start(self, records: pa.Table) -> None:
        """Looks for the records at log start offsets, for rule 6; `take_logs` does so in the records that it takes.

        `records`: SHARE_RECORD rows whose share partitions the audit has seen.
        """
        if not self._log_starts.any():
            return
        logs = self.logs_of(records)
        starts = self._log_starts[logs]
        for row in np.flatnonzero((starts > 0) & (records.column("log_offset").to_numpy() == starts)).tolist():
            log_of_noted = log_of_violations(
                self._at_log_start.column("share_partition").to_numpy(), self.auditor.log_of
            )
            other_rows = self._at_log_start.filter(pa.array(log_of_noted != logs[row]))
            inside = self._begins_inside(records.slice(row, 1), logs[row : row + 1])
            self._at_log_start = pa.concat_tables([other_rows, inside])

    def compare(self, states: pa.Table, logs: Flags | None = None) -> None:
        """Compares the states with those of a replay of the same records (SHARE_PARTITION_STATE).

        `logs`: which logs; None: all.
        """
        self.tally.add(disagreements(self.auditor, states, self.logs_of(states), logs))

    def close(self) -> None:
        """Tests what only the ends of the logs show; call it once, after the last records."""
        self.auditor.close()
        self._replayed = self._replayed.slice(0, 0)  # thousands of state partitions are audited before any finding
        self.tally.add(self.missing_offsets())
        self.tally.add(self._at_log_start)
        self.tally.add(archiving_too_long(self.auditor, self.last_times))
        if (is_tested := self._has_newest & (self._log_starts > 0)).any():
            self.tally.add(pruned_snapshots(self.auditor, self._log_starts, is_tested))

    def is_incomplete(self, share_partitions: Ints, log_offsets: Ints) -> Flags:
        """Whether the evidence lacks a record that touches each share partition (or violations.of_log), up to an offset
        of its log.
        """
        first_of_log = np.full(len(self.state_partitions), NEVER)
        first_of_key = np.full(len(self.auditor.log_of), NEVER)
        for number, first in self.first_losses.items():
            if number < 0:
                first_of_log[of_log(number)] = first
            else:
                first_of_key[number] = first
        firsts = first_of_log[log_of_violations(share_partitions, self.auditor.log_of)]
        is_keyed = share_partitions >= 0
        firsts[is_keyed] = np.minimum(firsts[is_keyed], first_of_key[share_partitions[is_keyed]])
        return firsts <= log_offsets

    def first_losses_of_logs(self) -> Ints:
        """By log the first log offset that the evidence lacks, whatever it touches; NEVER: none."""
        numbers, offsets = (np.array(list(part), np.int64) for part in (self.first_losses, self.first_losses.values()))
        result = np.full(len(self.state_partitions), NEVER)
        np.minimum.at(result, log_of_violations(numbers, self.auditor.log_of), offsets)
        return result

    def _note_losses(self, losses: dict[int, list[Loss]]) -> None:
        for log, of_one in losses.items():
            keyed = [loss for loss in of_one if loss.group_id is not None]
            numbers = iter(self.auditor.numbers_of(key_rows(keyed), np.full(len(keyed), log)).tolist())
            for loss in of_one:
                number = of_log(log) if loss.group_id is None else next(numbers)
                self.first_losses[number] = min(loss.first_offset, self.first_losses.get(number, loss.first_offset))

    def _offsets(self, logs: Ints, offsets: Ints, times: Ints) -> dict[int, list[Loss]]:
        """Tests that offsets ascend; the losses that holes are, by log."""
        before = np.concatenate([[0], offsets[:-1]])
        first = np.flatnonzero(np.diff(logs, prepend=-1))
        before[first] = self.last_offsets[logs[first]]
        backward = np.flatnonzero(offsets <= before)
        if len(backward):
            self.tally.add(
                violation_rows(
                    rule=30,
                    share_partition=of_log(logs[backward]),
                    log_offset=offsets[backward],
                    log_time_ms=times[backward],
                    field=int(Field.LOG_OFFSET),
                    expected=before[backward],
                    seen=offsets[backward],
                )
            )
        rows = np.flatnonzero(offsets > before + 1)
        holes = np.stack([logs[rows], before[rows] + 1, offsets[rows], times[rows]], axis=1)
        self._holes = np.concatenate([self._holes, holes])
        losses: dict[int, list[Loss]] = {}
        for log, missing, behind, _ in holes.tolist():
            losses.setdefault(log, []).append(Loss(first_offset=missing, last_offset=behind - 1, reason="gap"))
        return losses

    def missing_offsets(self) -> pa.Table:
        """Rule 3: VIOLATION rows of the holes above the log starts."""
        above = self._holes[:, 1 + HOLE.index("behind")] > self._log_starts[self._holes[:, 0]]
        logs, expected, actual, times = self._holes[above].T
        return violation_rows(
            rule=31,
            share_partition=of_log(logs),
            log_offset=actual,
            log_time_ms=times,
            field=int(Field.LOG_OFFSET),
            expected=expected,
            seen=actual,
        )

    def _begins_inside(self, row: pa.Table, logs: Ints) -> pa.Table:
        """Rule 6 for the record at the log start offset."""
        if row.column("record_type")[0].as_py() != "update":
            return NO_VIOLATIONS
        return violation_rows(
            rule=60,
            share_partition=self.auditor.numbers_of(row, logs),
            log_offset=int(self._log_starts[logs[0]]),
            log_time_ms=row.column("log_time_ms")[0].as_py(),
            field=int(Field.RECORD_TYPE),
            expected=layout.SNAPSHOT,
            seen=layout.UPDATE,
        )


def with_share_partitions(rows: pa.Table, numbers: Ints) -> pa.Table:
    """VIOLATION or COUNTED rows with these numbers of share partitions."""
    index = rows.schema.get_field_index("share_partition")
    return rows.set_column(index, rows.schema.field(index), pa.array(numbers, pa.int64()))
