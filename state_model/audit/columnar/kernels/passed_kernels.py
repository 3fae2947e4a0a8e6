"""Kernels of rule 29: the offsets that the start offset of a write passes while they have no outcome.

    start offset  0                             20
    offsets       0-9 acknowledged  10-14 none  15-19 available
    passed                          10-19

A write has the start offset from before its own effect, so what it passes was settled by the records before it. Only
the topic's log says whether there were records at all; `columnar.passed_offsets` compares with it.
"""

import numpy as np

from state_model.audit.columnar.kernels.hits import NONE
from state_model.audit.columnar.kernels.layout import (
    BEGIN,
    COLD,
    EITHER,
    INIT,
    LARGEST_START,
    LEADER_EPOCH,
    LIVE,
    MARK_PREVIOUS,
    MARK_ROW,
    MARK_SNAPSHOT,
    PASSED_FIRST,
    PASSED_LAST,
    PASSED_PREVIOUS,
    PASSED_ROW,
    PASSED_SNAPSHOT,
    SIZE,
    STANDING,
    START,
    TOMBSTONE,
    UPDATE,
    VALUE,
    WRITTEN,
    Record,
)
from state_model.audit.columnar.kernels.step_kernels import (
    MAX_OFFSET,
    NO_STATE,
    Breakpoints,
    bound_of,
    last_up_to,
    state_of,
)
from state_model.columnar.kernels import leaf

AVAILABLE = 0


@leaf
def moves_start(state: np.ndarray, record: Record) -> bool:
    """Whether a write of a leader moves the start offset of a known state behind all that it had since its
    initialization.
    """
    # A retried older write moves the start offset back (up to Kafka 4.3) and doesn't bring back the states below the
    # newer one: what lies below the largest start offset was passed before, with its outcomes.
    is_write = record.kind == UPDATE or record.snapshot == WRITTEN
    return bool(
        is_write
        and state[STANDING] == LIVE
        and state[START] >= 0
        and record.row[START - VALUE] > max(state[START], state[LARGEST_START])
    )


@leaf
def note_passed(
    state: np.ndarray, record: Record, pool: Breakpoints, mark: np.ndarray, passed: np.ndarray, n: int
) -> int:
    """Adds the ranges without an outcome that the start offset of a record passes; the new number."""
    if not moves_start(state, record):
        return n
    # No check of the room: audit_records reserves a row for each breakpoint of the state and two more. Each turn goes
    # on to the next breakpoint, or to `start`.
    start = record.row[START - VALUE]
    begin = state[BEGIN]
    end = begin + state[SIZE]
    offset = max(state[START], state[LARGEST_START])
    i = last_up_to(pool.at, begin, end, offset)
    first_row = n
    while offset < start:
        value = pool.values[i] if i >= begin else NO_STATE
        i += 1
        behind = min(bound_of(pool.at, i, end), start)
        if value == NO_STATE or state_of(value) == AVAILABLE:
            if n > first_row and passed[n - 1, PASSED_LAST] + 1 == offset:
                passed[n - 1, PASSED_LAST] = behind - 1
            else:
                passed[n, PASSED_ROW] = mark[MARK_ROW]
                passed[n, PASSED_FIRST] = offset
                passed[n, PASSED_LAST] = behind - 1
                passed[n, PASSED_SNAPSHOT] = mark[MARK_SNAPSHOT]
                passed[n, PASSED_PREVIOUS] = mark[MARK_PREVIOUS]
                n += 1
        offset = behind
    return n


@leaf
def largest_start(state: np.ndarray, record: Record) -> int:
    """LARGEST_START after a record; MAX_OFFSET where records before it may be missing."""
    start = record.row[START - VALUE]
    if record.kind == TOMBSTONE or (record.kind == UPDATE and state[STANDING] != LIVE):
        return MAX_OFFSET
    if record.snapshot == INIT or (record.snapshot == EITHER and state[STANDING] == LIVE):
        return int(start)
    if state[STANDING] != LIVE:
        return MAX_OFFSET
    # A snapshot of the job and a read repeat a start offset that a retried older write may have left behind; a leader's
    # own write has that of its memory.
    is_repeated = record.snapshot == COLD or record.row[LEADER_EPOCH - VALUE] > state[LEADER_EPOCH]
    if state[LARGEST_START] == MAX_OFFSET:
        return MAX_OFFSET if is_repeated or start == NONE else int(start)
    return int(max(start, state[LARGEST_START]))
