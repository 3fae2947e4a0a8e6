"""The signs of an incident at the end of the evidence, as small tables: what findings are made of.

A lake answers from its gold tables, so that the cost goes by the number of share partitions; log directories from one
pass over the histories.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.as_of import mark_below_log_start, mark_losses, states_as_of
from sharelens.evidence.conditions import all_of
from sharelens.groups import summary as groups
from sharelens.groups.replay import SHARE_TYPES, is_of_types
from sharelens.lake.errors import LakeError
from sharelens.lake.scan import Cut as PublishedCut
from sharelens.measures import lag, life, poison
from sharelens.measures.dlq.schemas import MISSING
from sharelens.measures.figures import counted
from sharelens.measures.lag_over_time import Arrivals, lag_over_time
from sharelens.measures.latency import measure as latency
from sharelens.measures.latency.schemas import ATTEMPTS_CONTRIBUTION
from sharelens.measures.schemas import LAG, LIFE, POISON_RECORD, STALL
from sharelens.measures.settings.over_time import DEAD_LETTER_TOPIC, GroupSettings
from sharelens.measures.stalls import intervals as stalls
from sharelens.measures.topics.extents import BATCH_COLUMNS, topic_partitions
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.answers.completeness import COMPLETE, evidence_times, times
from sharelens.questions.answers.measured import Scope, is_stored, scope, stored_rows
from sharelens.questions.answers.missing import unknown_ends, unseen_stalls
from sharelens.questions.answers.now import now_of
from sharelens.questions.answers.streaming import by_share_partition
from sharelens.questions.audits.published import Audited, audited_findings
from sharelens.questions.dead_letters.reconciled import TABLE, judged_stream, with_dead_letter_causes
from sharelens.questions.findings.streams_signs import StreamsSign, streams_signs
from sharelens.questions.groups.describe_streams_offsets import unknown_lag
from sharelens.questions.lag import lag as lag_answer
from sharelens.questions.lag import lag_of
from sharelens.questions.published_stalls import stalls_at
from sharelens.questions.stalled import UNSEEN
from sharelens.source.request import CutChoice
from sharelens.tables.cover import StatePartitionCover
from sharelens.tables.known_groups import of_filter, streams_groups
from sharelens.tables.lakes.published import PublishedLake, publications
from sharelens.tables.parts import Part
from sharelens.tables.port import Tables
from sharelens.tables.reading import (
    read,
    read_dead_letter_partitions,
    read_group_records,
    read_topic_batches,
    read_topic_extents,
)
from state_model.columnar.keys import PLACE_KEY, SHARE_PARTITION_KEY

HOUR_MS = 3_600_000
RECENT_MS = HOUR_MS
"""How long before now outcomes and life events are recent."""
GROWTH_MS = 600_000
"""How long before now the lag is compared with, or half of the evidence where it is shorter.

Of a lake's publications the newest that is so old counts, else the oldest.
"""
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
OUTCOMES = pa.schema(
    [
        ATTEMPTS_CONTRIBUTION.field(name)
        for name in (*PLACE_KEY, "hour_ms", "outcome", "offsets", "deliveries", "extra_deliveries")
    ]
)
GIVEN_UP = pa.schema(
    [POISON_RECORD.field(name) for name in (*PLACE_KEY, "offset", "last_offset", "cause", "last_outcome_ms")]
)
EVENTS = pa.schema([LIFE.field(name) for name in (*PLACE_KEY, "log_time_ms", "event", "start_offset_after")])
LAGS = pa.schema([LAG.field(name) for name in (*PLACE_KEY, "lag", "unknown_reason", "log_time_ms", "completeness")])
"""Columns of measures that findings are made of; a lake reads no other."""
MISSING_LETTERS = pa.schema([*(LAG.field(name) for name in SHARE_PARTITION_KEY), pa.field("records", pa.int64())])


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """Tables of one cluster, of the share partitions that were selected.

    `lag`: LAGS rows. `earlier_lag`: EARLIER_LAG rows at `earlier_ms`; None: nothing to compare with. `stalls`: STANDING
    rows that last, of any duration. Recent are `attempts` (OUTCOMES rows of settled records), `archived` (GIVEN_UP rows
    without gaps, with `hour_ms` and `records`) and `events` (EVENTS rows).
    `not_started`: LAGS rows without a start offset, with `has_records`: whether the user partition has any (null:
    unknown). `missing_letters`: MISSING_LETTERS rows. `groups`: GROUPS rows; None: no record of the group coordinator
    is in the evidence. `share_groups`: those with state or with a record of the group coordinator. `streams`: the
    streams groups that exist. `audited`: the findings of the audit; None: nobody has audited the evidence.
    """

    now_ms: int
    first_ms: int
    last_ms: int
    lag: pa.Table
    earlier_lag: pa.Table | None
    earlier_ms: int | None
    stalls: pa.Table
    attempts: pa.Table
    archived: pa.Table
    events: pa.Table
    not_started: pa.Table
    missing_letters: pa.Table
    groups: pa.Table | None
    share_groups: Sequence[str]
    streams: Sequence[StreamsSign]
    audited: Audited | None
    cover: Sequence[StatePartitionCover]
    names: Mapping[str, str]
    warnings: tuple[str, ...]


def signs(
    evidence: Tables, key_filter: KeyFilter, cut: CutChoice, settings: GroupSettings, min_duration_ms: int
) -> Signs:
    """The signs at the cut, which also says what is now; `min_duration_ms`: how long a silence is a stall.

    Raises:
        UsageError: the evidence has none of the names, or --now lies before its last record.
        SharelensError: the cut lies before the evidence.
    """
    scoped = scope(evidence, key_filter, cut, streams_groups(evidence, key_filter.groups))
    return signs_of(scoped, None, key_filter, cut, settings, min_duration_ms)


def signs_of(
    scoped: Scope,
    lags: pa.Table | None,
    key_filter: KeyFilter,
    cut: CutChoice,
    settings: GroupSettings,
    min_duration_ms: int,
) -> Signs:
    """As `signs`, from the scope of the filter and the cut and from its LAG rows; None: they are read here."""
    evidence = scoped.evidence
    now_ms = now_of(evidence, cut)
    tables = _of_lake(scoped, now_ms, settings, min_duration_ms)
    if tables is not None:
        lags = tables.lag if lags is None else lags
    else:
        tables, states = _of_histories(scoped, now_ms, settings, min_duration_ms)
        if lags is None and scoped.cut.is_whole:
            lags = lag_of(evidence, states, scoped.cut)
        elif lags is None:
            lags = lag_answer(evidence, key_filter, cut).table
    assert lags is not None
    lags = lags.select(LAGS.names)
    selected = {*scoped.places.column("group_id").unique().to_pylist(), *key_filter.groups}
    records = read_group_records(evidence, None)
    of_share_groups = records.filter(is_of_types(records, SHARE_TYPES))
    coordinated = groups.groups(of_share_groups, cut.as_of_ms) if records.num_rows else None
    streams = streams_signs(evidence, of_filter(records, key_filter), cut.as_of_ms, now_ms)
    if coordinated is not None:
        existing = pa.array([sign.group_id for sign in streams], pa.string())
        coordinated = coordinated.filter(~pc.field("group_id").isin(existing))  # deleted before, of the same name
    if coordinated is not None and not key_filter.keeps_all:
        coordinated = coordinated.filter(pc.field("group_id").isin(pa.array(sorted(selected), pa.string())))
    first_ms, last_ms = evidence_times(evidence)
    audited = audited_findings(evidence, scoped.keys, cut.as_of_ms)
    topic_ids = scoped.places.column("topic_id").unique().to_pylist()
    return Signs(
        now_ms=now_ms,
        first_ms=first_ms or 0,
        last_ms=last_ms or 0,
        lag=lags,
        earlier_lag=tables.earlier_lag,
        earlier_ms=tables.earlier_ms,
        stalls=tables.stalls.filter(pc.not_equal(tables.stalls.column("kind"), stalls.IDLE)),
        attempts=tables.attempts,
        archived=_archived(tables.given_up),
        events=tables.events,
        not_started=_not_started(evidence, lags),
        missing_letters=_missing_letters(scoped, cut, settings),
        groups=coordinated,
        share_groups=_share_groups(scoped.places, coordinated),
        streams=streams,
        audited=audited,
        cover=evidence.cover(),
        names=evidence.names(topic_ids),
        warnings=(
            *scoped.warnings,
            *unknown_ends(lags),
            *unseen_stalls(evidence, scoped.user_partitions, UNSEEN),
            *_unknown_lags(streams),
            *_expired(audited),
        ),
    )


def _share_groups(places: pa.Table, coordinated: pa.Table | None) -> Sequence[str]:
    columns = [rows.column("group_id").to_pylist() for rows in (places, coordinated) if rows is not None]
    return sorted({group_id for column in columns for group_id in column})


def _unknown_lags(streams: Sequence[StreamsSign]) -> Sequence[str]:
    unknown = sum(sign.lag.unknown for sign in streams)
    return (unknown_lag(unknown),) if unknown else ()


def _expired(audited: Audited | None) -> tuple[str, ...]:
    return () if audited is None else audited.warnings


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tables:
    stalls: pa.Table
    attempts: pa.Table
    given_up: pa.Table
    events: pa.Table
    lag: pa.Table | None = None
    earlier_lag: pa.Table | None
    earlier_ms: int | None


STORED = ("gold.stall", "gold.attempts", "gold.poison_record", "gold.life_event", "gold.lag")
"""The measures that signs are made of."""


def _of_lake(scoped: Scope, now_ms: int, settings: GroupSettings, min_duration_ms: int) -> _Tables | None:
    """By the gold tables; None at an earlier cut, with other settings, where no run wrote them, of log directories."""
    if not all(is_stored(scoped, table, settings) for table in STORED):
        return None
    is_open = ~pc.field("is_final") & pc.field("until_ms").is_null()
    standing = _stored_rows(scoped, "gold.stall", STANDING, is_open)
    recent_ms = _recent_hour(now_ms)
    attempts = _stored_rows(scoped, "gold.attempts", OUTCOMES, pc.field("hour_ms") >= recent_ms)
    given_up = _stored_rows(scoped, "gold.poison_record", GIVEN_UP, pc.field("last_outcome_ms") >= recent_ms)
    events = _stored_rows(scoped, "gold.life_event", EVENTS, pc.field("log_time_ms") >= now_ms - RECENT_MS)
    lags = _stored_rows(scoped, "gold.lag", LAGS)
    earlier_lag, earlier_ms = _published_lag(scoped, scoped.evidence.origin)
    return _Tables(
        stalls=stalls_at(standing, now_ms, min_duration_ms),
        attempts=attempts,
        given_up=given_up,
        events=events,
        lag=lags,
        earlier_lag=earlier_lag,
        earlier_ms=earlier_ms,
    )


def _stored_rows(scoped: Scope, table: str, schema: pa.Schema, where: pc.Expression | None = None) -> pa.Table:
    return read(scoped.evidence, table, schema.names, stored_rows(scoped, where))


def _recent_hour(now_ms: int) -> int:
    """The beginning of the first hour of which outcomes are recent."""
    return (now_ms - RECENT_MS) // HOUR_MS * HOUR_MS


def _published_lag(scoped: Scope, origin: object) -> tuple[pa.Table | None, int | None]:
    """The lag at an earlier publication and its time; none where there is no other that can be read."""
    if not isinstance(origin, PublishedLake):
        return None, None
    rows = publications(origin.lake).to_pylist()
    newest, earlier = rows[-1], [row for row in rows[:-1] if row["cluster_id"] == rows[-1]["cluster_id"]]
    if not earlier:
        return None, None
    old = [row for row in earlier if row["published_at_ms"] <= newest["published_at_ms"] - GROWTH_MS]
    row = old[-1] if old else earlier[0]
    versions = {entry["table"]: entry["version"] for entry in row["tables"]}
    cut = PublishedCut(lake=origin.lake.lake, versions=versions, publication=row)
    condition = all_of(pc.field("cluster_id") == origin.cluster, scoped.keys.expression())
    try:
        table = cut.scan("gold.lag", EARLIER_LAG.names, condition)
    except (LakeError, OSError):  # upkeep removed the files of old versions
        return None, None
    moments = [part["log_time_ms"] for part in row["evidence"] if part["log_time_ms"] is not None]
    return table.cast(EARLIER_LAG), max(moments, default=None)


def _of_histories(
    scoped: Scope, now_ms: int, settings: GroupSettings, min_duration_ms: int
) -> tuple[_Tables, pa.Table]:
    """By one pass over the histories, with the SHARE_PARTITION_STATE rows at their end."""
    first_ms = times(scoped.evidence.cover())[0] or 0
    earlier_ms = max((first_ms + now_ms) // 2, now_ms - GROWTH_MS)
    recent_ms = _recent_hour(now_ms)

    def of_part(part: Part) -> tuple[pa.Table, ...]:
        inputs = scoped.inputs(part, settings)
        rows = stalls.rows(inputs, now_ms=now_ms, min_duration_ms=min_duration_ms)
        return (
            rows.select(STANDING.names).filter(pc.is_null(pc.field("until_ms"))),
            latency.attempts_since(inputs, recent_ms).select(OUTCOMES.names).filter(pc.is_valid(pc.field("hour_ms"))),
            poison.rows(inputs).filter(pc.field("last_outcome_ms") >= recent_ms),
            life.rows(inputs).select(EVENTS.names).filter(pc.field("log_time_ms") >= now_ms - RECENT_MS),
            _lag_at(scoped.evidence, part.history, earlier_ms),
            _states(scoped.evidence, part),
        )

    parts = map(pa.concat_tables, zip(*scoped.parts.each(of_part), strict=True))
    standing, attempts, given_up, events, earlier, states = parts
    with_causes = pa.concat_tables(list(with_dead_letter_causes(scoped, [given_up], settings, scoped.cut.as_of_ms)))
    tables = _Tables(
        stalls=standing,
        attempts=attempts,
        given_up=with_causes.select(GIVEN_UP.names),
        events=events,
        earlier_lag=earlier,
        earlier_ms=earlier_ms,
    )
    return tables, states


def _archived(given_up: pa.Table) -> pa.Table:
    """The GIVEN_UP rows of records, gaps left out, with `hour_ms` of their last outcome and `records`."""
    rows = counted("archived_records", given_up)
    hours = pc.multiply(pc.divide(rows.column("last_outcome_ms"), HOUR_MS), HOUR_MS)
    return rows.append_column("hour_ms", hours)


def _states(evidence: Tables, part: Part) -> pa.Table:
    """SHARE_PARTITION_STATE rows at the end of whole histories."""
    is_open = part.deliveries.filter(pc.is_null(part.deliveries.column("valid_to_log_offset")))
    cover = evidence.cover()
    states = mark_losses(states_as_of(part.history, is_open), {each.state_partition: each.losses for each in cover})
    return mark_below_log_start(states, {each.state_partition: each.log_start_offset for each in cover})


def _lag_at(evidence: Tables, history: pa.Table, moment_ms: int) -> pa.Table:
    """EARLIER_LAG rows at a moment, by the records and headers up to it."""
    moments = np.array([moment_ms], np.int64)
    arrivals = Arrivals(moments)
    for batches in read_topic_batches(evidence, lag.begins_of(history)):
        arrivals.take(batches.select(BATCH_COLUMNS))
    rows = lag_over_time(history, arrivals, moments, {})
    return rows.select([*SHARE_PARTITION_KEY, "lag_inferred"]).rename_columns(EARLIER_LAG.names).cast(EARLIER_LAG)


def _not_started(evidence: Tables, lags: pa.Table) -> pa.Table:
    """The LAG rows without a start offset, with `has_records`; where records are lost, one of them may have it."""
    rows = lags.filter((pc.field("unknown_reason") == lag.NO_START) & (pc.field("completeness") == COMPLETE))
    extents = read_topic_extents(evidence, topic_partitions(rows))
    there = {
        (row["topic_id"], row["partition"]): None if row["end_offset"] is None else row["end_offset"] > row["begin"]
        for row in extents.append_column("begin", pc.fill_null(extents.column("log_start_offset"), 0)).to_pylist()
    }
    has_records = pa.array([there.get(place) for place in topic_partitions(rows)], pa.bool_())
    return rows.append_column("has_records", has_records)


def _missing_letters(scoped: Scope, cut: CutChoice, settings: GroupSettings) -> pa.Table:
    """The records whose dead letter is due and missing, by share partition."""
    if scoped.places.num_rows == 0:
        return MISSING_LETTERS.empty_table()
    configured = any(
        DEAD_LETTER_TOPIC in group_config for p in settings.periods() for group_config in (p.groups or {}).values()
    )
    if not (is_stored(scoped, TABLE, settings) or configured or read_dead_letter_partitions(scoped.evidence).num_rows):
        return MISSING_LETTERS.empty_table()
    rows = judged_stream(scoped, cut, settings, pc.field("status") == MISSING)
    return by_share_partition("dead_letters_missing", rows).cast(MISSING_LETTERS)
