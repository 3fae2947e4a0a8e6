"""Histories of share and streams groups from records of the group coordinator: rows of gold tables of the same names.

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
from sharelens.groups.replay import SHARE_TYPES
from sharelens.groups.schemas import GROUP_HISTORY, MEMBER_HISTORY, SHARE_INITIALIZATION_HISTORY, TASK_HISTORY
from sharelens.lake.parquet import conform
from state_model.streams.records import STREAMS_TYPES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


GROUP_RECORD_KEY = ("log_topic_id", "partition", "log_offset")


def group_history(group_records: "DataFrame") -> "DataFrame":
    """State, epochs and number of members of each share and streams group over time.

    Args:
        group_records: rows of `frames.group_records` or silver.group_record, in any order.

    Returns:
        GROUP_HISTORY rows (the columns of gold.group_history but cluster_id and run_id), in no order. Rows that
        compaction of __consumer_offsets can affect are incomplete.

    Raises:
        UsageError: a column is missing or has another type.

    Rules: consumer-offsets-records §5; a topic that was created again is a log of its own.
    """
    return _history(group_records, "groups", GROUP_HISTORY, "group_history")


def member_history(group_records: "DataFrame") -> "DataFrame":
    """Metadata, epochs and assignments of each member of a share or streams group over time.

    Args:
        group_records: as in `group_history`.

    Returns:
        MEMBER_HISTORY rows (the columns of gold.member_history but cluster_id and run_id), in no order.

    Raises:
        UsageError: a column is missing or has another type.
    """
    return _history(group_records, "members", MEMBER_HISTORY, "member_history")


def task_history(group_records: "DataFrame") -> "DataFrame":
    """The tasks of streams groups by the member that has them in its current assignment, over time.

    Args:
        group_records: as in `group_history`.

    Returns:
        TASK_HISTORY rows (the columns of gold.task_history but cluster_id and run_id), in no order.

    Raises:
        UsageError: a column is missing or has another type.
    """
    return _history(group_records, "tasks", TASK_HISTORY, "task_history")


def share_initialization_history(group_records: "DataFrame") -> "DataFrame":
    """The time in which each share partition was initializing, initialized or being deleted.

    Args:
        group_records: as in `group_history`.

    Returns:
        SHARE_INITIALIZATION_HISTORY rows (the columns of gold.share_initialization_history but cluster_id and run_id),
        in no order.

    Raises:
        UsageError: a column is missing or has another type.
    """
    return _history(group_records, "initialization", SHARE_INITIALIZATION_HISTORY, "share_initialization_history")


def _history(rows: "DataFrame", field: str, schema: pa.Schema, function: str) -> "DataFrame":
    """One of the histories, computed for each group."""
    history_records = checked(rows, GROUP_RECORD, function, "group_records").where(
        F.col("record_type").isin(*SHARE_TYPES, *STREAMS_TYPES)
    )
    timed = timed_schema(schema)
    argument = Argument(function, "group_records")

    def compute(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        records = pa.concat_tables([typed_rows(batch, GROUP_RECORD) for batch in batches])
        refuse_other_ids(records, argument, GROUP_RECORD_KEY)
        refuse_duplicates(records, argument, GROUP_RECORD_KEY)
        yield from conform(getattr(histories(records), field), timed).to_batches()

    return in_groups(
        history_records, ["log_topic_id", "group_id"], [name for name, _ in GROUP_RECORD_ORDER], compute, timed
    )
