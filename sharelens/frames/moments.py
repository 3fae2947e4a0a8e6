"""States at a moment, from the two histories: Spark's own functions, no Python."""

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from sharelens.frames.envelopes import LOG_START
from sharelens.frames.refusals import Argument, repeated_text
from sharelens.frames.shapes import checked, spark_schema, timed_schema
from sharelens.lake.tables import time_name
from state_model.columnar.keys import FULL_PLACE_KEY, STATE_PARTITION_KEY
from state_model.columnar.schemas import DATED_BATCH, DELIVERY_HISTORY, SHARE_PARTITION_HISTORY, SHARE_PARTITION_STATE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TOMBSTONE = "tombstone"
RANGE_KEY = (*FULL_PLACE_KEY, "first_offset", "valid_from_log_offset")
"""What names a row of the delivery history."""
_OF_HISTORY = [name for name in SHARE_PARTITION_STATE.names if name in SHARE_PARTITION_HISTORY.names]


def states_as_of(
    share_partition_history: "DataFrame",
    delivery_history: "DataFrame",
    as_of_ms: int,
    *,
    log_starts: "DataFrame | None" = None,
) -> "DataFrame":
    """The state of each share partition that lived at a moment: after all records with a log time up to it.

    Log time never goes back in a state partition, so the answer is the replay of a prefix of the log. It is not
    Delta's TIMESTAMP AS OF, which says what a lake held then.

    Args:
        share_partition_history: rows of `frames.share_partition_history` or gold.share_partition_history.
        delivery_history: rows of `frames.delivery_history` or gold.delivery_history of the same records.
        as_of_ms: the moment, epoch milliseconds, inclusive.
        log_starts: as in `frames.share_partition_states`; None: `below_log_start` is false throughout.

    Returns:
        Rows with the columns of `frames.share_partition_states`, in no order; completeness is that of the last record,
        later losses are not marked. Deleted share partitions are absent.

    Raises:
        UsageError: a column is missing or has another type.
    """
    history = checked(share_partition_history, SHARE_PARTITION_HISTORY, "states_as_of", "share_partition_history")
    ranges = checked(delivery_history, DELIVERY_HISTORY, "states_as_of", "delivery_history")
    last = F.max_by(F.struct("record_type", *_OF_HISTORY), "log_offset").alias("last")
    newest = history.where(F.col("log_time_ms") <= as_of_ms).groupBy(*FULL_PLACE_KEY).agg(last)
    alive = newest.where(F.col("last.record_type") != TOMBSTONE)
    ended = F.col("valid_to_ms").isNotNull() & (F.col("valid_to_ms") <= as_of_ms)
    batches = F.array_sort(F.collect_list(F.struct(*DATED_BATCH.names)))
    # The ranges of one state are disjoint: a first offset that comes twice is a row that comes twice.
    is_distinct = F.size(F.collect_set("first_offset")) == F.count("first_offset")
    repeated = F.raise_error(F.lit(repeated_text(Argument("states_as_of", "delivery_history"), RANGE_KEY)))
    batches = F.when(is_distinct, batches).otherwise(repeated).alias("state_batches")
    lists = ranges.where((F.col("valid_from_ms") <= as_of_ms) & ~ended).groupBy(*FULL_PLACE_KEY).agg(batches)
    states = alive.join(lists, FULL_PLACE_KEY, "left").select("last.*", "state_batches")
    below = F.lit(False)
    if log_starts is not None:
        starts = checked(log_starts, LOG_START, "states_as_of", "log_starts")
        starts = starts.groupBy(*STATE_PARTITION_KEY).agg(F.max("log_start_offset").alias("log_start_offset"))
        states = states.join(F.broadcast(starts), STATE_PARTITION_KEY, "left")
        below = F.coalesce(F.col("snapshot_log_offset") < F.col("log_start_offset"), F.lit(False))
    states = states.withColumn("below_log_start", below)
    return _with_times(states, timed_schema(SHARE_PARTITION_STATE))


def _with_times(rows: "DataFrame", schema: pa.Schema) -> "DataFrame":
    """Rows with the columns of `schema`, times made of milliseconds; null outside years 1-9999, as in the tables."""
    fields = spark_schema(schema).fields
    columns: dict[str, Column] = {"state_batches": F.coalesce(F.col("state_batches"), F.array())}
    for name in schema.names:
        if name.endswith("_ms"):
            columns[time_name(name)] = guarded_time(name)
    return rows.select(
        *(columns.get(field.name, F.col(field.name)).cast(field.dataType).alias(field.name) for field in fields)
    )


def guarded_time(millis: str) -> "Column":
    """A column of epoch milliseconds as a timestamp; null outside years 1-9999."""
    inside = F.col(millis).between(-62_135_596_800_000, 253_402_300_799_999)
    return F.when(inside, F.timestamp_millis(F.col(millis)))
