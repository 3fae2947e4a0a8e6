"""The arrays of the kernel that replays streams groups (`measures.streams_kernels`)."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Records(NamedTuple):
    """Records in the order of the log, of groups, members and places (group and partition) by number.

    member: -1 for records of the group. value: position among the values of its type; -1: a tombstone, or undecoded.
    """

    kinds: Ints
    groups: Ints
    members: Ints
    places: Ints
    values: Ints
    is_tombstone: Bools
    log_offsets: Ints
    timestamps_ms: Ints


class Values(NamedTuple):
    """Values by type and position.

    epoch codes: number of (group, epoch), one numbering for all. member_codes: equal where all columns of the member
    history are equal; task_codes: those of the task history. tasks: sorted within a value (`streams_columns`).
    """

    epochs: Ints
    hashes: Ints
    validated: Ints
    standby: Ints
    member_codes: Ints
    task_codes: Ints
    target_epochs: Ints
    target_timestamps_ms: Ints
    target_codes: Ints
    targets_at: Ints
    targets: Ints
    states: Ints
    member_epochs: Ints
    previous_epochs: Ints
    member_epoch_codes: Ints
    tasks_at: Ints
    tasks: Ints
    task_epochs: Ints
    topology_epochs: Ints


class State(NamedTuple):
    """Groups and members while they are replayed; `rows_of_tasks`: the open row of each task of an assignment.

    Of groups: whether it exists, whether it is known, positions of its values, number of members, the open row, the
    first of the touched members; of members: the same, and the next touched member. `settled`: stable members by epoch.
    """

    exists: Bools
    known: Bools
    group_positions: Ints
    member_counts: Ints
    open_groups: Ints
    first_touched: Ints
    settled: Ints
    new_codes: Ints
    no_codes: Ints
    is_member: Bools
    positions: Ints
    open_members: Ints
    is_touched: Bools
    next_touched: Ints
    rows_of_tasks: Ints


class Output(NamedTuple):
    """Rows of groups (with their values) and members, and their number; bounds of compaction, undecoded groups."""

    log_times_ms: Ints
    bounds: Ints
    has_undecoded: Bools
    group_rows: Ints
    group_values: Ints
    member_rows: Ints
    counts: Ints
