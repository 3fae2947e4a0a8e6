"""The audit of one state partition from its log records: bytes, offsets, states, and what is left at its end."""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from state_model.audit.columnar import layout
from state_model.audit.columnar.auditor import RECORD_TYPES, Auditor
from state_model.audit.columnar.continuation import FORMAT, HOLE, KEYS, matrix_of, one_row, rows_of
from state_model.audit.columnar.replayed import disagreements
from state_model.audit.columnar.tally import Tally
from state_model.audit.columnar.violations import COUNTED, NO_VIOLATIONS, NONE, VIOLATION, violation_rows
from state_model.audit.delivery import PENDING_MS
from state_model.audit.placement import NOT_PLAIN
from state_model.audit.rule import DECODE_REASONS, Field
from state_model.columnar import replay, schemas
from state_model.columnar.decode import UNKNOWN_RECORD_TYPE, losses_of
from state_model.columnar.keys import SHARE_PARTITION_KEY, Ints, number_keys
from state_model.columnar.values import UNKNOWN_STATE, Loss

RULE_OF_REASON: Final = {
    "control_record": 40,
    UNKNOWN_RECORD_TYPE: 11,
    "unknown_value_version": 11,
    "update_without_value": 50,
}
"""Rules of records that can't be decoded, by reason; of any other reason UNDECODABLE."""
UNDECODABLE: Final = 10
ARCHIVED_LESS_ARCHIVING: Final = 1
NO_TIME_MS: Final = -(1 << 63)
"""The log time before the first record."""


class PartitionAudit:
    """Takes the records of a state partition in log order; `tally` counts the violations, `auditor` has the states.

    `last_offset`, `last_ms`: log offset and log time of the last record; those before the first one, without any.
    `first_losses`: the first log offset that the evidence lacks, by the number of the share partition that the loss
    names (-1: it touches all).

    Args:
        number: the state partition.
        first_offset: where the log begins.
        log_start_offset: the log start offset, below which the broker serves no record.
        has_newest: the records up to the end of the log are there and committed, so that rule 17 can be tested.
        limit_of_group: the delivery count limit of a group; None: unknown.
        between_ms: log times from the first up to, and without, the second; only violations in it count.
        replays: whether it replays the records, too, and compares the states; else `compare` does that once.
        state: the state (AUDIT_STATE, one row) of an audit that took the records before; None: there are none. Then
            `first_offset` and `limit_of_group` are those of the earlier audit.
    """

    def __init__(
        self,
        number: int,
        *,
        first_offset: int,
        log_start_offset: int,
        has_newest: bool,
        limit_of_group: Callable[[str], int | None] = lambda group: None,
        between_ms: tuple[int | None, int | None] = (None, None),
        replays: bool = True,
        state: pa.Table | None = None,
    ) -> None:
        self.number = number
        self.auditor = Auditor(is_from_zero=first_offset == 0, limit_of_group=limit_of_group)
        self.tally = Tally(between_ms)
        self.last_offset = first_offset - 1
        self.last_ms = NO_TIME_MS
        self._log_start_offset = log_start_offset
        self._has_newest = has_newest
        self._replays = replays
        self._replayed = schemas.SHARE_PARTITION_STATE.empty_table()
        self._holes = np.zeros((0, len(HOLE)), np.int64)
        self._at_log_start = NO_VIOLATIONS
        self.first_losses: dict[int, int] = {}
        if state is not None:
            self._resume(state)

    def _resume(self, state: pa.Table) -> None:
        """Takes over the state of an earlier audit. The log start may have moved since."""
        self.auditor.resume(state)
        self.tally.add_counted(rows_of(state, "violations", COUNTED))
        self.last_offset, self.last_ms = (state.column(name)[0].as_py() for name in ("last_log_offset", "log_time_ms"))
        self._holes = matrix_of(state, "holes", len(HOLE))
        self.first_losses = dict(matrix_of(state, "first_losses", 2).tolist())
        if state.column("log_start_offset")[0].as_py() == self._log_start_offset:
            self._at_log_start = rows_of(state, "at_log_start", VIOLATION)

    def keep_below(self, state: pa.Table, begin: int) -> None:
        """Keeps what an earlier audit (AUDIT_STATE) noted below the offset `begin`, where the records are gone.

        Call it before the first record. What was counted on both sides of `begin` counts once below it.
        """
        numbers = self.auditor.keep_below(state, begin)
        violations = below(rows_of(state, "violations", COUNTED), begin)
        of_rows = violations.column("share_partition").to_numpy()
        kept = numbers[of_rows]  # the last entry is that of -1, no share partition
        index = COUNTED.get_field_index("share_partition")
        violations = violations.set_column(index, COUNTED.field(index), pa.array(kept))
        self.tally.add_counted(violations)
        holes = matrix_of(state, "holes", len(HOLE))
        self._holes = holes[holes[:, HOLE.index("missing")] < begin]
        for number, first in matrix_of(state, "first_losses", 2).tolist():
            if first < begin and (number == NONE or numbers[number] != NONE):
                self.first_losses[int(numbers[number])] = first

    @classmethod
    def of_counts(cls, state: pa.Table) -> "PartitionAudit":
        """The share partitions and losses of a state, without violations: for rules over all state partitions."""
        audit = cls(state.column("state_partition")[0].as_py(), first_offset=0, log_start_offset=0, has_newest=False)
        audit.auditor.resume_counts(state)
        audit.first_losses = dict(matrix_of(state, "first_losses", 2).tolist())
        return audit

    def state(self) -> pa.Table:
        """AUDIT_STATE: all that an audit of the next records needs; call it before `close`."""
        own = {
            "state_partition": self.number,
            "format": FORMAT,
            "log_start_offset": self._log_start_offset,
            "last_log_offset": self.last_offset,
            "log_time_ms": self.last_ms,
            "holes": self._holes.ravel(),
            "first_losses": np.array(sorted(self.first_losses.items()), np.int64).ravel(),
            "at_log_start": self._at_log_start,
            "violations": self.tally.counted,
        }
        return one_row({**own, **self.auditor.state()})

    def take(self, log_records: pa.RecordBatch, times: Ints, records: pa.Table, problems: pa.Table) -> None:
        """The next log records (LOG_RECORD, none uncommitted) with their log times, and what decoding made of them."""
        if log_records.num_rows == 0:
            return
        offsets = log_records.column("offset").to_numpy()
        self.tally.add(_odd_batches(log_records, offsets, times))
        holes = self._offsets(offsets, times)
        undecodable = [loss for batch in problems.to_batches() for loss in losses_of(batch)]
        records, of_unknown_type = _apart(records)
        losses = [*holes, *undecodable, *_losses_of(of_unknown_type)]
        self.tally.add(self.auditor.take(records, losses))
        self._note_losses(losses)
        self.tally.add(_undecodable(self.auditor, problems))
        self.tally.add(_undecodable(self.auditor, of_unknown_type))
        self.take_log_start(records)
        if records.num_rows and self._replays:
            self._replayed = replay.replay_states(records, seed=self._replayed)
            self.tally.add(disagreements(self.auditor, self._replayed))
        self.last_offset = int(offsets[-1])
        self.last_ms = max(self.last_ms, int(times[-1]))

    def take_log_start(self, records: pa.Table) -> None:
        """Looks for the record at the log start offset, for rule 6; `take` does so in the records that it takes.

        `records`: SHARE_RECORD rows whose share partitions the audit has seen.
        """
        rows = records.filter(pc.field("log_offset") == self._log_start_offset) if self._log_start_offset else None
        if rows is not None and rows.num_rows:
            self._at_log_start = self._begins_inside(rows)

    def compare(self, states: pa.Table) -> None:
        """Compares the states with those of a replay of the same records (SHARE_PARTITION_STATE)."""
        self.tally.add(disagreements(self.auditor, states))

    def close(self) -> None:
        """Tests what only the end of the log shows; call it once, after the last records."""
        self.auditor.close()
        self._replayed = self._replayed.slice(0, 0)  # thousands of state partitions are audited before any finding
        self.tally.add(self.missing_offsets())
        self.tally.add(self._at_log_start)
        self.tally.add(self._archiving_too_long())
        if self._has_newest and self._log_start_offset > 0:
            self.tally.add(self._pruned_snapshots())

    def is_lost_before(self, share_partition: int, log_offset: int) -> bool:
        """Whether the evidence lacks a record that touches a share partition (-1: any), up to a log offset."""
        first = min((self.first_losses[key] for key in (-1, share_partition) if key in self.first_losses), default=None)
        return first is not None and first <= log_offset

    def _note_losses(self, losses: Sequence[Loss]) -> None:
        if not losses:
            return
        keyed = [loss for loss in losses if loss.group_id is not None]
        keys = pa.table({name: [getattr(loss, name) for loss in keyed] for name in SHARE_PARTITION_KEY}, schema=KEYS)
        numbers = iter(_numbers(self.auditor, keys).tolist())
        for loss in losses:
            number = -1 if loss.group_id is None else next(numbers)
            self.first_losses[number] = min(loss.first_offset, self.first_losses.get(number, loss.first_offset))

    def _offsets(self, offsets: Ints, times: Ints) -> list[Loss]:
        """Tests that offsets ascend; the losses that holes are."""
        before = np.concatenate([[self.last_offset], offsets[:-1]])
        backward = np.flatnonzero(offsets <= before)
        if len(backward):
            self.tally.add(
                violation_rows(
                    rule=30,
                    log_offset=offsets[backward],
                    log_time_ms=times[backward],
                    field=int(Field.LOG_OFFSET),
                    expected=before[backward],
                    seen=offsets[backward],
                )
            )
        rows = np.flatnonzero(offsets > before + 1)
        holes = np.stack([before[rows] + 1, offsets[rows], times[rows]], axis=1)
        self._holes = np.concatenate([self._holes, holes])
        return [Loss(first_offset=first, last_offset=behind - 1, reason="gap") for first, behind, _ in holes.tolist()]

    def missing_offsets(self) -> pa.Table:
        """Rule 3: VIOLATION rows of the holes above the log start."""
        expected, seen, times = self._holes[self._holes[:, HOLE.index("behind")] > self._log_start_offset].T
        return violation_rows(
            rule=31, log_offset=seen, log_time_ms=times, field=int(Field.LOG_OFFSET), expected=expected, seen=seen
        )

    def _begins_inside(self, rows: pa.Table) -> pa.Table:
        """Rule 6 for the record at the log start offset."""
        if rows.column("record_type")[0].as_py() != "update":
            return NO_VIOLATIONS
        (number,) = _numbers(self.auditor, rows.slice(0, 1))
        return violation_rows(
            rule=60,
            share_partition=int(number),
            log_offset=self._log_start_offset,
            log_time_ms=rows.column("log_time_ms")[0].as_py(),
            field=int(Field.RECORD_TYPE),
            expected=layout.SNAPSHOT,
            seen=layout.UPDATE,
        )

    def _archiving_too_long(self) -> pa.Table:
        """Rule 50 at the end of the log."""
        matrix = self.auditor.matrix
        tables = [NO_VIOLATIONS]
        for number in self.auditor.live().tolist():
            since_ms = int(matrix[number, layout.ARCHIVING_MS])
            if since_ms < 0 or self.last_ms - since_ms <= PENDING_MS:
                continue
            archiving = self.auditor.first_archiving(number)
            if archiving is not None:
                at, value = archiving
                tables.append(
                    violation_rows(
                        rule=500,
                        share_partition=number,
                        log_offset=int(matrix[number, layout.LAST_AT]),
                        log_time_ms=self.last_ms,
                        field=int(Field.OFFSET_STATE),
                        at=at,
                        expected=value + ARCHIVED_LESS_ARCHIVING,
                        seen=value,
                        snapshot_log_offset=int(matrix[number, layout.SNAPSHOT_AT]),
                    )
                )
        return pa.concat_tables(tables)

    def _pruned_snapshots(self) -> pa.Table:
        """Rule 17: share partitions whose newest snapshot lies below the log start, or was never there."""
        matrix = self.auditor.matrix
        live = self.auditor.live()
        pruned = live[matrix[live, layout.SNAPSHOT_AT] < self._log_start_offset]
        if self.auditor.is_without_losses:
            orphans = np.flatnonzero(matrix[:, layout.STANDING] == layout.ORPHAN)
            pruned = np.concatenate([pruned, orphans])
        return violation_rows(
            rule=170,
            share_partition=pruned,
            log_offset=matrix[pruned, layout.LAST_AT],
            log_time_ms=self.auditor.last_ms[pruned],
            field=int(Field.LOG_OFFSET),
            expected=self._log_start_offset,
            seen=matrix[pruned, layout.SNAPSHOT_AT],
            snapshot_log_offset=matrix[pruned, layout.SNAPSHOT_AT],
        )


def below(counted: pa.Table, begin: int) -> pa.Table:
    """The COUNTED rows whose first violation, or the state that it was compared with, lies below a log offset.

    One that goes on above counts its first violation alone.
    """
    is_below = pc.field("first_log_offset") < begin
    for name in ("snapshot_log_offset", "previous_log_offset"):
        is_below |= (pc.field(name) != NONE) & (pc.field(name) < begin)
    rows = counted.filter(is_below)
    goes_on = pc.greater_equal(rows.column("last_log_offset"), begin)
    for name, first in (("last_log_offset", "first_log_offset"), ("last_ms", "first_ms"), ("violations", None)):
        index = COUNTED.get_field_index(name)
        value = pa.scalar(1, pa.int64()) if first is None else rows.column(first)
        rows = rows.set_column(index, COUNTED.field(index), pc.if_else(goes_on, value, rows.column(name)))
    return rows


def _odd_batches(log_records: pa.RecordBatch, offsets: Ints, times: Ints) -> pa.Table:
    """Rule 4, but for control records, which decoding names."""
    attributes = log_records.column("attributes").to_numpy().astype(np.int64)
    producers = log_records.column("producer_id").to_numpy()
    headers = pc.list_value_length(log_records.column("headers")).to_numpy(zero_copy_only=False)
    headers = np.nan_to_num(headers.astype(np.float64)).astype(np.int64)
    is_control = log_records.column("is_control").to_numpy(zero_copy_only=False)
    transactional = (attributes & NOT_PLAIN) != 0
    produced = ~transactional & (producers != -1)
    headed = ~transactional & ~produced & (headers > 0)
    tables = [NO_VIOLATIONS]
    cases: tuple[tuple[npt.NDArray[np.bool_], Field, Ints, Ints], ...] = (
        (transactional, Field.BATCH_ATTRIBUTES, attributes & ~NOT_PLAIN, attributes),
        (produced, Field.PRODUCER_ID, np.full(len(offsets), -1), producers),
        (headed, Field.HEADERS, np.zeros(len(offsets), np.int64), headers),
    )
    for chosen, field, expected, seen in cases:
        rows = np.flatnonzero(chosen & ~is_control)
        if len(rows):
            tables.append(
                violation_rows(
                    rule=40,
                    log_offset=offsets[rows],
                    log_time_ms=times[rows],
                    field=int(field),
                    expected=expected[rows],
                    seen=seen[rows],
                )
            )
    return pa.concat_tables(tables)


def _undecodable(auditor: Auditor, problems: pa.Table) -> pa.Table:
    """Rules 1, 4 and 5 for records that could not be decoded (DECODE_PROBLEM), or not beyond their key."""
    tables = [NO_VIOLATIONS]
    for row in problems.select(["log_offset", "log_time_ms", "reason", *SHARE_PARTITION_KEY]).to_batches():
        part = pa.Table.from_batches([row])
        numbers = np.full(part.num_rows, -1, np.int64)
        keyed = np.flatnonzero(part.column("group_id").is_valid().to_numpy())
        numbers[keyed] = _numbers(auditor, part.take(pa.array(keyed)))
        reasons = part.column("reason").to_pylist()
        tables.append(
            violation_rows(
                rule=np.array([RULE_OF_REASON.get(reason, UNDECODABLE) for reason in reasons], np.int64),
                share_partition=numbers,
                log_offset=part.column("log_offset").to_numpy(),
                log_time_ms=part.column("log_time_ms").to_numpy(),
                field=int(Field.DECODING),
                expected=0,
                seen=np.array([DECODE_REASONS.index(reason) for reason in reasons], np.int64),
            )
        )
    return pa.concat_tables(tables)


def _apart(records: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The records of known types, and those of unknown type with the column `reason`."""
    is_known = pc.is_in(records.column("record_type"), value_set=RECORD_TYPES)
    others = records.filter(pc.invert(is_known))
    reason = pa.repeat(UNKNOWN_RECORD_TYPE, others.num_rows)
    return (records.filter(is_known) if others.num_rows else records), others.append_column("reason", reason)


def _losses_of(of_unknown_type: pa.Table) -> list[Loss]:
    """Records of unknown type as losses: a later Kafka may change the state of their share partitions by them."""
    offsets = of_unknown_type.column("log_offset").to_pylist()
    keys = of_unknown_type.select(SHARE_PARTITION_KEY).to_pylist()
    return [
        Loss(first_offset=offset, last_offset=offset, reason=UNKNOWN_STATE, **key)
        for offset, key in zip(offsets, keys, strict=True)
    ]


def _numbers(auditor: Auditor, rows: pa.Table) -> Ints:
    """The numbers of the rows' share partitions, which the auditor has seen."""
    (_, numbers), _ = number_keys(auditor.keys, rows.select(SHARE_PARTITION_KEY))
    return numbers
