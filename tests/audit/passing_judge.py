"""An independent judge of start offsets that pass records without an outcome, offset by offset.

From share-partition §7 and §8 and share-group-state-log §8: a leader moves the start offset behind acknowledged and
archived offsets alone; Initialize moves it anywhere. The topic of a world has a record at each of its offsets, of
which those below the log start are gone. It shares no code with the audit.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tests.audit.judged_logs import Key, Violation
from tests.audit.world import ms

KNOWN_MS: Final = 120_000
"""How long the topic has to be known behind a record: the clocks, and the minute between two checkpoints."""
AVAILABLE: Final = 0
Row = Mapping[str, Any]
Pair = tuple[int, int]
"""Delivery count and delivery state."""


class _State:
    """A share partition after a snapshot.

    `largest`: its largest start offset since it was initialized, None: unknown.
    """

    def __init__(self, row: Row, count: int, largest: int | None) -> None:
        self.row, self.start, self.leader_epoch = row, row["start_offset"], row["leader_epoch"]
        self.pairs: dict[int, Pair] = {}
        self.largest = largest
        self.merge(row, count)

    def merge(self, row: Row, count: int) -> None:
        """The larger pair of each offset of the topic, without those below the start offset of an update."""
        for batch in row["state_batches"]:
            for offset in range(max(0, batch["first_offset"]), min(count, batch["last_offset"] + 1)):
                pair = (batch["delivery_count"], batch["delivery_state"])
                self.pairs[offset] = max(pair, self.pairs.get(offset, pair))
        if row["record_type"] == "update":
            self.pairs = {offset: pair for offset, pair in self.pairs.items() if offset >= self.start}


def passing(key: Key, log: Sequence[tuple[int, int, Row]], topic: Mapping[str, Any]) -> Iterator[Violation]:
    """The records of a share partition whose start offset passes a record without an outcome."""
    count, log_start, until_ms = int(topic["count"]), int(topic["log_start"]), ms(topic["last_s"])
    state: _State | None = None
    is_gone = True
    for offset, time_ms, row in log:
        if row["record_type"] == "tombstone":
            state, is_gone = None, True
            continue
        kind = _kind(state, row, is_new=is_gone)
        if state is not None and kind == "write" and time_ms + KNOWN_MS <= until_ms:
            passed = _passed(state, row["start_offset"])
            if any(log_start <= each < count for each in passed):
                yield Violation("start_offset_passes_record", *key, offset)
        state = _next(state, row, kind, count)
        is_gone = False


def _kind(state: _State | None, row: Row, *, is_new: bool) -> str:
    """What wrote a record: a leader (write), the snapshot job (cold), Initialize (init), or one of two (either)."""
    if row["record_type"] == "update":
        return "write"
    if row["create_timestamp_ms"] != row["write_timestamp_ms"]:
        return "cold"
    if is_new:
        return "init"
    if state is not None and (
        row["state_epoch"] != state.row["state_epoch"]
        or row["leader_epoch"] < state.leader_epoch
        or (row["start_offset"] == -1 and state.start >= 0)
    ):
        return "init"
    counts = (-1,) if row["start_offset"] == -1 else (-1, 0)
    is_plain = not row["state_batches"] and row["leader_epoch"] <= 0 and row["delivery_complete_count"] in counts
    return "either" if is_plain else "write"


def _passed(state: _State, start: int) -> list[int]:
    """The offsets without an outcome between the largest start offset and a new one."""
    if state.largest is None or state.start < 0:
        return []
    offsets = range(max(state.start, state.largest), start)
    return [offset for offset in offsets if state.pairs.get(offset, (0, AVAILABLE))[1] == AVAILABLE]


def _next(state: _State | None, row: Row, kind: str, count: int) -> _State | None:
    start = row["start_offset"]
    if row["record_type"] == "snapshot":
        if kind == "init" or (kind == "either" and state is not None):
            return _State(row, count, start)
        return _State(row, count, None if state is None else _larger(state, row, kind))
    if state is None:
        return None
    state.largest = _larger(state, row, kind)
    state.start = state.start if start == -1 else start
    state.leader_epoch = state.leader_epoch if row["leader_epoch"] == -1 else row["leader_epoch"]
    state.merge(row, count)
    return state


def _larger(state: _State, row: Row, kind: str) -> int | None:
    """The largest start offset after a record; a leader's own write has that of its memory."""
    start = row["start_offset"]
    if state.largest is not None:
        return max(state.largest, start)
    is_repeated = kind == "cold" or row["leader_epoch"] > state.leader_epoch
    return None if is_repeated or start == -1 else int(start)
