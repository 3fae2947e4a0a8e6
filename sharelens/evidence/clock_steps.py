"""Clock steps: places where record timestamps went back by more than a minute.

"As of T" goes by log time. While a clock lies back, log time stands still, and a moment inside the step names more than
one state: answers about it name the log offset to ask for instead.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.log_time import NO_LOG_TIME, Ints
from sharelens.evidence.schemas import CLOCK_STEP

STEP_MS = 60_000
LATE_RECORD = pa.schema(
    [
        pa.field("state_partition", pa.int32()),
        pa.field("log_offset", pa.int64()),
        pa.field("timestamp_ms", pa.int64()),
        pa.field("log_time_ms", pa.int64()),
    ]
)
"""A record and how far its own timestamp lies behind the log time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockStep:
    """Records stamped at or before a moment although the log time had passed it by over a minute.

    `last_offset`: log offset of the last of them; `ahead_ms`: the largest distance.
    """

    state_partition: int
    last_offset: int
    ahead_ms: int


def is_late(timestamps_ms: Ints, log_time_ms: Ints) -> npt.NDArray[np.bool_]:
    """Whether each record is stamped over a minute before its log time."""
    late: npt.NDArray[np.bool_] = np.maximum(log_time_ms, NO_LOG_TIME + STEP_MS) - STEP_MS > timestamps_ms
    return late


def clock_steps(records: pa.Table, log_time_ms: Ints) -> pa.Table:
    """CLOCK_STEP rows: the records at which timestamps begin to lie over a minute below the log time.

    Args:
        records: LOG_RECORD rows by state partition, then by offset.
        log_time_ms: the log time of each.
    """
    late = is_late(records.column("timestamp_ms").to_numpy(), log_time_ms)
    if not late.any():
        return CLOCK_STEP.empty_table()
    partitions = records.column("partition").to_numpy()
    goes_on = late[:-1] & (partitions[1:] == partitions[:-1])
    begins = np.flatnonzero(late & ~np.append(False, goes_on))
    rows = records.take(pa.array(begins))
    columns = {
        "log_topic_id": rows.column("topic_id"),
        "state_partition": rows.column("partition"),
        "log_offset": rows.column("offset"),
        "timestamp_ms": rows.column("timestamp_ms"),
        "log_time_ms": pa.array(log_time_ms[begins]),
    }
    return pa.table(columns).cast(CLOCK_STEP)


def late_records(records: pa.RecordBatch, log_time_ms: Ints) -> pa.Table:
    """LATE_RECORD rows of the LOG_RECORD rows that are stamped over a minute before their log time, in their order."""
    late = is_late(records.column("timestamp_ms").to_numpy(), log_time_ms)
    if not late.any():
        return LATE_RECORD.empty_table()
    chosen = records.select(["partition", "offset", "timestamp_ms"]).filter(pa.array(late))
    return pa.table([*chosen.columns, pa.array(log_time_ms[late])], schema=LATE_RECORD)


def steps_around(records: pa.Table, moment_ms: int) -> list[ClockStep]:
    """Steps that make "as of `moment_ms`" ambiguous: at most one for each state partition, in their order.

    `records`: rows with the columns of LATE_RECORD, in any order, of every record that `is_late` at least.
    """
    around = (pc.field("timestamp_ms") <= moment_ms) & (pc.field("log_time_ms") > moment_ms)
    rows = records.select(LATE_RECORD.names).filter(around)
    stamps, times = (rows.column(name).to_numpy() for name in ("timestamp_ms", "log_time_ms"))
    late = is_late(stamps, times)
    table = rows.select(["state_partition", "log_offset"]).append_column("ahead_ms", pa.array(times - stamps))
    steps = table.filter(pa.array(late)).group_by("state_partition")
    largest = steps.aggregate([("log_offset", "max"), ("ahead_ms", "max")]).sort_by("state_partition")
    return [
        ClockStep(
            state_partition=row["state_partition"], last_offset=row["log_offset_max"], ahead_ms=row["ahead_ms_max"]
        )
        for row in largest.to_pylist()
    ]
