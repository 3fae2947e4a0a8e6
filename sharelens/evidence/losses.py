"""Losses: ranges of state-log offsets that the evidence lacks, and records that could not be decoded.

Replay marks the share partitions that a loss may touch as incomplete, until their next snapshot.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sharelens.evidence.coverage import Extent, coverage
from sharelens.evidence.intervals import Interval, difference, union
from sharelens.evidence.schemas import DECODED_FROM
from sharelens.kafka_log.schemas import LOG_RECORD
from state_model.columnar.keys import LOG_PARTITION_KEY
from state_model.columnar.values import Loss

if TYPE_CHECKING:
    from sharelens.kafka_log.layout import PartitionDirectory

GAP: Final = "gap"
PRUNED: Final = "pruned"
REMOTE: Final = "remote"
QUARANTINED: Final = "quarantined"
TRUNCATED: Final = "truncated"
VANISHED: Final = "vanished"
DAMAGE_REASONS = (TRUNCATED, VANISHED)
"""Reasons of damage that are reasons of losses too; any other damage quarantines a batch."""
EVERY_RUN = (0, (1 << 63) - 1)
QUARANTINE_KEY = ["cluster_id", *LOG_PARTITION_KEY]

Damage = tuple[int, int, str]
"""Offsets [first, end) that could not be read, and the reason code of the problem."""
LogPartitionKey = tuple[str, str, int]
"""(cluster id, topic id, partition) of a log partition."""


def gap_reason(
    gap: Interval, damages: Iterable[Damage], copies: "Sequence[PartitionDirectory]", log_start_offset: int
) -> str:
    """Why a log partition lacks a range of offsets.

    By the damage that it overlaps, the lowest of several; else by where the log and its copies begin: remote (tiered),
    pruned, or a gap of unknown cause. Without any copy the log has vanished.
    """
    if not copies:
        return VANISHED
    first, end = gap
    overlapping = min((damage for damage in damages if damage[0] < end and damage[1] > first), default=None)
    if overlapping is not None:
        return overlapping[2] if overlapping[2] in DAMAGE_REASONS else QUARANTINED
    bases = [copy.segments[0].base_offset for copy in copies if copy.segments]
    below_all = bool(bases) and end <= min(bases)
    if below_all and any(copy.remote_below for copy in copies):
        return REMOTE
    return PRUNED if below_all or end <= log_start_offset else GAP


def losses_of_extents(extents: Iterable[Extent], *, runs: tuple[int, int] = EVERY_RUN) -> list[Loss]:
    """Losses of one log partition by its rows of bronze.ingest_extent, in any order: gaps that no extent covers.

    Ascending and disjoint, neighbours of one reason joined; of several reasons for an offset the latest run's counts.
    Only gaps of `runs` (inclusive); extents of earlier and later runs fill them too.
    """
    extents = [
        row
        for row in extents
        if row["status"] == "taken" and row["content"] == "log_record" and row["run_id"] <= runs[1]
    ]
    if not any(row["gaps"] for row in extents if row["run_id"] >= runs[0]):
        return []
    left_out = coverage(extents).covered
    by_reason: dict[str, list[Interval]] = {}
    for row in sorted(extents, key=lambda row: (-int(row["run_id"]), str(row["source_id"]))):
        if row["run_id"] < runs[0]:
            continue
        for gap in sorted(row["gaps"], key=lambda gap: (gap["first_offset"], gap["last_offset"], gap["reason"])):
            lost = difference([(gap["first_offset"], gap["last_offset"] + 1)], left_out)
            by_reason.setdefault(gap["reason"], []).extend(lost)
            left_out = union([*left_out, *lost])
    return in_order(
        Loss(first_offset=first, last_offset=end - 1, reason=reason)
        for reason, intervals in by_reason.items()
        for first, end in union(intervals)
    )


def losses_of_undecodable(
    log_records: Callable[[], ds.Dataset | None], quarantined: pa.Table
) -> dict[LogPartitionKey, list[Loss]]:
    """Losses of each log partition by its rows of bronze.quarantine that records which can't be decoded have left.

    A record whose key can be read is a loss of its own share partition only; one that the broker skips as well is none.

    Args:
        log_records: opens bronze.log_record, where the records are looked up; None: there is no such table, so no loss.
            It is called only if there is a record to look up.
        quarantined: rows with QUARANTINE_KEY, first_offset and file, in any order.
    """
    rows = quarantined.filter(pc.field("file") == DECODED_FROM)
    bronze = log_records() if rows.num_rows else None
    if bronze is None:
        return {}
    from sharelens.evidence.decoding import decode_rows  # loads kernels, which most questions do not need

    offsets: dict[LogPartitionKey, list[int]] = {}
    for row in rows.select([*QUARANTINE_KEY, "first_offset"]).to_pylist():
        offsets.setdefault((row["cluster_id"], row["topic_id"], row["partition"]), []).append(row["first_offset"])
    losses = {}
    for key, numbers in offsets.items():
        condition = pc.field("offset").isin(numbers)
        for name, value in zip(QUARANTINE_KEY, key, strict=True):
            condition &= pc.field(name) == value
        records = bronze.to_table(columns=LOG_RECORD.names, filter=condition).cast(LOG_RECORD).sort_by("offset")
        losses[key] = losses_of_problems(decode_rows(records).problems)
    return losses


def losses_of_problems(problems: pa.Table) -> list[Loss]:
    """Losses by records that could not be decoded (DECODE_PROBLEM rows), in their order."""
    from state_model.columnar.decode import losses_of  # loads kernels, which most questions do not need

    return [loss for batch in problems.to_batches() for loss in losses_of(batch)]


def in_order(losses: Iterable[Loss]) -> list[Loss]:
    """Losses by their first offset, ascending, in a stable order."""
    return sorted(losses, key=lambda loss: loss.first_offset)


def losses_up_to(losses: Iterable[Loss], last_offset: int | None) -> list[Loss]:
    """The losses that begin at or below a log offset, in their order; None puts no bound."""
    return [loss for loss in losses if last_offset is None or loss.first_offset <= last_offset]
