"""State partitions that Kafka can't prune, and the share partition that holds each one up."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.findings.signs import UnprunedState
from sharelens.findings.thresholds import UNPRUNED_BYTES
from sharelens.questions.answers.measured import Scope
from sharelens.tables.cover import StatePartitionCover
from sharelens.tables.port import RECORDS
from sharelens.tables.reading import read_states
from sharelens.tables.where import ALL_KEYS, Where
from state_model.columnar.codes import ints
from state_model.columnar.keys import SHARE_PARTITION_KEY, only_keys_of

NOT_LARGE = -1
WRITTEN = ["state_partition", "first_ms", "bytes", "newest_ms"]


def unpruned_state(
    scoped: Scope, all_states: pa.Table | None = None, least_bytes: int = UNPRUNED_BYTES
) -> Sequence[UnprunedState]:
    """The state partitions of `least_bytes` that a share partition of the scope holds up; none at an earlier cut.

    `all_states`: the states of all share partitions; None: they are read here. The oldest of their snapshots is where
    pruning ends, as in `sharelens.measures.cost.pruning`; the records from there on are read for their bytes, and only
    those of state partitions with enough bytes.
    """
    large = {part.state_partition: part for part in scoped.evidence.cover() if part.size_bytes >= least_bytes}
    if not large or not scoped.cut.is_whole:
        return ()
    states = read_states(scoped.evidence, ALL_KEYS) if all_states is None else all_states
    holders = only_keys_of(_holders(states, large), scoped.places)
    held_up = {row["state_partition"]: row for row in holders.to_pylist()}
    if not held_up:
        return ()
    return [
        UnprunedState(
            state_partition=row["state_partition"],
            **{name: held_up[row["state_partition"]][name] for name in SHARE_PARTITION_KEY},
            since_ms=row["first_ms"],
            held_up_ms=row["newest_ms"] - row["first_ms"],
            written_bytes=row["bytes"],
        )
        for row in _written(scoped, held_up).to_pylist()
    ]


def _holders(states: pa.Table, large: Mapping[int, StatePartitionCover]) -> pa.Table:
    """Of each state partition in `large` the row with the oldest snapshot above the log start."""
    rows = states.select(["state_partition", *SHARE_PARTITION_KEY, "snapshot_log_offset"])
    numbers, number = np.unique(rows.column("state_partition").to_numpy(), return_inverse=True)
    starts = [large[each].log_start_offset if each in large else NOT_LARGE for each in numbers.tolist()]
    start = np.array(starts, np.int64)[number]
    rows = rows.filter(pa.array((start != NOT_LARGE) & (ints(rows, "snapshot_log_offset") >= start)))
    ordered = rows.sort_by([("state_partition", "ascending"), ("snapshot_log_offset", "ascending")])
    return ordered.take(pa.array(np.unique(ordered.column("state_partition").to_numpy(), return_index=True)[1]))


def _written(scoped: Scope, held_up: Mapping[int, Mapping[str, Any]]) -> pa.Table:
    """Of the records from each holder's snapshot on: first_ms, newest_ms and the sum of their bytes, in order."""
    condition = pc.scalar(False)
    for number, holder in held_up.items():
        at = holder["snapshot_log_offset"]
        condition |= (pc.field("state_partition") == number) & (pc.field("log_offset") >= at)
    tables = scoped.evidence.scan(RECORDS, ["state_partition", "log_time_ms", "record_bytes"], Where(columns=condition))
    sums = [
        _folded(rows.append_column("newest_ms", rows.column("log_time_ms")).rename_columns(WRITTEN)) for rows in tables
    ]
    return _folded(pa.concat_tables(sums)).sort_by("state_partition")


def _folded(rows: pa.Table) -> pa.Table:
    """One WRITTEN row a state partition."""
    folds = list(zip(WRITTEN[1:], ("min", "sum", "max"), strict=True))
    return rows.group_by("state_partition", use_threads=False).aggregate(folds).rename_columns(WRITTEN)
