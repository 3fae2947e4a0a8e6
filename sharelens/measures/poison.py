"""Poison records: records that a group archived, with the cause if log or configuration has it.

    ARCHIVED in the log    no record there (control record, absent)    gap            by the topic's headers
                           ARCHIVING before, fewer than the limit      rejected       4.4: on its way to a dead letter
                           fewer deliveries than the limit             rejected
                           as many deliveries as the limit             delivery_limit
                           no known limit, delivered once              rejected       no broker takes a limit below 2
                           else                                        unknown

A rejection at the last delivery looks like an exceeded limit, and a later change of the limit makes either look like
the other: only a dead letter is certain. Where no batch header is known, an archived offset may be a gap as well.
"""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.histories import given_up
from sharelens.measures.histories.given_up import (
    ARCHIVING_AT,
    EARLIEST,
    ENTERED,
    FINAL,
    FIRST,
    LAST,
    PRESENCE,
)
from sharelens.measures.histories.numbers import (
    RANGE_COUNT,
    RANGE_FROM,
    RANGE_MS,
    RANGE_STATE,
    RANGE_TO,
    Histories,
)
from sharelens.measures.histories.numbers import UNKNOWN as OPEN
from sharelens.measures.inputs import Inputs
from sharelens.measures.schemas import POISON_RECORD
from sharelens.measures.settings.over_time import (
    DELIVERY_COUNT_LIMIT,
    LOWEST_DELIVERY_COUNT_LIMIT,
    GroupSettings,
    in_force_at,
)
from sharelens.measures.topics.extents import TopicPartition, topic_partitions
from sharelens.measures.topics.headers import ABORTED, NoRecords, Spans, spans_of
from state_model.columnar.keys import FULL_PLACE_KEY, SHARE_PARTITION_KEY, number_keys
from state_model.columnar.ranges import MAX_OFFSET
from state_model.columnar.schemas import COMPLETENESS
from state_model.columnar.values import state_names

Ints = npt.NDArray[np.int64]
AVAILABLE_STATE, ARCHIVING_STATE, ARCHIVED_STATE = 0, 3, 4
REJECTED, DELIVERY_LIMIT, GAP, UNKNOWN = "rejected", "delivery_limit", "gap", "unknown"
DEAD_LETTER, CONFIGURATION, HEADERS, INFERRED = "dead_letter", "configuration", "headers", "inferred"

RECORD, NO_RECORD_THERE, UNSEEN = range(3)
NEVER = -1
NO_LIMIT = 1 << 62
NO_OFFSETS: Ints = np.empty(0, np.int64)
NO_SPANS = (NO_OFFSETS, NO_OFFSETS, np.empty(0, np.int8))

ORDER = [(name, "ascending") for name in (*SHARE_PARTITION_KEY, "state_partition", "life_log_offset", "first_offset")]


def rows(inputs: Inputs, *, near_limit: bool = False) -> pa.Table:
    """POISON_RECORD rows by share partition, life and offset; `near_limit` as in `poison`."""
    empty = inputs.no_records()
    ranges, header_ranges = empty.ranges(), empty.header_ranges()
    settings = inputs.settings.in_force(inputs.as_of_ms)
    return poison(inputs.histories(), ranges, header_ranges, settings, near_limit=near_limit)


def poison(
    histories: Histories,
    no_records: pa.Table,
    header_ranges: pa.Table,
    settings: GroupSettings,
    *,
    near_limit: bool = False,
) -> pa.Table:
    """POISON_RECORD rows by share partition, life and offset.

    Args:
        histories: of whole share partitions.
        no_records: sharelens.measures.topics.headers.NO_RECORD rows of their user partitions, as far as known.
        header_ranges: sharelens.measures.topics.headers.HEADER_RANGE rows of the same.
        settings: of the groups; the limit in force at the last outcome counts.
        near_limit: also records that the next failed delivery will archive, where the limit is known.
    """
    pieces = given_up.pieces_of(histories.ranges, _flags(histories, settings, near_limit), histories.life_begins)
    spans = _gap_spans(no_records)
    covered = {(topic_id, partition): (first, last) for topic_id, partition, first, last in _tuples(header_ranges)}
    return _table(_with_presences(pieces, histories, spans, covered), histories, settings).sort_by(ORDER)


def _flags(histories: Histories, settings: GroupSettings, near_limit: bool) -> Ints:
    """Flags of the ranges: REACHED for a selected state, SELECTED where it also counts as the last of its offsets."""
    state = histories.ranges[:, RANGE_STATE]
    is_given_up = (state == ARCHIVED_STATE) | (state == ARCHIVING_STATE)
    flags: Ints = is_given_up * (given_up.REACHED | given_up.SELECTED)
    if near_limit:
        limits = [settings.of(group, DELIVERY_COUNT_LIMIT).number for group in _groups(histories)]
        least = np.array([NO_LIMIT if limit is None else limit - 1 for limit in limits], np.int64)
        of_range = np.repeat(least[histories.life_place], np.diff(histories.life_begins))
        near = (state == AVAILABLE_STATE) & (histories.ranges[:, RANGE_COUNT] >= of_range)
        flags[near] |= given_up.REACHED
        flags[near & (histories.ranges[:, RANGE_TO] == OPEN)] |= given_up.SELECTED
    return flags


def _groups(histories: Histories) -> list[str]:
    """The share group of each place."""
    groups: list[str] = histories.places.column("group_id").to_pylist()
    return groups


def _tuples(rows: pa.Table) -> Iterator[tuple[Any, ...]]:
    return zip(*(rows.column(name).to_pylist() for name in rows.column_names), strict=True)


def _with_presences(
    pieces: Ints, histories: Histories, spans: Spans, covered: Mapping[TopicPartition, tuple[int, int]]
) -> Ints:
    """The pieces, cut where it changes whether a record is there, with PRESENCE."""
    pieces[:, PRESENCE] = UNSEEN
    if not covered:
        return pieces
    places = histories.life_place[_lives(pieces, histories)]
    bounds = np.searchsorted(places, np.arange(histories.places.num_rows + 1))
    cut = [pieces[:0]]
    for topic, (begin, end) in zip(
        topic_partitions(histories.places), itertools.pairwise(bounds.tolist()), strict=True
    ):
        span, partition_pieces = covered.get(topic), pieces[begin:end]
        cut.append(
            partition_pieces if span is None else _with_presence(partition_pieces, spans.get(topic, NO_SPANS)[:2], span)
        )
    return np.concatenate(cut)


def _lives(pieces: Ints, histories: Histories) -> Ints:
    """The position of the life of each piece in `Histories.life_place`; ascends."""
    lives: Ints = np.searchsorted(histories.life_begins, pieces[:, FINAL], "right") - 1
    return lives


def _cut(pieces: Ints, other_pieces: list[Ints]) -> Ints:
    """The pieces, cut at every beginning and end of the other ones."""
    bounds = np.unique(
        np.concatenate([other[:, 0] for other in other_pieces] + [_after(other[:, 1]) for other in other_pieces])
    )
    low, high = (np.searchsorted(bounds, pieces[:, at], "right") for at in (0, 1))
    inside = [bounds[begin:end] for begin, end in zip(low, high, strict=True)]
    counts = np.array([len(cuts) + 1 for cuts in inside], np.int64)
    out = np.repeat(pieces, counts, axis=0)
    starts = np.cumsum(counts) - counts
    for start, cuts in zip(starts.tolist(), inside, strict=True):
        out[start + 1 : start + 1 + len(cuts), 0] = cuts
        out[start : start + len(cuts), 1] = cuts - 1
    return out


def _after(lasts: Ints) -> Ints:
    return np.minimum(lasts, MAX_OFFSET - 1) + 1


def _covers(pieces: Ints, offsets: Ints) -> npt.NDArray[np.bool_]:
    at = np.searchsorted(pieces[:, 0], offsets, "right") - 1
    if len(pieces) == 0:
        return np.zeros(len(offsets), np.bool_)
    covered: npt.NDArray[np.bool_] = (at >= 0) & (pieces[at, 1] >= offsets)
    return covered


def _with_presence(pieces: Ints, gap_spans: tuple[Ints, Ints], span: tuple[int, int]) -> Ints:
    """The pieces, cut where it changes whether a record is there, with PRESENCE."""
    firsts, lasts = gap_spans
    gaps = np.stack([firsts, lasts, firsts], axis=1)
    header_span = np.array([(*span, 0)], np.int64)
    pieces = _cut(pieces, [gaps, header_span])
    there = np.where(_covers(header_span, pieces[:, FIRST]), RECORD, UNSEEN)
    pieces[:, PRESENCE] = np.where(_covers(gaps, pieces[:, FIRST]), NO_RECORD_THERE, there)
    return pieces


def _table(pieces: Ints, histories: Histories, settings: GroupSettings) -> pa.Table:
    """POISON_RECORD rows of the pieces, in their order."""
    final, entered = histories.ranges[pieces[:, FINAL]], histories.ranges[pieces[:, ENTERED]]
    life = _lives(pieces, histories)
    place = histories.life_place[life]
    of_piece = pa.array(place)
    time_ms = np.append(histories.ranges[:, RANGE_MS], NEVER)
    groups = _groups(histories)
    at_outcome, in_force = in_force_at(settings, place, entered[:, RANGE_MS])
    limit_settings = [period.of(groups[number], DELIVERY_COUNT_LIMIT) for number, period in in_force]
    limits = pa.array([setting.number for setting in limit_settings], pa.int64()).take(pa.array(at_outcome))
    origins = pa.array([setting.origin for setting in limit_settings], pa.string()).take(pa.array(at_outcome))
    archiving = pieces[:, ARCHIVING_AT]
    cause, source = _causes(
        final[:, RANGE_STATE], final[:, RANGE_COUNT], pieces[:, PRESENCE], archiving != NEVER, _known_limits(limits)
    )
    state = pa.array(final[:, RANGE_STATE].astype(np.int8))
    columns = {name: histories.places.column(name).take(of_piece) for name in FULL_PLACE_KEY} | {
        "life_log_offset": histories.life_key[life],
        "first_offset": pieces[:, FIRST],
        "last_offset": pieces[:, LAST],
        "delivery_state": state,
        "delivery_state_name": state_names(state),
        "delivery_count": final[:, RANGE_COUNT],
        "cause": cause,
        "cause_source": source,
        "delivery_count_limit": limits,
        "delivery_count_limit_source": origins,
        "first_outcome_ms": time_ms[pieces[:, EARLIEST]],
        "last_outcome_ms": entered[:, RANGE_MS],
        "archiving_ms": pa.array(time_ms[archiving], mask=archiving == NEVER),
        "log_offset": entered[:, RANGE_FROM],
    }
    at = histories.rows_at(place, entered[:, RANGE_FROM])
    marks = histories.history.select([field.name for field in COMPLETENESS]).take(at)
    columns |= {name: marks.column(name) for name in marks.column_names}
    return pa.table({name: columns[name] for name in POISON_RECORD.names}).cast(POISON_RECORD)


def causes_of_rows(rows: pa.Table, no_records: NoRecords) -> tuple[pa.Array, pa.Array]:
    """Cause and its source of POISON_RECORD rows by state log, headers and settings, whatever cause they have.

    `no_records`: of their user partitions. As in rows of `poison`, all offsets of a row have a record, or none has.
    """
    spans, header_ranges = _gap_spans(no_records.ranges()), _tuples(no_records.header_ranges())
    covered = {(topic_id, partition): (first, last) for topic_id, partition, first, last in header_ranges}
    (number,), keys = number_keys(rows)
    topics, offsets = topic_partitions(keys), rows.column("first_offset").to_numpy()
    presence = np.full(rows.num_rows, UNSEEN)
    for place in np.unique(number).tolist():
        if (span := covered.get(topics[place])) is None:
            continue
        at = np.flatnonzero(number == place)
        gaps = np.stack(spans.get(topics[place], NO_SPANS)[:2], axis=1)
        there = np.where(_covers(np.array([span]), offsets[at]), RECORD, UNSEEN)
        presence[at] = np.where(_covers(gaps, offsets[at]), NO_RECORD_THERE, there)
    state, count = (rows.column(name).to_numpy() for name in ("delivery_state", "delivery_count"))
    is_archiving = pc.is_valid(rows.column("archiving_ms")).to_numpy()
    return _causes(state, count, presence, is_archiving, _known_limits(rows.column("delivery_count_limit")))


def _known_limits(limits: pa.ChunkedArray | pa.Array) -> Ints:
    """The limits; 0 where it is unknown."""
    known_limits: Ints = pc.fill_null(limits, 0).to_numpy().astype(np.int64)
    return known_limits


def _gap_spans(no_records: pa.Table) -> Spans:
    """The offsets that never held a record; those of aborted transactions hold one."""
    return spans_of(no_records.filter(pc.not_equal(no_records.column("reason"), ABORTED)))


def _causes(
    state: Ints, counts: Ints, presence: Ints, letter: npt.NDArray[np.bool_], limits: Ints
) -> tuple[pa.Array, pa.Array]:
    """Cause and its source of each piece; the first rule that applies.

    `letter`: whether it was on its way to a dead letter (ARCHIVING). A limit of 0 is unknown.
    """
    near, has_limit, exceeded = state == AVAILABLE_STATE, limits > 0, (limits > 0) & (counts >= limits)
    first_try = ~has_limit & (counts < LOWEST_DELIVERY_COUNT_LIMIT)
    rules: list[tuple[npt.NDArray[np.bool_], str | None, str | None]] = [
        (near, None, None),
        (presence == NO_RECORD_THERE, GAP, HEADERS),
        (exceeded & (letter | (presence == RECORD)), DELIVERY_LIMIT, CONFIGURATION),
        (exceeded, DELIVERY_LIMIT, INFERRED),
        (letter & (has_limit | first_try), REJECTED, DEAD_LETTER),
        ((presence == RECORD) & has_limit, REJECTED, CONFIGURATION),
        ((presence == RECORD) & first_try, REJECTED, INFERRED),
        (np.ones(len(state), np.bool_), UNKNOWN, None),
    ]
    rule = np.select([condition for condition, _, _ in rules], np.arange(len(rules)).tolist(), len(rules) - 1)
    causes, sources = ([entry[at] for entry in rules] for at in (1, 2))
    return pa.array(causes, pa.string()).take(pa.array(rule)), pa.array(sources, pa.string()).take(pa.array(rule))
