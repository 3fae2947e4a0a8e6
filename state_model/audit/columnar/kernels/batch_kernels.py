"""Kernels of the rules over the state batches of one record (rules 31 to 33, 37, 40 to 45).

`hits`: violations so far, of which there are `n`; each function returns their new number.
"""

from state_model.audit.columnar.kernels.hits import F_COUNT, F_FIRST, F_LAST, F_STATE, NONE, Hits, hit
from state_model.audit.columnar.kernels.layout import COLD, StateBatches
from state_model.audit.columnar.kernels.step_kernels import MAX_OFFSET
from state_model.columnar.kernels import leaf

LARGEST_LIMIT = 25


@leaf
def check_order(batches: StateBatches, low: int, high: int, snapshot: int, hits: Hits, n: int) -> int:
    """Rules 31 (ascending, disjoint) and 37 (joined) for the state batches [low, high) of a record."""
    # As in all kernels here: only the first batch that violates a rule is noted, so a record adds a fixed number of
    # hits at most, however many batches it has (HITS_A_RECORD).
    first, last, states, counts = batches
    overlap = NONE
    apart = NONE
    for i in range(low + 1, high):
        if overlap == NONE and first[i] <= last[i - 1]:
            overlap = i
        touches = last[i - 1] != MAX_OFFSET and last[i - 1] + 1 == first[i]
        if apart == NONE and touches and states[i] == states[i - 1] and counts[i] == counts[i - 1]:
            apart = i
    if overlap != NONE:
        n = hit(hits, n, 310, F_FIRST, last[overlap - 1], first[overlap])
    if apart != NONE and snapshot != COLD:
        n = hit(hits, n, 370, F_LAST, last[apart], last[apart - 1])
    return n


@leaf
def check_ranges(batches: StateBatches, low: int, high: int, start: int, hits: Hits, n: int) -> int:
    """Rules 32 (valid ranges) and 33 (not below the record's start offset)."""
    first, last = batches.first, batches.last
    invalid = NONE
    below = NONE
    for i in range(low, high):
        if invalid == NONE and (first[i] < 0 or last[i] < first[i]):
            invalid = i
        if below == NONE and start >= 0 and first[i] < start:
            below = i
    if invalid != NONE and first[invalid] < 0:
        n = hit(hits, n, 320, F_FIRST, 0, first[invalid])
    elif invalid != NONE:
        n = hit(hits, n, 320, F_LAST, first[invalid], last[invalid])
    if below != NONE:
        n = hit(hits, n, 330, F_FIRST, start, first[below])
    return n


@leaf
def check_states(batches: StateBatches, low: int, high: int, hits: Hits, n: int) -> int:
    """Rule 40: no ACQUIRED, no unknown and no ARCHIVING delivery state in a state batch."""
    first, states = batches.first, batches.states
    acquired = NONE
    unknown = NONE
    archiving = NONE
    for i in range(low, high):
        state = states[i]
        if acquired == NONE and state == 1:
            acquired = i
        if unknown == NONE and (state < 0 or state > 4):
            unknown = i
        if archiving == NONE and state == 3:
            archiving = i
    if acquired != NONE:
        n = hit(hits, n, 400, F_STATE, 0, 1, first[acquired])
    if unknown != NONE:
        n = hit(hits, n, 401, F_STATE, 0, states[unknown], first[unknown])
    if archiving != NONE:
        n = hit(hits, n, 402, F_STATE, 4, 3, first[archiving])
    return n


@leaf
def check_counts(batches: StateBatches, low: int, high: int, hits: Hits, n: int) -> int:
    """Rules 41 (delivered once at least) and 42 (the largest count)."""
    first, counts = batches.first, batches.counts
    few = NONE
    many = NONE
    for i in range(low, high):
        if few == NONE and counts[i] < 1:
            few = i
        if many == NONE and counts[i] > LARGEST_LIMIT:
            many = i
    if few != NONE:
        n = hit(hits, n, 410, F_COUNT, 1, counts[few], first[few])
    if many != NONE:
        n = hit(hits, n, 420, F_COUNT, LARGEST_LIMIT, counts[many], first[many])
    return n


@leaf
def check_limit(batches: StateBatches, low: int, high: int, limit: int, hits: Hits, n: int) -> int:
    """Rules 43, 44 and 45: counts against the delivery count limit of the group."""
    first, states, counts = batches.first, batches.states, batches.counts
    over = NONE
    available = NONE
    archived = NONE
    for i in range(low, high):
        if over == NONE and counts[i] > limit:
            over = i
        if available == NONE and states[i] == 0 and counts[i] >= limit:
            available = i
        if archived == NONE and states[i] == 4 and counts[i] < limit:
            archived = i
    if over != NONE:
        n = hit(hits, n, 430, F_COUNT, limit, counts[over], first[over])
    if available != NONE:
        n = hit(hits, n, 440, F_COUNT, limit, counts[available], first[available])
    if archived != NONE:
        n = hit(hits, n, 450, F_COUNT, limit, counts[archived], first[archived])
    return n
