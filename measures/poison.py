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

from measures import given_up
from measures.given_up import ARCHIVING_AT, EARLIEST, ENTERED, FINAL, FIRST, LAST, PRESENCE
from measures.grouped import grouped
from measures.headers import ABORTED, Spans, spans_of
from measures.inputs import Inputs
from measures.places import coded, places_of
from measures.redelivered import rows_at
from measures.schemas import POISON_RECORD
from measures.settings import DELIVERY_COUNT_LIMIT, LOWEST_DELIVERY_COUNT_LIMIT, GroupSettings
from measures.topics import TopicPartition
from state_model.columnar.keys import SHARE_PARTITION_KEY
from state_model.columnar.ranges import MAX_OFFSET
from state_model.columnar.schemas import COMPLETENESS

Ints = npt.NDArray[np.int64]
AVAILABLE_STATE, ARCHIVING_STATE, ARCHIVED_STATE = 0, 3, 4
REJECTED, DELIVERY_LIMIT, GAP, UNKNOWN = "rejected", "delivery_limit", "gap", "unknown"
DEAD_LETTER, CONFIGURATION, HEADERS, INFERRED = "dead_letter", "configuration", "headers", "inferred"

RECORD, NO_RECORD_THERE, UNSEEN = range(3)
NEVER = -1
NO_LIMIT = 1 << 62
NO_OFFSETS: Ints = np.empty(0, np.int64)
NO_SPANS = (NO_OFFSETS, NO_OFFSETS, np.empty(0, np.int8))

ORDER = [(name, "ascending") for name in (*SHARE_PARTITION_KEY, "state_partition", "life_log_offset", "offset")]


def rows(inputs: Inputs, *, near_limit: bool = False) -> pa.Table:
    """POISON_RECORD rows by share partition, life and offset; `near_limit` as in `poison`."""
    empty = inputs.no_records()
    ranges, header_ranges = empty.ranges(), empty.header_ranges()
    return poison(inputs.history(), inputs.deliveries(), ranges, header_ranges, inputs.settings, near_limit=near_limit)


def poison(
    history: pa.Table,
    deliveries: pa.Table,
    no_records: pa.Table,
    header_ranges: pa.Table,
    settings: GroupSettings,
    *,
    near_limit: bool = False,
) -> pa.Table:
    """POISON_RECORD rows by share partition, life and offset.

    Args:
        history: SHARE_PARTITION_HISTORY rows of the share partitions; they have the completeness.
        deliveries: DELIVERY_HISTORY rows of whole share partitions.
        no_records: measures.headers.NO_RECORD rows of their user partitions, as far as known.
        header_ranges: measures.headers.HEADER_RANGE rows of the same.
        settings: of the groups.
        near_limit: also records that the next failed delivery will archive, where the limit is known.
    """
    pieces = given_up.pieces_of(*_given_up_ranges(deliveries, settings, near_limit=near_limit))
    spans = spans_of(no_records.filter(pc.not_equal(no_records.column("reason"), ABORTED)))
    covered = {(topic_id, partition): (first, last) for topic_id, partition, first, last in _tuples(header_ranges)}
    table = _table(_with_presences(pieces, deliveries, spans, covered), deliveries, settings)
    table = _with_completeness(table, history)
    return table.sort_by(ORDER)


def _given_up_ranges(deliveries: pa.Table, settings: GroupSettings, *, near_limit: bool) -> tuple[Ints, Ints, Ints]:
    """The ranges as the kernel reads them; their row numbers by life, and where each life begins among these."""
    (place,), _ = places_of(deliveries)
    life = pa.array(deliveries.column("life_log_offset").to_numpy()).dictionary_encode().indices.to_numpy()
    lives = pa.array((place << 32) | life).dictionary_encode()
    names = ("first_offset", "last_offset", "valid_from_log_offset", "delivery_state", "delivery_count")
    first, last, begin, states, counts = (deliveries.column(name).to_numpy().astype(np.int64) for name in names)
    near = np.zeros(len(states), np.bool_)
    if near_limit:
        groups, codes = coded(deliveries.column("group_id"))
        limits = [settings.of(group, DELIVERY_COUNT_LIMIT).number for group in groups]
        least = np.array([NO_LIMIT if limit is None else limit - 1 for limit in limits], np.int64)
        is_open = deliveries.column("is_open").to_numpy(zero_copy_only=False)
        near = (states == AVAILABLE_STATE) & (counts >= least[codes])
        is_open_near = near & is_open
    is_given_up = (states == ARCHIVED_STATE) | (states == ARCHIVING_STATE)
    is_selected = is_given_up | is_open_near if near_limit else is_given_up
    flags = (is_given_up | near) * given_up.REACHED + is_selected * given_up.SELECTED
    rows, begins = grouped(lives.indices.to_numpy().astype(np.int64), len(lives.dictionary))
    return np.stack([first, last, begin, states, flags], axis=1), rows, begins


def _tuples(rows: pa.Table) -> Iterator[tuple[Any, ...]]:
    return zip(*(rows.column(name).to_pylist() for name in rows.column_names), strict=True)


def _with_presences(
    pieces: Ints, deliveries: pa.Table, spans: Spans, covered: Mapping[TopicPartition, tuple[int, int]]
) -> Ints:
    """The pieces, cut where it changes whether a record is there, with PRESENCE."""
    pieces[:, PRESENCE] = UNSEEN
    if not covered:
        return pieces
    at = deliveries.select(["topic_id", "partition"]).take(pa.array(pieces[:, FINAL]))
    topics, codes = coded(at.column("topic_id"))
    places = (codes << 32) | at.column("partition").to_numpy()
    known = np.unique(places)
    rows, begins = grouped(np.searchsorted(known, places), len(known))
    cut = [pieces[:0]]
    for number, (begin, end) in enumerate(itertools.pairwise(begins.tolist())):
        topic = (topics[known[number] >> 32], int(known[number] & 0xFFFFFFFF))
        span = covered.get(topic)
        mine = pieces[rows[begin:end]]
        cut.append(mine if span is None else _with_presence(mine, spans.get(topic, NO_SPANS)[:2], span))
    return np.concatenate(cut)


def _cut(pieces: Ints, others: list[Ints]) -> Ints:
    """The pieces, cut at every beginning and end of the other ones."""
    bounds = np.unique(np.concatenate([other[:, 0] for other in others] + [_after(other[:, 1]) for other in others]))
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
    seen = np.array([(*span, 0)], np.int64)
    pieces = _cut(pieces, [gaps, seen])
    there = np.where(_covers(seen, pieces[:, FIRST]), RECORD, UNSEEN)
    pieces[:, PRESENCE] = np.where(_covers(gaps, pieces[:, FIRST]), NO_RECORD_THERE, there)
    return pieces


def _table(pieces: Ints, deliveries: pa.Table, settings: GroupSettings) -> pa.Table:
    """POISON_RECORD rows without completeness; places in `deliveries` stand in the pieces."""
    rows = deliveries.take(pa.array(pieces[:, FINAL]))
    entered = deliveries.take(pa.array(pieces[:, ENTERED]))
    groups, codes = coded(rows.column("group_id"))
    of_row = pa.array(codes)
    limit_settings = [settings.of(group, DELIVERY_COUNT_LIMIT) for group in groups]
    limits = pa.array([setting.number for setting in limit_settings], pa.int64()).take(of_row)
    cause, source = _causes(pieces, rows, pc.fill_null(limits, 0).to_numpy())
    columns = {name: rows.column(name) for name in rows.column_names} | {
        "offset": pieces[:, FIRST],
        "last_offset": pieces[:, LAST],
        "cause": cause,
        "cause_source": source,
        "delivery_count_limit": limits,
        "delivery_count_limit_source": pa.array([setting.origin for setting in limit_settings], pa.string()).take(
            of_row
        ),
        "first_outcome_ms": deliveries.column("valid_from_ms").take(pa.array(pieces[:, EARLIEST])),
        "last_outcome_ms": entered.column("valid_from_ms"),
        "archiving_ms": deliveries.column("valid_from_ms").take(
            pa.array(pieces[:, ARCHIVING_AT], mask=pieces[:, ARCHIVING_AT] == NEVER)
        ),
        "log_offset": entered.column("valid_from_log_offset"),
    }
    names = [name for name in POISON_RECORD.names if name in columns]
    return pa.table({name: columns[name] for name in names}).cast(pa.schema([POISON_RECORD.field(n) for n in names]))


def _causes(pieces: Ints, rows: pa.Table, limits: Ints) -> tuple[pa.Array, pa.Array]:
    """Cause and its source of each piece; the first rule that applies. A limit of 0 is unknown."""
    counts = rows.column("delivery_count").to_numpy().astype(np.int64)
    near = rows.column("delivery_state").to_numpy() == AVAILABLE_STATE
    presence, has_limit = pieces[:, PRESENCE], limits > 0
    letter, exceeded = pieces[:, ARCHIVING_AT] != NEVER, (limits > 0) & (counts >= limits)
    first_try = ~has_limit & (counts < LOWEST_DELIVERY_COUNT_LIMIT)
    rules: list[tuple[npt.NDArray[np.bool_], str | None, str | None]] = [
        (near, None, None),
        (presence == NO_RECORD_THERE, GAP, HEADERS),
        (exceeded & (letter | (presence == RECORD)), DELIVERY_LIMIT, CONFIGURATION),
        (exceeded, DELIVERY_LIMIT, INFERRED),
        (letter & (has_limit | first_try), REJECTED, DEAD_LETTER),
        ((presence == RECORD) & has_limit, REJECTED, CONFIGURATION),
        ((presence == RECORD) & first_try, REJECTED, INFERRED),
        (np.ones(len(pieces), np.bool_), UNKNOWN, None),
    ]
    rule = np.select([condition for condition, _, _ in rules], np.arange(len(rules)).tolist(), len(rules) - 1)
    causes, sources = ([entry[at] for entry in rules] for at in (1, 2))
    return pa.array(causes, pa.string()).take(pa.array(rule)), pa.array(sources, pa.string()).take(pa.array(rule))


def _with_completeness(table: pa.Table, history: pa.Table) -> pa.Table:
    """The marks of the state after the record at each row's log_offset."""
    at = rows_at(history, table.column("state_partition").to_numpy(), table.column("log_offset").to_numpy())
    for field in COMPLETENESS:
        table = table.append_column(field.name, history.column(field.name).take(at))
    return table.cast(POISON_RECORD)
