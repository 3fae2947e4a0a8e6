"""The state of a share partition as a window of moments: a first state, and what each record of the state log changed.

    log offset    10          12           15
    change        first_state range 4..6   record (start offset 7)
    replayed      |  0..3 acknowledged     |
                  |           4..6 available/2
                                           0..6 none

Whoever replays the rows in their order has the state after each record: a row of a range replaces the state of its
record offsets, and one without a delivery state clears it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.intervals import difference
from sharelens.measures.lag_over_time import Arrivals
from sharelens.output import Answer, Column, Row, number_text
from sharelens.output.layouts import Layout
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.answers.completeness import closing_line, incomplete_rows, misplaced_warnings
from sharelens.questions.answers.naming import ensure_known, resolve
from sharelens.questions.answers.shape import ABOUT, MARKS
from sharelens.questions.traces.events import in_place
from sharelens.tables.misplaced import misplaced_places
from sharelens.tables.port import DELIVERIES, HISTORY, Tables
from sharelens.tables.reading import read, read_topic_batches
from sharelens.tables.where import Order, Span, Where
from state_model.columnar.keys import PLACE_KEY
from state_model.columnar.schemas import column

FIRST_STATE, RECORD, RANGE = "first_state", "record", "range"
ORDER = {FIRST_STATE: 0, RECORD: 1, RANGE: 2}
"""Of the rows of one record: what held before it, what holds after it, what it changed."""
SCHEMA = pa.schema(
    [
        *ABOUT,
        column("state_partition", pa.int32(), "partition of __share_group_state"),
        column("log_offset", pa.int64(), "state log offset of the record; of a first state that of the newest before"),
        column("log_time_ms", pa.int64(), "log time of that record"),
        column(
            "change",
            pa.string(),
            "record (one row for each record of the state log, with what holds after it), range (a range of record "
            "offsets that it changed), or first_state (a range that holds before the first of them)",
        ),
        column("record_type", pa.string(), "of a record: snapshot, update or tombstone"),
        column("start_offset", pa.int64(), "of a record: start offset (SPSO) after it; -1 = not determined"),
        column(
            "end_offset",
            pa.int64(),
            "of a record: end offset of the topic's partition, inferred from timestamps of batches; null = unknown",
        ),
        column("first_offset", pa.int64(), "first record offset of the range"),
        column("last_offset", pa.int64(), "last record offset of the range (inclusive)"),
        column("delivery_state", pa.int8(), "delivery state of the range from then on; null = none any more"),
        column("delivery_state_name", pa.string(), "its name"),
        column("delivery_count", pa.int16(), "delivery count"),
        *MARKS,
    ]
)
HISTORY_COLUMNS = (
    *PLACE_KEY, "log_offset", "log_time_ms", "record_type", "start_offset", "completeness", "completeness_reason",
)  # fmt: skip
STATE_COLUMNS = ("delivery_state", "delivery_state_name", "delivery_count")
RANGE_COLUMNS = (*PLACE_KEY, "first_offset", "last_offset", *STATE_COLUMNS)
DELIVERY_COLUMNS = (*RANGE_COLUMNS, "valid_from_log_offset", "valid_from_ms", "valid_to_log_offset", "valid_to_ms")


def moments(
    evidence: Tables,
    key_filter: KeyFilter,
    span: Span,
    *,
    record_limit: int,
    from_offset: int | None = None,
    to_offset: int | None = None,
) -> Answer:
    """The answer to `sharelens moments`, in log order.

    Of the state records in `span` there are at most `record_limit`: the first ones where it has a beginning, else the
    newest. `from_offset` to `to_offset`: the record offsets, half-open.

    Raises:
        UsageError: nothing bears the names that were typed.
    """
    keys = resolve(evidence, key_filter)
    history = read(evidence, HISTORY, HISTORY_COLUMNS, Where(keys=keys), Order.LOG)
    if history.num_rows == 0:
        ensure_known(evidence, key_filter, keys)
    misplaced = misplaced_places(evidence, keys, history)
    place, history, other_places = _newest_place(history, misplaced)
    records, before, after = _window(history, span, record_limit)
    rows = []
    if place is not None and records.num_rows:
        first, last = records.column("log_offset")[0].as_py(), records.column("log_offset")[-1].as_py()
        chosen = _touched(place, first, last, from_offset, to_offset)
        deliveries = read(evidence, DELIVERIES, DELIVERY_COLUMNS, Where(keys=keys, columns=chosen))
        newest_before = history.slice(max(0, before - 1), min(1, before))
        deliveries = _clipped(deliveries, from_offset, to_offset)
        rows = [
            *_first_rows(deliveries, newest_before, first),
            *_record_rows(evidence, place, records),
            *_range_rows(deliveries, first, last),
        ]
    names = evidence.names({row["topic_id"] for row in rows})
    marks = {row["log_offset"]: row for row in records.to_pylist()}
    about = {"cluster_id": evidence.cluster_id}
    rows.sort(key=lambda row: (row["log_offset"], ORDER[row["change"]], row.get("first_offset", 0)))
    table = pa.Table.from_pylist(
        [about | {"topic": names.get(row["topic_id"])} | _marks(marks, row) | row for row in rows], schema=SCHEMA
    )
    return Answer(
        table=table,
        columns=LAYOUT.columns(),
        summary="\n".join(
            [
                *_extent(records, before, after, other_places),
                closing_line(evidence, incomplete_rows(table.column("completeness"))),
            ]
        ),
        warnings=tuple(misplaced_warnings(misplaced, names)),
        none="no record of the state log lies in this time",
    )


def _newest_place(history: pa.Table, misplaced: pa.Table) -> tuple[Mapping[str, Any] | None, pa.Table, int]:
    """The place (PLACE_KEY) with the newest record that is not misplaced, its rows, and the number of other places."""
    places = history.group_by(list(PLACE_KEY)).aggregate([("log_time_ms", "max")]).sort_by("log_time_ms_max")
    aside = [{name: row[name] for name in PLACE_KEY} for row in misplaced.select(list(PLACE_KEY)).to_pylist()]
    keys = [key for row in places.to_pylist() if (key := {name: row[name] for name in PLACE_KEY}) not in aside]
    if not keys:
        return None, history.slice(0, 0), 0
    return keys[-1], history.filter(in_place(keys[-1])), len(keys) - 1


def _window(history: pa.Table, span: Span, record_limit: int) -> tuple[pa.Table, int, int]:
    """The rows of the records in a span, and how many lie before and after them."""
    times = history.column("log_time_ms").to_numpy()
    begin = 0 if span.from_ms is None else int(np.searchsorted(times, span.from_ms, "left"))
    end = len(times) if span.to_ms is None else int(np.searchsorted(times, span.to_ms, "left"))
    if span.from_ms is None:
        begin = max(begin, end - record_limit)
    end = max(begin, min(end, begin + record_limit))
    return history.slice(begin, end - begin), begin, len(times) - end


def _touched(
    place: Mapping[str, Any], first: int, last: int, from_offset: int | None, to_offset: int | None
) -> pc.Expression:
    """The condition on ranges that hold in a window of log offsets, or before its first one."""
    condition = in_place(place) & (pc.field("valid_from_log_offset") <= last)
    condition &= pc.field("valid_to_log_offset").is_null() | (pc.field("valid_to_log_offset") >= first)
    if from_offset is not None:
        condition &= pc.field("last_offset") >= from_offset
    if to_offset is not None:
        condition &= pc.field("first_offset") < to_offset
    return condition


def _clipped(deliveries: pa.Table, from_offset: int | None, to_offset: int | None) -> pa.Table:
    """The parts of ranges between two record offsets, half-open."""
    for name, bound, function in (
        ("first_offset", from_offset, pc.max_element_wise),
        ("last_offset", None if to_offset is None else to_offset - 1, pc.min_element_wise),
    ):
        if bound is not None:
            at = deliveries.schema.get_field_index(name)
            clipped = function(deliveries.column(name), pa.scalar(bound, pa.int64()))
            deliveries = deliveries.set_column(at, deliveries.schema.field(at), clipped)
    return deliveries


def _first_rows(deliveries: pa.Table, newest_before: pa.Table, first: int) -> Iterator[dict[str, Any]]:
    """The ranges that hold before the record at log offset `first`, and the record before it."""
    for record in newest_before.to_pylist():
        yield record | {"change": FIRST_STATE}
        for row in deliveries.to_pylist():
            if row["valid_from_log_offset"] < first:
                yield (
                    _range(row)
                    | {name: record[name] for name in ("log_offset", "log_time_ms")}
                    | {"change": FIRST_STATE}
                )


def _record_rows(evidence: Tables, place: Mapping[str, Any], records: pa.Table) -> Iterator[dict[str, Any]]:
    """A row for each record, with the end offset by the batches' timestamps."""
    arrivals = Arrivals(records.column("log_time_ms").to_numpy())
    starts = [start for start in records.column("start_offset").to_pylist() if start is not None and start >= 0]
    user_partition = place["topic_id"], place["partition"]
    if starts:
        for batches in read_topic_batches(evidence, {user_partition: min(starts)}):
            arrivals.take(batches)
    for record, end in zip(records.to_pylist(), arrivals.ends(user_partition).tolist(), strict=True):
        yield record | {"change": RECORD, "end_offset": end if end >= 0 else None}


def _range_rows(deliveries: pa.Table, first: int, last: int) -> Iterator[dict[str, Any]]:
    """What the records of a window changed; offsets of a range that ended, and have no other one, have no state."""
    begun: dict[int, list[Mapping[str, Any]]] = {}
    ended: dict[int, list[Mapping[str, Any]]] = {}
    for row in deliveries.to_pylist():
        begun.setdefault(row["valid_from_log_offset"], []).append(row)
        ended.setdefault(row["valid_to_log_offset"], []).append(row)
    for log_offset in sorted(each for each in {*begun, *ended} - {None} if first <= each <= last):
        new, old = begun.get(log_offset, []), ended.get(log_offset, [])
        for low, end in difference(map(_interval, old), map(_interval, new)):
            state = dict.fromkeys(STATE_COLUMNS) | {"first_offset": low, "last_offset": end - 1}
            yield _range(old[0]) | state | {"log_offset": log_offset, "log_time_ms": old[0]["valid_to_ms"]}
        for row in new:
            yield _range(row) | {"log_offset": log_offset, "log_time_ms": row["valid_from_ms"]}


def _interval(row: Mapping[str, Any]) -> tuple[int, int]:
    return row["first_offset"], row["last_offset"] + 1


def _range(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in RANGE_COLUMNS} | {"change": RANGE}


def _marks(marks: Mapping[int, Mapping[str, Any]], row: Mapping[str, Any]) -> dict[str, Any]:
    """The completeness after the record of a row."""
    record = marks.get(row["log_offset"], row)
    return {name: record.get(name) for name in ("completeness", "completeness_reason")}


def _extent(records: pa.Table, before: int, after: int, other_places: int) -> Iterator[str]:
    around = f"{before} before and {after} after them (--from, --to, --records)"
    yield f"records of the state log: {records.num_rows}, {around}"
    if other_places:
        yield f"the name also stands for {other_places} earlier topic ids or state partitions: --topic ID"


def _state_cell(row: Row) -> str:
    if row["first_offset"] is None:
        return number_text(None)
    return "none" if row["delivery_state"] is None else f"{row['delivery_state_name']}/{row['delivery_count']}"


def _offsets_cell(row: Row) -> str:
    return number_text(None) if row["first_offset"] is None else f"{row['first_offset']}-{row['last_offset']}"


LAYOUT = Layout(
    schema=SCHEMA,
    fields="group_id topic partition state_partition log_offset log_time_ms change record_type start_offset end_offset "
    "first_offset delivery_state completeness",
    cells=(
        Column(heading="RECORD-OFFSETS", cell=_offsets_cell, right=True, fields=("first_offset", "last_offset")),
        Column(
            heading="STATE",
            cell=_state_cell,
            fields=("delivery_state", "delivery_state_name", "delivery_count"),
        ),
    ),
    important="STATE-LOG-OFFSET LOG-TIME CHANGE RECORD-OFFSETS STATE START-OFFSET END-OFFSET RECORD-TYPE",
)
