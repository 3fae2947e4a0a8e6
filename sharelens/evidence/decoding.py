"""Records of the state topic as typed rows with their log time; undecodable records as problems.

The kernels are those of state_model.columnar.decode (share-group-state-log §2-3); here they meet whole tables.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.log_time import NO_LOG_TIME, Ints, log_time_after, log_times_of_logs
from sharelens.evidence.schemas import DECODED_FROM
from sharelens.kafka_log.schemas import LOG_RECORD, PROBLEM
from state_model.columnar.decode import DECODE_PROBLEM, decode_share_records
from state_model.columnar.schemas import SHARE_RECORD
from state_model.topics import STATE_TOPIC

DECODABLE = pa.schema(
    [
        LOG_RECORD.field(name)
        for name in (
            *("topic_id", "partition", "offset", "timestamp_ms", "key", "value", "leader_epoch"),
            *("is_control", "below_log_start", "uncommitted"),
        )
    ]
)
"""The columns of LOG_RECORD that decoding reads."""
KEPT_BYTES = 4096
"""Bytes of a key, and of a value, that the PROBLEM row of a record keeps."""
NO_RECORDS, NO_PROBLEMS = SHARE_RECORD.empty_table(), DECODE_PROBLEM.empty_table()


@dataclass(frozen=True, kw_only=True)
class DecodedRecords:
    """SHARE_RECORD rows, DECODE_PROBLEM rows (both in log order) and the log time of each record that was read."""

    records: pa.Table
    problems: pa.Table
    log_times: Ints
    before_ms: int = NO_LOG_TIME

    @cached_property
    def log_time_ms(self) -> int:
        """Log time after the records."""
        return log_time_after(self.log_times, self.before_ms)


def decode_log(records: pa.Table, *, before_ms: int = NO_LOG_TIME) -> DecodedRecords:
    """Decodes records of one state partition and gives each its log time.

    Args:
        records: DECODABLE rows of one state partition, ascending offsets; may be empty.
        before_ms: log time after the records that precede them.

    Raises:
        ValueError: offsets do not ascend; the message names the first offset that repeats or goes back.
    """
    decoded = decode_logs(records, [before_ms])
    return replace(decoded, before_ms=before_ms)


def decode_logs(records: pa.Table, before_ms: Sequence[int]) -> DecodedRecords:
    """Decodes records of several state partitions and gives each its log time.

    Args:
        records: DECODABLE rows of one topic, by state partition, then by offset.
        before_ms: for each state partition the log time after the records that precede its rows.

    Raises:
        ValueError: offsets of a state partition do not ascend; the message names the first one that does not.
    """
    offsets, partitions = (records.column(name).to_numpy() for name in ("offset", "partition"))
    is_first = np.append(True, partitions[1:] != partitions[:-1])[: len(partitions)]
    back = ~is_first[1:] & (offsets[1:] <= offsets[:-1])
    if back.any():
        at = int(np.flatnonzero(back)[0]) + 1
        raise ValueError(f"partition {partitions[at]}: log offset {offsets[at]} does not lie above the one before it")
    times = log_times_of_logs(
        records.column("timestamp_ms").to_numpy(), np.cumsum(is_first) - 1, np.array(before_ms, np.int64)
    )
    return decode_rows(records, times)


def decode_rows(records: pa.Table, log_time_ms: Ints | None = None) -> DecodedRecords:
    """Decodes DECODABLE rows of the state topic, in their order, whichever partitions they are of.

    `log_time_ms`: the log time of each row; None takes the record's own timestamp, for callers that use no log time.
    """
    times = records.column("timestamp_ms").to_numpy() if log_time_ms is None else log_time_ms
    rows, problems = [NO_RECORDS], [NO_PROBLEMS]
    begin = 0
    for batch in records.combine_chunks().to_batches():  # several when the bytes need more than one binary array
        decoded = decode_share_records(batch, log_time_ms=times[begin : begin + batch.num_rows])
        rows.append(pa.Table.from_batches([decoded.records]))
        problems.append(pa.Table.from_batches([decoded.problems]))
        begin += batch.num_rows
    return DecodedRecords(records=pa.concat_tables(rows), problems=pa.concat_tables(problems), log_times=times)


def problem_rows(problems: pa.Table) -> pa.Table:
    """PROBLEM rows (bronze.quarantine) of DECODE_PROBLEM rows, in their order; `file` is DECODED_FROM."""
    count = problems.num_rows
    key, value = (pc.binary_slice(pc.fill_null(problems.column(name), b""), 0, KEPT_BYTES) for name in ("key", "value"))
    columns = {
        "source_id": pa.repeat("", count),
        "topic": pa.repeat(STATE_TOPIC, count),
        "topic_id": problems.column("log_topic_id"),
        "partition": problems.column("state_partition"),
        "file": pa.repeat(DECODED_FROM, count),
        "position": problems.column("log_offset"),
        "first_offset": problems.column("log_offset"),
        "last_offset": problems.column("log_offset"),
        "reason": problems.column("reason"),
        "detail": problems.column("detail"),
        "bytes": pc.binary_join_element_wise(key, value, b""),
    }
    return pa.table(columns).cast(PROBLEM)
