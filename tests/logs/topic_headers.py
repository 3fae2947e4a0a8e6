"""Batch headers of a user partition from readable lines: `10-14 at 110 producer 7 COMMIT`."""

import re

import pyarrow as pa

from sharelens.kafka_log.schemas import TOPIC_BATCH
from tests.logs.state_logs import ORDERS_ID

LINE = re.compile(r"(\d+)-(\d+) +at (-?\d+)( append)?(?: producer (\d+))?(?: (COMMIT|ABORT|OTHER))?")


def headers(text: str, *, topic_id: str = ORDERS_ID, partition: int = 0) -> pa.Table:
    """TOPIC_BATCH rows, one a line.

    A line has offsets (inclusive) and a timestamp in ms, then maybe `append` for LogAppendTime, the producer of a
    transaction, and the kind of a marker.
    """
    rows = []
    for line in filter(None, map(str.strip, text.splitlines())):
        match = LINE.fullmatch(line)
        assert match is not None, line
        first, last, at, append, producer, kind = match.groups()
        row = {
            "topic": "orders",
            "topic_id": topic_id,
            "partition": partition,
            "base_offset": int(first),
            "last_offset": int(last),
            "base_timestamp_ms": int(at),
            "max_timestamp_ms": int(at),
            "timestamp_type": "LogAppendTime" if append else "CreateTime",
            "record_count": int(last) - int(first) + 1,
            "size_bytes": 100,
            "producer_id": -1 if producer is None else int(producer),
            "producer_epoch": -1 if producer is None else 0,
            "base_sequence": -1,
            "leader_epoch": 0,
            "transactional": producer is not None,
            "control_type": kind,
            "below_log_start": False,
            "uncommitted": False,
        }
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=TOPIC_BATCH)
