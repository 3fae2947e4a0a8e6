"""The lives of share partitions, from their scalar history: beginning, end and start offsets of each.

A life reaches from a creation or reset to the next reset or deletion. The start offset of a life is -1 until it is
determined; -1 never counts as an offset here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.ranges.places import codes_in, places_of
from sharelens.measures.ranges.steps import Flags, Ints, numbered, together
from state_model.columnar.keys import FULL_PLACE_KEY
from state_model.columnar.values import Loss

LIVE, RESET, DELETED = 0, 1, 2
UNDETERMINED = -1
BLIND = ("provisional", "incomplete")
"""States whose outcomes may be missing from the evidence."""


def number_places(*tables: pa.Table) -> tuple[list[Ints], pa.Table]:
    """For each table each row's place: share partitions (in each state partition) by group, topic id and partition.

    The second value has the columns FULL_PLACE_KEY of each place. All tables come from one state topic.
    """
    numbers, places = places_of(*tables)
    first = next((table for table in tables if table.num_rows), None)
    topic = pa.scalar("" if first is None else first.column("log_topic_id")[0].as_py(), pa.string())
    keys = places.keys.append_column("log_topic_id", pa.repeat(topic, places.count))
    return numbers, keys.select(FULL_PLACE_KEY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lives:
    """One entry a life, by (place, beginning); and the rows of the scalar history that belong to lives.

    `begun_at`, `ended_at`: log offsets of the beginning and of the last record; `first_start`, `lowest_start`,
    `last_start`: start offsets (UNDETERMINED: never was); `ending`: LIVE, RESET or DELETED; `from_creation`: the
    evidence holds its beginning; `first_row`, `last_row`: its rows in the history by (place, log offset).

    `back`: one entry a record whose start offset lies below the one before, with the
    offsets [`back_to`, `back_from`) that it brought back. `blind`: offsets that the start offset passed where the
    evidence may lack outcomes.
    """

    place: Ints
    key: Ints
    begun_at: Ints
    ended_at: Ints
    first_start: Ints
    lowest_start: Ints
    last_start: Ints
    ending: Ints
    from_creation: Flags
    first_row: Ints
    last_row: Ints
    back_life: Ints
    back_at: Ints
    back_to: Ints
    back_from: Ints
    blind_life: Ints
    blind_first: Ints
    blind_last: Ints

    @property
    def count(self) -> int:
        """The number of lives."""
        return len(self.place)

    def of(self, place: Ints, key: Ints) -> Ints:
        """The life of each (place, life_log_offset); -1 where the history has none."""
        code, _ = numbered(together([self.place, place]), together([self.key, key]))
        life = np.full(int(code.max(initial=-1)) + 1, -1, np.int64)
        life[code[: self.count]] = np.arange(self.count)
        return life[code[self.count :]]


def lives_of(history: pa.Table, place: Ints, losses: Mapping[int, Sequence[Loss]] | None = None) -> Lives:
    """The lives in SHARE_PARTITION_HISTORY rows by place and log offset; `place` has the place of each row.

    `losses`: the missing records, by state partition.
    """
    gone = pc.equal(history.column("record_type"), "tombstone").to_numpy(zero_copy_only=False).astype(np.bool_)
    first_of_place = np.append(True, np.diff(place) != 0)[: len(place)]
    key = pc.fill_null(history.column("life_log_offset"), UNDETERMINED).to_numpy()
    after_gone = np.append(False, gone[:-1])[: len(place)]
    begins = ~gone & (first_of_place | after_gone | np.append(True, np.diff(key) != 0)[: len(place)])
    last_of_place = np.append(first_of_place[1:], True)[: len(place)]
    before_gone = np.append(gone[1:], False)[: len(place)] & ~last_of_place
    state_rows = np.flatnonzero(~gone)
    number = np.cumsum(begins)[state_rows] - 1
    ends = state_rows[np.append(np.diff(number) != 0, True)[: len(state_rows)]]
    start = pc.fill_null(history.column("start_offset"), UNDETERMINED).to_numpy()
    first, lowest = _starts(number, start[state_rows], int(begins.sum()))
    offset = history.column("log_offset").to_numpy()
    born = pc.and_(pc.equal(history.column("record_type"), "snapshot"), pc.equal(history.column("snapshot_epoch"), 0))
    created = pc.fill_null(born, False).to_numpy(zero_copy_only=False)
    return Lives(
        place=place[begins],
        key=key[begins],
        begun_at=offset[begins],
        ended_at=offset[ends],
        first_start=first,
        lowest_start=lowest,
        last_start=start[ends],
        ending=np.where(last_of_place[ends], LIVE, np.where(before_gone[ends], DELETED, RESET)),
        from_creation=created[begins] | ~first_of_place[begins],
        first_row=np.flatnonzero(begins),
        last_row=ends,
        **_movements(history, state_rows, number, start, losses or {}),
    )


def _starts(life: Ints, start: Ints, lives: int) -> tuple[Ints, Ints]:
    """The first and the lowest start offset of each life, -1 excluded."""
    first, lowest = np.full(lives, UNDETERMINED, np.int64), np.full(lives, UNDETERMINED, np.int64)
    started_rows = np.flatnonzero(start >= 0)
    if len(started_rows):
        begins = np.flatnonzero(np.append(True, np.diff(life[started_rows]) != 0))
        first[life[started_rows][begins]] = start[started_rows][begins]
        lowest[life[started_rows][begins]] = np.minimum.reduceat(start[started_rows], begins)
    return first, lowest


def _movements(
    rows: pa.Table, state_rows: Ints, life: Ints, start: Ints, losses: Mapping[int, Sequence[Loss]]
) -> dict[str, Ints]:
    """Ranges that the start offset moved back over, and ranges that it passed while records were missing."""
    offset = rows.column("log_offset").to_numpy()
    was, now = state_rows[:-1], state_rows[1:]
    same = (life[1:] == life[:-1]) & (start[was] >= 0) & (start[now] >= 0)
    back = same & (start[now] < start[was])
    unsure = codes_in(rows.column("completeness"), pa.array(BLIND)) >= 0
    lost = _lost_between(rows, state_rows, offset, losses)
    blind = same & (start[now] > start[was]) & (unsure[now] | lost)
    return {
        "back_life": life[1:][back],
        "back_at": offset[now][back],
        "back_to": start[now][back],
        "back_from": start[was][back],
        "blind_life": life[1:][blind],
        "blind_first": start[was][blind],
        "blind_last": start[now][blind] - 1,
    }


def _lost_between(rows: pa.Table, state_rows: Ints, offset: Ints, losses: Mapping[int, Sequence[Loss]]) -> Flags:
    """Whether the evidence lacks a record between each of `state_rows` and the next that could be of the same key."""
    is_lost = np.zeros(max(0, len(state_rows) - 1), np.bool_)
    state_partition = rows.column("state_partition").to_numpy()
    for number, partition_losses in losses.items():
        in_partition = state_partition[state_rows[1:]] == number
        for loss in partition_losses:
            hit = (
                in_partition
                & (offset[state_rows[:-1]] < loss.first_offset)
                & (offset[state_rows[1:]] > loss.first_offset)
            )
            if loss.group_id is not None and hit.any():
                named = {"group_id": loss.group_id, "topic_id": loss.topic_id, "partition": loss.partition}
                for name, value in named.items():
                    hit &= pc.equal(rows.column(name), value).to_numpy(zero_copy_only=False)[state_rows[1:]]
            is_lost |= hit
    return is_lost
