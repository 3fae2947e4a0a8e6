"""Record offsets that were delivered more than once, why, and the state-log records that prove it.

    life 1   0-9 ACKNOWLEDGED/1                              10-14 AVAILABLE/1 -> 10-14 ACKNOWLEDGED/2  (retry)
    reset to 5
    life 2   5-9 ACKNOWLEDGED/1  (replayed_by_reset)

The log holds outcomes: a delivery shows when its outcome is written. Not seen are deliveries that had none yet, whether
the consumer processed a record before it came back, and consumers that read a record without this group.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from measures.lives import DELETED, PLACE, Lives, lives_of, number_places
from measures.painted import Painted
from measures.schemas import REDELIVERED, REDELIVERIES
from measures.steps import LAST_OFFSET, NOTHING, Cells, Ints, Ranges, numbered, together
from state_model.share_records import DeliveryState

RETRY, AFTER_ACKNOWLEDGED, BY_RESET, BY_RECREATION, WENT_BACK = range(5)
NEVER = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """Outcomes of deliveries: one entry a range that newly came to a state; what merely split or joined is left out."""

    life: Ints
    first: Ints
    last: Ints
    state: Ints
    count: Ints
    at: Ints


def outcomes_of(deliveries: pa.Table, life: Ints) -> Outcomes:
    """The outcomes in DELIVERY_HISTORY rows; `life` numbers the life of each row.

    A range begins anew where a neighbour changed. Offsets are new to a state only where no range of the same state and
    count ended at the record at which the range began.
    """
    state, count, first, last, since = (
        deliveries.column(name).to_numpy().astype(np.int64)
        for name in ("delivery_state", "delivery_count", "first_offset", "last_offset", "valid_from_log_offset")
    )
    until = pc.fill_null(deliveries.column("valid_to_log_offset"), NEVER).to_numpy()
    ended = np.flatnonzero(until != NEVER)
    kind = _coded(life, (state << 32) | (count & 0xFFFFFFFF))
    moment = pa.array(together([since, until[ended]])).dictionary_encode().indices.to_numpy().astype(np.int64)
    began = pa.array(kind << 32 | moment[: len(kind)])
    met = pc.is_in(began, value_set=pa.array(kind[ended] << 32 | moment[len(kind) :])).to_numpy(zero_copy_only=False)
    columns = {"life": life, "state": state, "count": count, "at": since, "first": first, "last": last}
    columns["first"], columns["last"] = np.clip(first, 0, LAST_OFFSET), np.clip(last, -1, LAST_OFFSET)
    alone = {name: values[~met & (columns["first"] <= columns["last"])] for name, values in columns.items()}
    of = np.flatnonzero(met)
    against = ended[
        pc.is_in(pa.array(kind[ended] << 32 | moment[len(kind) :]), value_set=began).to_numpy(zero_copy_only=False)
    ]
    told = _new_parts({name: values[of] for name, values in columns.items()}, {
        **{name: values[against] for name, values in columns.items()}, "at": until[against],
    })  # fmt: skip
    return Outcomes(**{name: together([alone[name], told[name]]) for name in columns})


def _coded(one: Ints, other: Ints) -> Ints:
    """A small number for each pair of values."""
    codes = [pa.array(values).dictionary_encode().indices.to_numpy().astype(np.int64) for values in (one, other)]
    pairs: Ints = pa.array((codes[0] << 32) | codes[1]).dictionary_encode().indices.to_numpy().astype(np.int64)
    return pairs


def _new_parts(began: dict[str, Ints], ended: dict[str, Ints]) -> dict[str, Ints]:
    """The parts of ranges that began which none covers that ended at the same record in the same state and count."""
    names = ("life", "state", "count", "at")
    everything = {name: together([began[name], ended[name]]) for name in (*names, "first", "last")}
    group, sample = numbered(*(everything[name] for name in names))
    cells = Cells(group, everything["first"], everything["last"])
    is_new = np.arange(len(group)) < len(began["life"])
    new = cells.ranges(cells.covered(is_new) & ~cells.covered(~is_new), {})
    told = {name: everything[name][sample][new.group] for name in names}
    return {**told, "first": new.first, "last": new.last}


def redelivered(history: pa.Table, deliveries: pa.Table) -> pa.Table:
    """REDELIVERED rows by share partition, first offset and kind, from SHARE_PARTITION_HISTORY and DELIVERY_HISTORY."""
    (of_history, of_deliveries), places = number_places(history, deliveries)
    lives = lives_of(history, of_history)
    life = lives.of(of_deliveries, deliveries.column("life_log_offset").to_numpy())
    deliveries, life = deliveries.filter(pa.array(life >= 0)), life[life >= 0]
    told = _told(outcomes_of(deliveries, life), lives)
    found = [_within_lives(told), *_across_lives(told, lives)]
    rows = {name: together([part[name] for part in found]) for name in _FIELDS}
    return _table(rows, lives, places, history)


_FIELDS = (
    "life", "earlier", "first", "last", "kind", "acknowledged", "count", "first_at", "cause_at", "last_at"
)  # fmt: skip
Rows = Mapping[str, Ints]


def _told(outcomes: Outcomes, lives: Lives) -> Ranges:
    """Ranges of each life (as group) in which everything that rows need to know is the same."""
    known = len(outcomes.life)
    cells = Cells(
        together([outcomes.life, lives.back_life]),
        together([outcomes.first, lives.back_to]),
        together([outcomes.last, lives.back_from - 1]),
    )
    back = len(lives.back_life)
    outcome = np.arange(known + back) < known
    state, count, at = (np.pad(values, (0, back)) for values in (outcomes.state, outcomes.count, outcomes.at))
    acknowledged = outcome & (state == DeliveryState.ACKNOWLEDGED)
    first_at, last_at = cells.lowest(at, outcome), cells.highest(at, outcome)
    least = cells.lowest(count, acknowledged)
    values = {
        "count": cells.highest(count, outcome),
        "acknowledged": cells.total(np.ones(known + back, np.int64), acknowledged),
        "acknowledged_count": least,
        "first_at": first_at,
        "last_at": last_at,
        "back_at": _went_back(cells, lives, known, first_at, last_at),
        "delivered": cells.covered(outcome & ((count > 0) | (state != DeliveryState.AVAILABLE))).astype(np.int64),
    }
    return cells.ranges(cells.covered(outcome), values)


def _went_back(cells: Cells, lives: Lives, known: int, first_at: Ints, last_at: Ints) -> Ints:
    """For each cell the first record that brought it back between its first and its last outcome; NEVER for none."""
    found = np.full(cells.count, NEVER, np.int64)
    for event in range(len(lives.back_life) - 1, -1, -1):
        low, high = cells.low[known + event], cells.high[known + event]
        at = lives.back_at[event]
        between = (first_at[low:high] != NOTHING) & (first_at[low:high] < at) & (last_at[low:high] >= at)
        found[low:high][between] = at
    return found


def _within_lives(told: Ranges) -> Rows:
    """Rows for offsets that one life delivered more than once."""
    value = told.values
    back = value["back_at"] != NEVER
    after = ~back & (value["acknowledged_count"] != NOTHING) & (value["count"] > value["acknowledged_count"])
    wanted = back | after | (value["count"] > 1)
    kind = np.select([back, after], [WENT_BACK, AFTER_ACKNOWLEDGED], RETRY)
    some = told.where(wanted)
    return {
        "life": some.group,
        "earlier": np.full(len(some.group), NEVER, np.int64),
        "first": some.first,
        "last": some.last,
        "kind": kind[wanted],
        "acknowledged": some.values["acknowledged"],
        "count": some.values["count"],
        "first_at": some.values["first_at"],
        "cause_at": some.values["back_at"],
        "last_at": some.values["last_at"],
    }


def _across_lives(told: Ranges, lives: Lives) -> list[Rows]:
    """Rows for offsets that an earlier life had delivered; only places with several such lives are looked at."""
    told = told.where(told.values["delivered"] > 0)
    of_place = lives.place[told.group]
    bounds = [0, *(np.flatnonzero(np.diff(of_place)) + 1).tolist(), len(of_place)]
    rows: list[tuple[int, ...]] = []
    for first, end in itertools.pairwise(bounds):
        if first < end and told.group[first] != told.group[end - 1]:
            rows += _replays(told.part(first, end), lives)
    columns = np.array(rows, np.int64).reshape(-1, len(_FIELDS)).T
    return [dict(zip(_FIELDS, columns, strict=True))]


def _replays(told: Ranges, lives: Lives) -> list[tuple[int, ...]]:
    """Rows (_FIELDS) of one place; `told` comes life after life."""
    before: Painted[tuple[int, int, int, int]] = Painted()
    rows: list[tuple[int, ...]] = []
    values = (told.values[name] for name in ("count", "acknowledged", "last_at"))
    columns = [column.tolist() for column in (told.group, told.first, told.last, *values)]
    for life, first, last, count, acknowledged, last_at in zip(*columns, strict=True):
        for piece_first, piece_last, held in before.over(first, last):
            earlier, had_count, had_acknowledged, proof = held if held is not None else (NEVER, 0, 0, NEVER)
            sums = (had_acknowledged + acknowledged, max(had_count, count))
            before.paint(piece_first, piece_last, (life, sums[1], sums[0], last_at))
            if held is not None:
                kind = BY_RECREATION if (lives.ending[earlier:life] == DELETED).any() else BY_RESET
                begun = int(lives.begun_at[life])
                rows.append((life, earlier, piece_first, piece_last, kind, *sums, proof, begun, last_at))
    return rows


def _table(rows: Rows, lives: Lives, places: pa.Table, history: pa.Table) -> pa.Table:
    order = np.lexsort((rows["kind"], rows["first"], lives.place[rows["life"]]))
    rows = {name: values[order] for name, values in rows.items()}
    columns = {name: places.column(name).take(pa.array(lives.place[rows["life"]])) for name in PLACE}
    columns |= {
        "first_offset": pa.array(rows["first"]),
        "last_offset": pa.array(rows["last"]),
        "kind": pa.array(REDELIVERIES, pa.string()).take(pa.array(rows["kind"])),
        "times_acknowledged": pa.array(rows["acknowledged"].astype(np.int32)),
        "max_delivery_count": pa.array(rows["count"].astype(np.int16)),
        "life_log_offset": pa.array(lives.key[rows["life"]]),
        "earlier_life_log_offset": _or_null(
            lives.key[rows["earlier"]] if lives.count else rows["earlier"], rows["earlier"]
        ),
        "first_log_offset": pa.array(rows["first_at"]),
        "cause_log_offset": _or_null(rows["cause_at"], rows["cause_at"]),
        "last_log_offset": pa.array(rows["last_at"]),
    }
    at = rows_at(history, columns["state_partition"].to_numpy(), rows["last_at"])
    for name, source in (("last_ms", "log_time_ms"), ("completeness", "completeness")):
        columns[name] = history.column(source).take(at)
    columns["completeness_reason"] = history.column("completeness_reason").take(at)
    return pa.table({name: columns[name] for name in REDELIVERED.names}).cast(REDELIVERED)


def _or_null(values: Ints, known: Ints) -> pa.Array:
    return pa.array(values, mask=known == NEVER)


def rows_at(history: pa.Table, state_partition: Ints, log_offset: Ints) -> pa.Array:
    """The row of `history` for each place in the state log; null where it has none."""
    mine = [history.column(name).to_numpy().astype(np.int64) for name in ("state_partition", "log_offset")]
    asked = [state_partition.astype(np.int64), log_offset.astype(np.int64)]
    offsets = pa.array(together([mine[1], asked[1]])).dictionary_encode().indices.to_numpy()
    places = pa.array((together([mine[0], asked[0]]) << 32) | offsets)
    rows = history.num_rows
    return pc.index_in(places[rows:], value_set=places[:rows])
