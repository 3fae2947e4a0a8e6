"""Histories of groups from records of the group coordinator: rows of gold tables of the same names.

    records = logs.transform(frames.group_records)
    records.transform(frames.member_history)

All records of a group are in one task.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from sharelens.evidence.schemas import GROUP_RECORD, GROUP_RECORD_ORDER
from sharelens.frames.refusals import Argument, refuse_duplicates, refuse_other_ids
from sharelens.frames.shapes import checked, in_groups, timed_schema, typed_rows
from sharelens.groups.histories import histories
from sharelens.groups.schemas import GROUP_HISTORY, MEMBER_HISTORY, SHARE_INITIALIZATION_HISTORY, TASK_HISTORY
from sharelens.groups.whole_logs import IS_LOG_WHOLE
from sharelens.kafka_log.schemas import LOG_RECORD
from sharelens.lake.parquet import conform
from state_model.topics import OFFSETS_TOPIC

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


GROUP_RECORD_KEY = ("log_topic_id", "partition", "log_offset")
MARKED_RECORD = GROUP_RECORD.append(IS_LOG_WHOLE)


def group_history(group_records: "DataFrame", *, log_records: "DataFrame | None" = None) -> "DataFrame":
    """State, epochs and number of members of each consumer, share and streams group over time.

    Args:
        group_records: rows of `frames.group_records` or silver.group_record, in any order.
        log_records: the LOG_RECORD rows that they were decoded from, in any order: in logs with a record for every
            offset compaction removed nothing. None: it may have.

    Returns:
        GROUP_HISTORY rows (the columns of gold.group_history but cluster_id and run_id), in no order. Rows that
        compaction of __consumer_offsets can affect are incomplete.

    Raises:
        UsageError: a column is missing or has another type.

    Rules: consumer-offsets-records §5; a topic that was created again is a log of its own.
    """
    return _history(group_records, log_records, "groups", GROUP_HISTORY, "group_history")


def member_history(group_records: "DataFrame", *, log_records: "DataFrame | None" = None) -> "DataFrame":
    """Metadata, epochs and assignments of each member of a consumer, share or streams group over time.

    Args:
        group_records: as in `group_history`.
        log_records: as in `group_history`.

    Returns:
        MEMBER_HISTORY rows (the columns of gold.member_history but cluster_id and run_id), in no order.

    Raises:
        UsageError: a column is missing or has another type.
    """
    return _history(group_records, log_records, "members", MEMBER_HISTORY, "member_history")


def task_history(group_records: "DataFrame", *, log_records: "DataFrame | None" = None) -> "DataFrame":
    """The tasks of streams groups by the member that has them in its current assignment, over time.

    Args:
        group_records: as in `group_history`.
        log_records: as in `group_history`.

    Returns:
        TASK_HISTORY rows (the columns of gold.task_history but cluster_id and run_id), in no order.

    Raises:
        UsageError: a column is missing or has another type.
    """
    return _history(group_records, log_records, "tasks", TASK_HISTORY, "task_history")


def share_initialization_history(group_records: "DataFrame", *, log_records: "DataFrame | None" = None) -> "DataFrame":
    """The time in which each share partition was initializing, initialized or being deleted.

    Args:
        group_records: as in `group_history`.
        log_records: as in `group_history`.

    Returns:
        SHARE_INITIALIZATION_HISTORY rows (the columns of gold.share_initialization_history but cluster_id and run_id),
        in no order.

    Raises:
        UsageError: a column is missing or has another type.
    """
    return _history(
        group_records, log_records, "initialization", SHARE_INITIALIZATION_HISTORY, "share_initialization_history"
    )


def _history(
    rows: "DataFrame", log_records: "DataFrame | None", field: str, schema: pa.Schema, function: str
) -> "DataFrame":
    """One of the histories, computed for each group."""
    of_histories = checked(rows, GROUP_RECORD, function, "group_records")
    history_records = _marked(of_histories, log_records, function)
    timed = timed_schema(schema)
    argument = Argument(function, "group_records")

    def compute(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        records = pa.concat_tables([typed_rows(batch, MARKED_RECORD) for batch in batches])
        refuse_other_ids(records, argument, GROUP_RECORD_KEY)
        refuse_duplicates(records, argument, GROUP_RECORD_KEY)
        yield from conform(getattr(histories(records), field), timed).to_batches()

    return in_groups(
        history_records, ["log_topic_id", "group_id"], [name for name, _ in GROUP_RECORD_ORDER], compute, timed
    )


def _marked(group_records: "DataFrame", log_records: "DataFrame | None", function: str) -> "DataFrame":
    """The records with IS_LOG_WHOLE, by the log records."""
    mark = IS_LOG_WHOLE.name
    if log_records is None:
        return group_records.withColumn(mark, F.lit(False))
    rows = checked(log_records, LOG_RECORD, function, "log_records").where(F.col("topic") == OFFSETS_TOPIC)
    logs = rows.groupBy(F.col("topic_id").alias("log_topic_id"), "partition").agg(
        (F.count_distinct("offset") == F.max("offset") + 1).alias(mark)
    )
    joined = group_records.join(F.broadcast(logs), ["log_topic_id", "partition"], "left")
    return joined.withColumn(mark, F.coalesce(mark, F.lit(False)))
