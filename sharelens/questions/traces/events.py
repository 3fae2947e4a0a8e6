"""Events of one record in log order: lives, start offsets around it, delivery states."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.lake.bounded_scan import TABLE_ROWS, Statistics
from sharelens.lake.row_groups import joined
from sharelens.questions.traces import vocabulary
from sharelens.tables.misplaced import place_of
from state_model.columnar.keys import PLACE_KEY
from state_model.columnar.schemas import SHARE_PARTITION_HISTORY
from state_model.columnar.values import Loss
from state_model.share_records import DeliveryState

STATE = ("delivery_state", "delivery_state_name", "delivery_count")
UNDETERMINED, IN_RANGE, PASSED = -1, 0, 1
DELIVERY_STATE, ATTEMPTS, DEAD_LETTERED = "delivery_state", "attempts_not_logged", "dead_lettered"
ORDER_AT_ONE_OFFSET = (
    "deleted", "created", "reset", "first_seen", "start_offset_set", "below_start_offset", "start_offset_returned",
    ATTEMPTS, DELIVERY_STATE, "start_offset_passed",
)  # fmt: skip
MEANING = {
    "created": "share partition created",
    "reset": vocabulary.RESET,
    "first_seen": "first record in the evidence; earlier records are not in it",
    "deleted": vocabulary.LIFE_ENDED,
    "start_offset_set": "start offset determined, at or below the record",
    "below_start_offset": "start offset determined, above the record",
    "start_offset_passed": vocabulary.PASSED,
    "start_offset_returned": "start offset went back to or below the record",
    DEAD_LETTERED: vocabulary.DEAD_LETTERED,
}
"""Events with words of their own; those of the others depend on what they hold."""
SCALARS = (
    *PLACE_KEY, "log_offset", "log_time_ms", "record_type", "snapshot_epoch", "start_offset", "life_log_offset",
    "completeness", "completeness_reason",
)  # fmt: skip
"""Columns of SHARE_PARTITION_HISTORY about the life of a record."""
BEGINNINGS = ("created", "reset")
SETTLED = {
    DeliveryState.ACKNOWLEDGED: "acknowledged",
    DeliveryState.ARCHIVING: "archiving",
    DeliveryState.ARCHIVED: "archived",
}
OUT_OF_REACH = {"start_offset_passed": "passed_without_outcome", "below_start_offset": "below_first_start"}
Event = dict[str, Any]


def words(event: Mapping[str, Any]) -> str:
    """The meaning of an event, in the fixed vocabulary."""
    if event["event"] == DELIVERY_STATE:
        return vocabulary.in_state(event["delivery_state"], event["delivery_count"])
    if event["event"] == ATTEMPTS:
        return vocabulary.attempts_not_logged(event["attempts_not_logged"])
    return MEANING[str(event["event"])]


def rows_of_places(history: pa.Table) -> Iterator[pa.Table]:
    """The rows of each share partition in each state partition apart: a topic's name may stand for several ids."""
    order = [(name, "ascending") for name in ("topic_id", "state_partition", "group_id", "partition")]
    for key in history.group_by(list(PLACE_KEY)).aggregate([]).sort_by(order).to_pylist():
        yield history.filter(in_place(key))


def in_place(key: Mapping[str, Any]) -> pc.Expression:
    """The condition for rows of one share partition in one state partition."""
    group, topic, partition, state_partition = (pc.field(name) == key[name] for name in PLACE_KEY)
    condition: pc.Expression = group & topic & partition & state_partition
    return condition


def turning_rows(parts: Iterable[pa.Table], offset: int, log_offsets: pa.ChunkedArray) -> pa.Table:
    """The rows of `TurningRows` of a stream of tables."""
    turning = TurningRows(offset, log_offsets)
    for part in joined(parts, TABLE_ROWS):
        turning.add(part)
    return turning.table()


class TurningRows:
    """The history rows of the life of one record: those that `life_events` and completeness marks need.

    These are the rows at which something about the record changes, those at `log_offsets`, and of each place
    the first and the last one. Of the other rows nothing stays in memory.
    """

    def __init__(self, offset: int, log_offsets: pa.ChunkedArray) -> None:
        """`offset`: the record's; `log_offsets`: where its delivery states begin."""
        self._offset, self._sought = offset, log_offsets.combine_chunks()
        self._chosen = [SHARE_PARTITION_HISTORY.empty_table().select(list(SCALARS))]
        self._last: dict[tuple[Any, ...], pa.Table] = {}

    def add(self, part: pa.Table) -> None:
        """Adds SHARE_PARTITION_HISTORY rows, with SCALARS at least, in log order."""
        for rows in rows_of_places(part.select(list(SCALARS))):
            place = place_of(rows.slice(0, 1).to_pylist()[0])
            before = self._last.get(place)
            joined = rows if before is None else pa.concat_tables([before, rows])
            mask = pc.is_in(joined.column("log_offset"), value_set=self._sought).to_numpy().copy()
            mask[_turns(*_sides(joined, self._offset))] = True
            mask[: joined.num_rows - rows.num_rows] = False  # it was chosen with its own part
            mask[-1] = True
            self._chosen.append(joined.filter(pa.array(mask)))
            self._last[place] = joined.slice(joined.num_rows - 1).combine_chunks()

    def table(self) -> pa.Table:
        """The rows so far."""
        return pa.concat_tables(self._chosen)


class TurningRowGroups:
    """Chooses the row groups that `turning_rows` needs, of those of one share partition in log order, by statistics.

    Left out is a row group that repeats the one before: no share partition has a tombstone or a new life in it, and all
    start offsets lie on the same side of the record. A share partition that has a row before has no turn there.
    """

    def __init__(self, offset: int, log_offsets: pa.ChunkedArray) -> None:
        """As in `TurningRows`."""
        self._offset, self._sought = offset, sorted(log_offsets.to_pylist())
        self._left_out: dict[int, int] = {}
        """By state partition the lowest log offset of the row groups that were left out."""

    def __call__(self, row_groups: Sequence[Statistics]) -> Sequence[bool]:
        """Which of them to read."""
        needed = []
        run: _Quiet | None = None
        for statistics in row_groups:
            quiet = _quiet(statistics, self._offset)
            if quiet is None or run is None or not quiet.goes_on(run):
                run = quiet
                needed.append(True)
                continue
            is_named = self._names(quiet)
            if not is_named:
                self._left_out.setdefault(quiet.state_partition, quiet.first)
            needed.append(is_named)
        return needed

    def _names(self, quiet: "_Quiet") -> bool:
        """Whether a delivery state of the record begins in a row group."""
        return bisect_left(self._sought, quiet.first) < bisect_right(self._sought, quiet.last)

    def suffice(self, rows: pa.Table) -> bool:
        """Whether the rows that were read have the turns: the share partition has one before those left out."""
        first = rows.group_by("state_partition").aggregate([("log_offset", "min")])
        first_offsets = {row["state_partition"]: row["log_offset_min"] for row in first.to_pylist()}
        return all(first_offsets.get(number, at) < at for number, at in self._left_out.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Quiet:
    """A row group of one state partition without turns: its log offsets, the newest life, the start offsets' side."""

    state_partition: int
    first: int
    last: int
    life: int
    side: int

    def goes_on(self, run: "_Quiet") -> bool:
        """Whether nothing turns between a run of row groups, of which `run` is the first one, and this one."""
        same = (self.state_partition, self.side) == (run.state_partition, run.side)
        return same and max(self.life, run.life) < run.first


def _quiet(statistics: Statistics, offset: int) -> _Quiet | None:
    """What statistics say of a row group; None where start offsets may lie on both sides, or there are tombstones."""
    column_bounds = [
        statistics.get(name) for name in ("state_partition", "log_offset", "life_log_offset", "start_offset")
    ]
    bounds = [each for each in column_bounds if each is not None and not each.nulls]
    if len(bounds) < len(column_bounds):
        return None
    number, log_offset, life, start = bounds
    side = _side(start.low, offset)
    if number.low != number.high or side != _side(start.high, offset):
        return None
    return _Quiet(state_partition=number.low, first=log_offset.low, last=log_offset.high, life=life.high, side=side)


def _side(start: int, offset: int) -> int:
    return UNDETERMINED if start < 0 else PASSED if start > offset else IN_RANGE


def life_events(history: pa.Table, offset: int) -> Iterator[Event]:
    """Beginnings and ends of lives, and where the start offset came to stand around the record.

    `history`: SCALARS of SHARE_PARTITION_HISTORY rows of one share partition in log order.
    """
    side, gone, life = _sides(history, offset)
    for row in _turns(side, gone, life):
        record = history.slice(row, 1).to_pylist()[0]
        begins = row == 0 or gone[row - 1] or life[row] != life[row - 1]
        if gone[row]:
            yield _life_event(record, "deleted")
            continue
        if begins:
            yield _life_event(record, _beginning(record, first=row == 0 or bool(gone[row - 1])))
        was = UNDETERMINED if begins else int(side[row - 1])
        if int(side[row]) != was and side[row] != UNDETERMINED:
            yield _life_event(record, _movement(was, int(side[row])))


def _sides(
    history: pa.Table, offset: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Of each row on which side of the record the start offset lies, whether it is a tombstone, and its life."""
    start = pc.fill_null(history.column("start_offset"), -1).to_numpy()
    side = np.where(start < 0, UNDETERMINED, np.where(start > offset, PASSED, IN_RANGE))
    gone = pc.equal(history.column("record_type"), "tombstone").to_numpy(zero_copy_only=False)
    return side, gone, history.column("life_log_offset").to_numpy()


def _turns(side: npt.NDArray[np.int64], gone: npt.NDArray[np.bool_], life: npt.NDArray[np.int64]) -> list[int]:
    """Rows at which something about the record changes; the first row always."""
    if len(side) == 0:
        return []
    changed = (np.diff(side) != 0) | (np.diff(life) != 0) | gone[1:] | gone[:-1]
    return [0, *(np.flatnonzero(changed) + 1).tolist()]


def _beginning(record: Mapping[str, Any], *, first: bool) -> str:
    if not first:
        return "reset"
    known_beginning = record["record_type"] == "snapshot" and record["snapshot_epoch"] == 0
    return "created" if known_beginning else "first_seen"


def _movement(was: int, now: int) -> str:
    if now == PASSED:
        return "start_offset_passed" if was == IN_RANGE else "below_start_offset"
    return "start_offset_returned" if was == PASSED else "start_offset_set"


def _life_event(record: Mapping[str, Any], event: str) -> Event:
    return _where(record) | {
        "log_offset": record["log_offset"],
        "log_time_ms": record["log_time_ms"],
        "event": event,
        "start_offset": record["start_offset"],
        "life_log_offset": record["life_log_offset"],
    }


def _where(row: Mapping[str, Any]) -> Event:
    return {name: row[name] for name in PLACE_KEY}


def delivery_events(ranges: pa.Table) -> Iterator[Event]:
    """One event for each delivery state that the record was in; ranges that only split or joined around it are one.

    `ranges`: DELIVERY_HISTORY rows of one share partition that cover the record, by valid_from_log_offset.
    """
    current: Event | None = None
    for row in ranges.to_pylist():
        same_life = current is not None and current["life_log_offset"] == row["life_log_offset"]
        if current is not None and same_life and _continues(current, row):
            current |= _end(row)
            continue
        if current is not None:
            yield current
        current = _where(row) | _end(row) | {name: row[name] for name in (*STATE, "life_log_offset")}
        current |= {
            "log_offset": row["valid_from_log_offset"],
            "log_time_ms": row["valid_from_ms"],
            "event": DELIVERY_STATE,
        }
    if current is not None:
        yield current


def _continues(current: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    return current["until_log_offset"] == row["valid_from_log_offset"] and all(
        current[name] == row[name] for name in STATE
    )


def _end(row: Mapping[str, Any]) -> Event:
    return {
        "until_log_offset": row["valid_to_log_offset"],
        "until_ms": row["valid_to_ms"],
        "end_reason": row["end_reason"],
    }


def attempt_events(moves: Iterable[Event], states: Sequence[Event], losses: Sequence[Loss]) -> Iterator[Event]:
    """Deliveries without an outcome in the log: one event before each delivery state whose count grew by more than one.

    `moves`, `states`: life_events and delivery_events of one share partition in one state partition; `losses`: what the
    evidence lacks of that one. No attempts for a life without its beginning in the evidence, nor where a record between
    two states may be missing: it may have the outcome.
    """
    began = {event["life_log_offset"]: event["log_offset"] for event in moves if event["event"] in BEGINNINGS}
    before: Event | None = None
    for event in states:
        same_life = before is not None and before["life_log_offset"] == event["life_log_offset"]
        previous_count, since = 0, began.get(event["life_log_offset"])
        if before is not None and same_life:
            previous_count, since = before["delivery_count"], before["log_offset"]
        attempts = event["delivery_count"] - previous_count - 1
        before = event
        if since is None or attempts <= 0:
            continue
        if not any(since < loss.first_offset <= event["log_offset"] for loss in losses):
            names = (*PLACE_KEY, "log_offset", "log_time_ms", "life_log_offset")
            yield {name: event[name] for name in names} | {"event": ATTEMPTS, "attempts_not_logged": attempts}


def letter_events(letters: pa.Table, place: Mapping[str, Any]) -> Iterator[Event]:
    """One event for each dead letter of the record (DLQ_RECORD rows); `place` has the columns of PLACE_KEY.

    It has the letter's own time, and no place in the state log.
    """
    for letter in letters.to_pylist():
        yield {name: place[name] for name in PLACE_KEY} | {
            "event": DEAD_LETTERED,
            "log_time_ms": letter["timestamp_ms"],
            "dlq_topic": letter["dlq_topic"],
            "dlq_partition": letter["dlq_partition"],
            "dlq_offset": letter["dlq_offset"],
            "dlq_cause": letter["cause"],
        }


def in_order(events: Iterable[Event], letters: Iterable[Event]) -> list[Event]:
    """Events in log order; a dead letter comes after the events up to its own time."""
    rows = sorted(events, key=_position)
    for letter in sorted(letters, key=lambda row: (row["log_time_ms"], row["dlq_partition"], row["dlq_offset"])):
        earlier = [
            at
            for at, row in enumerate(rows)
            if place_of(row) == place_of(letter) and row["log_time_ms"] <= letter["log_time_ms"]
        ]
        rows.insert(earlier[-1] + 1 if earlier else 0, letter)
    return rows


def _position(event: Event) -> tuple[str, int, int, int]:
    return event["topic_id"], event["state_partition"], event["log_offset"], ORDER_AT_ONE_OFFSET.index(event["event"])


def outcome(rows: Sequence[Event], *, ended: bool) -> str | None:
    """The outcome of the record in one life, from its events in order; None without a life.

    One of acknowledged, archived, archiving, available_again, unknown_state, not_settled, passed_without_outcome,
    below_first_start, life_ended_without_outcome.
    """
    states = [row for row in rows if row["event"] == DELIVERY_STATE]
    moves = [row["event"] for row in rows if row["event"].startswith(("start_offset", "below"))]
    last = states[-1] if states else None
    if last is not None and last["delivery_state"] in SETTLED:
        return SETTLED[last["delivery_state"]]
    if moves and moves[-1] in OUT_OF_REACH:
        return OUT_OF_REACH[moves[-1]]
    if ended:
        return "life_ended_without_outcome"
    if last is not None and last["delivery_state"] not in vocabulary.IN_STATE:
        return "unknown_state"
    return "available_again" if last is not None and last["delivery_count"] > 0 else "not_settled"
