"""The arrays of the kernel that replays groups (`sharelens.groups.kernels`)."""

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
    """Values by type and position; of a share group some columns are empty.

    epoch codes: number of (group, epoch), one numbering for all; new_codes and no_codes: by group, of a new target and
    of no epoch. member_codes: equal where all columns of the member history are equal; part_codes: those of the task
    history. parts: the tasks or partitions of current assignments, then the share partitions of initializations,
    ascending within a value; with a mark of each, and as targets (`task_numbers`).
    """

    is_share: bool
    epochs: Ints
    hashes: Ints
    validated: Ints
    standby: Ints
    member_codes: Ints
    part_codes: Ints
    target_epochs: Ints
    target_timestamps_ms: Ints
    target_codes: Ints
    new_codes: Ints
    no_codes: Ints
    targets_at: Ints
    targets: Ints
    states: Ints
    member_epochs: Ints
    previous_epochs: Ints
    member_epoch_codes: Ints
    parts_at: Ints
    parts: Ints
    part_marks: Ints
    topology_epochs: Ints


class State(NamedTuple):
    """Groups and members while they are replayed; `rows_of_parts`: the open row of each part of a list.

    Of groups: whether it exists, whether it is known, positions of its values, number of members, the open row, the
    first of the touched members; of members: the same, and the next touched member. `settled`: stable members by epoch.
    """

    exists: Bools
    is_known: Bools
    group_positions: Ints
    member_counts: Ints
    open_groups: Ints
    first_touched: Ints
    settled: Ints
    is_member: Bools
    positions: Ints
    open_members: Ints
    is_touched: Bools
    next_touched: Ints
    rows_of_parts: Ints


class Output(NamedTuple):
    """Rows of groups (with their values) and members, and their number; bounds of compaction, undecoded groups."""

    log_times_ms: Ints
    bounds: Ints
    has_undecoded: Bools
    group_rows: Ints
    group_values: Ints
    member_rows: Ints
    counts: Ints
