"""Digests of streams of rows for a report: sums by share partition and the first rows by an order, never all rows."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.dlq.schemas import (
    ARCHIVING,
    DUPLICATE,
    MATCHED,
    MISSING,
    STATUSES,
    UNEXPECTED,
    UNKNOWN,
)
from sharelens.measures.figures import counted
from sharelens.measures.life import LEADER_EPOCH, STATE_EPOCH
from sharelens.measures.ranges.offset_counts import offset_counts
from sharelens.measures.schemas import EVENTS, LIFE
from sharelens.measures.stalls.intervals import WORST_FIRST
from sharelens.questions.answers.streaming import FirstOfEach, FirstRows, Sums
from sharelens.report.ranking import GroupRanking
from state_model.columnar.keys import PLACE_KEY, SHARE_PARTITION_KEY

ROWS_SHOWN = 100
GIVEN_UP_ORDER = [
    ("severity", "ascending"),
    ("last_outcome_ms", "descending"),
    *((name, "ascending") for name in SHARE_PARTITION_KEY),
    ("offset", "descending"),
]
"""Of records given up those of groups with something open, the worst severity first; of each the newest first."""
REDELIVERY_COLUMNS = [
    *PLACE_KEY,
    "kind",
    "first_offset",
    "last_offset",
    "max_delivery_count",
    "last_ms",
    "last_log_offset",
]
STILL_FIRST = [("is_over", "ascending"), *WORST_FIRST]
STATUS_ORDER = (MISSING, UNEXPECTED, DUPLICATE, ARCHIVING, UNKNOWN, MATCHED)
NEWEST_BY_STATUS = [
    ("rank", "ascending"),
    ("severity", "ascending"),
    ("at_ms", "descending"),
    *((name, "ascending") for name in ("group_id", "topic", "partition", "offset", "dlq_offset")),
]

EPOCH_MOVES = (EVENTS[STATE_EPOCH], EVENTS[LEADER_EPOCH])
"""Events that are only counted: brokers that restart or take over write one for each share partition."""
NEWEST_LIVES = [
    ("severity", "ascending"),
    ("log_time_ms", "descending"),
    *((name, "ascending") for name in SHARE_PARTITION_KEY),
    ("log_offset", "descending"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class StallDigest:
    """Intervals: `sums` by share partition, kind and is_over (0: it stands still): rows, score, duration_ms, since_ms.

    `score` is the sum of durations, each plus one; duration_ms the longest, since_ms the earliest. `first`: STALL rows
    with what stands still before the others, ROWS_SHOWN at most; `pins`: the first of each share partition.
    """

    sums: pa.Table
    first: pa.Table
    pins: pa.Table

    @classmethod
    def of(cls, stream: Iterable[pa.Table]) -> Self:
        """The digest of STALL rows."""
        sums = Sums(
            [*SHARE_PARTITION_KEY, "kind", "is_over"],
            {"rows": "sum", "score": "sum", "duration_ms": "max", "since_ms": "min"},
        )
        first, pins = FirstRows(STILL_FIRST, ROWS_SHOWN), FirstOfEach(SHARE_PARTITION_KEY, STILL_FIRST)
        for rows in stream:
            table = _counted(rows).append_column("is_over", pc.is_valid(rows.column("until_ms")).cast(pa.int8()))
            table = table.append_column("score", pc.add(pc.fill_null(rows.column("duration_ms"), 0), 1))
            sums.add(table)
            first.add(table)
            pins.add(table)
        return cls(sums=sums.table(), first=first.table(), pins=pins.table())

    def still(self) -> pa.Table:
        """The sums of stalls that last."""
        return self.sums.filter(pc.equal(self.sums.column("is_over"), 0))

    def over(self) -> pa.Table:
        """The sums of stalls that ended."""
        return self.sums.filter(pc.equal(self.sums.column("is_over"), 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class PoisonDigest:
    """Records given up: `sums` by share partition: rows, records. `first`: POISON_RECORD rows, ROWS_SHOWN at most.

    `without_limit`: rows whose group's limit is unknown, gaps among them.
    """

    sums: pa.Table
    first: pa.Table
    without_limit: int


class PoisonReading:
    """Collects a `PoisonDigest` from a stream."""

    def __init__(self, ranking: GroupRanking) -> None:
        self._ranking = ranking
        self._sums = Sums(SHARE_PARTITION_KEY, {"rows": "sum", "records": "sum"})
        self._first = FirstRows(GIVEN_UP_ORDER, ROWS_SHOWN)
        self._without_limit = 0

    def add(self, rows: pa.Table) -> None:
        """Adds POISON_RECORD rows; gaps are left out."""
        self._without_limit += rows.column("delivery_count_limit").null_count
        table = _counted(counted("archived_records", rows))
        table = table.append_column("severity", self._ranking.severity_column(table.column("group_id")))
        self._sums.add(table)
        self._first.add(table)

    def digest(self) -> PoisonDigest:
        """The digest of all rows."""
        return PoisonDigest(sums=self._sums.table(), first=self._first.table(), without_limit=self._without_limit)


def redelivery_sums(stream: Iterable[pa.Table]) -> pa.Table:
    """Sums of REDELIVERED rows (REDELIVERY_COLUMNS) by share partition and kind.

    records, the largest max_delivery_count, the newest last_ms.
    """
    sums = Sums([*SHARE_PARTITION_KEY, "kind"], {"records": "sum", "max_delivery_count": "max", "last_ms": "max"})
    for rows in stream:
        sums.add(counted("redelivered_records", rows))
    return sums.table()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterDigest:
    """Dead letters: `sums` by group, status and reason: rows, records.

    `first`: DLQ_RECONCILIATION rows, ROWS_SHOWN at most: missing ones first, matched ones last; of each status the
    groups with the worst severity first, then the newest.
    """

    sums: pa.Table
    first: pa.Table

    def counts(self) -> Mapping[str, int]:
        """Record offsets by status, in the order of STATUSES, without those that don't occur."""
        totals = {status: total(self.of_status(status), "records") for status in STATUSES}
        return {status: count for status, count in totals.items() if count}

    def of_status(self, status: str) -> pa.Table:
        """The sums of one status."""
        return self.sums.filter(pc.equal(self.sums.column("status"), status))


class DeadLetterReading:
    """Collects a `DeadLetterDigest` from a stream."""

    def __init__(self, ranking: GroupRanking) -> None:
        self._ranking = ranking
        self._sums = Sums(["group_id", "status", "reason"], {"rows": "sum", "records": "sum"})
        self._first = FirstRows(NEWEST_BY_STATUS, ROWS_SHOWN)

    def add(self, rows: pa.Table) -> None:
        """Adds DLQ_RECONCILIATION rows."""
        table = _counted(rows).append_column("records", offset_counts(rows, "offset"))
        self._sums.add(table)
        rank = pc.index_in(rows.column("status"), value_set=pa.array(STATUS_ORDER))
        times = (rows.column(name) for name in ("dead_lettered_ms", "archived_ms", "archiving_ms"))
        severity = self._ranking.severity_column(rows.column("group_id"))
        order = {"rank": rank, "severity": severity, "at_ms": pc.coalesce(*times)}
        for name, column in order.items():
            table = table.append_column(name, column)
        self._first.add(table)

    def digest(self) -> DeadLetterDigest:
        """The digest of all rows."""
        return DeadLetterDigest(sums=self._sums.table(), first=self._first.table())


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeDigest:
    """Events: `sums` by group and event: rows. `first`: LIFE rows without moved epochs, ROWS_SHOWN at most."""

    sums: pa.Table
    first: pa.Table

    def counts(self) -> Mapping[str, int]:
        """The number of each event, in the order of EVENTS, without those that don't occur."""
        totals = {
            event: total(self.sums.filter(pc.equal(self.sums.column("event"), event)), "rows") for event in EVENTS
        }
        return {event: count for event, count in totals.items() if count}


class LifeReading:
    """Collects a `LifeDigest` from a stream."""

    def __init__(self, ranking: GroupRanking) -> None:
        self._ranking = ranking
        self._sums = Sums(["group_id", "event"], {"rows": "sum"})
        self._first = FirstRows(NEWEST_LIVES, ROWS_SHOWN)
        self.add(LIFE.empty_table())

    def add(self, rows: pa.Table) -> None:
        """Adds LIFE rows."""
        ones = pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows)
        self._sums.add(rows.select(["group_id", "event"]).append_column("rows", ones))
        listed = rows.filter(pc.invert(pc.is_in(rows.column("event"), value_set=pa.array(EPOCH_MOVES))))
        severity = self._ranking.severity_column(listed.column("group_id"))
        self._first.add(listed.append_column("severity", severity))

    def digest(self) -> LifeDigest:
        """The digest of all rows."""
        return LifeDigest(sums=self._sums.table(), first=self._first.table())


def total(table: pa.Table, column: str) -> int:
    """The sum of a column; 0 where there is no row."""
    return int(pc.sum(table.column(column)).as_py() or 0)


def _counted(rows: pa.Table) -> pa.Table:
    return rows.append_column("rows", pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows))
