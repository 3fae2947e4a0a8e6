"""Steps back of the clock behind record timestamps.

"As of T" uses log time, the running maximum of record timestamps. After a step back, log time does not advance, and a
moment inside the step matches more than one state: an answer for it names the log offset to use instead.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

STEP_MS = 60_000


def clock_steps(rows: pa.Table, log_time_ms: npt.NDArray[np.int64]) -> pa.Table:
    """The records (LOG_RECORD, ascending offsets) at which timestamps begin to lie over a minute below the log time.

    Columns: log_topic_id, state_partition, log_offset, timestamp_ms, log_time_ms (before the record).
    """
    stamps = rows.column("timestamp_ms").to_numpy()
    back = log_time_ms - stamps > STEP_MS
    begins = np.flatnonzero(back & ~np.concatenate([[False], back[:-1]]))
    at = rows.take(pa.array(begins))
    return pa.table(
        {
            "log_topic_id": at.column("topic_id"),
            "state_partition": at.column("partition"),
            "log_offset": at.column("offset"),
            "timestamp_ms": at.column("timestamp_ms"),
            "log_time_ms": pa.array(log_time_ms[begins]),
        }
    )
