"""Entries of a timeline, each with the record of a log that proves it."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.groups.replay import GROUP, MEMBER, SHARE_TYPES, decoded, is_of_types
from sharelens.measures.ranges.offset_counts import offset_counts
from sharelens.measures.stalls import intervals as stalls
from sharelens.output.wording import counted, number
from sharelens.parameters.times import lasted
from sharelens.questions.answers.shape import ABOUT
from sharelens.questions.answers.streaming import Sums
from sharelens.questions.dead_letters.poison import without_gaps
from sharelens.tables.where import Span
from state_model.columnar.keys import PLACE_KEY
from state_model.columnar.schemas import column
from state_model.topics import OFFSETS_TOPIC, STATE_TOPIC

WHAT_HAPPENED = (
    column("at_ms", pa.int64(), "the moment, by the clock of the writer: a coordinator or a broker"),
    column("event", pa.string(), "what happened"),
)
PROOF = (
    column("records", pa.int64(), "records that the entry counts; null = it counts none"),
    column("text", pa.string(), "what happened, in words"),
    column("log_topic", pa.string(), "topic of the record that proves the entry"),
    column("log_partition", pa.int32(), "partition of that record"),
    column("log_offset", pa.int64(), "offset of that record"),
)
TIMELINE = pa.schema([*WHAT_HAPPENED, *ABOUT[1:], *PROOF])
"""Topic and partition are null in entries about a whole group."""
ORDER = [(name, "ascending") for name in ("at_ms", "topic", "partition", "event", "log_offset", "text")]
MEMBERSHIP = ("member_joined", "member_changed", "member_left", "rebalanced")
"""Events of the group coordinator that are part of a group's ordinary life."""
GAP = "evidence_gap"
MINUTE_MS = 60_000
Entry = dict[str, Any]


def timeline_table(entries: Iterable[Entry], names: Mapping[str, str], span: Span) -> pa.Table:
    """TIMELINE rows of the entries in the span, in the order of time; `names`: of topics by id."""
    rows = [entry | {"topic": names.get(entry["topic_id"])} for entry in entries if is_in(span, entry["at_ms"])]
    return pa.Table.from_pylist(rows, schema=TIMELINE).sort_by(ORDER)


def event_totals(table: pa.Table) -> str:
    """How many entries of each event, in words."""
    counts = {row["values"]: row["counts"] for row in pc.value_counts(table.column("event")).to_pylist()}
    return ", ".join(f"{event} {counts[event]}" for event in sorted(counts)) or "none"


def life_entries(rows: pa.Table) -> Iterator[Entry]:
    """Entries of LIFE rows."""
    for row in rows.to_pylist():
        before, after = row["start_offset_before"], row["start_offset_after"]
        is_known = after is not None and after >= 0 and before != after
        was = "" if before is None or before < 0 else f"{number(before)} to "
        text = f"start offset {was}{number(after)}" if is_known else ""
        yield entry_of(row, row["event"], row["log_time_ms"], text)


def group_entries(records: pa.Table) -> Iterator[Entry]:
    """Members that join, change and leave, and epochs and deletions of the share groups in GROUP_RECORD rows."""
    present: set[tuple[str, str]] = set()
    for row in decoded(records.filter(is_of_types(records, SHARE_TYPES))).to_pylist():
        kind, member = row["record_type"], (row["group_id"], row["member_id"])
        proof = {"log_topic": OFFSETS_TOPIC, "log_partition": row["partition"], "log_offset": row["log_offset"]}
        about = {"group_id": row["group_id"]}
        value: dict[str, Any] = {} if row["is_tombstone"] else json.loads(row["value_json"])
        if kind == MEMBER and row["is_tombstone"]:
            present.discard(member)
            yield entry_of(about, "member_left", row["timestamp_ms"], row["member_id"], **proof)
        elif kind == MEMBER:
            event = "member_changed" if member in present else "member_joined"
            present.add(member)
            text = f"{row['member_id']} ({value['clientId']} on {value['clientHost']})"
            yield entry_of(about, event, row["timestamp_ms"], text, **proof)
        elif kind == GROUP and row["is_tombstone"]:
            yield entry_of(about, "group_deleted", row["timestamp_ms"], "", **proof)
        elif kind == GROUP:
            yield entry_of(about, "rebalanced", row["timestamp_ms"], f"group epoch {value['epoch']}", **proof)


def stall_entries(rows: pa.Table) -> Iterator[Entry]:
    """Beginnings and ends of STALL rows; idle intervals are no stalls."""
    for row in rows.filter(pc.not_equal(rows.column("kind"), stalls.IDLE)).to_pylist():
        where = f"at offset {number(row['first_incomplete_offset'])}: {row['kind']}"
        text = f"{where}, {lasted(row['duration_ms'])}"
        yield entry_of(row, "stall_began", row["since_ms"], text if row["until_ms"] is None else where)
        if row["until_ms"] is not None:
            yield entry_of(row, "stall_ended", row["until_ms"], f"{text}, {row['ended_by']}")


class MinuteSums(ABC):
    """Rows as entries: one for each key and minute, with the record of its first row."""

    EVENT: str
    KEYS: Sequence[str]
    TIME: str
    LOG_OFFSET: str

    def __init__(self) -> None:
        self._sums = Sums([*self.KEYS, "minute"], {"records": "sum", "at_ms": "min", "log_offset": "min"})
        self._is_empty = True

    def add(self, rows: pa.Table) -> None:
        """Adds rows with KEYS, TIME and LOG_OFFSET."""
        at_ms = rows.column(self.TIME)
        columns = {name: rows.column(name) for name in self.KEYS} | {
            "minute": pc.multiply(pc.divide(at_ms, MINUTE_MS), MINUTE_MS),
            "records": self.counts(rows),
            "at_ms": at_ms,
            "log_offset": rows.column(self.LOG_OFFSET),
        }
        self._sums.add(pa.table(columns))
        self._is_empty = False

    def table(self) -> pa.Table | None:
        """A row an entry, in any order: KEYS, minute, records, at_ms, log_offset; None before the first table."""
        return None if self._is_empty else self._sums.table()

    def entries(self, table: pa.Table | None) -> Iterator[Entry]:
        """The entries of rows of `table`."""
        return map(self.entry, [] if table is None else table.to_pylist())

    @abstractmethod
    def counts(self, rows: pa.Table) -> pa.ChunkedArray:
        """The number of records of each row."""

    @abstractmethod
    def entry(self, row: Mapping[str, Any]) -> Entry:
        """The entry of a row of `table`."""


class ArchivedSums(MinuteSums):
    """For POISON_RECORD rows; gaps are no records."""

    EVENT = "archived"
    KEYS = (*PLACE_KEY, "cause")
    TIME, LOG_OFFSET = "last_outcome_ms", "log_offset"

    def add(self, rows: pa.Table) -> None:
        """Adds POISON_RECORD rows."""
        super().add(without_gaps(rows))

    def counts(self, rows: pa.Table) -> pa.ChunkedArray:
        """The number of offsets."""
        return offset_counts(rows)

    def entry(self, row: Mapping[str, Any]) -> Entry:
        """Archived records of one cause."""
        text = f"{counted(row['records'], 'record')}, cause {row['cause']}"
        return entry_of(row, self.EVENT, row["at_ms"], text, row["records"])


class RedeliveredSums(MinuteSums):
    """For REDELIVERED rows."""

    EVENT = "redelivered"
    KEYS = (*PLACE_KEY, "kind")
    TIME, LOG_OFFSET = "last_ms", "last_log_offset"
    COLUMNS = (*KEYS, TIME, LOG_OFFSET, "first_offset", "last_offset")
    """The columns of REDELIVERED that `add` needs."""

    def counts(self, rows: pa.Table) -> pa.ChunkedArray:
        """The number of offsets."""
        return offset_counts(rows)

    def entry(self, row: Mapping[str, Any]) -> Entry:
        """Redelivered records of one kind."""
        text = f"{counted(row['records'], 'record')}, {row['kind']}"
        return entry_of(row, self.EVENT, row["at_ms"], text, row["records"])


class LetterSums(MinuteSums):
    """For dead letters: rows with group_id, dlq_topic, dlq_partition, dlq_offset and dead_lettered_ms."""

    EVENT = "dead_letters"
    KEYS = ("group_id", "dlq_topic", "dlq_partition")
    TIME, LOG_OFFSET = "dead_lettered_ms", "dlq_offset"

    def counts(self, rows: pa.Table) -> pa.ChunkedArray:
        """A row is a dead letter."""
        return pa.chunked_array([pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows)])

    def entry(self, row: Mapping[str, Any]) -> Entry:
        """Dead letters of a group in a partition."""
        text = f"{counted(row['records'], 'dead letter')} in {row['dlq_topic']}"
        proof = {"log_topic": row["dlq_topic"], "log_partition": row["dlq_partition"], "log_offset": row["log_offset"]}
        return entry_of({"group_id": row["group_id"]}, self.EVENT, row["at_ms"], text, row["records"], **proof)


def entry_of(
    row: Mapping[str, Any], event: str, at_ms: int, text: str, records: int | None = None, **proof: Any
) -> Entry:
    """An entry about the share partition of a row; its proof is a record of the state log unless `proof` says else."""
    of_state = {
        "log_topic": STATE_TOPIC,
        "log_partition": row.get("state_partition"),
        "log_offset": row.get("log_offset"),
    }
    about = {name: row.get(name) for name in ("group_id", "topic_id", "partition")}
    return {**about, "at_ms": at_ms, "event": event, "records": records, "text": text, **of_state, **proof}


def is_in(span: Span, at_ms: int) -> bool:
    """Whether a moment lies in the span."""
    return (span.from_ms is None or at_ms >= span.from_ms) and (span.to_ms is None or at_ms < span.to_ms)
