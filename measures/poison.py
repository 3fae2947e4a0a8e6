"""Poison: records that a group gave up, with the cause as far as the log and the configuration tell it.

    ARCHIVED in the log    no record there (control record, absent)    gap            by the topic's headers
                           ARCHIVING before, fewer than the limit      rejected       4.4: on its way to a dead letter
                           fewer deliveries than the limit             rejected
                           as many deliveries as the limit             delivery_limit
                           no limit told, delivered once               rejected       no broker takes a limit below 2
                           else                                        unknown

A rejection at the last delivery looks like an exceeded limit, and a limit that was changed since makes a wrong one of
either: only a dead letter's own words tell for sure. Where no header is held, an archived offset may be a gap as well.
"""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from measures.headers import ABORTED, spans_of
from measures.redelivered import rows_at
from measures.schemas import POISON_RECORD
from measures.settings import DELIVERY_COUNT_LIMIT, LOWEST_DELIVERY_COUNT_LIMIT, GroupSettings
from state_model.columnar.keys import KEY, number_keys
from state_model.columnar.ranges import MAX_OFFSET, paint
from state_model.columnar.schemas import COMPLETENESS

Ints = npt.NDArray[np.int64]
AVAILABLE_STATE, ARCHIVING_STATE, ARCHIVED_STATE = 0, 3, 4
REJECTED, DELIVERY_LIMIT, GAP, UNKNOWN = "rejected", "delivery_limit", "gap", "unknown"
DEAD_LETTER, CONFIGURATION, HEADERS, INFERRED = "dead_letter", "configuration", "headers", "inferred"

# Columns of a piece of offsets.
(FIRST, LAST, FINAL, EARLIEST, ENTERED, ARCHIVING_AT, PRESENCE) = range(7)
WIDTH = 7
RECORD, NOTHING, UNSEEN = range(3)
NEVER = -1
NO_OFFSETS: Ints = np.empty(0, np.int64)
PLACE = ["state_partition", *KEY, "life_log_offset"]
READ = [*PLACE, "first_offset", "last_offset", "delivery_state", "delivery_count", "is_open"]


def poison(
    history: pa.Table,
    deliveries: pa.Table,
    no_records: pa.Table,
    held: pa.Table,
    settings: GroupSettings,
    *,
    near_limit: bool = False,
) -> pa.Table:
    """POISON_RECORD rows by share partition, life and offset.

    Args:
        history: SHARE_PARTITION_HISTORY rows of the share partitions; completeness is taken from them.
        deliveries: DELIVERY_HISTORY rows of whole share partitions.
        no_records: measures.headers.NO_RECORD rows of their user partitions, as far as known.
        held: measures.headers.HELD rows of the same.
        settings: of the groups.
        near_limit: also records that the next failed delivery will archive, where the limit is told.
    """
    groups = deliveries.column("group_id").unique().to_pylist()
    limits = {group: settings.of(group, DELIVERY_COUNT_LIMIT).number for group in groups}
    spans = spans_of(no_records.filter(pc.not_equal(no_records.column("reason"), ABORTED)))
    covered = {
        (row["topic_id"], row["partition"]): (row["first_offset"], row["last_offset"]) for row in held.to_pylist()
    }
    found = [np.empty((0, WIDTH), np.int64)]
    for place, mine, at in _lives(deliveries):
        limit = limits[place["group_id"]] if near_limit else None
        pieces = _pieces(mine, limit)
        if len(pieces) == 0:
            continue
        topic = (place["topic_id"], place["partition"])
        pieces = _with_presence(pieces, spans.get(topic, (NO_OFFSETS, NO_OFFSETS))[:2], covered.get(topic))
        pieces[:, [FINAL, EARLIEST, ENTERED]] = at[pieces[:, [FINAL, EARLIEST, ENTERED]]]
        was = pieces[:, ARCHIVING_AT] != NEVER
        pieces[was, ARCHIVING_AT] = at[pieces[was, ARCHIVING_AT]]
        found.append(pieces)
    table = _table(np.concatenate(found), deliveries, settings)
    table = _with_completeness(table, history)
    return table.sort_by([(name, "ascending") for name in (*KEY, "state_partition", "life_log_offset", "offset")])


def _lives(deliveries: pa.Table) -> Iterator[tuple[dict[str, Any], pa.Table, Ints]]:
    """The ranges of each life in which something was archived or is about to be, as they began, with their places."""
    if deliveries.num_rows == 0:
        return
    (codes,), _ = number_keys(deliveries)
    names = ("first_offset", "valid_from_log_offset", "life_log_offset", "state_partition")
    firsts, begins, lives, numbers = (deliveries.column(name).to_numpy() for name in names)
    order = np.lexsort((firsts, begins, lives, numbers, codes))
    same = (np.diff(codes[order]) == 0) & (np.diff(lives[order]) == 0) & (np.diff(numbers[order]) == 0)
    cuts = [0, *(np.flatnonzero(~same) + 1).tolist(), len(order)]
    for begin, end in itertools.pairwise(cuts):
        at = order[begin:end]
        mine = deliveries.select(READ).take(pa.array(at))
        yield mine.slice(0, 1).to_pylist()[0], mine, at


def _painted(firsts: Ints, lasts: Ints, chosen: Ints, ranks: Ints) -> Ints:
    """For each offset of the chosen ranges the one of the highest rank: pieces (first, last, range), ascending."""
    batches = np.zeros((len(chosen), 5), np.int64)
    batches[:, 0], batches[:, 1], batches[:, 2] = firsts[chosen], lasts[chosen], ranks
    out = np.empty((2 * len(chosen) + 1, 5), np.int64)
    return out[: paint(batches, len(chosen), out), :3]


def _pieces(mine: pa.Table, near_limit: int | None) -> Ints:
    """What was given up: pieces whose last state is wanted, cut wherever one of their columns changes.

    The last range that covers an offset in a life is its last state: each offset lies in one range at a time. The first
    tells its first outcome, the first with the last state and count when it came into it.
    """
    firsts, lasts = (mine.column(name).to_numpy() for name in ("first_offset", "last_offset"))
    states, counts = (mine.column(name).to_numpy().astype(np.int64) for name in ("delivery_state", "delivery_count"))
    near = np.zeros(len(states), np.bool_) if near_limit is None else counts >= near_limit - 1
    reached = (states == ARCHIVED_STATE) | (states == ARCHIVING_STATE) | ((states == AVAILABLE_STATE) & near)
    wanted = reached & ((states != AVAILABLE_STATE) | mine.column("is_open").to_numpy())
    every = np.arange(len(firsts))
    if not wanted.any():
        return np.empty((0, WIDTH), np.int64)
    final = _painted(firsts, lasts, every, every)
    final = final[wanted[final[:, 2]]]
    earliest = _painted(firsts, lasts, every, -every)
    pieces, ways = _cut(final, [earliest]), {}
    for state in (AVAILABLE_STATE, ARCHIVING_STATE, ARCHIVED_STATE):
        chosen = every[reached & (states == state)]
        ways[state] = _painted(firsts, lasts, chosen, -chosen)
    pieces = _cut(pieces, list(ways.values()))
    out = np.zeros((len(pieces), WIDTH), np.int64)
    out[:, [FIRST, LAST, FINAL]] = pieces
    out[:, EARLIEST] = -_value_at(earliest, pieces[:, 0])
    for state, way in ways.items():
        mine_now = states[pieces[:, 2]] == state
        if mine_now.any():
            out[mine_now, ENTERED] = -_value_at(way, pieces[mine_now, 0])
    archiving = ways[ARCHIVING_STATE]
    was = _covers(archiving, pieces[:, 0])
    out[:, ARCHIVING_AT] = NEVER
    out[was, ARCHIVING_AT] = -_value_at(archiving, pieces[was, 0])
    return out


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


def _value_at(pieces: Ints, offsets: Ints) -> Ints:
    """The third column of the piece that covers each offset (one does)."""
    found: Ints = pieces[np.searchsorted(pieces[:, 0], offsets, "right") - 1, 2]
    return found


def _covers(pieces: Ints, offsets: Ints) -> npt.NDArray[np.bool_]:
    at = np.searchsorted(pieces[:, 0], offsets, "right") - 1
    if len(pieces) == 0:
        return np.zeros(len(offsets), np.bool_)
    covered: npt.NDArray[np.bool_] = (at >= 0) & (pieces[at, 1] >= offsets)
    return covered


def _with_presence(pieces: Ints, nothing: tuple[Ints, Ints], held: tuple[int, int] | None) -> Ints:
    """The pieces, cut where it changes whether a record is there, with PRESENCE."""
    firsts, lasts = nothing
    gaps = np.stack([firsts, lasts, firsts], axis=1)
    seen = np.array([(*held, 0)] if held is not None else np.empty((0, 3)), np.int64)
    pieces = _cut(pieces, [gaps, seen])
    there = np.where(_covers(seen, pieces[:, FIRST]), RECORD, UNSEEN)
    pieces[:, PRESENCE] = np.where(_covers(gaps, pieces[:, FIRST]), NOTHING, there)
    return pieces


def _table(pieces: Ints, deliveries: pa.Table, settings: GroupSettings) -> pa.Table:
    """POISON_RECORD rows without completeness; places in `deliveries` stand in the pieces."""
    rows = deliveries.take(pa.array(pieces[:, FINAL]))
    entered = deliveries.take(pa.array(pieces[:, ENTERED]))
    groups = rows.column("group_id").dictionary_encode().combine_chunks()
    told = [settings.of(group, DELIVERY_COUNT_LIMIT) for group in groups.dictionary.to_pylist()]
    limits = pa.array([setting.number for setting in told], pa.int64()).take(groups.indices)
    cause, source = _causes(pieces, rows, pc.fill_null(limits, 0).to_numpy())
    columns = {name: rows.column(name) for name in rows.column_names} | {
        "offset": pieces[:, FIRST],
        "last_offset": pieces[:, LAST],
        "cause": cause,
        "cause_source": source,
        "delivery_count_limit": limits,
        "delivery_count_limit_source": pa.array([setting.origin for setting in told], pa.string()).take(groups.indices),
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
    """Cause and its source of each piece; the first rule that applies. A limit of 0 is not told."""
    counts = rows.column("delivery_count").to_numpy().astype(np.int64)
    near = rows.column("delivery_state").to_numpy() == AVAILABLE_STATE
    presence, told = pieces[:, PRESENCE], limits > 0
    letter, exceeded = pieces[:, ARCHIVING_AT] != NEVER, (limits > 0) & (counts >= limits)
    first_try = ~told & (counts < LOWEST_DELIVERY_COUNT_LIMIT)
    rules: list[tuple[npt.NDArray[np.bool_], str | None, str | None]] = [
        (near, None, None),
        (presence == NOTHING, GAP, HEADERS),
        (exceeded & (letter | (presence == RECORD)), DELIVERY_LIMIT, CONFIGURATION),
        (exceeded, DELIVERY_LIMIT, INFERRED),
        (letter & (told | first_try), REJECTED, DEAD_LETTER),
        ((presence == RECORD) & told, REJECTED, CONFIGURATION),
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
        table = table.append_column(field, history.column(field.name).take(at))
    return table.cast(POISON_RECORD)
