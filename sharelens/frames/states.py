"""DataFrame -> DataFrame: the rules of the pipeline for people who compose in Spark.

    spark.read.format("kafka_log").load(folder).transform(share_records).transform(share_partition_states)

No reads, no writes, no session. Decode and replay are the same kernels that the stages run (ADR 0002); everything that
Spark's own functions can say is said with them. A state partition is replayed in one task, so for logs beyond a
task's memory use the stages, which stream.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import Column, Window
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses
from pyspark.sql.pandas.types import from_arrow_schema

from kafka_log.schemas import LOG_RECORD
from lake.parquet import conform
from lake.tables import with_times
from state_model.columnar import replay, schemas
from state_model.columnar.decode import decode_share_records
from state_model.topics import STATE_TOPIC

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STATE_PARTITION = ["log_topic_id", "state_partition"]
SHARE_PARTITION = ["group_id", "topic_id", "partition"]


def log_time(timestamp: str, *place: str, order: str) -> Column:
    """Running maximum of `timestamp` in the order of `order`, per `place`: monotone, so "as of" is a prefix."""
    window = Window.partitionBy(*place).orderBy(order).rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return F.max(timestamp).over(window)


def share_records(log_records: "DataFrame") -> "DataFrame":
    """SHARE_RECORD rows from LOG_RECORD rows; other topics' rows, and rows that can't be decoded, are left out."""
    own = log_records.where(F.col("topic") == STATE_TOPIC)
    timed = own.withColumn("log_time_ms", log_time("timestamp_ms", "topic_id", "partition", order="offset"))

    def decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            records = pa.Table.from_batches([batch]).select(LOG_RECORD.names).cast(LOG_RECORD).combine_chunks()
            for part in records.to_batches():
                times = batch.column("log_time_ms").to_numpy()
                yield decode_share_records(part, log_time_ms=times).records

    columns = [*LOG_RECORD.names, "log_time_ms"]
    return timed.select(columns).mapInArrow(decode, from_arrow_schema(schemas.SHARE_RECORD))


def share_partition_states(records: "DataFrame") -> "DataFrame":
    """SHARE_PARTITION_STATE rows, with timestamps, of the live share partitions after `records` (SHARE_RECORD)."""
    return _replayed(records, "state", schemas.SHARE_PARTITION_STATE)


def share_partition_history(records: "DataFrame") -> "DataFrame":
    """SHARE_PARTITION_HISTORY rows, with timestamps: the scalars after each of `records` (SHARE_RECORD)."""
    return _replayed(records, "history", schemas.SHARE_PARTITION_HISTORY)


def delivery_history(records: "DataFrame") -> "DataFrame":
    """DELIVERY_HISTORY rows, with timestamps: closed and open ranges after `records` (SHARE_RECORD)."""
    return _replayed(records, "delivery", schemas.DELIVERY_HISTORY)


def _replayed(records: "DataFrame", what: str, schema: pa.Schema) -> "DataFrame":
    timed = pa.schema(with_times(list(schema)))

    def fold(rows: pa.Table) -> pa.Table:
        ordered = rows.select(schemas.SHARE_RECORD.names).cast(schemas.SHARE_RECORD).sort_by("log_offset")
        done = replay.replay_records(ordered)
        found = {
            "state": lambda: done.state,
            "history": lambda: done.history,
            "delivery": lambda: pa.concat_tables([done.closed, replay.open_ranges(done.state)]),
        }[what]()
        return conform(found, timed)

    return records.groupBy(*STATE_PARTITION).applyInArrow(fold, from_arrow_schema(timed))


def with_valid_to(history: "DataFrame") -> "DataFrame":
    """History rows with `valid_to_log_offset` and `valid_to_ms`: the next record of the share partition, null = now."""
    window = Window.partitionBy("log_topic_id", *SHARE_PARTITION).orderBy("log_offset")
    return history.withColumn("valid_to_log_offset", F.lead("log_offset").over(window)).withColumn(
        "valid_to_ms", F.lead("log_time_ms").over(window)
    )


def scalars_as_of(history: "DataFrame", as_of_ms: int) -> "DataFrame":
    """The history row of each share partition that was valid at `as_of_ms`; none for one deleted by then."""
    window = Window.partitionBy("log_topic_id", *SHARE_PARTITION).orderBy(F.col("log_offset").desc())
    newest = history.where(F.col("log_time_ms") <= as_of_ms).withColumn("newest", F.row_number().over(window))
    return newest.where((F.col("newest") == 1) & (F.col("record_type") != "tombstone")).drop("newest")


def ranges_as_of(delivery: "DataFrame", as_of_ms: int) -> "DataFrame":
    """The delivery history rows that were part of a state at `as_of_ms`."""
    ended = F.col("valid_to_ms").isNotNull() & (F.col("valid_to_ms") <= as_of_ms)
    return delivery.where((F.col("valid_from_ms") <= as_of_ms) & ~ended)
