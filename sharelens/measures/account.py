"""The class of every record offset of a window, for each share partition; each offset has exactly one.

The newest life whose start offset ever stood at or below an offset decides:

    start offset     0                 10                    20 (now)        end
    offsets          0-9 acknowledged  10-14 archived        20-29 open
                                       15-19 passed_without_outcome

Below every start offset: below_first_start. An offset that was open when its life ended, and lies below the start
offset of the life that followed: skipped_by_reset. The batch headers of the user topic say why the start offset passed
offsets without a logged outcome.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.account_windows import reaches_of, windows_of
from sharelens.measures.histories.delivery_outcomes import NEVER, Outcomes, outcomes_of
from sharelens.measures.histories.lives import DELETED, LIVE, Lives, lives_of
from sharelens.measures.histories.numbers import Histories
from sharelens.measures.inputs import Inputs
from sharelens.measures.ranges.steps import LAST_OFFSET, NO_VALUE, Flags, Ints, Layers, Ranges, together
from sharelens.measures.schemas import ACCOUNTED, CLASSES
from sharelens.measures.topics.extents import topic_partitions
from sharelens.measures.topics.topic_log import ABORTED, COMPACTED, CONTROL, WHATS, TopicLog, limits
from state_model.columnar.keys import FULL_PLACE_KEY
from state_model.columnar.values import Loss
from state_model.share_records import DeliveryState

ONCE, AFTER_RETRIES, ARCHIVED, OPEN, BELOW_FIRST_START, SKIPPED, PASSED, NOT_IN_EVIDENCE = range(len(CLASSES))
REASONS = (*WHATS, None, "life_ended", "acknowledged_again", "start_undetermined", "recreated")
"""Of passed_without_outcome: what the batch headers say of the offset, or life_ended; else a remark on the class."""
NO_REASON, LIFE_ENDED, AGAIN, START_UNDETERMINED, RECREATED = range(len(WHATS), len(REASONS))
UNKNOWN = WHATS.index("unknown")
DROPPED = ("changed", "split_or_joined", "start_offset_passed")
"""Ends of a range after which its offsets are in another range of the same life, or in none."""


def rows(inputs: Inputs) -> pa.Table:
    """ACCOUNTED rows of all share partitions of some user partitions, up to the end of the topics."""
    history, deliveries = inputs.history(), inputs.deliveries()
    logs = windows_of(reaches_of([(history, deliveries)]), inputs.headers, inputs.extents).logs
    return account(history, deliveries, limits(logs), logs, inputs.losses())


def account(
    history: pa.Table,
    deliveries: pa.Table,
    windows: Mapping[tuple[str, int], tuple[int, int]],
    topics: Mapping[tuple[str, int], TopicLog] | None = None,
    losses: Mapping[int, Sequence[Loss]] | None = None,
) -> pa.Table:
    """ACCOUNTED rows from SHARE_PARTITION_HISTORY and DELIVERY_HISTORY.

    `windows`: by (topic id, partition) the first offset and the end (exclusive) to account for; user partitions without
    a window are left out. `topics`: summaries of the batch headers. `losses`: missing records, by state partition.
    The rows of a share partition are disjoint and cover its window.
    """
    deliveries = _within(deliveries, windows)
    histories = Histories.of(history, deliveries)
    places, lives = histories.places, lives_of(histories.history, histories.place, losses)
    life = lives.of(histories.life_place, histories.life_key)[histories.life_number]
    has_life = life >= 0
    outcomes = outcomes_of(histories, life, has_life)
    deliveries, life = deliveries.take(pa.array(histories.rows[has_life])), life[has_life]
    window = [
        windows.get((row["topic_id"], row["partition"]), (0, 0))
        for row in places.select(FULL_PLACE_KEY[3:]).to_pylist()
    ]
    bounds = np.array(window, np.int64).reshape(-1, 2)
    classified = _classed(lives, deliveries, life, outcomes, bounds)
    rows = _with_topics(classified, places, topics or {})
    return _table(rows, lives, places)


def _within(deliveries: pa.Table, windows: Mapping[tuple[str, int], tuple[int, int]]) -> pa.Table:
    """The ranges that begin before the end of all windows and reach the first: no other decides an offset of one."""
    first = min((window[0] for window in windows.values()), default=0)
    end = max((window[1] for window in windows.values()), default=0)
    return deliveries.filter((pc.field("last_offset") >= first) & (pc.field("first_offset") < end))


def archived_without_record(accounted: pa.Table, topics: Mapping[tuple[str, int], TopicLog]) -> int:
    """How many archived offsets of ACCOUNTED rows hold no record by the batch headers: the gaps of `poison`."""
    archived = accounted.filter(pc.equal(accounted.column("class"), CLASSES[ARCHIVED]))
    firsts, lasts = (archived.column(name).to_numpy() for name in ("first_offset", "last_offset"))
    rows_of: dict[tuple[str, int], list[int]] = {}
    for row, place in enumerate(topic_partitions(archived)):
        rows_of.setdefault(place, []).append(row)
    count = 0
    for place, rows_of_place in rows_of.items():
        if (log := topics.get(place)) is None:
            continue
        is_gap = (log.kind == CONTROL) | (log.kind == COMPACTED)
        if is_gap.any():
            at, gaps = np.array(rows_of_place), (log.range_first[is_gap], log.range_last[is_gap])
            count += int((_offsets_below(gaps, lasts[at] + 1) - _offsets_below(gaps, firsts[at])).sum())
    return count


def _offsets_below(ranges: tuple[Ints, Ints], offsets: Ints) -> Ints:
    """For each offset how many offsets of some ranges lie below it."""
    firsts, lasts = ranges
    # Ranges ascend and are disjoint: those that begin below the offset count whole, but the last may reach over it.
    sizes = np.append(0, np.cumsum(lasts - firsts + 1))
    begun = np.searchsorted(firsts, offsets)
    beyond = np.append(0, lasts + 1)[begun] - offsets
    below: Ints = sizes[begun] - np.where(begun > 0, np.maximum(beyond, 0), 0)
    return below


def _classed(lives: Lives, deliveries: pa.Table, life: Ints, outcomes: Outcomes, bounds: Ints) -> Ranges:
    """Ranges by place with class, reason, count, life and log offset."""
    first, last = (deliveries.column(name).to_numpy() for name in ("first_offset", "last_offset"))
    reachable = np.where(lives.lowest_start >= 0, lives.lowest_start, LAST_OFFSET + 1)
    first = np.maximum(first, reachable[life])  # a snapshot may hold ranges below every start offset of its life
    started = np.flatnonzero(lives.lowest_start >= 0)
    onward = np.full(len(started), LAST_OFFSET, np.int64)
    places = lives.place
    acknowledged = outcomes.state == DeliveryState.ACKNOWLEDGED
    cells = Layers(
        {
            "window": (np.arange(len(bounds)), bounds[:, 0], bounds[:, 1] - 1),
            "rows": (places[life], first, last),
            "reach": (places[started], lives.lowest_start[started], onward),
            "start": (places[started], lives.last_start[started].clip(min=0), onward),
            "blind": (places[lives.blind_life], lives.blind_first, lives.blind_last),
            "acknowledged": (places[outcomes.life], outcomes.first, outcomes.last),
        }
    )
    decides = np.maximum(cells.highest_of("reach", started), NEVER)
    row = _deciding_row(cells, deliveries, life, decides)
    often = cells.total_of("acknowledged", acknowledged.astype(np.int64))
    blind = (decides != NEVER) & (cells.highest_of("blind", lives.blind_life) == decides)
    code, reason = _judged(lives, deliveries, cells, decides, row, blind=blind, often=often)
    row_index = np.maximum(row, 0)
    counts, at = (
        np.append(deliveries.column(name).to_numpy().astype(np.int64), NEVER)
        for name in ("delivery_count", "valid_from_log_offset")
    )
    values_by_name = {"class": code, "reason": reason, "life": decides}
    values_by_name |= {
        name: np.where(row == NEVER, NEVER, values[row_index]) for name, values in (("count", counts), ("at", at))
    }
    inside = cells.total_of("window", np.ones(len(bounds), np.int64)) > 0
    return cells.ranges(inside, values_by_name)


def _deciding_row(cells: Layers, deliveries: pa.Table, life: Ints, decides: Ints) -> Ints:
    """For each cell the newest delivery row of the life that decides; NEVER where it has none."""
    order = np.lexsort((deliveries.column("valid_from_log_offset").to_numpy(), life))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    newest = cells.highest_of("rows", rank)
    row = np.where(newest == NO_VALUE, NEVER, np.append(order, NEVER)[np.maximum(newest, 0)])
    same = np.append(life, NEVER - 1)[row] == decides  # row NEVER reads the last, which is no life
    return np.where(same, row, NEVER)


def _judged(
    lives: Lives, deliveries: pa.Table, cells: Layers, decides: Ints, row: Ints, *, blind: Flags, often: Ints
) -> tuple[Ints, Ints]:
    """The class and the reason of each cell."""
    state, count, ended = (
        np.append(values, NEVER)[row]
        for values in (
            deliveries.column("delivery_state").to_numpy().astype(np.int64),
            deliveries.column("delivery_count").to_numpy().astype(np.int64),
            pc.fill_null(pc.index_in(deliveries.column("end_reason"), value_set=pa.array(DROPPED)), NEVER).to_numpy(),
        )
    )
    has = decides != NEVER
    at_end = has & (cells.begin >= np.append(lives.last_start, 0)[decides])
    counts = (row != NEVER) & (~at_end | (ended == NEVER))
    acknowledged = counts & (state == DeliveryState.ACKNOWLEDGED)
    archived = counts & ((state == DeliveryState.ARCHIVED) | (~at_end & (state == DeliveryState.ARCHIVING)))
    again = often > 1
    first_class, first_reason = _out_of_reach(lives, cells.group)
    end_class, end_reason = (np.append(values, OPEN)[decides] for values in _unsettled(lives))
    cases = [~has, acknowledged, archived, at_end, blind]
    once = np.where((count <= 1) & ~again, ONCE, AFTER_RETRIES)
    code = np.select(cases, [first_class, once, np.full_like(once, ARCHIVED), end_class, NOT_IN_EVIDENCE], PASSED)
    remark = np.where(again & (count <= 1), AGAIN, NO_REASON)
    none = np.full_like(once, NO_REASON)
    reason = np.select(cases, [first_reason, remark, none, end_reason, none], UNKNOWN)
    return code, reason


def _unsettled(lives: Lives) -> tuple[Ints, Ints]:
    """For each life the class and reason of an offset that was open at its end and that no later life had in reach."""
    last = np.append(np.diff(lives.place) != 0, True)[: lives.count]
    of_place = np.cumsum(np.append(0, last[:-1]))[: lives.count]
    newest_ends = np.flatnonzero(last)[of_place] if lives.count else of_place
    still_live = lives.ending[newest_ends] == LIVE
    started = np.append(np.cumsum((lives.lowest_start >= 0)[::-1])[::-1], 0)
    later = started[1:] - started[newest_ends + 1] > 0 if lives.count else still_live
    code = np.select([lives.ending == LIVE, later, still_live], [OPEN, SKIPPED, OPEN], PASSED)
    recreated = np.where(lives.ending == DELETED, RECREATED, NO_REASON)
    reason = np.select(
        [lives.ending == LIVE, later, still_live],
        [np.full_like(recreated, NO_REASON), recreated, np.full_like(recreated, START_UNDETERMINED)],
        LIFE_ENDED,
    )
    return code, reason


def _out_of_reach(lives: Lives, place: Ints) -> tuple[Ints, Ints]:
    """For each place of `place` the class and reason of offsets that no life had in reach."""
    places = int(place.max(initial=-1)) + 1
    is_from_creation, started, live = (np.zeros(places, np.bool_) for _ in range(3))
    first = np.append(True, np.diff(lives.place) != 0)[: lives.count]
    last = np.append(first[1:], True)[: lives.count]
    is_from_creation[lives.place[first]] = lives.from_creation[first]
    started[lives.place[lives.lowest_start >= 0]] = True
    live[lives.place[last]] = lives.ending[last] == LIVE
    code = np.select([~is_from_creation, started, live], [NOT_IN_EVIDENCE, BELOW_FIRST_START, OPEN], PASSED)
    reason = np.select([~is_from_creation | started, live], [NO_REASON, START_UNDETERMINED], LIFE_ENDED)
    return code[place], reason[place]


def _with_topics(classified: Ranges, places: pa.Table, topics: Mapping[tuple[str, int], TopicLog]) -> Ranges:
    """The ranges, with reasons from the batch headers for offsets that have no outcome."""
    passed = (classified.values["class"] == PASSED) & (classified.values["reason"] == UNKNOWN)
    untouched = (
        (classified.values["class"] == OPEN)
        & (classified.values["reason"] == NO_REASON)
        & (classified.values["at"] == NEVER)
    )
    keys = places.select(["topic_id", "partition"]).to_pylist()
    log_by_place = [topics.get((row["topic_id"], row["partition"])) for row in keys]
    places_with_gaps = np.unique(classified.group[passed | untouched]).tolist()
    logs = [(place, log) for place in places_with_gaps if (log := log_by_place[place]) is not None]
    if not logs:
        return classified
    layer = (
        together([np.full(len(log.kind), place, np.int64) for place, log in logs]),
        together([log.range_first for _, log in logs]),
        together([log.range_last for _, log in logs]),
    )
    cells = Layers({"classified": (classified.group, classified.first, classified.last), "topic": layer})
    kind = cells.highest_of("topic", together([log.kind for _, log in logs]))
    of = cells.highest_of("classified", np.arange(len(classified.group)))
    inside = of != NO_VALUE
    of = np.maximum(of, 0)
    values = {name: column[of] for name, column in classified.values.items()}
    tells = (passed[of] & (kind != NO_VALUE)) | (untouched[of] & ((kind == ABORTED) | (kind == CONTROL)))
    values["reason"] = np.where(tells, kind, values["reason"])
    return cells.ranges(inside, values)


def _table(classified: Ranges, lives: Lives, places: pa.Table) -> pa.Table:
    columns = {name: places.column(name).take(pa.array(classified.group)) for name in FULL_PLACE_KEY}
    value = classified.values
    life = np.append(lives.key, NEVER)[value["life"]]
    columns |= {
        "first_offset": pa.array(classified.first),
        "last_offset": pa.array(classified.last),
        "class": pa.array(CLASSES, pa.string()).take(pa.array(value["class"])),
        "reason": pa.array(REASONS, pa.string()).take(pa.array(value["reason"])),
        "delivery_count": pa.array(value["count"], mask=value["count"] == NEVER),
        "life_log_offset": pa.array(life, mask=value["life"] == NEVER),
        "log_offset": pa.array(value["at"], mask=value["at"] == NEVER),
    }
    return pa.table({name: columns[name] for name in ACCOUNTED.names}).cast(ACCOUNTED)
