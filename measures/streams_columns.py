"""Histories of many records of streams groups, a column at a time: the rows of `measures.streams_histories`.

Targets and current assignments, nearly all records of such a log, are parsed by Arrow and replayed by a kernel; the few
other values are read as the reference reads them.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from measures import streams_kernels as kernels
from measures.streams_arrays import Output, State
from measures.streams_numbers import NumberedRows, ReadValues, numbered
from measures.streams_rows import HistoryRows

BIN_BYTES, THREADS = 32 << 20, 2
"""About the JSON of the groups that are computed together, and how many such bins are computed at once.

Arrow and the kernel leave the interpreter to other threads.
"""


class StreamsTables(NamedTuple):
    """GROUP_HISTORY, MEMBER_HISTORY and TASK_HISTORY rows of streams groups."""

    groups: pa.Table
    members: pa.Table
    tasks: pa.Table


def many_streams_histories(records: pa.Table) -> StreamsTables:
    """The histories of streams groups in GROUP_RECORD rows of their types; some groups at once, to bound memory."""
    with ThreadPoolExecutor(THREADS) as pool:
        parts = list(pool.map(lambda bin_of: _histories(records.filter(bin_of)), _bins(records)))
    return StreamsTables(*map(pa.concat_tables, zip(*parts, strict=True)))


def _bins(records: pa.Table) -> Iterator[pa.Array]:
    """Whether each row is of a bin: neighbouring groups by name, about BIN_BYTES of JSON together."""
    names = pc.unique(records.column("group_id")).sort()
    groups = pc.index_in(records.column("group_id"), names).to_numpy()
    sizes = pc.fill_null(pc.binary_length(records.column("value_json")), 0).to_numpy()
    bins = (np.cumsum(np.bincount(groups, weights=sizes, minlength=len(names))) // BIN_BYTES)[groups]
    for number in np.unique(bins):
        yield pa.array(bins == number)


def _histories(records: pa.Table) -> StreamsTables:
    rows = numbered(records)
    read = ReadValues(rows)
    state, output = _state(rows, read), _output(rows)
    counts = len(rows.member_names), len(rows.group_names)
    task_rows = kernels.replay(
        rows.records,
        read.values,
        state,
        output,
        np.zeros((counts[0], kernels.KINDS), np.bool_),
        np.zeros((counts[1], kernels.KINDS), np.bool_),
        np.full(len(rows.records.places) + 1, np.iinfo(np.int64).min, np.int64),
    )
    of = HistoryRows(rows, read, output)
    group_count, member_count = output.counts
    return StreamsTables(
        of.groups(output.group_rows[:group_count], output.group_values[:group_count]),
        of.members(output.member_rows[:member_count]),
        of.tasks(task_rows),
    )


def _state(rows: NumberedRows, read: ReadValues) -> State:
    groups, members = len(rows.group_names), len(rows.member_names)
    settled = 1 + max((int(codes.max(initial=0)) for codes in read.all_epoch_codes), default=0)
    return State(
        exists=np.zeros(groups, np.bool_),
        known=np.zeros(groups, np.bool_),
        group_positions=np.full((groups, kernels.KINDS), kernels.NONE, np.int64),
        member_counts=np.zeros(groups, np.int64),
        open_groups=np.full(groups, kernels.NONE, np.int64),
        first_touched=np.full(groups, kernels.NONE, np.int64),
        settled=np.zeros(settled, np.int64),
        new_codes=read.all_epoch_codes[2],
        no_codes=read.all_epoch_codes[3],
        is_member=np.zeros(members, np.bool_),
        positions=np.full((members, kernels.KINDS), kernels.NONE, np.int64),
        open_members=np.full(members, kernels.NONE, np.int64),
        is_touched=np.zeros(members, np.bool_),
        next_touched=np.full(members, kernels.NONE, np.int64),
        rows_of_tasks=np.full(len(read.assignments.numbers), kernels.NONE, np.int64),
    )


def _output(rows: NumberedRows) -> Output:
    count, groups = len(rows.records.kinds), len(rows.group_names)
    return Output(
        log_times_ms=np.zeros(count, np.int64),
        bounds=np.full(groups, kernels.NONE, np.int64),
        has_undecoded=np.zeros(groups, np.bool_),
        group_rows=np.empty((count, kernels.GROUP_COLUMNS), np.int64),
        group_values=np.empty((count, kernels.GROUP_VALUES), np.int64),
        member_rows=np.empty((count, kernels.MEMBER_COLUMNS), np.int64),
        counts=np.zeros(2, np.int64),
    )
