"""Stalls of share partitions: since when, at which record, and possible causes."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.figures import total_of
from sharelens.measures.schemas import STALL
from sharelens.measures.settings.over_time import GroupSettings
from sharelens.measures.stalls import intervals as measure
from sharelens.output import Answer, Column, Row, number_text
from sharelens.output.layouts import Layout
from sharelens.parameters.filters import KeyFilter
from sharelens.parameters.times import lasted
from sharelens.questions.answers.completeness import check_beginning
from sharelens.questions.answers.measured import Scope, answer, scope, stream_of
from sharelens.questions.answers.missing import COPY_FOLDERS, unseen_stalls
from sharelens.questions.answers.now import now_of
from sharelens.questions.answers.shape import answer_schema
from sharelens.questions.answers.streaming import Listing, RowChoice, Sums, with_ones
from sharelens.questions.published_stalls import published_stalls
from sharelens.source.request import CutChoice
from sharelens.tables.port import Tables
from sharelens.tables.where import Span
from state_model.columnar.keys import SHARE_PARTITION_KEY
from state_model.share_records import delivery_state_name

WHAT_IT_MAY_BE: Mapping[str, str] = {
    measure.DEAD_LETTER_PENDING: "the broker has not finished the dead letter: check the dead-letter topic (existence, "
    "errors.deadletterqueue.group.enable, size limits) and the broker's log",
    measure.WINDOW_FULL: "the in-flight limit of the group is reached behind this record: find it with "
    "`sharelens trace`, and make its member finish it, or its lock expire (share.record.lock.duration.ms, renewals)",
    measure.BLOCKED: "other records make progress, this record does not: a slow or stuck member renews its lock, "
    "members release it again and again, or a new leader skips it; see `sharelens trace`",
    measure.SILENT: "no member, no member with this partition, members that do not acknowledge, an open transaction "
    "under read_committed, records above the high watermark, or a coordinator that can't write: check "
    "kafka-share-groups --describe --members, kafka-transactions list, and the broker's log",
}
UNSEEN = f"a silent stall and an idle share partition look alike there; {COPY_FOLDERS}"
SUMMED = {"rows": "sum", "score": "sum", "duration_ms": "max", "since_ms": "min"}
SAME = "in the log, a record acquired by a member and a record never delivered look alike"


def stalled(
    evidence: Tables,
    key_filter: KeyFilter,
    cut: CutChoice,
    span: Span,
    settings: GroupSettings,
    *,
    min_duration_ms: int = measure.MIN_DURATION_MS,
    still_only: bool = False,
    idle: bool = False,
) -> Answer:
    """The answer to `sharelens stalled`; `span` bounds the log times that an interval reaches into."""
    scoped = scope(evidence, key_filter, cut)
    now_ms = now_of(evidence, cut)
    stream = stall_stream(scoped, span, settings, now_ms, min_duration_ms=min_duration_ms, idle=idle)
    stalls = StallRows(
        scoped, span, now_ms, min_duration_ms, RowChoice(order=measure.WORST_FIRST), still_only=still_only
    )
    for rows in stream:
        stalls.add(rows)
    return stalls.answer()


class StallRows:
    """Collects the answer from STALL rows; `sums` by share partition, kind and is_over (0: it lasts).

    rows; score (the sum of durations, each plus one), the longest duration_ms, the earliest since_ms.
    """

    def __init__(
        self,
        scoped: Scope,
        span: Span,
        now_ms: int,
        min_duration_ms: int,
        choice: RowChoice,
        *,
        still_only: bool = False,
    ) -> None:
        self._scoped, self._span, self._now_ms, self._min_duration_ms = scoped, span, now_ms, min_duration_ms
        self._listing, self._still_only, self._short = Listing(choice), still_only, 0
        self._sums = Sums([*SHARE_PARTITION_KEY, "kind", "is_over"], SUMMED)

    def add(self, rows: pa.Table) -> pa.Table:
        """Adds the rows of the least duration, and returns them; idle intervals that last for less are not counted."""
        stalls = long_enough(rows, self._min_duration_ms)
        short = pc.less(rows.column("duration_ms"), self._min_duration_ms)
        is_short_stall = pc.and_(short, pc.not_equal(rows.column("kind"), measure.IDLE))
        self._short += int(pc.sum(is_short_stall).as_py() or 0)
        if self._still_only:
            stalls = stalls.filter(pc.is_null(stalls.column("until_ms")))
        self._listing.add(stalls)
        score = pc.add(pc.fill_null(stalls.column("duration_ms"), 0), 1)
        self._sums.add(with_ones(stalls).append_column("is_over", is_over(stalls)).append_column("score", score))
        return stalls

    def answer(self) -> Answer:
        """The answer of all rows."""
        evidence, sums = self._scoped.evidence, self._sums.table()
        kinds = [kind for kind in measure.KINDS if kind in sums.column("kind").unique().to_pylist()]
        lines = [
            _counts(sums, kinds),
            *self._short_ones(),
            *(f"{kind}: {WHAT_IT_MAY_BE[kind]}" for kind in kinds if kind in WHAT_IT_MAY_BE),
        ]
        return answer(
            evidence,
            self._listing.table(),
            PINNED_LAYOUT if self._still_only else LAYOUT,
            totals="\n".join([*lines, SAME]),
            warnings=(
                *self._scoped.warnings,
                *check_beginning(evidence, self._span.from_ms, self._now_ms),
                *unseen_stalls(evidence, self._scoped.user_partitions, UNSEEN),
            ),
            none="no share partition stalled",
            all_rows=self._listing.row_counts(evidence),
            sums=sums,
            now_ms=self._now_ms,
        )

    def _short_ones(self) -> Iterator[str]:
        """A line that counts the stalls that last, but not yet for the least duration."""
        if self._short:
            noun = "stall lasts" if self._short == 1 else "stalls last"
            yield f"{self._short} more {noun}, not yet for {lasted(self._min_duration_ms)}: --min-duration 0 shows all"


def stall_stream(
    scoped: Scope, span: Span, settings: GroupSettings, now_ms: int, *, min_duration_ms: int, idle: bool = False
) -> Iterator[pa.Table]:
    """STALL rows of the intervals that reach into the span, in bounded tables, in any order.

    Those that last at `now_ms` are there whatever their duration; see `long_enough`.
    """
    tables = None if idle else published_stalls(scoped, settings, now_ms, min_duration_ms)
    if tables is None:
        tables = stream_of(
            scoped, lambda inputs: measure.rows(inputs, now_ms=now_ms, min_duration_ms=min_duration_ms), settings
        )
    return (_chosen(table, span, idle=idle) for table in tables)


def long_enough(rows: pa.Table, min_duration_ms: int) -> pa.Table:
    """The STALL rows of the least duration."""
    return rows.filter(pc.greater_equal(rows.column("duration_ms"), min_duration_ms))


def is_over(rows: pa.Table) -> pa.ChunkedArray:
    """1 for each stall that ended, 0 for each that lasts."""
    return pc.is_valid(rows.column("until_ms")).cast(pa.int8())


def _chosen(table: pa.Table, span: Span, *, idle: bool) -> pa.Table:
    if not idle:
        table = table.filter(pc.not_equal(table.column("kind"), measure.IDLE))
    if span.from_ms is not None:
        table = table.filter(pc.fill_null(pc.greater(table.column("until_ms"), span.from_ms), True))
    if span.to_ms is not None:
        table = table.filter(pc.less(table.column("since_ms"), span.to_ms))
    return table


def _counts(sums: pa.Table, kinds: list[str]) -> str:
    """How many of each kind, and how many stand still."""
    counts = {kind: total_of(sums.filter(pc.field("kind") == kind), "rows") for kind in kinds}
    by_kind = ", ".join(f"{kind} {count}" for kind, count in counts.items()) or "none"
    return f"intervals: {by_kind}; {total_of(sums.filter(pc.field('is_over') == 0), 'rows')} of them last"


def _state_cell(row: Row) -> str:
    """The delivery state at the offset and its count; `-` where none is logged."""
    state = row["delivery_state"]
    if not isinstance(state, int):
        return number_text(None)
    name = delivery_state_name(state)
    return f"{name}/{row['delivery_count']}"


def _seconds_cell(row: Row) -> str:
    lasted = row["duration_ms"]
    return f"{lasted / 1000:.1f}" if isinstance(lasted, int) else number_text(None)


LAYOUT = Layout(
    schema=answer_schema(STALL),
    fields="group_id topic partition start_offset first_incomplete_offset delivery_state since_ms until_ms "
    "duration_ms kind finished_behind window_used window_limit window_limit_source throttled_offsets_inferred "
    "end_offset last_state_write_ms completeness",
    headings={"window_limit_source": "LIMIT-FROM", "throttled_offsets_inferred": "THROTTLED-INFERRED"},
    cells=(
        Column(heading="STATE", cell=_state_cell, fields=("delivery_state", "delivery_count")),
        Column(heading="SECONDS", cell=_seconds_cell, right=True, fields=("duration_ms",)),
    ),
    important="GROUP TOPIC PARTITION KIND SINCE SECONDS FIRST-INCOMPLETE UNTIL STATE START-OFFSET END-OFFSET "
    "LAST-STATE-WRITE",
)
PINNED_LAYOUT = replace(
    LAYOUT,
    important="GROUP TOPIC PARTITION FIRST-INCOMPLETE STATE SECONDS KIND SINCE START-OFFSET END-OFFSET "
    "LAST-STATE-WRITE",
)
"""Of stalls that last: UNTIL is empty in every row."""
