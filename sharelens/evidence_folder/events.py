"""Events of ranges of record offsets in a window, as `trace` shows them for one offset."""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence_folder.schemas import TRACE_EVENT
from sharelens.questions.timelines.diff import changed_ranges
from sharelens.questions.traces import vocabulary
from state_model.columnar.keys import FULL_PLACE_KEY

EVENT_OF_END = {
    "start_offset_passed": vocabulary.PASSED,
    "reset": vocabulary.RESET,
    "deleted": vocabulary.LIFE_ENDED,
}
NO_STATE = "no delivery state any more"
MEANING = {
    vocabulary.AVAILABLE_AGAIN: "the record was delivered and returned; a delivery count that grew by more than "
    "one includes attempts without a log record",
    vocabulary.ACKNOWLEDGED: "done",
    vocabulary.ARCHIVING: "archived, the broker writes its dead letter",
    vocabulary.ARCHIVED: "archived, or an offset without a record (a gap)",
    vocabulary.ACQUIRED: "never in the log of a sound coordinator: a leader keeps it in memory",
    vocabulary.UNKNOWN_STATE.format("UNKNOWN(5)"): "a state of a later Kafka, with its number; not taken for done",
    vocabulary.NOT_DELIVERED: "a delivery state without a delivery",
    vocabulary.PASSED: "the state has no delivery state of it any more",
    vocabulary.RESET: "the offset of the group was reset: a new life begins",
    vocabulary.LIFE_ENDED: "the share partition was deleted",
}
AT_ONCE = 1 << 13
Moment = tuple[Any, ...]


def trace_events(deliveries: pa.Table, from_ms: int, to_ms: int) -> Iterator[pa.Table]:
    """TRACE_EVENT rows by share partition, then log offset, life and first record offset, in bounded tables.

    `deliveries`: DELIVERY_HISTORY rows. Ranges that were only split or joined are no event.
    """
    begun = _moments(deliveries, "valid_from", from_ms, to_ms)
    ended = _moments(deliveries, "valid_to", from_ms, to_ms)
    rows: list[dict[str, Any]] = []
    for moment, halves in groupby(_merged(begun, ended), key=lambda pair: pair[0]):
        rows += _events(moment, [row for _, row in halves])
        if len(rows) >= AT_ONCE:
            yield pa.Table.from_pylist(rows, schema=TRACE_EVENT)
            rows = []
    if rows:
        yield pa.Table.from_pylist(rows, schema=TRACE_EVENT)


def _moments(deliveries: pa.Table, side: str, from_ms: int, to_ms: int) -> Iterator[tuple[Moment, dict[str, Any]]]:
    """Rows that begin (`valid_from`) or end (`valid_to`) in the window, by where and when."""
    at = deliveries.column(f"{side}_ms")
    inside = pc.fill_null(pc.and_(pc.greater_equal(at, from_ms), pc.less(at, to_ms)), False)
    order = [*FULL_PLACE_KEY, f"{side}_log_offset", "life_log_offset", "first_offset"]
    in_window = deliveries.filter(inside).sort_by([(name, "ascending") for name in order])
    for batch in in_window.to_batches(max_chunksize=AT_ONCE):
        for row in batch.to_pylist():
            yield tuple(row[name] for name in order[:-1]), row | {"begins": side == "valid_from"}


def _merged(
    left_events: Iterator[tuple[Moment, dict[str, Any]]], right: Iterator[tuple[Moment, dict[str, Any]]]
) -> Iterator[tuple[Moment, dict[str, Any]]]:
    return heapq.merge(left_events, right, key=lambda pair: pair[0])


def _events(moment: Moment, rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The changes of one state log record in one life of a share partition."""
    old = [row for row in rows if not row["begins"]]
    new = [row for row in rows if row["begins"]]
    place = dict(zip([*FULL_PLACE_KEY, "log_offset", "life_log_offset"], moment, strict=True))
    first = rows[0]
    place["log_time_ms"] = first["valid_from_ms" if first["begins"] else "valid_to_ms"]
    for change in changed_ranges(old, new):
        before, after = change["before"], change["after"]
        yield place | {
            "first_offset": change["first_offset"],
            "last_offset": change["last_offset"],
            "event": _event(after, old, change["first_offset"]),
            "state_before": before and before["delivery_state_name"],
            "delivery_count_before": before and before["delivery_count"],
            "state_after": after and after["delivery_state_name"],
            "delivery_count_after": after and after["delivery_count"],
        }


def _event(after: Mapping[str, Any] | None, old: Sequence[Mapping[str, Any]], offset: int) -> str:
    if after is not None:
        return vocabulary.in_state(after["delivery_state"], after["delivery_count"])
    reason = next((row["end_reason"] for row in old if row["first_offset"] <= offset <= row["last_offset"]), None)
    return EVENT_OF_END.get(str(reason), NO_STATE)
