"""Stalls by gold.stall, which a run writes: its rows as they are at the moment of a question."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.schemas import STALL
from sharelens.measures.settings.over_time import GroupSettings
from sharelens.measures.stalls.intervals import (
    BLOCKED,
    DEAD_LETTER_PENDING,
    MIN_DURATION_MS,
    SILENT,
    WINDOW_FULL,
)
from sharelens.questions.answers.measured import Scope, is_stored, stored_rows
from state_model.share_records import DeliveryState


def published_stalls(
    scope: Scope, settings: GroupSettings, now_ms: int, min_duration_ms: int
) -> Iterator[pa.Table] | None:
    """STALL rows at the end of the evidence, without idle intervals, in tables; None where gold.stall lacks them.

    Stalls that last have a row whatever their duration. A run keeps no interval that ended before MIN_DURATION_MS.
    """
    if not is_stored(scope, "gold.stall", settings) or min_duration_ms < MIN_DURATION_MS:
        return None
    tables = scope.evidence.scan("gold.stall", STALL.names, stored_rows(scope))
    return (stalls_at(rows, now_ms, min_duration_ms) for rows in tables)


def stalls_at(rows: pa.Table, now_ms: int, min_duration_ms: int) -> pa.Table:
    """Rows of gold.stall, with duration and kind of lasting stalls as of `now_ms`."""
    until = pc.coalesce(rows.column("until_ms"), pa.scalar(now_ms, pa.int64()))
    columns = {
        "duration_ms": pc.subtract(until, rows.column("since_ms")),
        "kind": _kinds(rows, until, min_duration_ms),
    }
    for name, column in columns.items():
        index = rows.schema.get_field_index(name)
        rows = rows.set_column(index, rows.schema.field(index), column)
    least = pc.if_else(pc.is_null(rows.column("until_ms")), 0, min_duration_ms)
    return rows.filter(pc.greater_equal(rows.column("duration_ms"), least))


def _kinds(rows: pa.Table, until: pa.ChunkedArray, min_duration_ms: int) -> pa.ChunkedArray:
    """The kind of each interval by the rules of `sharelens.measures.stalls.intervals`."""
    quiet = pc.subtract(until, pc.fill_null(rows.column("last_state_write_ms"), -1))
    is_blocked = pc.or_(pc.greater(rows.column("finished_behind"), 0), pc.less(quiet, min_duration_ms))
    is_pending = pc.fill_null(pc.equal(rows.column("delivery_state"), DeliveryState.ARCHIVING), False)
    is_full = pc.fill_null(pc.greater_equal(rows.column("window_used"), rows.column("window_limit")), False)
    blocked_or_silent = pc.if_else(is_blocked, BLOCKED, SILENT)
    return pc.if_else(is_pending, DEAD_LETTER_PENDING, pc.if_else(is_full, WINDOW_FULL, blocked_or_silent))
