"""Replays the records of share groups and streams groups on numbers: rows of their histories, as
`sharelens.groups.histories` and `sharelens.groups.streams_histories` give them record by record.

Values stay where they were parsed: a member is the positions of its metadata, current assignment and target, and a row
of a history is the records at which it begins and ends with such positions. Both kinds of groups have the same kinds of
records but the last: the initialization of share partitions in a share group, the topology in a streams group.
"""

import numpy as np

from sharelens.groups.arrays import Bools, Ints, Output, Records, State, Values
from state_model.columnar.kernels import kernel, leaf

METADATA, MEMBER, TARGET, MEMBER_TARGET, ASSIGNMENT, TOPOLOGY = range(6)
"""Kinds of records: types 17 and 19 to 23 of streams groups, in this order."""
INITIALIZATION = TOPOLOGY
"""What a share group has in place of a topology."""
KINDS = 6
NONE, LEFT_EPOCH = -1, -2
"""No value; the assignment that a tombstone leaves."""
NO_TARGET = -2
"""What the tombstone of a target leaves."""
EMPTY, NOT_READY, ASSIGNING, RECONCILING, STABLE, DEAD = range(6)
"""States of groups."""
MEMBER_STABLE = 1
CHANGED, REMOVED = 1, 2
"""Why a row ended; 0: it is open."""
NO_NUMBER = -(1 << 40)
"""An epoch that no record says."""
STATE, COUNT, EPOCH, HASH, TARGET_EPOCH, TARGET_TIMESTAMP, HAS_TOPOLOGY, TOPOLOGY_EPOCH, VALIDATED, STANDBY = range(10)
GROUP_VALUES = 10
"""The columns of `group_values`; all of a deleted group are 0 but its state. HASH counts only where EPOCH does."""
BEGIN, END, REASON, WHO, P_MEMBER, P_ASSIGNMENT, P_TARGET = range(7)
GROUP_COLUMNS, MEMBER_COLUMNS = 4, 7
"""Rows of groups have the first four columns, rows of members all; WHO is a group or a member."""
PART, PART_MARK = 5, 6
PART_COLUMNS = 7
"""Rows of parts: as rows of members to P_MEMBER, then the number of the part and its mark. WHO is a member with tasks,
or a share group with share partitions."""


@leaf
def _end(rows: np.ndarray, ended: int, row: int, reason: int) -> None:
    rows[ended, END], rows[ended, REASON] = row, reason


@leaf
def _begin(rows: np.ndarray, begun: int, row: int, subject: int) -> None:
    rows[begun, BEGIN], rows[begun, END], rows[begun, REASON], rows[begun, WHO] = row, NONE, 0, subject


@leaf
def is_same(data: np.ndarray, first: int, first_end: int, other: np.ndarray, second: int, second_end: int) -> bool:
    """Whether two stretches hold the same values."""
    same = first_end - first == second_end - second
    step = 0
    while same and first + step < first_end:
        same = data[first + step] == other[second + step]
        step += 1
    return same


@leaf
def _same_assignment(values: Values, first: int, second: int) -> bool:
    """Whether two assignments have the same columns of the member history."""
    if first == second or first < 0 or second < 0:
        return first == second
    same = values.states[first] == values.states[second]
    same &= values.member_epochs[first] == values.member_epochs[second]
    same &= values.previous_epochs[first] == values.previous_epochs[second]
    at = values.parts_at
    return same and is_same(values.parts, at[first], at[first + 1], values.parts, at[second], at[second + 1])


@leaf
def _same_target(values: Values, first: int, second: int) -> bool:
    """Whether two targets are the same; none is as one without tasks."""
    at = values.targets_at
    begin, end = (0, 0) if first < 0 else (at[first], at[first + 1])
    other, other_end = (0, 0) if second < 0 else (at[second], at[second + 1])
    return is_same(values.targets, begin, end, values.targets, other, other_end)


@leaf
def _code(codes: np.ndarray, position: int) -> int:
    return codes[position] if position >= 0 else NONE


@leaf
def _count_settled(values: Values, state: State, group: int, assignment: int, change: int) -> None:
    """Adds to the number of stable members of the assignment's epoch."""
    # Counted as assignments change, so that no record needs a loop over the members of its group.
    if assignment == LEFT_EPOCH:
        state.settled[values.no_codes[group]] += change
    elif assignment >= 0 and values.states[assignment] == MEMBER_STABLE:
        state.settled[values.member_epoch_codes[assignment]] += change


@leaf
def _assign(values: Values, state: State, group: int, member: int, assignment: int) -> None:
    """Sets the position of a member's current assignment."""
    _count_settled(values, state, group, state.positions[member, ASSIGNMENT], -1)
    state.positions[member, ASSIGNMENT] = assignment
    _count_settled(values, state, group, assignment, 1)


@leaf
def _touch(state: State, group: int, member: int) -> None:
    """Notes a member that has something, for the removal of the group."""
    # A linked list in arrays: the removal of a group visits its members that have something, not all members.
    if not state.is_touched[member]:
        state.is_touched[member] = True
        state.next_touched[member] = state.first_touched[group]
        state.first_touched[group] = member


@leaf
def _set_value(values: Values, state: State, group: int, member: int, kind: int, value: int) -> None:
    """Sets a value of a group or a member to the position that a record gives."""
    state.exists[group] = True
    if member < 0:
        state.group_positions[group, kind] = value
        return
    _touch(state, group, member)
    if kind != MEMBER_TARGET and not state.is_member[member]:
        state.is_member[member] = True
        state.member_counts[group] += 1
    if kind == ASSIGNMENT:
        _assign(values, state, group, member, value)
    else:
        state.positions[member, kind] = value


@leaf
def _remove_value(values: Values, state: State, group: int, member: int, kind: int) -> None:
    """Applies a tombstone of an existing group, but that of the group itself."""
    if kind == TARGET:
        state.group_positions[group, TARGET] = NO_TARGET
    elif kind == TOPOLOGY:
        state.group_positions[group, TOPOLOGY] = NONE
    elif kind == MEMBER_TARGET:
        state.positions[member, MEMBER_TARGET] = NONE
    elif state.is_member[member]:
        if kind == ASSIGNMENT:
            _assign(values, state, group, member, LEFT_EPOCH)
        else:
            _assign(values, state, group, member, NONE)
            state.positions[member, MEMBER] = NONE
            state.is_member[member] = False
            state.member_counts[group] -= 1


@leaf
def _put_group_values(values: Values, state: State, group: int, out: np.ndarray) -> None:
    """Writes the group's GROUP_VALUES to `out`."""
    for column in range(GROUP_VALUES):
        out[column] = 0
    if not state.exists[group]:
        out[STATE] = DEAD
    elif values.is_share:
        _put_share_values(values, state, group, out)
    else:
        _put_streams_values(values, state, group, out)


@leaf
def _put_share_values(values: Values, state: State, group: int, out: np.ndarray) -> None:
    """The GROUP_VALUES of a share group (ShareGroup.ShareGroupState)."""
    positions, count = state.group_positions[group], state.member_counts[group]
    metadata, target = positions[METADATA], positions[TARGET]
    out[COUNT] = count
    out[STATE] = STABLE if count else EMPTY
    out[EPOCH] = values.epochs[metadata] if metadata >= 0 else NO_NUMBER
    out[HASH] = values.hashes[metadata] if metadata >= 0 else 0
    out[TARGET_EPOCH] = values.target_epochs[target] if target >= 0 else NO_NUMBER
    out[TARGET_TIMESTAMP] = values.target_timestamps_ms[target] if target >= 0 else 0
    out[VALIDATED], out[STANDBY] = NO_NUMBER, NONE


@leaf
def _put_streams_values(values: Values, state: State, group: int, out: np.ndarray) -> None:
    """The GROUP_VALUES of a streams group (streams-group §2.1, §2.2)."""
    positions, count = state.group_positions[group], state.member_counts[group]
    metadata, target, topology = positions[METADATA], positions[TARGET], positions[TOPOLOGY]
    out[COUNT] = count
    out[EPOCH] = values.epochs[metadata] if metadata >= 0 else 1
    out[HASH] = values.hashes[metadata] if metadata >= 0 else 0
    out[VALIDATED] = values.validated[metadata] if metadata >= 0 else 0
    out[STANDBY] = values.standby[metadata] if metadata >= 0 else NONE
    code = values.no_codes[group] if target == NO_TARGET else values.new_codes[group]
    out[TARGET_EPOCH] = -1 if target == NO_TARGET else 1
    if target >= 0:
        code = values.target_codes[target]
        out[TARGET_EPOCH] = values.target_epochs[target]
        out[TARGET_TIMESTAMP] = values.target_timestamps_ms[target]
    if topology >= 0:
        out[HAS_TOPOLOGY] = 1
        out[TOPOLOGY_EPOCH] = values.topology_epochs[topology]
    if count == 0:
        out[STATE] = EMPTY
    elif topology < 0 or out[TOPOLOGY_EPOCH] != out[VALIDATED]:
        out[STATE] = NOT_READY
    elif out[EPOCH] > out[TARGET_EPOCH]:
        out[STATE] = ASSIGNING
    else:
        out[STATE] = STABLE if state.settled[code] == count else RECONCILING


@leaf
def _update_group(state: State, output: Output, row: int, group: int, now: np.ndarray) -> None:
    """Ends the group's open row when its values changed, and begins the next."""
    open_row = state.open_groups[group]
    # A record begins one row of its group at most, and one of its member: the output has a row of each for every
    # record.
    if open_row >= 0:
        if is_same(now, 0, GROUP_VALUES, output.group_values[open_row], 0, GROUP_VALUES):
            return
        _end(output.group_rows, open_row, row, CHANGED)
    new = output.counts[0]
    output.counts[0] += 1
    for column in range(GROUP_VALUES):
        output.group_values[new, column] = now[column]
    _begin(output.group_rows, new, row, group)
    state.open_groups[group] = new


@leaf
def _update_member(values: Values, state: State, output: Output, row: int, member: int) -> None:
    """Ends the member's open row when its values changed or it is gone, and begins the next."""
    rows, open_row, now = output.member_rows, state.open_members[member], state.positions[member]
    if open_row >= 0:
        if state.is_member[member]:
            same = _code(values.member_codes, rows[open_row, P_MEMBER]) == _code(values.member_codes, now[MEMBER])
            same = same and _same_assignment(values, rows[open_row, P_ASSIGNMENT], now[ASSIGNMENT])
            if same and _same_target(values, rows[open_row, P_TARGET], now[MEMBER_TARGET]):
                return
        _end(rows, open_row, row, CHANGED if state.is_member[member] else REMOVED)
        state.open_members[member] = NONE
    if state.is_member[member]:
        new = output.counts[1]
        output.counts[1] += 1
        _begin(rows, new, row, member)
        rows[new, P_MEMBER], rows[new, P_ASSIGNMENT] = now[MEMBER], now[ASSIGNMENT]
        rows[new, P_TARGET] = now[MEMBER_TARGET]
        state.open_members[member] = new


@leaf
def _list_of(values: Values, state: State, group: int, member: int) -> int:
    """The position of the list whose parts have rows: of a member's tasks, or of a share group's share partitions.

    The lists of share partitions stand behind those of the current assignments.
    """
    if values.is_share:
        initialization = state.group_positions[group, INITIALIZATION]
        return initialization + len(values.member_epochs) if initialization >= 0 else NONE
    return state.positions[member, ASSIGNMENT] if member >= 0 else NONE


@leaf
def _length_of(values: Values, place: int) -> int:
    """The number of parts of a list."""
    return values.parts_at[place + 1] - values.parts_at[place] if place >= 0 else 0


@leaf
def _update_parts(
    values: Values, state: State, row: int, group: int, member: int, before: int, rows: np.ndarray, count: int
) -> int:
    """Ends and begins rows of parts, where the present list follows the list `before`; the number of rows.

    There is room for a row of each part of the list.
    """
    who, metadata = (group, NONE) if values.is_share else (member, state.positions[member, MEMBER])
    after = _list_of(values, state, group, member)
    old, new = values.parts_at[before] if before >= 0 else 0, values.parts_at[after] if after >= 0 else 0
    old_end, new_end = old + _length_of(values, before), new + _length_of(values, after)
    code = _code(values.part_codes, metadata)
    # Both lists ascend: a merge, in which each turn advances one of them or both. Lists that are the same advance
    # together, so an open row is read before its entry is overwritten.
    while old < old_end or new < new_end:
        if new == new_end or (old < old_end and values.parts[old] < values.parts[new]):
            _end(rows, state.rows_of_parts[old], row, REMOVED)
            old += 1
            continue
        if old < old_end and values.parts[old] == values.parts[new]:
            open_row = state.rows_of_parts[old]
            old += 1
            same = _code(values.part_codes, rows[open_row, P_MEMBER]) == code
            if same and rows[open_row, PART_MARK] == values.part_marks[new]:
                state.rows_of_parts[new] = open_row
                new += 1
                continue
            _end(rows, open_row, row, CHANGED)
        _begin(rows, count, row, who)
        rows[count, P_MEMBER], rows[count, PART] = metadata, values.parts[new]
        rows[count, PART_MARK] = values.part_marks[new]
        state.rows_of_parts[new] = count
        count += 1
        new += 1
    return count


@leaf
def _end_parts(values: Values, state: State, row: int, place: int, rows: np.ndarray) -> None:
    """Ends the rows of all parts of a list."""
    if place >= 0:
        for part in range(values.parts_at[place], values.parts_at[place + 1]):
            _end(rows, state.rows_of_parts[part], row, REMOVED)


@leaf
def _remove_group(values: Values, state: State, output: Output, row: int, group: int, part_rows: np.ndarray) -> None:
    """Removes a group with its members and targets, and ends their open rows."""
    state.exists[group] = False
    if values.is_share:
        _end_parts(values, state, row, _list_of(values, state, group, NONE), part_rows)
    for kind in range(KINDS):
        state.group_positions[group, kind] = NONE
    state.member_counts[group] = 0
    member = state.first_touched[group]
    while member >= 0:
        if not values.is_share:
            _end_parts(values, state, row, _list_of(values, state, group, member), part_rows)
        _assign(values, state, group, member, NONE)
        for kind in range(KINDS):
            state.positions[member, kind] = NONE
        state.is_member[member] = False
        state.is_touched[member] = False
        _update_member(values, state, output, row, member)
        member = state.next_touched[member]
    state.first_touched[group] = NONE


@leaf
def _note(records: Records, output: Output, noted: np.ndarray, group_noted: np.ndarray, newest: Ints, row: int) -> None:
    """Notes log time, the compaction bound and undecoded records, which all records count for."""
    group, member, kind, place = records.groups[row], records.members[row], records.kinds[row], records.places[row]
    newest[place] = max(newest[place], records.timestamps_ms[row])
    output.log_times_ms[row] = newest[place]
    # A replaced record that is still there bounds compaction: no round of the log cleaner went beyond its replacement.
    before = group_noted[group, kind] if member < 0 else noted[member, kind]
    if before and output.bounds[group] < 0:
        output.bounds[group] = records.log_offsets[row]
    if member < 0:
        group_noted[group, kind] = True
    else:
        noted[member, kind] = True
    if records.values[row] < 0 and not records.is_tombstone[row]:
        output.has_undecoded[group] = True


@leaf
def _apply(records: Records, values: Values, state: State, output: Output, row: int, part_rows: np.ndarray) -> None:
    """Applies a record to the state of its group and member."""
    kind, group, member = records.kinds[row], records.groups[row], records.members[row]
    if records.values[row] >= 0:
        _set_value(values, state, group, member, kind, records.values[row])
    elif not records.is_tombstone[row]:
        # A value that could not be decoded says of a share group that it is there.
        state.exists[group] |= values.is_share and not state.is_known[group]
    elif kind == METADATA:
        state.is_known[group] = True
        if state.exists[group]:
            _remove_group(values, state, output, row, group, part_rows)
    elif state.exists[group]:
        _remove_value(values, state, group, member, kind)
    state.is_known[group] |= state.exists[group]


@kernel
def replay(
    records: Records, values: Values, state: State, output: Output, noted: Bools, group_noted: Bools, newest: Ints
) -> np.ndarray:
    """Replays the records into `output`; the rows of tasks, or of share partitions with their initialization."""
    part_rows = np.empty((1024, PART_COLUMNS), np.int64)
    part_count = 0
    now = np.zeros(GROUP_VALUES, np.int64)
    for row in range(len(records.kinds)):
        _note(records, output, noted, group_noted, newest, row)
        kind, group, member = records.kinds[row], records.groups[row], records.members[row]
        before = _list_of(values, state, group, member)
        _apply(records, values, state, output, row, part_rows)
        if not state.is_known[group]:
            continue
        _put_group_values(values, state, group, now)
        _update_group(state, output, row, group, now)
        if not state.exists[group]:
            continue
        if member >= 0:
            _update_member(values, state, output, row, member)
        if kind == INITIALIZATION if values.is_share else kind in (MEMBER, ASSIGNMENT):
            max_part_count = part_count + _length_of(values, _list_of(values, state, group, member))
            # `max_part_count` exceeds the present length, so this doubles at least: copies are amortized.
            if max_part_count > len(part_rows):
                part_rows = np.concatenate((part_rows, np.empty((max_part_count, PART_COLUMNS), np.int64)))
            part_count = _update_parts(values, state, row, group, member, before, part_rows, part_count)
    return part_rows[:part_count]
