"""What a history would have been under other settings, as DataFrames: the rows of `sharelens what-if`.

    history.transform(frames.what_if_delivery_count_limit, deliveries, 3, settings=settings)

A user partition is a task, as in `frames.measures`; for another snapshot interval, a state partition then is one, with
one short row for each of its records.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from sharelens.frames.group_inputs import GroupInputs, of_user_partitions
from sharelens.frames.refusals import Argument, refuse_other_ids
from sharelens.frames.shapes import checked, in_groups, spark_schema, typed_rows
from sharelens.lake.parquet import conform
from sharelens.measures.settings.over_time import (
    COLD_SNAPSHOT_INTERVAL,
    COORDINATOR_DEFAULTS,
    NO_SETTINGS,
    GroupSettings,
)
from sharelens.measures.what_if import (
    cold_rounds,
    delivery_limit,
    isolation,
    lock_duration,
    snapshots,
    state_partitions,
)
from sharelens.measures.what_if.appends import APPENDS, appends
from sharelens.measures.what_if.delivery_limit import OTHER_OUTCOME, DeliveryLimit
from sharelens.measures.what_if.schema import WHAT_IF
from state_model.columnar.keys import FULL_PLACE_KEY, STATE_PARTITION_KEY
from state_model.columnar.schemas import SHARE_RECORD
from state_model.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_INTERVAL_MS = COORDINATOR_DEFAULTS[COLD_SNAPSHOT_INTERVAL]
_APPENDS = pa.schema(
    [field.with_type(pa.string()) if pa.types.is_dictionary(field.type) else field for field in APPENDS]
)
_ROUNDS = pa.schema([("seen", pa.list_(pa.int64())), ("first_ms", pa.int64()), ("last_ms", pa.int64())])
_WRITTEN = pa.schema([SHARE_RECORD.field(name) for name in ("log_topic_id", *cold_rounds.READ)])
_PLACED = pa.schema([SHARE_RECORD.field(name) for name in state_partitions.READ])
_TOPIC = SHARE_RECORD.field("log_topic_id")


def what_if_delivery_count_limit(
    share_partition_history: "DataFrame",
    delivery_history: "DataFrame",
    limit: int,
    *,
    settings: GroupSettings = NO_SETTINGS,
    listed: bool = False,
) -> "DataFrame":
    """The figures of each share partition under another delivery count limit.

    Args:
        share_partition_history: rows of `frames.share_partition_history` or gold.share_partition_history, whole.
        delivery_history: rows of `frames.delivery_history` or gold.delivery_history of the same records.
        limit: deliveries after which a released record is archived, 2 to 25.
        settings: of the groups (`frames.group_settings`); without them each archived offset may have been at its limit.
        listed: the ranges of offsets with another outcome instead.

    Returns:
        WHAT_IF rows (`sharelens what-if --output json`, without cluster_id and topic), or with `listed` OTHER_OUTCOME
        rows, in no order; none of share partitions that lack records.

    Raises:
        UsageError: a column is missing or has another type, or a broker refuses the limit.
    """
    function = "what_if_delivery_count_limit"
    _in_range(function, limit, delivery_limit.RANGE)

    def rows(inputs: GroupInputs) -> pa.Table:
        changed = DeliveryLimit(inputs.histories(), settings, limit)
        return changed.ranges() if listed else changed.figures()

    schema = OTHER_OUTCOME if listed else WHAT_IF
    return _of_histories(rows, schema, function, share_partition_history, delivery_history, settings=settings)


def what_if_lock_duration(
    share_partition_history: "DataFrame",
    delivery_history: "DataFrame",
    duration_ms: int,
    *,
    headers: "DataFrame | None" = None,
    settings: GroupSettings = NO_SETTINGS,
) -> "DataFrame":
    """Bounds on the attempts that time out, and on outcomes, under another lock duration.

    Args:
        share_partition_history, delivery_history: as in `what_if_delivery_count_limit`.
        duration_ms: milliseconds from 1,000 to 3,600,000.
        headers: TOPIC_BATCH rows of the user topics (bronze.topic_batch); None: first deliveries may have begun when
            the share partition was created.
        settings: of the groups; without them every lock duration may have been in force.

    Returns:
        WHAT_IF rows, as `what_if_delivery_count_limit`.

    Raises:
        UsageError: a column is missing or has another type, or a broker refuses the duration.
    """
    function = "what_if_lock_duration"
    _in_range(function, duration_ms, lock_duration.RANGE)

    def rows(inputs: GroupInputs) -> pa.Table:
        return lock_duration.rows(inputs, duration_ms)

    return _of_histories(rows, WHAT_IF, function, share_partition_history, delivery_history, headers, settings)


def what_if_isolation_level(
    share_partition_history: "DataFrame",
    delivery_history: "DataFrame",
    level: str,
    *,
    headers: "DataFrame",
    settings: GroupSettings = NO_SETTINGS,
    listed: bool = False,
) -> "DataFrame":
    """What offsets of aborted and open transactions would have become under another isolation level.

    Args:
        share_partition_history, delivery_history, listed: as in `what_if_delivery_count_limit`.
        level: read_committed or read_uncommitted.
        headers: TOPIC_BATCH rows of the user topics (bronze.topic_batch).
        settings: of the groups; without them the level in force is inferred from what was delivered.

    Returns:
        WHAT_IF or OTHER_OUTCOME rows; none of share partitions that lack records, or headers of their topic.

    Raises:
        UsageError: a column is missing or has another type, or Kafka has no such level.
    """
    function = "what_if_isolation_level"
    if level not in isolation.LEVELS:
        raise UsageError(f"frames.{function}: {level!r}: Kafka takes {' or '.join(isolation.LEVELS)}")

    def rows(inputs: GroupInputs) -> pa.Table:
        return (isolation.ranges if listed else isolation.rows)(inputs, level)

    schema = OTHER_OUTCOME if listed else WHAT_IF
    return _of_histories(rows, schema, function, share_partition_history, delivery_history, headers, settings)


def what_if_snapshot_update_records(
    share_records: "DataFrame", share_partition_history: "DataFrame", delivery_history: "DataFrame", limit: int
) -> "DataFrame":
    """Records, bytes and snapshots of each share partition under another number of updates between snapshots.

    Args:
        share_records: SHARE_RECORD rows (`frames.share_records`, silver.share_record) of whole state partitions.
        share_partition_history, delivery_history: of the same records, as in `what_if_delivery_count_limit`.
        limit: updates between two snapshots of a share partition, 0 to 500.

    Returns:
        WHAT_IF rows, as `what_if_delivery_count_limit`.

    Raises:
        UsageError: a column is missing or has another type, or a broker refuses the limit.
    """
    function = "what_if_snapshot_update_records"
    _in_range(function, limit, snapshots.RANGE)

    def operations(inputs: GroupInputs) -> pa.Table:
        return appends(inputs.records(), inputs.history(), inputs.deliveries()).cast(_APPENDS)

    histories = {"share_partition_history": share_partition_history, "delivery_history": delivery_history}
    appended = of_user_partitions(operations, _APPENDS, function, NO_SETTINGS, records=share_records, **histories)
    rounds = F.broadcast(_rounds(checked(share_records, _WRITTEN, function, "share_records")))

    def replayed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = pa.Table.from_batches(list(batches))
        round_times, first_ms, last_ms = (rows.column(name)[0].as_py() for name in _ROUNDS.names)
        times = np.sort(np.array(round_times, np.int64))
        known_rounds = cold_rounds.rounds_between(times, first_ms, last_ms, _INTERVAL_MS)
        answer = snapshots.snapshot_rows(rows.select(APPENDS.names).cast(APPENDS), known_rounds, limit, _INTERVAL_MS)
        yield from conform(answer, WHAT_IF).to_batches()

    return in_groups(appended.join(rounds, "log_topic_id"), STATE_PARTITION_KEY, ["log_offset"], replayed, WHAT_IF)


def what_if_state_partitions(share_records: "DataFrame", number: int, *, listed: bool = False) -> "DataFrame":
    """How even another number of state partitions would be, or with `listed` where each share partition would lie.

    Args:
        share_records: SHARE_RECORD rows (`frames.share_records`, silver.share_record), all of them.
        number: partitions of `__share_group_state`, at least 1.
        listed: one row a share partition instead of one a state partition and figure.

    Returns:
        BALANCE rows, or with `listed` PLACEMENT rows, behind `log_topic_id`, in no order.

    Raises:
        UsageError: a column is missing or has another type, or there can't be so many partitions.
    """
    function = "what_if_state_partitions"
    _in_range(function, number, state_partitions.RANGE)
    is_cold = F.col("create_timestamp_ms") != F.col("write_timestamp_ms")
    by_place = checked(share_records, _PLACED, function, "share_records").groupBy(*FULL_PLACE_KEY)
    sums = by_place.agg(
        F.count(F.lit(1)).alias("records"),
        F.sum(F.col("record_bytes").cast("long")).alias("bytes"),
        F.count(F.when(is_cold, 1)).alias("cold_snapshots"),
    )
    schema = state_partitions.PLACEMENT if listed else state_partitions.BALANCE
    timed = pa.schema([_TOPIC, *schema])

    def placed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tables = [typed_rows(batch, state_partitions.SUM_OF_PLACE) for batch in batches]
        rows = pa.concat_tables(tables)
        refuse_other_ids(rows, Argument(function, "share_records"), FULL_PLACE_KEY)
        answer = (state_partitions.placement_of if listed else state_partitions.balance_of)(rows, number)
        topic = pa.repeat(rows.column("log_topic_id")[0], answer.num_rows)
        yield from conform(answer.add_column(0, _TOPIC, topic), timed).to_batches()

    return in_groups(sums, ["log_topic_id"], ["state_partition"], placed, timed)


def _of_histories(
    rows: Callable[[GroupInputs], pa.Table],
    schema: pa.Schema,
    function: str,
    history: "DataFrame",
    deliveries: "DataFrame",
    headers: "DataFrame | None" = None,
    settings: GroupSettings = NO_SETTINGS,
) -> "DataFrame":
    histories = {"share_partition_history": history, "delivery_history": deliveries, "headers": headers}
    return of_user_partitions(rows, schema, function, settings, **histories)


def _rounds(written: "DataFrame") -> "DataFrame":
    """By state topic what `cold_rounds.rounds_between` reads."""
    is_cold = F.col("create_timestamp_ms") != F.col("write_timestamp_ms")
    rounds = written.groupBy("log_topic_id").agg(
        F.collect_set(F.when(is_cold, F.col("write_timestamp_ms"))).alias("seen"),
        F.min("timestamp_ms").alias("first_ms"),
        F.max("timestamp_ms").alias("last_ms"),
    )
    kinds = {field.name: field.dataType for field in spark_schema(_ROUNDS).fields}
    return rounds.select("log_topic_id", *(F.col(name).cast(kind) for name, kind in kinds.items()))


def _in_range(function: str, value: int, limits: tuple[int, int]) -> None:
    if not limits[0] <= value <= limits[1]:
        raise UsageError(f"frames.{function}: {value}: Kafka takes {limits[0]} to {limits[1]}")
