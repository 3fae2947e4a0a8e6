"""The life of share partitions: creations, resets, deletions, moves of the epochs, with before and after.

    start offset before 20, reset to 5     replayed 5-19
    start offset before 20, reset to 50    skipped 20-49

The offsets that a reset or a re-creation skips or replays lie between the last start offset of the life before and the
first start offset of the new life. Offsets above the start offset may have been settled already; a column counts them.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.histories.delivery_outcomes import NEVER
from sharelens.measures.histories.lives import DELETED, UNDETERMINED, Lives
from sharelens.measures.histories.numbers import (
    RANGE_FIRST,
    RANGE_LAST,
    RANGE_STATE,
    RANGE_TO,
    UNKNOWN,
    Histories,
)
from sharelens.measures.inputs import Inputs
from sharelens.measures.ranges.steps import LAST_OFFSET, Ints
from sharelens.measures.schemas import EVENTS, LIFE, SIDES
from state_model.share_records import DeliveryState

FIRST_SEEN, CREATED, RECREATED, RESET, GONE, STATE_EPOCH, LEADER_EPOCH, WENT_BACK = range(len(EVENTS))
TERMINAL = (DeliveryState.ACKNOWLEDGED, DeliveryState.ARCHIVED)
SPANS = ("skipped_first_offset", "skipped_last_offset", "replayed_first_offset", "replayed_last_offset")
Event = tuple[int, int, int]
"""Row of the record, row of the state before it (NEVER: none), number of the event."""


def rows(inputs: Inputs) -> pa.Table:
    """LIFE rows by share partition and log offset."""
    return life(inputs.histories())


def life(histories: Histories) -> pa.Table:
    """LIFE rows by share partition and log offset."""
    rows, place, lives = histories.history, histories.place, histories.lives
    events = sorted([*_beginnings(lives), *_deletions(rows, place), *_moves(rows, lives)])
    at, before, code = np.array(events, np.int64).reshape(-1, 3).T
    columns = {name: rows.column(name).take(pa.array(at)) for name in LIFE.names if name in rows.column_names}
    gone = code == GONE
    for name in SIDES:
        values = rows.column(name).cast(pa.int64())
        columns[f"{name}_before"] = values.take(pa.array(before, mask=before == NEVER))
        columns[f"{name}_after"] = values.take(pa.array(at, mask=gone))
    key = rows.column("life_log_offset")
    columns["life_log_offset"] = key.take(pa.array(np.where(gone, before, at), mask=gone & (before == NEVER)))
    columns["event"] = pa.array(EVENTS, pa.string()).take(pa.array(code))
    return pa.table(columns | _consequences(histories, at, code)).select(LIFE.names).cast(LIFE)


def _beginnings(lives: Lives) -> list[Event]:
    events: list[Event] = []
    for number in range(lives.count):
        follows = number > 0 and lives.place[number - 1] == lives.place[number]
        if follows:
            code = RECREATED if lives.ending[number - 1] == DELETED else RESET
        else:
            code = CREATED if lives.from_creation[number] else FIRST_SEEN
        before = int(lives.last_row[number - 1]) if follows else NEVER
        events.append((int(lives.first_row[number]), before, code))
    return events


def _deletions(rows: pa.Table, place: Ints) -> list[Event]:
    gone = pc.equal(rows.column("record_type"), "tombstone").to_numpy(zero_copy_only=False).astype(np.bool_)
    events: list[Event] = []
    for at in np.flatnonzero(gone).tolist():
        has_state = at > 0 and place[at - 1] == place[at] and not gone[at - 1]
        events.append((at, at - 1 if has_state else NEVER, GONE))
    return events


def _moves(rows: pa.Table, lives: Lives) -> list[Event]:
    """Records inside a life at which an epoch moved or the start offset went back."""
    inside = np.zeros(rows.num_rows + 1, np.int64)
    np.add.at(inside, lives.first_row + 1, 1)
    np.add.at(inside, lives.last_row + 1, -1)
    goes_on = np.cumsum(inside)[: rows.num_rows] > 0
    start, state_epoch, leader_epoch = (
        pc.fill_null(rows.column(name), UNDETERMINED).to_numpy().astype(np.int64) for name in SIDES[:3]
    )
    moved = {
        STATE_EPOCH: np.diff(state_epoch) != 0,
        LEADER_EPOCH: np.diff(leader_epoch) != 0,
        WENT_BACK: (start[1:] < start[:-1]) & (start[1:] >= 0),
    }
    return [
        (at + 1, at, code) for code, changed in moved.items() for at in np.flatnonzero(changed & goes_on[1:]).tolist()
    ]


def _consequences(histories: Histories, at: Ints, code: Ints) -> dict[str, pa.Array]:
    """Counts of offsets that each reset or re-creation skipped, replayed and forgot; null on other rows."""
    names = (*SPANS, "settled_skipped", "settled_dropped")
    values: dict[str, list[int | None]] = {name: [None] * len(at) for name in names}
    lives, settled = histories.lives, _Settled(histories)
    number = np.searchsorted(lives.first_row, at)
    for row in np.flatnonzero((code == RECREATED) | (code == RESET)).tolist():
        now = int(number[row])
        was, begins = int(lives.last_start[now - 1]), int(lives.first_start[now])
        if was < 0 or begins < 0:
            continue
        if begins > was:
            values["skipped_first_offset"][row], values["skipped_last_offset"][row] = was, begins - 1
            values["settled_skipped"][row] = settled.among(now - 1, was, begins - 1)
        elif begins < was:
            values["replayed_first_offset"][row], values["replayed_last_offset"][row] = begins, was - 1
        values["settled_dropped"][row] = settled.among(now - 1, max(was, begins), LAST_OFFSET)
    return {name: pa.array(column, pa.int64()) for name, column in values.items()}


class _Settled:
    """Ranges that were acknowledged or archived when their life ended."""

    def __init__(self, histories: Histories) -> None:
        ranges, life = histories.ranges, histories.life
        # A later record than the last one of a life ended the life, and the ranges that lasted to its end.
        by_end = (life != UNKNOWN) & (ranges[:, RANGE_TO] > np.append(histories.lives.ended_at, UNKNOWN)[life])
        chosen = np.flatnonzero(by_end & np.isin(ranges[:, RANGE_STATE], TERMINAL))
        chosen = chosen[np.argsort(life[chosen], kind="stable")]
        self._life = life[chosen]
        self._first, self._last = (ranges[chosen, column].clip(0, LAST_OFFSET) for column in (RANGE_FIRST, RANGE_LAST))

    def among(self, life: int, first: int, last: int) -> int:
        """The number of settled offsets from `first` to `last`."""
        life_slice = slice(*np.searchsorted(self._life, [life, life + 1]).tolist())
        sizes = np.minimum(self._last[life_slice], last) - np.maximum(self._first[life_slice], first) + 1
        return int(sizes[sizes > 0].sum())
