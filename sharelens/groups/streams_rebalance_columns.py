"""Rebalances of streams groups with many records: the rows of `sharelens.groups.streams_rebalances`, from what the
kernel says.

The kernel replays the records; here only numbers are looked at: which member has which target, which active tasks
changed hands, when the group was stable.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sharelens.groups import kernels
from sharelens.groups import task_numbers as tasks
from sharelens.groups.columns import bins, replayed
from sharelens.groups.intervals import Row, marks
from sharelens.groups.numbers import NumberedRows, numbered
from sharelens.groups.rebalance_rows import Move, RebalanceRows, TargetChange
from sharelens.groups.replay import READ, CompactionBound
from sharelens.groups.rows import STATE_NAMES
from sharelens.groups.schemas import STREAMS_REBALANCE
from sharelens.groups.streams_values import StreamsValues
from state_model.streams.records import STREAMS_TYPES

Ints = npt.NDArray[np.int64]
Targets = Mapping[int, int]
"""The position of the target of each member that has one."""
TARGETS_READ = 1 << 12
"""Targets whose tasks are kept as sets: each is compared with the one before and the one after it."""
TASK_BITS = (1 << tasks.STATUS_AT) - 1
"""The bits of a task's number without its status."""


def many_streams_rebalances(records: pa.Table) -> pa.Table:
    """STREAMS_REBALANCE rows of the GROUP_RECORD rows of streams groups; some groups at once, to bound memory."""
    rows = records.select(list(READ))
    parts = [pa.Table.from_pylist(_rows(rows.filter(pa.array(of))), schema=STREAMS_REBALANCE) for of in bins(rows)]
    return pa.concat_tables([STREAMS_REBALANCE.empty_table(), *parts])


def _rows(records: pa.Table) -> list[Row]:
    log = _Log.of(records)
    groups = (_Rebalances(log, name) for name in log.rows.group_names.to_pylist())
    return [row for number, group in enumerate(groups) for row in group.of_records(log.records_of(number))]


class _Record(NamedTuple):
    """A record by its row; `member`: -1 for records of the group; `value`: -1 for a tombstone, or undecoded."""

    row: int
    kind: int
    member: int
    value: int
    is_tombstone: bool
    log_offset: int
    log_time_ms: int

    @property
    def key(self) -> tuple[int, int]:
        """The key of the record within its group."""
        return self.kind, self.member


class _OwnerChange(NamedTuple):
    """A member that has an active task from a record on, or has it no more."""

    is_owner: bool
    task: int
    member: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Log:
    """Replayed records. `groups`: by row the group's values from the record on; `owner_changes`: by row."""

    rows: NumberedRows
    read: StreamsValues
    log_times_ms: Ints
    groups: Mapping[int, Ints]
    owner_changes: Mapping[int, list[_OwnerChange]]
    partitions: list[int]
    uncommitted: list[bool]
    member_names: list[str]
    names: list[str]

    @classmethod
    def of(cls, records: pa.Table) -> "_Log":
        """The log of the GROUP_RECORD rows."""
        rows = numbered(records, STREAMS_TYPES)
        read = StreamsValues(rows)
        output, part_rows = replayed(rows, read.values)
        begins = output.group_rows[: output.counts[0], kernels.BEGIN].tolist()
        return cls(
            rows=rows,
            read=read,
            log_times_ms=output.log_times_ms,
            groups=dict(zip(begins, output.group_values, strict=False)),
            owner_changes=_owner_changes(part_rows),
            partitions=rows.table.column("partition").to_pylist(),
            uncommitted=rows.table.column("uncommitted").to_pylist(),
            member_names=rows.member_names.to_pylist(),
            names=read.names.to_pylist(),
        )

    def records_of(self, group: int) -> Iterator[_Record]:
        """The records of a group, in order."""
        of = self.rows.records
        rows = np.flatnonzero(of.groups == group)
        columns = (of.kinds, of.members, of.values, of.is_tombstone, of.log_offsets, self.log_times_ms)
        lists = [rows.tolist(), *(column[rows].tolist() for column in columns)]
        return map(_Record._make, zip(*lists, strict=True))


def _owner_changes(part_rows: Ints) -> dict[int, list[_OwnerChange]]:
    """Who lost and who got active tasks by row, losses first: of tasks of which only the row changes there is nothing.

    A member can have a task twice, as its own and as one that it must give up.
    """
    active = part_rows[tasks.type_of(part_rows[:, kernels.PART]) == 0]
    ended = active[active[:, kernels.END] >= 0]
    rows = np.concatenate([active[:, kernels.BEGIN], ended[:, kernels.END]])
    steps = np.repeat([1, -1], [len(active), len(ended)])
    order = np.argsort(rows, kind="stable")
    event_rows = np.concatenate([active, ended])[order]
    columns = rows[order], steps[order], event_rows[:, kernels.WHO], event_rows[:, kernels.PART] & TASK_BITS
    counts: dict[tuple[int, int], int] = {}
    changes: dict[int, list[_OwnerChange]] = {}
    for row, entries in groupby(zip(*(column.tolist() for column in columns), strict=True), key=itemgetter(0)):
        before: dict[tuple[int, int], int] = {}
        for _, step, member, task in entries:
            count = counts.get((task, member), 0)
            before.setdefault((task, member), count)
            counts[task, member] = count + step
        changes[row] = sorted(
            _OwnerChange(counts[of] > 0, *of) for of, count in before.items() if (count > 0) != (counts[of] > 0)
        )
    return changes


class _Rebalances:
    """The rebalances of one group, as in the reference; targets and metadata are positions of their values."""

    def __init__(self, log: _Log, group_id: str) -> None:
        self._log, self._group_id = log, group_id
        self._rows = RebalanceRows()
        self._bound = CompactionBound()
        self._has_undecoded = False
        self._values: Ints | None = None
        self._members: dict[int, int] = {}
        self._now: dict[int, int] = {}
        self._before: Targets | None = None
        self._targets = _Targets(log)
        self._owners: dict[int, set[int]] = {}

    def of_records(self, records: Iterable[_Record]) -> list[Row]:
        """The rows, of all records of the group."""
        for record in records:
            self._take(record)
        self._end_rebalance(self._now)
        return self._rows.finished()

    def _take(self, record: _Record) -> None:
        kind, value = record.kind, record.value
        is_undecoded = value < 0 and not record.is_tombstone
        if self._bound.log_offset is None:
            self._bound.take(record)
        self._has_undecoded |= is_undecoded
        if kind == kernels.MEMBER or (record.is_tombstone and kind in (kernels.MEMBER_TARGET, kernels.ASSIGNMENT)):
            self._before = dict(self._now) if self._before is None else self._before
        elif kind == kernels.MEMBER_TARGET:
            self._before = None
        elif kind == kernels.METADATA:
            self._end_rebalance(self._now if self._before is None else self._before)
        self._apply(record)
        self._values = self._log.groups.get(record.row, self._values)
        if kind == kernels.METADATA and not is_undecoded:
            self._begin_rebalance(record)
        elif kind == kernels.TARGET and self._rows.rows and value >= 0:
            self._rows.rows[-1]["assignment_epoch"] = int(self._log.read.values.target_epochs[value])
        self._update_owners(record)
        if kind != kernels.MEMBER:
            self._note_stable(record)

    def _apply(self, record: _Record) -> None:
        """Notes the position of the value."""
        kind, member, value = record.kind, record.member, record.value
        if kind == kernels.MEMBER:
            self._note_member(member, value, is_tombstone=record.is_tombstone)
        elif value >= 0:
            if kind == kernels.MEMBER_TARGET:
                self._now[member] = value
            elif kind == kernels.ASSIGNMENT:
                self._members.setdefault(member, kernels.NONE)
        elif record.is_tombstone and kind == kernels.MEMBER_TARGET:
            self._now.pop(member, None)
        elif record.is_tombstone and kind == kernels.METADATA:
            self._members, self._now = {}, {}

    def _note_member(self, member: int, value: int, *, is_tombstone: bool) -> None:
        name, members = self._log.member_names[member], self._log.read.members
        before = self._members.get(member)
        if is_tombstone:
            self._rows.removed.add(name)
            self._members.pop(member, None)
        elif value >= 0:
            metadata = None if before is None or before < 0 else members[before]
            self._rows.note_metadata(name, members[value], metadata, is_member=before is not None)
            self._members[member] = value

    def _begin_rebalance(self, record: _Record) -> None:
        values, row = self._values, record.row
        assert values is not None
        self._rows.begin(
            {
                "group_id": self._group_id,
                "at_ms": record.log_time_ms,
                "group_epoch": int(values[kernels.EPOCH]) if self._state != kernels.DEAD else None,
                "state": STATE_NAMES[self._state],
                "member_count": int(values[kernels.COUNT]),
                "log_partition": self._log.partitions[row],
                "log_offset": record.log_offset,
                **marks(
                    uncommitted=self._log.uncommitted[row],
                    undecoded=self._has_undecoded,
                    compacted=not self._bound.covers(record.log_offset),
                ),
            }
        )
        self._before = None

    def _end_rebalance(self, targets: Targets) -> None:
        change = self._targets.change_to(targets)
        if self._rows.rows:
            self._rows.end(change)

    @property
    def _state(self) -> int:
        """The number of the group's state; DEAD also where nothing is known of it."""
        return kernels.DEAD if self._values is None else int(self._values[kernels.STATE])

    def _update_owners(self, record: _Record) -> None:
        """Notes active tasks that lost their last owner, or have an owner again."""
        if self._state == kernels.DEAD:
            self._owners = {}
            self._rows.forget_tasks()
            return
        for change in self._log.owner_changes.get(record.row, ()):
            if change.is_owner:
                self._owners.setdefault(change.task, set()).add(change.member)
                self._rows.note_owner(change.task, record.log_time_ms)
            else:
                self._owners[change.task].discard(change.member)
                if not self._owners[change.task]:
                    self._rows.lose(change.task, record.log_time_ms, is_removal=record.is_tombstone)

    def _note_stable(self, record: _Record) -> None:
        rows = self._rows.rows
        if rows and rows[-1]["stable_after_ms"] is None and self._state == kernels.STABLE:
            rows[-1]["stable_after_ms"] = record.log_time_ms - rows[-1]["at_ms"]


class _Targets:
    """The target assignment at the beginning of the newest rebalance, and how many members have each active task."""

    def __init__(self, log: _Log) -> None:
        self._log = log
        self._targets: Targets = {}
        self._counts: Counter[int] = Counter()
        self._columns: dict[int, tuple[str, str, int]] = {}
        values = log.read.values
        self._sizes = np.diff(values.targets_at).tolist()
        self._tasks_at = lru_cache(TARGETS_READ)(
            lambda at: frozenset(values.targets[values.targets_at[at] : values.targets_at[at + 1]].tolist())
        )

    def change_to(self, targets: Targets) -> TargetChange:
        """The change to the next target assignment, which takes the place of this one."""
        lost: dict[int, list[str]] = {}
        gained: dict[int, list[str]] = {}
        for member in self._targets.keys() | targets.keys():
            name, old, new = self._log.member_names[member], self._targets.get(member), targets.get(member)
            if old != new:
                before, after = self._tasks_of(old), self._tasks_of(new)
                for task in before - after:
                    lost.setdefault(task, []).append(name)
                for task in after - before:
                    gained.setdefault(task, []).append(name)
        moved = sorted(lost.keys() | gained.keys())
        active = [task for task in moved if tasks.type_of(task) == 0]
        count, had = len(self._counts), {task for task in active if task in self._counts}
        for task in active:
            self._counts[task] += len(gained.get(task, ())) - len(lost.get(task, ()))
            if not self._counts[task]:
                del self._counts[task]
        self._targets = dict(targets)
        return TargetChange(
            moves=[self._move(task, lost.get(task, ()), gained.get(task, ())) for task in moved],
            kept_count=count - len(had),
            lost=len(had & self._counts.keys()),
            sizes=[self._sizes[position] for position in targets.values()],
        )

    def _tasks_of(self, position: int | None) -> frozenset[int]:
        return frozenset() if position is None else self._tasks_at(position)

    def _move(self, task: int, lost: Iterable[str], gained: Iterable[str]) -> Move:
        if task not in self._columns:
            subtopology_id = self._log.names[tasks.name_of(task)]
            self._columns[task] = tasks.TYPE_NAMES[tasks.type_of(task)], subtopology_id, tasks.partition_of(task)
        return Move(*self._columns[task], lost, gained)
