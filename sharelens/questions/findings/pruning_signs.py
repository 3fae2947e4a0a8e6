"""State partitions that Kafka can't prune, and the share partition that holds each one up."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.findings.signs import UnprunedState
from sharelens.findings.thresholds import UNPRUNED_BYTES
from sharelens.measures.cost import PRUNING_READ, pruning
from sharelens.questions.answers.measured import Scope
from sharelens.tables.port import RECORDS
from sharelens.tables.where import Where
from state_model.columnar.keys import SHARE_PARTITION_KEY


def unpruned_state(scoped: Scope, least_bytes: int = UNPRUNED_BYTES) -> Sequence[UnprunedState]:
    """The state partitions of `least_bytes` that a share partition of the scope holds up; none at an earlier cut.

    Sizes of files or extents choose the state partitions; only of these the records above the log start are read, twice
    (`pruning`). A healthy coordinator prunes, so there is none as a rule.
    """
    large = {part.state_partition: part for part in scoped.evidence.cover() if part.size_bytes >= least_bytes}
    if not large or not scoped.cut.is_whole:
        return ()
    condition = pc.scalar(False)
    for number, part in large.items():
        condition |= (pc.field("state_partition") == number) & (pc.field("log_offset") >= part.log_start_offset)

    def records() -> Iterator[pa.Table]:
        return scoped.evidence.scan(RECORDS, PRUNING_READ, Where(columns=condition))

    keys = scoped.places.select(SHARE_PARTITION_KEY).to_pylist()
    selected = {(key["group_id"], key["topic_id"], key["partition"]) for key in keys}
    states = []
    for row in pruning(records).filter(pc.field("prune_log_offset").is_valid()).to_pylist():
        holder = row["held_up_by_group_id"], row["held_up_by_topic_id"], row["held_up_by_partition"]
        end_ms = large[row["state_partition"]].last_ms
        if holder in selected and end_ms is not None:
            group_id, topic_id, partition = holder
            states.append(
                UnprunedState(
                    state_partition=row["state_partition"],
                    group_id=group_id,
                    topic_id=topic_id,
                    partition=partition,
                    since_ms=end_ms - row["held_up_ms"],
                    held_up_ms=row["held_up_ms"],
                    written_bytes=row["bytes"] - row["freeable_bytes"],
                )
            )
    return states
