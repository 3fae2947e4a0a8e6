"""Stalls of share partitions: since when, at which record, and possible causes."""

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

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
from sharelens.questions.answers.streaming import rows_of_stream
from sharelens.questions.published_stalls import published_stalls
from sharelens.source.request import CutChoice
from sharelens.tables.port import Tables
from sharelens.tables.where import Span
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
    tables = stall_stream(scoped, span, settings, now_ms, min_duration_ms=min_duration_ms, idle=idle)
    rows = rows_of_stream(tables, measure.WORST_FIRST)
    table = long_enough(rows, min_duration_ms)
    if still_only:
        table = table.filter(pc.is_null(table.column("until_ms")))
    kinds = [kind for kind in measure.KINDS if kind in table.column("kind").unique().to_pylist()]
    lines = [
        _counts(table, kinds),
        *_short_ones(rows, min_duration_ms),
        *(f"{kind}: {WHAT_IT_MAY_BE[kind]}" for kind in kinds if kind in WHAT_IT_MAY_BE),
    ]
    return answer(
        evidence,
        table,
        LAYOUT,
        totals="\n".join([*lines, SAME]),
        warnings=(
            *scoped.warnings,
            *check_beginning(evidence, span.from_ms, now_ms),
            *unseen_stalls(evidence, scoped.user_partitions, UNSEEN),
        ),
        none="no share partition stalled",
        now_ms=now_ms,
    )


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


def _short_ones(rows: pa.Table, min_duration_ms: int) -> Iterator[str]:
    """A line that counts the stalls that last, but not yet for the least duration; idle intervals are none."""
    short = rows.filter(pc.less(rows.column("duration_ms"), min_duration_ms))
    count = int(pc.sum(pc.not_equal(short.column("kind"), measure.IDLE)).as_py() or 0)
    if count:
        noun = "stall lasts" if count == 1 else "stalls last"
        yield f"{count} more {noun}, not yet for {lasted(min_duration_ms)}: --min-duration 0 shows all"


def _chosen(table: pa.Table, span: Span, *, idle: bool) -> pa.Table:
    if not idle:
        table = table.filter(pc.not_equal(table.column("kind"), measure.IDLE))
    if span.from_ms is not None:
        table = table.filter(pc.fill_null(pc.greater(table.column("until_ms"), span.from_ms), True))
    if span.to_ms is not None:
        table = table.filter(pc.less(table.column("since_ms"), span.to_ms))
    return table


def _counts(table: pa.Table, kinds: list[str]) -> str:
    """How many of each kind, and how many stand still."""
    counts = {kind: pc.sum(pc.equal(table.column("kind"), kind)).as_py() for kind in kinds}
    still = table.column("until_ms").null_count
    by_kind = ", ".join(f"{kind} {count}" for kind, count in counts.items()) or "none"
    return f"intervals: {by_kind}; {still} of them last"


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
