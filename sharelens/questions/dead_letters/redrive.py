"""The redrive plan: for each dead letter, and each record without one, whether it may be sent again, and from where.

A plan is a proposal for the operator who redrives; sharelens never produces. It depends on the evidence
alone: the same evidence gives the same bytes, so a hash identifies the approved plan.
"""

import csv
import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.dlq import schemas as words
from sharelens.measures.topics.headers import ABORTED, NoRecords, spans_of
from sharelens.questions.answers.shape import FIRST_OFFSET_NAMES, in_answer
from sharelens.questions.dead_letters.dlq import with_cluster
from sharelens.questions.dead_letters.reconciled import Reconciled
from sharelens.tables.parts import Part
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_topic_batches, read_topic_extents
from state_model.columnar.keys import SHARE_PARTITION_KEY, number_keys, only_keys_of

Ints = npt.NDArray[np.int64]
ACKNOWLEDGED = 2
PLAN_VERSION = 1
REDRIVE, CHECK, DO_NOT = "redrive", "check", "do_not"
DEAD_LETTER, SOURCE = "dead_letter", "source"
YES, NO, NOT_TOLD = "yes", "no", "unknown"
PLAN = pa.schema(
    [
        pa.field("cluster_id", pa.string()),
        pa.field("group_id", pa.string()),
        pa.field("topic_id", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("last_offset", pa.int64()),
        pa.field("status", pa.string()),
        pa.field("cause", pa.string()),
        pa.field("delivery_count", pa.int16()),
        pa.field("dlq_topic", pa.string()),
        pa.field("dlq_topic_id", pa.string()),
        pa.field("dlq_partition", pa.int32()),
        pa.field("dlq_offset", pa.int64()),
        pa.field("dead_lettered_ms", pa.int64()),
        pa.field("dead_letter_has_value", pa.bool_()),
        pa.field("source_readable", pa.string()),
        pa.field("duplicate_of_dlq_topic", pa.string()),
        pa.field("duplicate_of_dlq_partition", pa.int32()),
        pa.field("duplicate_of_dlq_offset", pa.int64()),
        pa.field("acknowledged_in_another_life", pa.bool_()),
        pa.field("advice", pa.string()),
        pa.field("read_from", pa.string()),
        pa.field("advice_reason", pa.string()),
    ]
)
SETTLED_ELSEWHERE = "the group acknowledged the record in another life of the share partition"
TWICE = "another dead letter of the same record comes first in the plan"
GONE = "the dead letter has no value, and the record is no longer in its topic"
UNCLEAR = "the dead letter has no value, and it is unknown whether the record is still in its topic"
NO_RECORD = "the state log does not show that the record was archived: {reason}"
LOST = "no dead letter arrived; only the topic still holds the record"
LOST_UNCLEAR = "no dead letter arrived, and it is unknown whether the record is still in its topic"
LOST_GONE = "no dead letter arrived, and the record is no longer in its topic"
MAYBE_LOST = "it is unknown whether there is a dead letter: {reason}"
PENDING = "the broker has not finished with the record yet"
POISON = "a client rejected it: sent again, it is rejected again unless its cause is fixed"
TIRED = "delivery limit: no member acknowledged or rejected it in time"
NO_CAUSE = "the cause of archiving is unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """PLAN rows in the order of the reconciliation."""

    rows: pa.Table

    def counts(self) -> dict[str, int]:
        """Rows by advice."""
        advised = self.rows.column("advice").to_pylist()
        return {advice: advised.count(advice) for advice in (REDRIVE, CHECK, DO_NOT)}

    def as_json(self) -> bytes:
        """One document in ASCII, a row a line."""
        lines = ",\n  ".join(json.dumps(row, allow_nan=False) for row in self.rows.to_pylist())
        body = f"[\n  {lines}\n ]" if lines else "[]"
        return f'{{"plan_version": {PLAN_VERSION},\n "rows": {body}}}\n'.encode("ascii")

    def as_csv(self) -> bytes:
        """A heading and a line a row; null is empty."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(PLAN.names)
        for row in self.rows.to_pylist():
            writer.writerow([str(cell).lower() if isinstance(cell, bool) else cell for cell in row.values()])
        return out.getvalue().encode("utf-8")


def sha256_line(content: bytes, name: str) -> bytes:
    """The line that `sha256sum --check` takes."""
    return f"{hashlib.sha256(content).hexdigest()}  {name}\n".encode()


def redrive_plan(evidence: Tables, reconciled: Reconciled) -> Plan:
    """The redrive plan of a reconciliation."""
    rows = in_answer(with_cluster(evidence, reconciled.rows), FIRST_OFFSET_NAMES)
    readable = _readable(evidence, reconciled)
    again = _acknowledged_elsewhere(reconciled)
    plan_rows = []
    for row, source, settled in zip(rows.to_pylist(), readable, again, strict=True):
        advice, origin, reason = _advice(row, source, settled)
        cells = {name: row[name] for name in PLAN.names if name in row}
        plan_rows.append(
            cells
            | {
                "dead_letter_has_value": None if row["dlq_offset"] is None else row["value_size_bytes"] is not None,
                "source_readable": source,
                "acknowledged_in_another_life": settled,
                "advice": advice,
                "read_from": origin,
                "advice_reason": reason,
            }
        )
    return Plan(rows=pa.Table.from_pylist(plan_rows, schema=PLAN))


def _advice(row: Mapping[str, Any], readable: str, settled: bool) -> tuple[str, str | None, str]:
    """Advice, where to read the record, and why; the first rule that applies."""
    status, has_letter = row["status"], row["dlq_offset"] is not None
    if status == words.DUPLICATE:
        return DO_NOT, None, TWICE
    if settled:
        return DO_NOT, None, SETTLED_ELSEWHERE
    if status == words.ARCHIVING and not has_letter:
        return CHECK, None, PENDING
    if not has_letter:
        return _without_letter(row, readable)
    has_value = row["value_size_bytes"] is not None
    if not has_value and readable != YES:
        return (DO_NOT, None, GONE) if readable == NO else (CHECK, None, UNCLEAR)
    origin = DEAD_LETTER if has_value else SOURCE
    if status != words.MATCHED:
        return CHECK, origin, NO_RECORD.format(reason=row["reason"])
    if row["cause"] == "delivery_limit":
        return REDRIVE, origin, TIRED
    return CHECK, origin, POISON if row["cause"] == "rejected" else NO_CAUSE


def _without_letter(row: Mapping[str, Any], readable: str) -> tuple[str, str | None, str]:
    if row["status"] != words.MISSING:
        return CHECK, SOURCE if readable == YES else None, MAYBE_LOST.format(reason=row["reason"])
    if readable == NO:
        return DO_NOT, None, LOST_GONE
    return (CHECK, SOURCE, LOST) if readable == YES else (CHECK, None, LOST_UNCLEAR)


def _readable(evidence: Tables, reconciled: Reconciled) -> list[str]:
    """Whether the topic still holds all records of each row: by its log start and its batch headers."""
    rows = reconciled.rows.select(["topic_id", "partition", "first_offset", "last_offset"]).to_pylist()
    places = {(row["topic_id"], row["partition"]) for row in rows}
    starts = {(row["topic_id"], row["partition"]): row["log_start_offset"] for row in _extents(evidence, places)}
    absent = NoRecords.of(read_topic_batches(evidence, dict.fromkeys(places, 0)))
    ranges = absent.ranges()
    gaps = spans_of(ranges.filter(pc.not_equal(ranges.column("reason"), ABORTED)))
    headers = {(row["topic_id"], row["partition"]): row for row in absent.header_ranges().to_pylist()}
    result = []
    for row in rows:
        place, first, last = (row["topic_id"], row["partition"]), row["first_offset"], row["last_offset"]
        start, header_range = starts.get(place), headers.get(place)
        if start is not None and first < start:
            result.append(NO)
        elif header_range is None or first < header_range["first_offset"] or last > header_range["last_offset"]:
            result.append(NOT_TOLD)
        else:
            result.append(NO if place in gaps and _meets(gaps[place], first, last) else YES)
    return result


def _extents(evidence: Tables, places: set[tuple[str, int]]) -> list[dict[str, Any]]:
    extents: list[dict[str, Any]] = read_topic_extents(evidence, places).to_pylist()
    return extents


def _meets(spans: tuple[Ints, Ints, Any], first: int, last: int) -> bool:
    """Whether one of the disjoint ascending ranges meets [first, last]."""
    firsts, lasts, _ = spans
    at = int(np.searchsorted(lasts, first))
    return at < len(firsts) and bool(firsts[at] <= last)


def _acknowledged(part: Part) -> pa.Table:
    """Acknowledged ranges, by share partition and life."""
    names = [*SHARE_PARTITION_KEY, "life_log_offset", "first_offset", "last_offset"]
    return part.deliveries.filter(pc.equal(part.deliveries.column("delivery_state"), ACKNOWLEDGED)).select(names)


def _acknowledged_elsewhere(reconciled: Reconciled) -> list[bool]:
    """Whether the share partition acknowledged a record of each row in another life."""
    rows = reconciled.rows
    scope = reconciled.scoped.only(only_keys_of(reconciled.scoped.places, rows))
    ranges = pa.concat_tables([_acknowledged(part) for part in scope.parts])
    (row_numbers, theirs), _ = number_keys(rows.select(SHARE_PARTITION_KEY), ranges)
    columns = (ranges.column(name).to_numpy() for name in ("first_offset", "last_offset", "life_log_offset"))
    order = np.argsort(theirs, kind="stable")
    firsts, lasts, lives = (column[order] for column in columns)
    theirs = theirs[order]
    result = []
    row_keys = zip(
        *(rows.column(name).to_pylist() for name in ("first_offset", "last_offset", "life_log_offset")), strict=True
    )
    for key, (first, last, life) in zip(row_numbers.tolist(), row_keys, strict=True):
        key_slice = slice(int(np.searchsorted(theirs, key)), int(np.searchsorted(theirs, key, "right")))
        other = np.ones(key_slice.stop - key_slice.start, np.bool_) if life is None else lives[key_slice] != life
        result.append(bool((other & (firsts[key_slice] <= last) & (lasts[key_slice] >= first)).any()))
    return result
