"""Log records into the audit of a state partition: log times, decoding, and the records in their order."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evidence.decoding import DecodedRecords, decode_rows
from evidence.log_time import log_times
from state_model.audit.columnar.partition import PartitionAudit


def audited_batches(
    audit: PartitionAudit, log_records: pa.Table, times: npt.NDArray[np.int64] | None = None
) -> Iterator[DecodedRecords]:
    """What decoding made of each batch of the next records (LOG_RECORD), after `audit` has taken it.

    Uncommitted records are left out: they may be truncated yet. `times`: their log times; None: by their timestamps.
    """
    if times is None:
        times = log_times(log_records.column("timestamp_ms").to_numpy(), audit.last_ms)
    if pc.any(log_records.column("uncommitted")).as_py():
        is_committed = pc.invert(log_records.column("uncommitted")).combine_chunks()
        log_records, times = log_records.filter(is_committed), times[is_committed.to_numpy(zero_copy_only=False)]
    begin = 0
    for batch in log_records.combine_chunks().to_batches():
        of_batch = times[begin : begin + batch.num_rows]
        decoded = decode_rows(pa.Table.from_batches([batch]), of_batch)
        audit.take(batch, of_batch, decoded.records, decoded.problems)
        begin += batch.num_rows
        yield decoded
