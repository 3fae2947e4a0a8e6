"""The silver table in the way most would write it first: a plain Python UDF that decodes one record at a time.

The same segments, data source, columns and Delta format as the pipeline, and the reference decoder; only the decoding
differs. Generated logs have rising timestamps, so `log_time_ms` is the timestamp itself.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everywhere in Spark code
from pyspark.sql.pandas.types import from_arrow_schema

from sharelens.configuration.settings import load_settings
from sharelens.spark.session import spark_session
from state_model.columnar.schemas import SHARE_RECORD
from state_model.errors import DecodeError
from state_model.share_records import (
    ShareRecord,
    ShareSnapshot,
    ShareUpdate,
    StateBatch,
    Tombstone,
    UnknownVersionValue,
    decode_record,
)
from state_model.topics import STATE_TOPIC

LOG_COLUMNS = {
    "log_topic_id": "topic_id",
    "state_partition": "partition",
    "log_offset": "offset",
    "timestamp_ms": "timestamp_ms",
    "log_time_ms": "timestamp_ms",
    "log_leader_epoch": "leader_epoch",
    "below_log_start": "below_log_start",
    "uncommitted": "uncommitted",
}
"""Columns of the table that come from the log row; the UDF makes the others."""
DECODED = pa.schema([field for field in SHARE_RECORD if field.name not in LOG_COLUMNS])
SCALARS = (
    "snapshot_epoch",
    "state_epoch",
    "leader_epoch",
    "start_offset",
    "delivery_complete_count",
    "create_timestamp_ms",
    "write_timestamp_ms",
)
RECORD_TYPES = {ShareSnapshot: "snapshot", ShareUpdate: "update", Tombstone: "tombstone"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """Rows written to the table and the seconds from reading segments to the Delta commit, session start apart."""

    records: int
    seconds: float


def in_own_session(directory: Path, target: Path) -> Decoded:
    """`write_silver` in a session that is started for it."""
    session = spark_session("bench", load_settings())
    try:
        return write_silver(session, directory, target)
    finally:
        session.stop()


def write_silver(session: SparkSession, log_directory: Path, table: Path) -> Decoded:
    """Decode the state log of a directory into a new Delta table."""
    started = time.perf_counter()
    silver(session, log_directory).write.format("delta").save(str(table))
    seconds = time.perf_counter() - started
    return Decoded(records=session.read.format("delta").load(str(table)).count(), seconds=seconds)


def silver(session: SparkSession, log_directory: Path) -> DataFrame:
    """The rows of silver.share_record; records that cannot be decoded are left out."""
    log = session.read.format("kafka_log").option("topic", STATE_TOPIC).load(str(log_directory))
    # As nondeterministic it runs once a record; else Spark would run it for the filter and again for the columns.
    decode = F.udf(decoded_columns, from_arrow_schema(DECODED), useArrow=False).asNondeterministic()
    rows = log.filter(~F.col("is_control")).withColumn("decoded", decode("key", "value")).filter("decoded is not null")
    return rows.select(*(F.col(LOG_COLUMNS.get(name, f"decoded.{name}")).alias(name) for name in SHARE_RECORD.names))


def decoded_columns(key: bytes | None, value: bytes | None) -> dict[str, Any] | None:
    """The decoded columns of one record; None when it is no share-group record that this version knows."""
    try:
        record = decode_record(_bytes(key), _bytes(value))
    except DecodeError:
        return None
    if not isinstance(record, ShareRecord) or isinstance(record.value, UnknownVersionValue):
        return None
    content = record.value
    columns: dict[str, Any] = {name: getattr(content, name, None) for name in SCALARS}
    if isinstance(content, ShareSnapshot | ShareUpdate):
        columns["value_version"] = 0
        columns["state_batches"] = [_batch(batch) for batch in content.state_batches]
        columns["unknown_tags"] = [
            (index, tag.tag, tag.data)
            for index, batch in enumerate(content.state_batches)
            for tag in batch.unknown_tags
        ] + [(None, tag.tag, tag.data) for tag in content.unknown_tags]
    else:
        columns |= {"value_version": None, "state_batches": None, "unknown_tags": []}
    return columns | {
        "record_type": RECORD_TYPES[type(content)],
        "group_id": record.key.group_id,
        "topic_id": record.key.topic_id,
        "partition": record.key.partition,
        "trailing_bytes": record.trailing_bytes,
        "record_bytes": len(key or b"") + len(value or b""),
    }


def _bytes(part: bytes | None) -> bytes | None:
    """Spark hands binary columns over as bytearray."""
    return None if part is None else bytes(part)


def _batch(batch: StateBatch) -> tuple[int, int, int, int]:
    return batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count
