"""Log records into the audit of state partitions: log times, decoding, and the records in their order."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.decoding import DecodedRecords, decode_rows
from sharelens.evidence.log_time import log_times_of_logs
from state_model.audit.columnar.partitions import PartitionsAudit


def audited_batches(
    audit: PartitionsAudit, log_records: pa.Table, times: npt.NDArray[np.int64] | None = None
) -> Iterator[DecodedRecords]:
    """Decoded rows of each batch of the next records (LOG_RECORD, by partition), after `audit` has taken it.

    Uncommitted records are left out: they may be truncated yet. `times`: their log times; None: by their timestamps.
    """
    logs = audit.logs_of(log_records, "partition")
    if times is None:
        times = log_times_of_logs(log_records.column("timestamp_ms").to_numpy(), logs, audit.last_times)
    if pc.any(log_records.column("uncommitted")).as_py():
        is_committed = pc.invert(log_records.column("uncommitted")).combine_chunks()
        committed = is_committed.to_numpy(zero_copy_only=False)
        log_records, logs, times = log_records.filter(is_committed), logs[committed], times[committed]
    begin = 0
    for batch in log_records.combine_chunks().to_batches():
        batch_slice = slice(begin, begin + batch.num_rows)
        decoded = decode_rows(pa.Table.from_batches([batch]), times[batch_slice])
        audit.take_logs(batch, logs[batch_slice], times[batch_slice], decoded.records, decoded.problems)
        begin += batch.num_rows
        yield decoded
