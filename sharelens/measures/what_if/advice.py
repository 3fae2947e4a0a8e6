"""Settings that a history suggests, each with its evidence and what it would have changed; none without evidence."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.settings.over_time import (
    DEAD_LETTER_TOPIC,
    DELIVERY_COUNT_LIMIT,
    UPDATES_PER_SNAPSHOT,
    GroupSettings,
)
from sharelens.measures.what_if import delivery_limit
from sharelens.measures.what_if.advice_rows import ADVICE, WORTH, Row, advice
from sharelens.measures.what_if.schema import BOUND, EXACT
from state_model.share_records import DeliveryState

INTERVALS = (25, 50, 100, 250, 500)
"""Updates between snapshots that are tried."""
GIVEN_UP = (DeliveryState.ARCHIVED, DeliveryState.ARCHIVING)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOutcomes:
    """Outcomes of a group's record offsets: their number by (delivery state, largest delivery count)."""

    group_id: str
    offsets: dict[tuple[int, int], int]

    def sum(self, states: Sequence[int], least: int = 0, max_count: int | None = None) -> int:
        """Offsets whose last outcome is one of the states, after `least` to `max_count` deliveries."""
        return sum(
            offsets
            for (state, count), offsets in self.offsets.items()
            if state in states and least <= count and (max_count is None or count <= max_count)
        )


def of_groups(outcomes: Iterable[GroupOutcomes], settings: GroupSettings) -> pa.Table:
    """ADVICE rows about the settings of groups, by group; of unknown settings there is none."""
    rows = []
    for group in sorted(outcomes, key=lambda group: group.group_id):
        limit = settings.of(group.group_id, DELIVERY_COUNT_LIMIT).number
        rows += [] if limit is None else _about_limit(group, limit)
        if settings.groups is not None and not settings.of(group.group_id, DEAD_LETTER_TOPIC).value:
            rows += _about_dead_letters(group)
    return pa.Table.from_pylist(rows, schema=ADVICE)


def _about_limit(group: GroupOutcomes, limit: int) -> list[Row]:
    given_up = group.sum(GIVEN_UP, least=limit)
    acknowledged = [count for state, count in group.offsets if state == DeliveryState.ACKNOWLEDGED]
    lowest = max([delivery_limit.RANGE[0], *acknowledged])
    last_chance = group.sum((DeliveryState.ACKNOWLEDGED,), least=limit)
    is_open = group.sum((DeliveryState.AVAILABLE,), least=lowest) > 0
    row: Row = {"group_id": group.group_id, "setting": DELIVERY_COUNT_LIMIT, "in_force": str(limit)}
    if given_up and lowest < limit and not is_open:
        spared = sum(
            (count - lowest) * offsets
            for (state, count), offsets in group.offsets.items()
            if state in GIVEN_UP and count > lowest
        )
        evidence = f"{given_up} record offsets archived after {limit} deliveries; none acknowledged after over {lowest}"
        return [advice(row, lowest, evidence, f"{spared} deliveries fewer, the same outcomes", EXACT)]
    if given_up and last_chance and limit < delivery_limit.RANGE[1]:
        evidence = f"{last_chance} record offsets acknowledged in their last delivery, {given_up} archived after theirs"
        return [advice(row, limit + 1, evidence, f"0 to {given_up} record offsets fewer archived", BOUND)]
    return []


def _about_dead_letters(group: GroupOutcomes) -> list[Row]:
    given_up = group.sum(GIVEN_UP, least=delivery_limit.RANGE[0])
    if not given_up:
        return []
    row: Row = {"group_id": group.group_id, "setting": DEAD_LETTER_TOPIC, "in_force": None}
    evidence = f"{given_up} record offsets archived after 2 deliveries or more, and no dead-letter topic"
    return [advice(row, "a topic", evidence, f"up to {given_up} dead letters (share.version 2)", BOUND)]


def of_coordinator(tried: dict[int, pa.Table], in_force: int) -> pa.Table:
    """ADVICE rows about the share coordinator: at most one.

    Args:
        tried: by limit of updates between snapshots the WHAT_IF rows of all share partitions.
        in_force: the limit in force.
    """
    sums = {limit: _bytes(rows) for limit, rows in tried.items()}
    certain = [limit for limit, (_, _, is_exact) in sums.items() if is_exact]
    if not certain:
        return ADVICE.empty_table()
    best = min(certain, key=lambda limit: (sums[limit][1], -limit))
    before, after, _ = sums[best]
    if best == in_force or after > (1 - WORTH) * before:
        return ADVICE.empty_table()
    figures = _figure(tried[best], "most_records_to_replay")
    loaded, load = (pc.max(figures.column(name)).as_py() for name in ("in_history", "at_most"))
    evidence = f"{before} bytes with a snapshot after {in_force} updates; a load replays up to {loaded} records"
    effect = f"{before - after} bytes fewer; a load replays up to {load} records"
    row: Row = {"group_id": None, "setting": UPDATES_PER_SNAPSHOT, "in_force": str(in_force)}
    return pa.Table.from_pylist([advice(row, best, evidence, effect, EXACT)], schema=ADVICE)


def _figure(rows: pa.Table, name: str) -> pa.Table:
    return rows.filter(pc.equal(rows.column("figure"), name))


def _bytes(rows: pa.Table) -> tuple[int, int, bool]:
    """Bytes in the history, bytes under the limit at most, and whether all of them are exact or bounds."""
    figures = _figure(rows, "bytes")
    before, after = (pc.sum(figures.column(name)).as_py() or 0 for name in ("in_history", "at_most"))
    inferred = pc.any(pc.equal(figures.column("certainty"), "inferred")).as_py()
    return before, after, bool(before) and not inferred


def group_outcomes(counts: pa.Table) -> list[GroupOutcomes]:
    """The outcomes of each group from rows of group_id, state, delivery_count and offsets."""
    groups: dict[str, dict[tuple[int, int], int]] = {}
    for row in counts.to_pylist():
        offsets = groups.setdefault(row["group_id"], {})
        key = (row["state"], row["delivery_count"])
        offsets[key] = offsets.get(key, 0) + row["offsets"]
    return [GroupOutcomes(group_id=group, offsets=offsets) for group, offsets in groups.items()]
