"""The life of one record as the state log tells it: facts only, each with the log record that made it so.

The log holds outcomes: that a record was handed out shows when its outcome is written, and release, lock timeout and
leaving look the same.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.filters import Wanted
from sharelens.output import Answer, Column, Row, known, name_cell, name_column, number_column, time_column
from sharelens.questions.completeness import (
    INCOMPLETE,
    MISPLACED,
    evidence_line,
    incomplete_rows,
    misplaced_warnings,
)
from sharelens.questions.evidence import KEY, Cut, Evidence, Keys
from sharelens.questions.naming import ensure_known, resolve
from sharelens.questions.state import completeness_cell, topic_cell
from state_model.columnar.placement import is_ambiguous

SCHEMA = pa.schema(
    [
        pa.field("cluster_id", pa.string()),
        pa.field("group_id", pa.string()),
        pa.field("topic_id", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("record_offset", pa.int64()),
        pa.field("state_partition", pa.int32()),
        pa.field("log_offset", pa.int64()),
        pa.field("log_time_ms", pa.int64()),
        pa.field("event", pa.string()),
        pa.field("start_offset", pa.int64()),
        pa.field("delivery_state", pa.int8()),
        pa.field("delivery_state_name", pa.string()),
        pa.field("delivery_count", pa.int16()),
        pa.field("until_log_offset", pa.int64()),
        pa.field("until_ms", pa.int64()),
        pa.field("end_reason", pa.string()),
        pa.field("life_log_offset", pa.int64()),
        pa.field("completeness", pa.string()),
        pa.field("completeness_reason", pa.string()),
    ]
)
UNDETERMINED, IN_RANGE, PASSED = -1, 0, 1
WHERE = (*KEY, "state_partition")
ELSEWHERE = {"completeness": INCOMPLETE, "completeness_reason": MISPLACED}
STATE = ("delivery_state", "delivery_state_name", "delivery_count")
ORDER_AT_ONE_OFFSET = (
    "deleted", "created", "reset", "first_seen", "start_offset_set", "below_start_offset", "start_offset_returned",
    "delivery_state", "start_offset_passed",
)  # fmt: skip
MEANING = {
    "created": "share partition created",
    "reset": "share partition reset: a new life",
    "first_seen": "first record held; what came before is not",
    "deleted": "share partition deleted",
    "start_offset_set": "start offset determined, at or below the record",
    "below_start_offset": "start offset determined, above the record",
    "start_offset_passed": "start offset passed the record",
    "start_offset_returned": "start offset went back to or below the record",
}
Event = dict[str, Any]


def trace(evidence: Evidence, wanted: Wanted, offset: int) -> Answer:
    """The answer to `sharelens trace`: events of one record in log order."""
    keys = resolve(evidence, wanted)
    history = evidence.history(keys)
    if history.num_rows == 0:
        ensure_known(evidence, wanted, keys)
    misplaced = misplaced_places(evidence, keys, history)
    aside = set(map(_place, misplaced.to_pylist()))
    events = []
    for scalars in _share_partitions(history):
        ranges = _of_same(scalars, evidence.delivery(keys, offset))
        events += [*life_events(scalars, offset), *delivery_events(ranges)]
        events = _with_completeness(events, scalars)
    events = [event | ELSEWHERE if _place(event) in aside else event for event in events]
    names = evidence.names({event["topic_id"] for event in events})
    shared = {"cluster_id": evidence.cluster_id, "record_offset": offset}
    rows = [shared | {"topic": names.get(event["topic_id"])} | event for event in sorted(events, key=_order)]
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    closing = evidence_line(evidence.cover(), incomplete_rows(table.column("completeness")))
    return Answer(
        table=table,
        columns=TEXT_COLUMNS,
        summary=f"{verdict([row for row in rows if _place(row) not in aside], offset)}\n{closing}",
        warnings=tuple(misplaced_warnings(misplaced, names)),
        none="no record of the state log speaks of this share partition",
    )


def misplaced_places(evidence: Evidence, keys: Keys, history: pa.Table) -> pa.Table:
    """The places (WHERE) of `history` that do not hold their share partition's state: another state partition does.

    That of a share partition without any state is where its newest record lies.
    """
    places = history.select([*WHERE, "log_time_ms"]).group_by(list(WHERE)).aggregate([("log_time_ms", "max")])
    if not is_ambiguous(places):
        return places.slice(0, 0)
    found = evidence.states(keys, Cut())
    shown = set(map(_place, found.filter(pc.invert(found.column("misplaced"))).to_pylist()))
    newest_last = [("log_time_ms_max", "ascending"), ("state_partition", "ascending")]
    holds = {_place(row)[:-1]: _place(row) for row in places.sort_by(newest_last).to_pylist()}
    holds |= {place[:-1]: place for place in shown}
    return places.filter(pa.array([_place(row) not in holds.values() for row in places.to_pylist()], pa.bool_()))


def _place(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in WHERE)


def _share_partitions(history: pa.Table) -> Iterator[pa.Table]:
    """The history of each share partition apart: a topic's name may stand for several ids."""
    order = [(name, "ascending") for name in ("state_partition", *KEY)]
    for key in history.group_by(list(WHERE)).aggregate([]).sort_by(order).to_pylist():
        yield history.filter(pc.field("state_partition").isin([key["state_partition"]]) & _is(key))


def _of_same(scalars: pa.Table, ranges: pa.Table) -> pa.Table:
    key = scalars.slice(0, 1).to_pylist()[0]
    same = ranges.filter((pc.field("state_partition") == key["state_partition"]) & _is(key))
    return same.sort_by([("valid_from_log_offset", "ascending")])


def _is(key: Mapping[str, Any]) -> pc.Expression:
    return (
        (pc.field("group_id") == key["group_id"])
        & (pc.field("topic_id") == key["topic_id"])
        & (pc.field("partition") == key["partition"])
    )


def life_events(history: pa.Table, offset: int) -> Iterator[Event]:
    """Beginnings and ends of lives, and where the start offset came to stand around the record.

    `history`: SHARE_PARTITION_HISTORY rows of one share partition in log order.
    """
    start = pc.fill_null(history.column("start_offset"), -1).to_numpy()
    side = np.where(start < 0, UNDETERMINED, np.where(start > offset, PASSED, IN_RANGE))
    gone = pc.equal(history.column("record_type"), "tombstone").to_numpy(zero_copy_only=False)
    life = history.column("life_log_offset").to_numpy()
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
    return {name: row[name] for name in WHERE}


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
            "event": "delivery_state",
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


def _with_completeness(events: list[Event], history: pa.Table) -> list[Event]:
    """Each event of a share partition with the completeness of the state after its record."""
    wanted = pa.array(sorted({event["log_offset"] for event in events}), pa.int64())
    rows = history.filter(pc.field("log_offset").isin(wanted))
    marks = {
        row["log_offset"]: {name: row[name] for name in ("completeness", "completeness_reason")}
        for row in rows.select(["log_offset", "completeness", "completeness_reason"]).to_pylist()
    }
    return [event if "completeness" in event else event | marks.get(event["log_offset"], {}) for event in events]


def _order(event: Event) -> tuple[str, int, int, int]:
    return event["topic_id"], event["state_partition"], event["log_offset"], ORDER_AT_ONE_OFFSET.index(event["event"])


def verdict(rows: list[Event], offset: int) -> str:
    """Where the record stands at the end of the evidence, in one line."""
    states = [row for row in rows if row["event"] == "delivery_state"]
    moves = [row for row in rows if row["event"] != "delivery_state"]
    if not moves:
        return f"record {offset}: the state log says nothing"
    if moves[-1]["event"] == "deleted":
        return f"record {offset}: the share partition is deleted"
    held = [row for row in states if row["until_log_offset"] is None]
    if held:
        return f"record {offset}: {held[-1]['delivery_state_name']}, delivery count {held[-1]['delivery_count']}"
    here = [row for row in states if row["life_log_offset"] == moves[-1]["life_log_offset"]]
    last = f"; last held as {here[-1]['delivery_state_name']}/{here[-1]['delivery_count']}" if here else ""
    where = [row["event"] for row in moves if row["event"] in ("start_offset_passed", "below_start_offset")]
    if moves[-1]["event"] == "below_start_offset":
        return f"record {offset}: below the first start offset, outside the share partition's reach"
    if where and moves[-1]["event"] == "start_offset_passed":
        return f"record {offset}: passed by the start offset{last or '; no delivery state was ever written for it'}"
    return f"record {offset}: no delivery state{last or ' was ever written for it'}"


def _what_cell(row: Row) -> str:
    if row["event"] == "delivery_state":
        return f"{row['delivery_state_name']}/{row['delivery_count']}"
    return MEANING[str(row["event"])]


TEXT_COLUMNS = (
    name_column("GROUP", "group_id"),
    Column(heading="TOPIC", cell=topic_cell),
    number_column("PARTITION", "partition"),
    number_column("RECORD-OFFSET", "record_offset"),
    number_column("START-OFFSET", "start_offset"),
    time_column("LOG-TIME", "log_time_ms"),
    Column(heading="EVENT", cell=_what_cell),
    number_column("STATE-PARTITION", "state_partition"),
    number_column("STATE-LOG-OFFSET", "log_offset"),
    number_column("UNTIL-STATE-LOG-OFFSET", "until_log_offset"),
    Column(heading="ENDED-BY", cell=lambda row: name_cell(row["end_reason"]) if row["end_reason"] else known(None)),
    Column(heading="COMPLETENESS", cell=completeness_cell),
)
