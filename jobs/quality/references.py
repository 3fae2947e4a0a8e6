"""References between tables: which rows must have their like in another table. Counted first, then judged as a fact."""

from collections.abc import Iterator

import pyarrow.compute as pc

from jobs.quality.rule import BLOCKING, MAX_BETWEEN, REFERENCES, Reference, Rule
from sharelens.lake.tables import TABLES

EXTENT, RECORD, SHARE_RECORD = "bronze.ingest_extent", "bronze.log_record", "silver.share_record"
HISTORY = "gold.share_partition_history"
IS_INGESTED = pc.field("status") == "taken"
CLUSTER_STATE_PARTITION_KEY = ("cluster_id", "log_topic_id", "state_partition")
SHARE_PARTITION = ("cluster_id", "group_id", "topic_id", "partition")
LOG = ("cluster_id", "topic_id", "partition")
OF_HISTORY = (*SHARE_PARTITION, "log_topic_id", "state_partition", "log_offset")
MEASURES = (
    "gold.stall", "gold.poison_record", "gold.lag", "gold.redelivered_record", "gold.life_event",
    "gold.lag_over_time", "gold.coordinator_cost", "gold.offset_account",
)  # fmt: skip
"""Measures whose rows are about share partitions that the histories know."""


def _in_an_extent(offset: str) -> Reference:
    return Reference(
        parent=EXTENT,
        columns=("run_id", *LOG, offset),
        parent_columns=("run_id", *LOG),
        covers=("from_offset", "end_offset_exclusive"),
        or_later="run_id",  # upkeep joins the extents of runs (`jobs.upkeep.book_rows`)
        parent_only=IS_INGESTED,
    )


def _in_the_log(partition: str) -> Reference:
    return Reference(
        parent=RECORD,
        columns=("cluster_id", "log_topic_id", partition, "log_offset"),
        parent_columns=(*LOG, "offset"),
        ordered=True,
    )


REFERENCES_OF: dict[str, tuple[Reference, ...]] = {
    RECORD: (_in_an_extent("offset"),),
    "bronze.topic_batch": (_in_an_extent("last_offset"),),
    SHARE_RECORD: (_in_the_log("state_partition"),),
    "silver.group_record": (_in_the_log("partition"),),
    "silver.clock_step": (
        Reference(
            parent=SHARE_RECORD,
            columns=(*CLUSTER_STATE_PARTITION_KEY, "log_offset"),
            parent_columns=(*CLUSTER_STATE_PARTITION_KEY, "log_offset"),
            ordered=True,
        ),
    ),
    "silver.topic_start": (
        Reference(
            parent=SHARE_RECORD,
            columns=(*CLUSTER_STATE_PARTITION_KEY, "topic_id", "partition"),
            parent_columns=(*CLUSTER_STATE_PARTITION_KEY, "topic_id", "partition"),
        ),
    ),
    HISTORY: (
        Reference(
            parent=SHARE_RECORD,
            columns=OF_HISTORY,
            parent_columns=OF_HISTORY,
            ordered=True,
        ),
    ),
    "gold.share_partition_state": (
        Reference(parent=HISTORY, columns=OF_HISTORY, parent_columns=OF_HISTORY, ordered=True),
    ),
    "gold.delivery_history": (
        Reference(
            parent=HISTORY,
            columns=(*OF_HISTORY[:-1], "valid_from_log_offset"),
            parent_columns=OF_HISTORY,
            ordered=True,
        ),
    ),
    **{
        name: (Reference(parent=HISTORY, columns=SHARE_PARTITION, parent_columns=SHARE_PARTITION),)
        for name in MEASURES
        if name in TABLES
    },
}


def fact_of(reference: Reference) -> str:
    """The column of the facts that counts the rows without their like."""
    return f"missing_in_{reference.parent.replace('.', '_')}"


def rules_of(table: str) -> Iterator[Rule]:
    """The rules that judge the references of a table."""
    for reference in REFERENCES_OF.get(table, ()):
        yield Rule(
            table=table,
            name=f"is_in_{reference.parent.replace('.', '_')}",
            kind=REFERENCES,
            level=BLOCKING,
            expectation=MAX_BETWEEN,
            arguments={"column": fact_of(reference), "min_value": 0, "max_value": 0},
            meaning=_meaning(reference),
            about_facts=True,
            reference=reference,
        )


def _meaning(reference: Reference) -> str:
    named = ", ".join(f"`{name}`" for name in reference.columns if name != "cluster_id")
    if reference.covers is not None:
        return f"{named}: a row of {reference.parent} says that it was taken"
    return f"{named}: {reference.parent} has the same"
