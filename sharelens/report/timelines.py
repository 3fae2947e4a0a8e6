"""The timelines of a few groups: sums along the time axis, and the entries that matter most, from a report's streams.

Memory is bounded by the columns of the picture, the entries that are listed, and a minute's sums of archived,
redelivered and dead-lettered records.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.ranges.steps import Ints
from sharelens.measures.schemas import LIFE, STALL
from sharelens.questions.answers.streaming import FirstRows
from sharelens.questions.timelines.entries import (
    GAP,
    ORDER,
    ArchivedSums,
    Entry,
    LetterSums,
    MinuteSums,
    RedeliveredSums,
    group_entries,
    is_in,
    life_entries,
    stall_entries,
    timeline_table,
)
from sharelens.report.orders import STILL_FIRST
from sharelens.report.ranking import GroupRanking
from sharelens.tables.where import Span
from state_model.columnar.keys import SHARE_PARTITION_KEY

GROUPS_DRAWN = 3
COLUMNS = 72
ENTRIES_SHOWN = 40
STALL_BEGAN, STALL_ENDED = "stall_began", "stall_ended"
STALLS = "stalls"
"""The lane of intervals in which share partitions stood still; each other lane is an event."""
FIRST, THEN = 0, 1
WEIGHT_OF: Mapping[str, int] = {
    **dict.fromkeys(("deleted", "recreated", "reset", "start_offset_went_back", "group_deleted"), FIRST),
    **dict.fromkeys((STALL_BEGAN, STALL_ENDED, GAP), FIRST),
    **dict.fromkeys(("created", "first_seen", "member_joined", "member_left", "member_changed"), THEN),
    **dict.fromkeys(("archived", "dead_letters"), THEN),
}
LEAST = max(WEIGHT_OF.values()) + 1
"""Entries of the first weight are listed before others; redelivered records and moved epochs have the last one."""
NEWEST_LIVES = [("weight", "ascending"), ("log_time_ms", "descending"), ("log_offset", "descending")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One column of one lane: entries that fall into it, and their records (0: the entries count none)."""

    lane: str
    column: int
    entries: int
    records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTimeline:
    """What happened to a group: `marks` along the time axis, by lane and column, and TIMELINE rows.

    `entries`: ENTRIES_SHOWN at most, in the order of time; `counts`: of all entries by event.
    """

    group_id: str
    marks: Sequence[Mark]
    entries: pa.Table
    counts: Mapping[str, int]

    @property
    def left_off(self) -> int:
        """Entries that are not listed."""
        return sum(self.counts.values()) - int(self.entries.num_rows)


def drawn_groups(ranking: GroupRanking, places: pa.Table) -> list[str]:
    """The groups whose timeline is drawn: those with the worst now first, then those with the newest record."""
    ranked = sorted(ranking.places, key=ranking.place)[:GROUPS_DRAWN]
    newest = places.group_by("group_id").aggregate([("log_time_ms", "max")])
    newest = newest.sort_by([("log_time_ms_max", "descending"), ("group_id", "ascending")])
    unranked_groups = (group for group in newest.column("group_id").to_pylist() if group not in ranking.places)
    return [*ranked, *unranked_groups][:GROUPS_DRAWN]


class TimelineReading:
    """Collects the timelines of some groups from streams of rows; rows of other groups are left out."""

    def __init__(self, groups: Sequence[str], span: Span, from_ms: int, to_ms: int) -> None:
        """`span` bounds the entries, `from_ms` to `to_ms` is the time of the picture."""
        self._readings = {group: _Reading(span, from_ms, to_ms) for group in groups}

    def add_stalls(self, rows: pa.Table) -> None:
        """Adds STALL rows."""
        self._add(rows, lambda reading, of_group: reading.add_stalls(of_group))

    def add_archived(self, rows: pa.Table) -> None:
        """Adds POISON_RECORD rows."""
        self._add(rows, lambda reading, of_group: reading.archived.add(of_group))

    def add_redelivered(self, rows: pa.Table) -> None:
        """Adds REDELIVERED rows."""
        self._add(rows, lambda reading, of_group: reading.redelivered.add(of_group))

    def add_letters(self, rows: pa.Table) -> None:
        """Adds DLQ_RECONCILIATION rows; those without a dead letter are left out."""
        letters = rows.filter(pc.is_valid(rows.column("dlq_offset")))
        self._add(letters, lambda reading, of_group: reading.letters.add(of_group))

    def add_lives(self, rows: pa.Table) -> None:
        """Adds LIFE rows."""
        self._add(rows, lambda reading, of_group: reading.add_lives(of_group))

    def timelines(
        self, records: pa.Table, events: Iterable[Entry], names: Mapping[str, str]
    ) -> Sequence[GroupTimeline]:
        """The timelines in the order of the groups.

        `records`: GROUP_RECORD rows of them, `events`: entries of other logs, `names`: of topics by id.
        """
        of_other_logs = list(events)
        group_timelines = []
        for group, reading in self._readings.items():
            other_entries = [
                *group_entries(_of_group(records, group)),
                *(entry for entry in of_other_logs if entry["group_id"] == group),
            ]
            group_timelines.append(reading.timeline(group, other_entries, names))
        return group_timelines

    def _add(self, rows: pa.Table, add: "Callable[[_Reading, pa.Table], None]") -> None:
        for group, reading in self._readings.items():
            of_group = _of_group(rows, group)
            if of_group.num_rows:
                add(reading, of_group)


def timeline_of(group: str, rows: pa.Table, from_ms: int, to_ms: int) -> GroupTimeline:
    """The timeline of a group from its TIMELINE rows, all of which are listed."""
    return _Reading(Span(), from_ms, to_ms).of_rows(group, rows)


def _of_group(rows: pa.Table, group: str) -> pa.Table:
    return rows.filter(pc.equal(rows.column("group_id"), group))


class _Reading:
    """The timeline of one group."""

    def __init__(self, span: Span, from_ms: int, to_ms: int) -> None:
        self._span, self._from_ms, self._span_ms = span, from_ms, max(1, to_ms - from_ms)
        self.archived, self.redelivered, self.letters = ArchivedSums(), RedeliveredSums(), LetterSums()
        self._entries_in: dict[str, Ints] = {}
        self._records_in: dict[str, Ints] = {}
        self._still = np.zeros(COLUMNS + 1, np.int64)
        self._counts: dict[str, int] = {}
        self._stalls = FirstRows(STILL_FIRST, ENTRIES_SHOWN)
        self._lives = FirstRows(NEWEST_LIVES, ENTRIES_SHOWN)
        self._stalls.add(STALL.empty_table().append_column("is_over", pa.array([], pa.int8())))
        self._lives.add(LIFE.empty_table().append_column("weight", pa.array([], pa.int8())))

    def add_stalls(self, rows: pa.Table) -> None:
        """Adds STALL rows of the group."""
        since = rows.column("since_ms").to_numpy()
        until = pc.fill_null(rows.column("until_ms"), self._from_ms + self._span_ms).to_numpy()
        np.add.at(self._still, self._columns(since), 1)
        np.add.at(self._still, self._columns(until) + 1, -1)
        self._count(STALL_BEGAN, int(self._inside(since).sum()))
        self._count(STALL_ENDED, int(self._inside(rows.column("until_ms").drop_null().to_numpy()).sum()))
        self._stalls.add(rows.append_column("is_over", pc.is_valid(rows.column("until_ms")).cast(pa.int8())))

    def add_lives(self, rows: pa.Table) -> None:
        """Adds LIFE rows of the group."""
        rows = rows.filter(pa.array(self._inside(rows.column("log_time_ms").to_numpy())))
        for event in rows.column("event").unique().to_pylist():
            times = rows.filter(pc.equal(rows.column("event"), event)).column("log_time_ms").to_numpy()
            self._mark(event, times, np.zeros(len(times), np.int64))
        weights = pa.array([WEIGHT_OF.get(event, LEAST) for event in rows.column("event").to_pylist()], pa.int8())
        self._lives.add(rows.append_column("weight", weights))

    def timeline(self, group: str, other_entries: Sequence[Entry], names: Mapping[str, str]) -> GroupTimeline:
        """The timeline of all that was added, and of other entries."""
        of_group = [entry for entry in other_entries if is_in(self._span, entry["at_ms"])]
        for event in dict.fromkeys(entry["event"] for entry in of_group):
            times = np.array([entry["at_ms"] for entry in of_group if entry["event"] == event], np.int64)
            self._mark(event, times, np.zeros(len(times), np.int64))
        entries = [*life_entries(self._lives.table()), *stall_entries(self._stalls.table()), *of_group]
        for sums in (self.archived, self.letters, self.redelivered):
            entries += self._entries_of(sums)
        chosen = sorted(
            (entry for entry in entries if is_in(self._span, entry["at_ms"])),
            key=lambda entry: (WEIGHT_OF.get(entry["event"], LEAST), -entry["at_ms"], -(entry["log_offset"] or 0)),
        )
        return self._with_marks(group, timeline_table(chosen[:ENTRIES_SHOWN], names, self._span).sort_by(ORDER))

    def _with_marks(self, group: str, entries: pa.Table) -> GroupTimeline:
        marks = sorted([*self._still_marks(), *self._marks()], key=lambda mark: (mark.lane, mark.column))
        return GroupTimeline(group_id=group, marks=marks, entries=entries, counts=self._counts)

    def of_rows(self, group: str, rows: pa.Table) -> GroupTimeline:
        """The timeline of TIMELINE rows of the group, in the order of time."""
        for event in rows.column("event").unique().to_pylist():
            of_event = rows.filter(pc.equal(rows.column("event"), event))
            if event in (STALL_BEGAN, STALL_ENDED):
                self._count(event, of_event.num_rows)
            else:
                records = pc.fill_null(of_event.column("records"), 0).to_numpy()
                self._mark(event, of_event.column("at_ms").to_numpy(), records)
        self._add_still(rows.filter(pc.is_in(rows.column("event"), value_set=pa.array([STALL_BEGAN, STALL_ENDED]))))
        return self._with_marks(group, rows)

    def _add_still(self, rows: pa.Table) -> None:
        """Stalls by their entries: one that ended has a beginning before, or began before the first row."""
        begun: dict[tuple[Any, ...], list[int]] = {}
        spans: list[tuple[int, int]] = []
        for row in rows.select([*SHARE_PARTITION_KEY, "at_ms", "event"]).to_pylist():
            key = tuple(row[name] for name in SHARE_PARTITION_KEY)
            if row["event"] == STALL_BEGAN:
                begun.setdefault(key, []).append(row["at_ms"])
            else:
                since = begun.get(key) or [self._from_ms]
                spans.append((since.pop(), row["at_ms"]))
        spans += [(since, self._from_ms + self._span_ms) for moments in begun.values() for since in moments]
        if spans:
            since_ms, until_ms = np.array(spans, np.int64).T
            np.add.at(self._still, self._columns(since_ms), 1)
            np.add.at(self._still, self._columns(until_ms) + 1, -1)

    def _entries_of(self, sums: MinuteSums) -> Iterable[Entry]:
        """The newest entries of sums, which are all counted and marked."""
        table = sums.table()
        if table is None:
            return ()
        table = table.filter(pa.array(self._inside(table.column("at_ms").to_numpy())))
        self._mark(sums.EVENT, table.column("at_ms").to_numpy(), table.column("records").to_numpy())
        newest = table.sort_by([("at_ms", "descending"), ("log_offset", "descending")])
        return sums.entries(newest.slice(0, ENTRIES_SHOWN))

    def _mark(self, event: str, times: Ints, records: Ints) -> None:
        columns = self._columns(times)
        for counts, weights in ((self._entries_in, np.ones(len(times), np.int64)), (self._records_in, records)):
            np.add.at(counts.setdefault(event, np.zeros(COLUMNS, np.int64)), columns, weights)
        self._count(event, len(times))

    def _count(self, event: str, count: int) -> None:
        if count:
            self._counts[event] = self._counts.get(event, 0) + count

    def _columns(self, times: Ints) -> Ints:
        """The column of each moment; those outside the picture are in its first and last one."""
        columns: Ints = (times.astype(np.int64) - self._from_ms) * COLUMNS // self._span_ms
        return columns.clip(0, COLUMNS - 1)

    def _inside(self, times: Ints) -> "np.typing.NDArray[np.bool_]":
        from_ms, to_ms = self._span.from_ms, self._span.to_ms
        inside: np.typing.NDArray[np.bool_] = np.ones(len(times), np.bool_)
        inside &= times >= (np.iinfo(np.int64).min if from_ms is None else from_ms)
        inside &= times < (np.iinfo(np.int64).max if to_ms is None else to_ms)
        return inside

    def _marks(self) -> Iterable[Mark]:
        for event, entries in self._entries_in.items():
            for column in np.flatnonzero(entries).tolist():
                records = int(self._records_in[event][column])
                yield Mark(lane=event, column=column, entries=int(entries[column]), records=records)

    def _still_marks(self) -> Iterable[Mark]:
        still = np.cumsum(self._still)[:COLUMNS]
        for column in np.flatnonzero(still).tolist():
            yield Mark(lane=STALLS, column=column, entries=int(still[column]), records=0)
