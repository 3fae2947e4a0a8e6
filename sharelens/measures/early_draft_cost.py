"""Cost of a history's writes under KIP-932's early design, next to their actual cost.

Each write of the history that changed states becomes a record of the early design's writer (state_model.early_draft):
a delta, or a checkpoint after as many deltas as Kafka has updates between snapshots by default. A creation or
a reset becomes a checkpoint, a deletion and a cold snapshot nothing. Bytes are those of keys and values in both.
"""

from collections.abc import Iterator, Mapping
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.histories.delivery_outcomes import outcomes_of
from sharelens.measures.histories.lives import BLIND, number_places
from sharelens.measures.histories.numbers import UNKNOWN, Histories
from sharelens.measures.ranges.steps import Ints
from sharelens.measures.ranges.sums import sums_by
from sharelens.measures.schemas import DRAFT_COST
from state_model.columnar.schemas import COMPLETENESS
from state_model.early_draft.records import Checkpoint, DraftRecord, encode
from state_model.early_draft.writer import DraftLog
from state_model.share_records import DeliveryState, StateBatch


class _Cost(NamedTuple):
    """Records, checkpoints or snapshots, bytes, and the most records that a recovery reads."""

    records: int = 0
    checkpoints: int = 0
    bytes: int = 0
    most_to_replay: int = 0


def draft_cost(records: pa.Table, history: pa.Table, deliveries: pa.Table, *, deltas_per_checkpoint: int) -> pa.Table:
    """DRAFT_COST rows by share partition from SHARE_RECORD, SHARE_PARTITION_HISTORY and DELIVERY_HISTORY rows."""
    histories = Histories.of(history, deliveries)
    shipped, acknowledged = _shipped(histories, records), _acknowledged(histories)
    keys = histories.places.to_pylist()
    rows = []
    for place, marks, written in draft_writes(histories, deltas_per_checkpoint=deltas_per_checkpoint):
        draft, now = _cost_of(written), shipped[place]
        rows.append(
            {
                **keys[place],
                "acknowledged_offsets": acknowledged[place],
                "records": now.records,
                "bytes": now.bytes,
                "most_records_to_replay": now.most_to_replay,
                "draft_records": draft.records,
                "draft_checkpoints": draft.checkpoints,
                "draft_bytes": draft.bytes,
                "draft_most_records_to_replay": draft.most_to_replay,
                **marks,
            }
        )
    return pa.Table.from_pylist(rows, schema=DRAFT_COST)


def draft_writes(
    histories: Histories, *, deltas_per_checkpoint: int
) -> Iterator[tuple[int, Mapping[str, str | None], Iterator[DraftRecord]]]:
    """For each place its completeness and the records that the early design's writer writes for its history.

    Incomplete places are left out. Take the records of a place before the next place.
    """
    changes = _changes(histories)
    marks = histories.history.select([field.name for field in COMPLETENESS])
    starts = pc.fill_null(histories.history.column("start_offset"), UNKNOWN).to_pylist()
    lives = pc.fill_null(histories.history.column("life_log_offset"), UNKNOWN).to_pylist()
    groups = histories.places.column("group_id").to_pylist()
    for place, (first, end) in enumerate(pairwise(histories.begins.tolist())):
        newest = marks.slice(end - 1, 1).to_pylist() if first < end else []
        if newest and newest[0]["completeness"] not in BLIND:
            steps = zip(lives[first:end], starts[first:end], map(changes.get, range(first, end)), strict=True)
            yield place, newest[0], _draft_records(groups[place], steps, deltas_per_checkpoint)


def _draft_records(
    group_id: str, steps: Iterator[tuple[int, int, list[StateBatch] | None]], deltas_per_checkpoint: int
) -> Iterator[DraftRecord]:
    """The early design's records for one share partition; `steps`: life, start offset and changes of each record."""
    log: DraftLog | None = None
    for life, of_life in groupby(steps, key=lambda step: step[0]):
        is_begun = False
        for _, start, changes in of_life:
            if start < 0 or life == UNKNOWN:
                continue  # not determined, or deleted
            if log is None:
                log = DraftLog(group_id, start, deltas_per_checkpoint=deltas_per_checkpoint)
                yield log.first
            elif not is_begun:
                yield log.reset(start)
            elif start > log.state.start_offset:  # records that the log start passed have no outcome
                yield log.skip_to(start)
            is_begun = True
            if changes:
                yield log.write(changes)


def _cost_of(records: Iterator[DraftRecord]) -> _Cost:
    count = checkpoints = size = chain = longest_chain = 0
    for record in records:
        is_checkpoint = isinstance(record, Checkpoint)
        count, checkpoints = count + 1, checkpoints + is_checkpoint
        size += sum(map(len, encode(record)))
        chain = 1 if is_checkpoint else chain + 1
        longest_chain = max(longest_chain, chain)
    return _Cost(count, checkpoints, size, longest_chain)


def _changes(histories: Histories) -> dict[int, list[StateBatch]]:
    """The state batches that each record of the history changes, by row of the history."""
    outcomes = outcomes_of(histories, histories.life, histories.life >= 0)
    place = histories.lives.place[outcomes.life]
    rows = pc.fill_null(histories.rows_at(place, outcomes.at), UNKNOWN).to_numpy().astype(np.int64)
    columns = (outcomes.first, outcomes.last, outcomes.state, outcomes.count)
    changes: dict[int, list[StateBatch]] = {}
    for row, first, last, state, count in zip(rows.tolist(), *(values.tolist() for values in columns), strict=True):
        changes.setdefault(row, []).append(StateBatch(first, last, state, count))
    return changes


def _acknowledged(histories: Histories) -> Ints:
    """The number of offsets that became ACKNOWLEDGED, by place."""
    outcomes = outcomes_of(histories, histories.life, histories.life >= 0)
    is_done = outcomes.state == DeliveryState.ACKNOWLEDGED
    sizes = (outcomes.last - outcomes.first + 1)[is_done]
    return sums_by(histories.lives.place[outcomes.life[is_done]], sizes, histories.places.num_rows)


def _shipped(histories: Histories, records: pa.Table) -> list[_Cost]:
    """The cost of the records of each place."""
    (of_record, of_place), places = number_places(records, histories.places)
    count = np.bincount(of_record, minlength=places.num_rows)
    size = sums_by(of_record, records.column("record_bytes").to_numpy().astype(np.int64), places.num_rows)
    begins, types = histories.begins.tolist(), histories.history.column("record_type").to_pylist()
    costs = []
    for place, number in enumerate(of_place.tolist()):
        chain = longest_chain = snapshots = 0
        for kind in types[begins[place] : begins[place + 1]]:
            snapshots += kind == "snapshot"
            chain = 1 if kind == "snapshot" else chain + 1
            longest_chain = max(longest_chain, chain if kind != "tombstone" else 0)
        costs.append(_Cost(int(count[number]), snapshots, int(size[number]), longest_chain))
    return costs
