"""The measures that signs are made of: from the gold tables of a lake, or by one pass over the histories."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.as_of import mark_below_log_start, mark_losses, states_as_of
from sharelens.findings.signs import LagSample
from sharelens.findings.thresholds import ACTIVE_MS, GROWTH_MS, HOUR_MS, RECENT_MS
from sharelens.measures import life, poison
from sharelens.measures.lag_over_time import Arrivals, lag_over_time
from sharelens.measures.latency.measure import HOURLY_ATTEMPTS, attempts_by_hour
from sharelens.measures.schemas import LAG, LIFE, POISON_RECORD, STALL
from sharelens.measures.settings.over_time import GroupSettings
from sharelens.measures.stalls import intervals as stalls
from sharelens.measures.topics.extents import BATCH_COLUMNS
from sharelens.measures.topics.headers import begins_of
from sharelens.questions.answers.completeness import times
from sharelens.questions.answers.measured import Scope, is_stored, stored_rows
from sharelens.questions.dead_letters.reconciled import with_dead_letter_causes
from sharelens.questions.published_stalls import stalls_at
from sharelens.tables.parts import Part
from sharelens.tables.port import Tables
from sharelens.tables.reading import (
    read,
    read_topic_batches,
)
from state_model.columnar.keys import PLACE_KEY, SHARE_PARTITION_KEY

EARLIER_LAG = pa.schema([*(LAG.field(name) for name in SHARE_PARTITION_KEY), pa.field("lag", pa.int64())])
STANDING = pa.schema(
    [
        STALL.field(name)
        for name in (
            *("since_ms", "until_ms", "duration_ms", "kind", *PLACE_KEY, "first_incomplete_offset", "delivery_state"),
            *("finished_behind", "window_used", "window_limit", "end_offset", "last_state_write_ms"),
        )
    ]
)
GIVEN_UP = pa.schema(
    [
        POISON_RECORD.field(name)
        for name in (
            *PLACE_KEY,
            "first_offset",
            "last_offset",
            "delivery_count",
            "cause",
            "archiving_ms",
            "last_outcome_ms",
        )
    ]
)
EVENTS = pa.schema(
    [
        LIFE.field(name)
        for name in (
            *PLACE_KEY,
            *("log_time_ms", "event", "start_offset_after", "skipped_first_offset", "skipped_last_offset"),
            *("settled_skipped", "completeness"),
        )
    ]
)
LAGS = pa.schema(
    [
        LAG.field(name)
        for name in (
            *PLACE_KEY,
            *("lag", "lag_recounted", "unknown_reason", "newest_batch_ms", "log_time_ms", "completeness"),
        )
    ]
)
"""Columns of measures that findings are made of; a lake reads no other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredSigns:
    """The rows of measures, of the columns that signs need. `lag`: None: it is not stored."""

    stalls: pa.Table
    attempts: pa.Table
    given_up: pa.Table
    events: pa.Table
    lag: pa.Table | None = None
    samples: Sequence[LagSample]


STORED = ("gold.stall", "gold.attempts", "gold.poison_record", "gold.life_event", "gold.lag")
"""The measures that signs are made of."""


def of_lake(scoped: Scope, now_ms: int, settings: GroupSettings, min_duration_ms: int) -> MeasuredSigns | None:
    """By the gold tables; None at an earlier cut, with other settings, where no run wrote them, of log directories."""
    if not all(is_stored(scoped, table, settings) for table in STORED):
        return None
    is_open = ~pc.field("is_final") & pc.field("until_ms").is_null()
    standing = _stored_rows(scoped, "gold.stall", STANDING, is_open)
    recent_ms = _recent_hour(now_ms)
    active = pc.field("hour_ms") >= now_ms - ACTIVE_MS - HOUR_MS
    attempts = _stored_rows(scoped, "gold.attempts", HOURLY_ATTEMPTS, active)
    given_up = _stored_rows(scoped, "gold.poison_record", GIVEN_UP, pc.field("last_outcome_ms") >= recent_ms)
    events = _stored_rows(scoped, "gold.life_event", EVENTS, pc.field("log_time_ms") >= now_ms - RECENT_MS)
    lags = _stored_rows(scoped, "gold.lag", LAGS)
    return MeasuredSigns(
        stalls=stalls_at(standing, now_ms, min_duration_ms),
        attempts=attempts,
        given_up=given_up,
        events=events,
        lag=lags,
        samples=_published_lags(scoped),
    )


def _stored_rows(scoped: Scope, table: str, schema: pa.Schema, where: pc.Expression | None = None) -> pa.Table:
    return read(scoped.evidence, table, schema.names, stored_rows(scoped, where))


def _recent_hour(now_ms: int) -> int:
    """The beginning of the first hour of which outcomes are recent."""
    return (now_ms - RECENT_MS) // HOUR_MS * HOUR_MS


def _published_lags(scoped: Scope) -> Sequence[LagSample]:
    """The lag at the newest publications that are GROWTH_MS and half of that older; none where one can't be read."""
    published = scoped.evidence.publications
    if published is None:
        return ()
    ages_ms = (GROWTH_MS, GROWTH_MS // 2)
    earlier = published.earlier_rows("gold.lag", EARLIER_LAG.names, ages_ms, scoped.keys)
    return [LagSample(at_ms=at_ms, rows=rows.cast(EARLIER_LAG)) for at_ms, rows in earlier]


def of_histories(
    scoped: Scope, now_ms: int, settings: GroupSettings, min_duration_ms: int
) -> tuple[MeasuredSigns, pa.Table]:
    """By one pass over the histories, with the SHARE_PARTITION_STATE rows at their end."""
    first_ms = times(scoped.evidence.cover())[0] or 0
    recent_ms = _recent_hour(now_ms)
    moments = [now_ms - GROWTH_MS, now_ms - GROWTH_MS // 2] if first_ms <= now_ms - GROWTH_MS else []

    def of_part(part: Part) -> tuple[pa.Table, ...]:
        inputs = scoped.inputs(part, settings)
        return (
            stalls.standing_rows(inputs, now_ms=now_ms, min_duration_ms=min_duration_ms).select(STANDING.names),
            attempts_by_hour(inputs, now_ms - ACTIVE_MS - HOUR_MS),
            _since(poison.rows(inputs), "last_outcome_ms", recent_ms),
            _since(life.rows(inputs).select(EVENTS.names), "log_time_ms", now_ms - RECENT_MS),
            _states(scoped.evidence, part),
            *_lags_at(scoped.evidence, part.history, moments),
        )

    parts = map(pa.concat_tables, zip(*scoped.parts.each(of_part), strict=True))
    standing, attempts, given_up, events, states, *earlier = parts
    with_causes = pa.concat_tables(list(with_dead_letter_causes(scoped, [given_up], settings, scoped.cut.as_of_ms)))
    tables = MeasuredSigns(
        stalls=standing,
        attempts=attempts,
        given_up=with_causes.select(GIVEN_UP.names),
        events=events,
        samples=[LagSample(at_ms=at_ms, rows=rows) for at_ms, rows in zip(moments, earlier, strict=True)],
    )
    return tables, states


def _since(rows: pa.Table, column: str, from_ms: int) -> pa.Table:
    """The rows with a time of at least `from_ms`; by a mask, because an expression is a plan to run, for each part."""
    return rows.filter(pc.greater_equal(rows.column(column), from_ms))


def _states(evidence: Tables, part: Part) -> pa.Table:
    """SHARE_PARTITION_STATE rows at the end of whole histories."""
    is_open = part.deliveries.filter(pc.is_null(part.deliveries.column("valid_to_log_offset")))
    cover = evidence.cover()
    states = mark_losses(states_as_of(part.history, is_open), {each.state_partition: each.losses for each in cover})
    return mark_below_log_start(states, {each.state_partition: each.log_start_offset for each in cover})


def _lags_at(evidence: Tables, history: pa.Table, moments_ms: Sequence[int]) -> list[pa.Table]:
    """EARLIER_LAG rows at each of some moments, by the records and headers up to it."""
    if not moments_ms:
        return []
    moments = np.array(moments_ms, np.int64)
    arrivals = Arrivals(moments)
    for batches in read_topic_batches(evidence, begins_of(history)):
        arrivals.take(batches.select(BATCH_COLUMNS))
    rows = lag_over_time(history, arrivals, moments, {})
    lags = rows.select([*SHARE_PARTITION_KEY, "lag_inferred"]).rename_columns(EARLIER_LAG.names).cast(EARLIER_LAG)
    return [lags.filter(pc.equal(rows.column("at_ms"), at_ms)) for at_ms in moments_ms]
