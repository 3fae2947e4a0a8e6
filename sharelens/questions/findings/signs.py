"""Gathers the signs of trouble at the end of the evidence, as small tables: what rules of findings judge.

A lake answers from its gold tables, so that the cost goes by the number of share partitions; log directories from one
pass over the histories.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.findings.signs import Audited, ConsumerSign, GroupSign, ShareCoordination, Signs, StreamsSign
from sharelens.findings.thresholds import HOUR_MS
from sharelens.groups import summary
from sharelens.groups.moment import groups_at
from sharelens.groups.replay import SHARE_TYPES, is_of_types
from sharelens.groups.schemas import CONSUMER, STREAMS
from sharelens.measures import lag
from sharelens.measures.figures import counted
from sharelens.measures.settings.over_time import GroupSettings
from sharelens.measures.stalls import intervals as stalls
from sharelens.measures.stalls.intervals import MIN_DURATION_MS
from sharelens.measures.topics.extents import topic_partitions
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.answers.completeness import COMPLETE, evidence_times
from sharelens.questions.answers.measured import Scope, scope
from sharelens.questions.answers.missing import unknown_ends, unseen_stalls
from sharelens.questions.answers.now import now_at
from sharelens.questions.audits.published import audited_findings
from sharelens.questions.findings.consumer_signs import consumer_signs
from sharelens.questions.findings.group_signs import share_coordination
from sharelens.questions.findings.letter_signs import unaccounted_letters
from sharelens.questions.findings.measured_signs import LAGS, of_histories, of_lake
from sharelens.questions.findings.metadata_signs import RETENTION, topic_settings, unwritable
from sharelens.questions.findings.pruning_signs import unpruned_state
from sharelens.questions.findings.streams_signs import streams_signs
from sharelens.questions.groups.describe_committed import unknown_lag
from sharelens.questions.lag import lag as lag_answer
from sharelens.questions.lag import lag_of
from sharelens.questions.life import with_deletions
from sharelens.questions.stalled import UNSEEN
from sharelens.source.request import CutChoice
from sharelens.tables.known_groups import modelled_groups, of_filter, undecoded_groups
from sharelens.tables.port import Tables
from sharelens.tables.reading import (
    read_group_records,
    read_topic_extents,
)


def signs(
    evidence: Tables,
    key_filter: KeyFilter,
    cut: CutChoice,
    settings: GroupSettings,
    min_duration_ms: int | None,
    *,
    with_consumers: bool = False,
) -> Signs:
    """The signs at the cut, which also says what is now; `min_duration_ms`: how long a silence is a stall (None: by
    default). `with_consumers`: those of consumer groups, too.

    Raises:
        UsageError: the evidence has none of the names, or --now lies before its last record.
        SharelensError: the cut lies before the evidence.
    """
    scoped = scope(evidence, key_filter, cut, modelled_groups(evidence, key_filter.groups))
    read = signs_of(scoped, None, key_filter, cut, settings, min_duration_ms)
    if not with_consumers:
        return read
    consumers = _consumers(scoped.evidence, key_filter, cut, read.now_ms)
    return replace(read, consumers=consumers, warnings=(*read.warnings, *undecoded_groups(evidence)))


def unknown_consumer_lags(read: Signs) -> Sequence[str]:
    """The warning that lags of consumer groups are unknown; none where all are known."""
    return _unknown_lags(read.consumers, CONSUMER)


def _consumers(evidence: Tables, key_filter: KeyFilter, cut: CutChoice, now_ms: int) -> Sequence[ConsumerSign]:
    records = of_filter(read_group_records(evidence, None), key_filter)
    return consumer_signs(evidence, records, cut.as_of_ms, now_ms)


def signs_of(
    scoped: Scope,
    lags: pa.Table | None,
    key_filter: KeyFilter,
    cut: CutChoice,
    settings: GroupSettings,
    min_duration_ms: int | None,
) -> Signs:
    """As `signs`, from the scope of the filter and the cut and from its LAG rows; None: they are read here."""
    evidence = scoped.evidence
    now = now_at(evidence, cut)
    quiet_ms = MIN_DURATION_MS if min_duration_ms is None else min_duration_ms
    tables, all_states = of_lake(scoped, now.ms, settings, quiet_ms), None
    if tables is not None:
        lags = tables.lag if lags is None else lags
    else:
        tables, states = of_histories(scoped, now.ms, settings, quiet_ms)
        all_states = states if key_filter.keeps_all and not scoped.misplaced.num_rows else None
        if lags is None and scoped.cut.is_whole:
            lags = lag_of(evidence, states, scoped.cut)
        elif lags is None:
            lags = lag_answer(
                evidence, key_filter, cut, other_groups=modelled_groups(evidence, key_filter.groups)
            ).table
    assert lags is not None
    lags = lags.select(LAGS.names)
    coordinator = _coordinator(scoped, key_filter, cut, now.ms)
    first_ms, last_ms = evidence_times(evidence)
    audited = audited_findings(evidence, scoped.keys, cut.as_of_ms)
    topic_ids = scoped.places.column("topic_id").unique().to_pylist()
    names = evidence.names(topic_ids)
    extents = read_topic_extents(evidence, scoped.user_partitions)
    missing, unjudged = unaccounted_letters(scoped, cut, settings, tables.given_up)
    return Signs(
        now=now,
        first_ms=first_ms or 0,
        last_ms=last_ms or 0,
        lag=lags,
        samples=tables.samples,
        stalls=tables.stalls.filter(pc.not_equal(tables.stalls.column("kind"), stalls.IDLE)),
        attempts=tables.attempts,
        archived=_archived(tables.given_up),
        events=_with_causes(evidence, tables.events, cut),
        not_started=_not_started(evidence, lags),
        missing_letters=missing,
        unjudged_letters=unjudged,
        groups=coordinator.groups,
        share_groups=_share_groups(scoped.places, coordinator.groups),
        coordination=coordinator.coordination,
        streams=coordinator.streams,
        audited=audited,
        unwritable=unwritable(evidence, cut.as_of_ms),
        unpruned=unpruned_state(scoped, all_states),
        log_starts=_log_starts(evidence, extents, names),
        retention_ms=_retention(evidence, names, cut.as_of_ms),
        with_headers=frozenset(topic_partitions(extents)),
        cover=evidence.cover(),
        missing=evidence.missing,
        names=names,
        warnings=(
            *scoped.warnings,
            *unknown_ends(lags),
            *unseen_stalls(evidence, scoped.user_partitions, UNSEEN),
            *_unknown_lags(coordinator.streams, STREAMS),
            *_expired(audited),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Coordinator:
    """What the group coordinator's log says; `groups`: None without a record."""

    groups: pa.Table | None
    coordination: Sequence[ShareCoordination]
    streams: Sequence[StreamsSign]


def _coordinator(scoped: Scope, key_filter: KeyFilter, cut: CutChoice, now_ms: int) -> _Coordinator:
    selected = {*scoped.places.column("group_id").unique().to_pylist(), *key_filter.groups}
    records = read_group_records(scoped.evidence, None)
    streams = streams_signs(scoped.evidence, of_filter(records, key_filter), cut.as_of_ms, now_ms)
    if not records.num_rows:
        return _Coordinator(groups=None, coordination=(), streams=streams)
    of_share_groups = records.filter(is_of_types(records, SHARE_TYPES))
    moments = groups_at(of_share_groups, cut.as_of_ms)
    existing = {sign.group_id for sign in streams}  # deleted before, of the same name
    moments = {
        name: moment
        for name, moment in moments.items()
        if name not in existing and (key_filter.keeps_all or name in selected)
    }
    return _Coordinator(
        groups=summary.group_rows(moments),
        coordination=share_coordination(of_share_groups, moments, now_ms, cut.as_of_ms),
        streams=streams,
    )


def _log_starts(evidence: Tables, extents: pa.Table, names: Mapping[str, str]) -> dict[tuple[str, int], int]:
    """Log start offsets of user partitions, by headers, and by checkpoints where their folders are absent."""
    counts = Counter(names.values())
    ids = {name: topic_id for topic_id, name in names.items() if counts[name] == 1}
    by_checkpoint = {
        (ids[topic], partition): offset
        for (topic, partition), offset in evidence.settings.log_starts.items()
        if topic in ids
    }
    return by_checkpoint | {
        (row["topic_id"], row["partition"]): row["log_start_offset"]
        for row in extents.to_pylist()
        if row["log_start_offset"] is not None
    }


def _with_causes(evidence: Tables, events: pa.Table, cut: CutChoice) -> pa.Table:
    """The events with `deleted_by_inferred`."""
    return with_deletions(evidence, events, cut)[0]


def _retention(evidence: Tables, names: Mapping[str, str], as_of_ms: int | None) -> dict[str, int]:
    """`retention.ms` by topic id, where the metadata log says it and it has an end."""
    by_name = topic_settings(evidence, RETENTION, as_of_ms)
    return {topic_id: by_name[name] for topic_id, name in names.items() if by_name.get(name, 0) > 0}


def _share_groups(places: pa.Table, coordinated: pa.Table | None) -> Sequence[str]:
    columns = [rows.column("group_id").unique().to_pylist() for rows in (places, coordinated) if rows is not None]
    return sorted({group_id for column in columns for group_id in column})


def _unknown_lags(signs_of_groups: Sequence[GroupSign], group_type: str) -> Sequence[str]:
    unknown = sum(sign.lag.unknown for sign in signs_of_groups)
    return unknown_lag(unknown, group_type)


def _expired(audited: Audited | None) -> tuple[str, ...]:
    return () if audited is None else audited.warnings


def _archived(given_up: pa.Table) -> pa.Table:
    """The GIVEN_UP rows of records, gaps left out, with `hour_ms` of their last outcome and `records`."""
    rows = counted("archived_records", given_up)
    hours = pc.multiply(pc.divide(rows.column("last_outcome_ms"), HOUR_MS), HOUR_MS)
    return rows.append_column("hour_ms", hours)


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
