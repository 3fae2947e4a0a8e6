"""Histories of many records of groups, a column at a time: the rows that the reference gives record by record.

Targets and current assignments, nearly all records of such a log, are parsed by Arrow and replayed by a kernel; the few
other values are read as the reference reads them.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.groups import kernels
from sharelens.groups.arrays import Output, State, Values
from sharelens.groups.intervals import Histories, ShareTables, StreamsTables
from sharelens.groups.numbers import NumberedRows, numbered
from sharelens.groups.replay import KERNEL_TYPES, READ
from sharelens.groups.rows import HistoryRows, ReadValues
from sharelens.groups.share_values import ShareValues
from sharelens.groups.streams_values import StreamsValues
from state_model.streams.records import STREAMS_TYPES
from state_model.threads import map_in_threads

Ints = npt.NDArray[np.int64]
BIN_BYTES, THREADS = 32 << 20, 2
"""About the JSON of the groups that are computed together, and how many such bins are computed at once.

Arrow and the kernel leave the interpreter to other threads.
"""


def many_histories(records: pa.Table) -> Histories:
    """The histories of the groups in GROUP_RECORD rows of their types; some groups at once, to bound memory."""
    rows = records.select(list(READ))
    parts = map_in_threads(lambda bin_of: _histories_of(rows, bin_of), bins(rows), THREADS)
    share = ShareTables(*map(pa.concat_tables, zip(*(part[0] for part in parts), strict=True)))
    streams = StreamsTables(*map(pa.concat_tables, zip(*(part[1] for part in parts), strict=True)))
    return Histories.of(share, streams)


def bins(records: pa.Table) -> Iterator[npt.NDArray[np.bool_]]:
    """Whether each row is of a bin: neighbouring groups by name, about BIN_BYTES of JSON together."""
    names = pc.unique(records.column("group_id")).sort()
    groups = pc.index_in(records.column("group_id"), names).to_numpy()
    sizes = pc.fill_null(pc.binary_length(records.column("value_json")), 0).to_numpy()
    bins = (np.cumsum(np.bincount(groups, weights=sizes, minlength=len(names))) // BIN_BYTES)[groups]
    for number in np.unique(bins):
        yield bins == number


def _histories_of(records: pa.Table, bin_of: npt.NDArray[np.bool_]) -> tuple[ShareTables, StreamsTables]:
    """The histories of the share groups and of the streams groups in a bin."""
    types = records.column("record_type").to_numpy()
    share, streams = (
        _histories(records.filter(pa.array(bin_of & np.isin(types, record_types))), record_types, read)
        for record_types, read in ((KERNEL_TYPES, ShareValues), (STREAMS_TYPES, StreamsValues))
    )
    return ShareTables(*share), StreamsTables(*streams)


def _histories(
    records: pa.Table, types: Sequence[int], read_values: Callable[[NumberedRows], ReadValues]
) -> tuple[pa.Table, pa.Table, pa.Table]:
    """History rows of groups, members, and tasks or share partitions."""
    rows = numbered(records, types)
    read = read_values(rows)
    output, part_rows = replayed(rows, read.values)
    of = HistoryRows(rows, read, output)
    group_count, member_count = output.counts
    return (
        of.groups(output.group_rows[:group_count], output.group_values[:group_count]),
        of.members(output.member_rows[:member_count]),
        of.parts(part_rows),
    )


def replayed(rows: NumberedRows, values: Values) -> tuple[Output, Ints]:
    """The kernel's rows of groups and members, and its rows of tasks or share partitions."""
    state, output = _state(rows, values), _output(rows)
    counts = len(rows.member_names), len(rows.group_names)
    part_rows = kernels.replay(
        rows.records,
        values,
        state,
        output,
        np.zeros((counts[0], kernels.KINDS), np.bool_),
        np.zeros((counts[1], kernels.KINDS), np.bool_),
        np.full(len(rows.records.places) + 1, np.iinfo(np.int64).min, np.int64),
    )
    return output, part_rows


def _state(rows: NumberedRows, values: Values) -> State:
    groups, members = len(rows.group_names), len(rows.member_names)
    every = (values.member_epoch_codes, values.target_codes, values.new_codes, values.no_codes)
    return State(
        exists=np.zeros(groups, np.bool_),
        is_known=np.zeros(groups, np.bool_),
        group_positions=np.full((groups, kernels.KINDS), kernels.NONE, np.int64),
        member_counts=np.zeros(groups, np.int64),
        open_groups=np.full(groups, kernels.NONE, np.int64),
        first_touched=np.full(groups, kernels.NONE, np.int64),
        settled=np.zeros(1 + max(int(codes.max(initial=0)) for codes in every), np.int64),
        is_member=np.zeros(members, np.bool_),
        positions=np.full((members, kernels.KINDS), kernels.NONE, np.int64),
        open_members=np.full(members, kernels.NONE, np.int64),
        is_touched=np.zeros(members, np.bool_),
        next_touched=np.full(members, kernels.NONE, np.int64),
        rows_of_parts=np.full(len(values.parts), kernels.NONE, np.int64),
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
