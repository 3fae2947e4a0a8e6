"""Tasks and partitions as sorted numbers: of the values of targets and current assignments, a column at a time.

A task is one number: its status, its type, the place of its subtopology among all by name, its partition. So numbers
sort as the rows of the task history of one record do. A partition of a share group is one, too: its topic stands where
a task has its subtopology, status and type are 0.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from measures import group_schemas as schemas

Ints = npt.NDArray[np.int64]
Numbers = TypeVar("Numbers", int, Ints)
"""A task, or many."""
TYPES = ("active", "standby", "warmup")
TYPE_NAMES = (schemas.ACTIVE, schemas.STANDBY, schemas.WARMUP)
STATUSES = ("", "PendingRevocation")
STATUS_NAMES = (schemas.OWNED, schemas.PENDING_REVOCATION)
PARTITION_COLUMNS = ("topicPartitions", "assignedPartitions")
PARTITION_BITS, NAME_BITS, TYPE_BITS = 32, 27, 2
TYPE_AT = PARTITION_BITS + NAME_BITS
STATUS_AT = TYPE_AT + TYPE_BITS
LEAST_PARTITION = -(1 << 31)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLists:
    """Value i has the tasks numbers[at[i]:at[i + 1]], ascending, with their assignment epochs; 0 without."""

    at: Ints
    numbers: Ints
    epochs: Ints

    def tasks(self, names: pa.Array, status: int) -> pa.ListArray:
        """TASKS values of the tasks of a status, one for each value; `names`: of the subtopologies."""

        def heads(numbers: Ints) -> list[pa.Array]:
            return [_TYPES.take(pa.array(type_of(numbers))), names.take(pa.array(name_of(numbers)))]

        return self._rows(status, schemas.TASKS, heads)

    def partitions(self, names: pa.Array) -> pa.ListArray:
        """TOPIC_PARTITIONS values, one for each value; `names`: the topic ids."""
        return self._rows(0, schemas.TOPIC_PARTITIONS, lambda numbers: [names.take(pa.array(name_of(numbers)))])

    def _rows(self, status: int, kind: pa.ListType, heads: Callable[[Ints], list[pa.Array]]) -> pa.ListArray:
        """The numbers of a status as lists of structs: `heads` of the first partition, and the partitions."""
        counts = np.diff(self.at)
        values = np.repeat(np.arange(len(counts)), counts)
        mine = (self.numbers >> STATUS_AT) == status
        values, numbers = values[mine], self.numbers[mine]
        parts = numbers >> PARTITION_BITS
        begins = np.flatnonzero(np.concatenate([[True], (parts[1:] != parts[:-1]) | (values[1:] != values[:-1])]))
        begins = begins[: len(numbers)]
        partitions = pa.array(partition_of(numbers), pa.int32())
        partitions = pa.ListArray.from_arrays(_bounds(begins, len(numbers)), partitions)
        structs = pa.StructArray.from_arrays([*heads(numbers[begins]), partitions], fields=list(kind.value_type))
        firsts = np.searchsorted(values[begins], np.arange(len(counts)))
        return pa.ListArray.from_arrays(_bounds(firsts, len(begins)), structs)


_TYPES = pa.array(TYPE_NAMES, pa.string())


def with_empty(lists: pa.ListArray) -> pa.ListArray:
    """The lists, and an empty one behind them."""
    return pa.concat_arrays([lists, pa.array([[]], lists.type)])


def status_of(numbers: Numbers) -> Numbers:
    """Place in STATUS_NAMES."""
    return numbers >> STATUS_AT


def type_of(numbers: Numbers) -> Numbers:
    """Place in TYPE_NAMES."""
    return (numbers >> TYPE_AT) & ((1 << TYPE_BITS) - 1)


def name_of(numbers: Numbers) -> Numbers:
    """Place among the names of subtopologies, or among the topic ids."""
    return (numbers >> PARTITION_BITS) & ((1 << NAME_BITS) - 1)


def partition_of(numbers: Numbers) -> Numbers:
    """Partition of the task."""
    return (numbers & ((1 << PARTITION_BITS) - 1)) + LEAST_PARTITION


def names_in(tables: Sequence[pa.Table]) -> pa.Array:
    """All names of subtopologies, or topic ids, in the values, ascending."""
    names = [_entries(table, column).field(0) for table in tables for column in _task_columns(table)]
    return pa.concat_arrays([pa.array([], pa.string()), *names]).unique().sort()


def task_lists(values: pa.Table, names: pa.Array, member_epochs: Ints | None = None) -> TaskLists:
    """The tasks or partitions of targets (no member epochs) or current assignments, with the epochs of active tasks.

    A task that an assignment lists twice has its last epoch, as in the reference (`state_model.streams.records`).
    """
    columns = [
        _tasks(values, column, code, names, member_epochs if code & 3 == 0 else None)
        for column, code in _task_columns(values).items()
    ]
    counts = np.stack([column.counts for column in columns])
    ends = np.cumsum(counts.T).reshape(counts.T.shape).T
    numbers, epochs = np.empty(counts.sum(), np.int64), np.empty(counts.sum(), np.int64)
    for column, begins in zip(columns, ends - counts, strict=True):
        shifts = begins - (np.cumsum(column.counts) - column.counts)
        places = np.arange(len(column.numbers)) + np.repeat(shifts, column.counts)
        numbers[places], epochs[places] = column.numbers, column.epochs
    of_values = counts.sum(axis=0)
    owners = np.repeat(np.arange(len(of_values)), of_values)
    if ((numbers[1:] <= numbers[:-1]) & (owners[1:] == owners[:-1])).any():
        owners, numbers, epochs = _sorted(owners, numbers, epochs)
    if member_epochs is not None:
        _unify_epochs(owners, numbers, epochs)
    return TaskLists(at=np.searchsorted(owners, np.arange(values.num_rows + 1)), numbers=numbers, epochs=epochs)


def _sorted(owners: Ints, numbers: Ints, epochs: Ints) -> tuple[Ints, Ints, Ints]:
    """Tasks in order, each once: the last of a task counts."""
    order = np.lexsort((numbers, owners))
    owners, numbers, epochs = owners[order], numbers[order], epochs[order]
    is_last = np.ones(len(numbers), np.bool_)
    is_last[:-1] = (numbers[1:] != numbers[:-1]) | (owners[1:] != owners[:-1])
    return owners[is_last], numbers[is_last], epochs[is_last]


def _task_columns(table: pa.Table) -> dict[str, int]:
    """The columns of tasks with status and type of their tasks; those of partitions have neither."""
    return {name: 0 for name in PARTITION_COLUMNS if name in table.column_names} | {
        f"{kind}Tasks{suffix}": status << TYPE_BITS | place
        for status, suffix in enumerate(STATUSES)
        for place, kind in enumerate(TYPES)
        if f"{kind}Tasks{suffix}" in table.column_names
    }


def _entries(table: pa.Table, column: str) -> pa.StructArray:
    return table.column(column).combine_chunks().flatten()


class _TaskColumn(NamedTuple):
    """The tasks of a column, value after value, and how many each value has."""

    counts: Ints
    numbers: Ints
    epochs: Ints


def _tasks(values: pa.Table, column: str, code: int, names: pa.Array, member_epochs: Ints | None) -> _TaskColumn:
    """The tasks of a column of status and type `code`; with `member_epochs` also their assignment epochs."""
    lists = values.column(column).combine_chunks()
    entries = lists.flatten()
    owners = np.repeat(np.arange(len(lists)), _lengths(lists))
    partitions = entries.field("partitions")
    counts = _lengths(partitions)
    subtopologies = pc.index_in(entries.field(0), names).to_numpy().astype(np.int64)
    numbers = np.repeat((code << NAME_BITS | subtopologies) << PARTITION_BITS, counts)
    numbers |= partitions.flatten().to_numpy().astype(np.int64) - LEAST_PARTITION
    epochs = np.zeros(len(numbers), np.int64)
    if member_epochs is not None:
        epochs = np.repeat(member_epochs[owners], counts)
        own = entries.field("assignmentEpochs")
        complete = _lengths(own) == counts
        epochs[np.repeat(complete, counts)] = own.filter(pa.array(complete)).flatten().to_numpy()
    of_values = np.bincount(owners, weights=counts, minlength=len(lists)).astype(np.int64)
    return _TaskColumn(counts=of_values, numbers=numbers, epochs=epochs)


def _lengths(lists: pa.ListArray) -> Ints:
    """Lengths of lists, 0 for null."""
    lengths: Ints = lists.value_lengths().fill_null(0).to_numpy().astype(np.int64)
    return lengths


def _unify_epochs(owners: Ints, numbers: Ints, epochs: Ints) -> None:
    """Gives active tasks that are also pending revocation the epoch that the pending list has."""
    is_active = type_of(numbers) == 0
    is_pending = np.zeros(owners.max(initial=0) + 1, np.bool_)
    is_pending[owners[is_active & (status_of(numbers) == 1)]] = True
    active = np.flatnonzero(is_active & is_pending[owners])
    keys = numbers[active] & ((1 << STATUS_AT) - 1)
    order = np.lexsort((numbers[active], keys, owners[active]))
    active, keys = active[order], keys[order]
    twice = np.flatnonzero((keys[1:] == keys[:-1]) & (owners[active][1:] == owners[active][:-1]))
    epochs[active[twice]] = epochs[active[twice + 1]]


def _bounds(begins: Ints, end: int) -> pa.Array:
    return pa.array(np.concatenate([begins, [end]]), pa.int32())
