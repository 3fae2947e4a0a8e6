"""Rows of LOG_RECORD from keys and values, for tests that need no segment."""

import numpy as np
import pyarrow as pa

from sharelens.kafka_log.schemas import LOG_RECORD

TOPIC_ID = "c3RhdGUtdG9waWMtaWQtMQ"


def log_rows(keys, values, *, control=None):
    """One row for each key and value of state partition 3: offsets from 100, timestamps from 1000, leader epoch 5."""
    count = len(keys)
    columns = {
        "topic": ["__share_group_state"] * count,
        "topic_id": [TOPIC_ID] * count,
        "partition": [3] * count,
        "offset": range(100, 100 + count),
        "timestamp_ms": range(1000, 1000 + count),
        "timestamp_type": ["CreateTime"] * count,
        "key": keys,
        "value": values,
        "headers": [[]] * count,
        "base_offset": range(100, 100 + count),
        "leader_epoch": [5] * count,
        "producer_id": [-1] * count,
        "producer_epoch": [-1] * count,
        "attributes": [0] * count,
        "is_control": control or [False] * count,
        "below_log_start": [False] * count,
        "uncommitted": [False] * count,
    }
    arrays = [pa.array(columns[field.name], field.type) for field in LOG_RECORD]
    return pa.RecordBatch.from_arrays(arrays, schema=LOG_RECORD)


def log_times(rows):
    """Running maxima for `log_rows`: the timestamps themselves."""
    return rows.column("timestamp_ms").to_numpy().astype(np.int64)
