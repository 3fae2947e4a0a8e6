"""The tables of a folder of evidence, in reading order, with the meaning of each column."""

from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa

from sharelens.evidence.schemas import GROUP_RECORD
from sharelens.evidence_folder import schemas
from sharelens.groups.schemas import (
    CONSUMER_REBALANCE,
    GROUP_HISTORY,
    GROUPS,
    MEMBER_HISTORY,
    STREAMS_REBALANCE,
    TASK_HISTORY,
)
from sharelens.measures import schemas as measured
from sharelens.questions import redelivered
from sharelens.questions.dead_letters import columns as letter_columns
from sharelens.questions.dead_letters import poison
from state_model.audit.columnar.finding_schema import FINDING
from state_model.columnar.schemas import COMPLETENESS, DELIVERY_HISTORY, PLACED_STATE, SHARE_PARTITION_HISTORY, column
from state_model.group_schemas import GroupKind


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentTable:
    """A table of the content: `schemas` have the meanings of its columns; the first schema with the column counts."""

    name: str
    one_row: str
    order: str
    schemas: tuple[pa.Schema, ...]


TIMELINE_MEANING = pa.schema(
    [
        column("at_ms", pa.int64(), "time of the event, epoch milliseconds"),
        column("event", pa.string(), "name of the event, as in `sharelens timeline`"),
        column("group_id", pa.string(), "group"),
        column("topic_id", pa.string(), "null: the event is about the group"),
        column("partition", pa.int32(), "null: the event is about the group"),
        column("records", pa.int64(), "null: the event counts no records"),
        column("text", pa.string(), "what happened"),
        column("log_topic", pa.string(), "topic of the record that proves it"),
        column("log_partition", pa.int32(), "partition of that record"),
        column("log_offset", pa.int64(), "offset of that record"),
    ]
)
FINDING_MEANING = pa.schema(
    [
        column("severity", pa.string(), "error, warning or info"),
        column("kind", pa.string(), "kind of the finding"),
        column("group_id", pa.string(), "streams group"),
        column("size", pa.int64(), "records, or tasks without an owner; null: unknown"),
        column("since_ms", pa.int64(), "since when, epoch milliseconds"),
        column("text", pa.string(), "the finding in words"),
    ]
)
_STATE = "group_id, topic_id, partition"
_LOG = "state_partition, log_offset"
_EVERY = "every column, from the left"
COMMON = {
    "cluster_id": "Kafka cluster id; `unknown` when the evidence has none",
    "topic": "name of the topic; null = unknown",
    "delivery_state_name": "name of the delivery state",
    "moment": "before (the window's beginning) or after (its end)",
    "offsets": "record offsets of this class and reason",
    "ranges": "number of ranges of these offsets",
    "window_first_offset": "first record offset of the window in the user partition",
    "window_end_offset": "end of the window in the user partition (exclusive)",
    "window_offsets": "record offsets in the window; the classes of a share partition add up to it",
    "batch_offsets": "record offsets in the window's batches; null = the topic is not in the evidence",
    "difference": "offsets of the window without a batch; null = the topic is not in the evidence",
    "end_offset_source": "topic or state_log: the source of the window's end",
}
"""Columns that no schema describes."""
TABLES = (
    ContentTable(
        name="note",
        one_row="one thing to know about this evidence: causes of incompleteness, warnings of the answers",
        order="weight",
        schemas=(schemas.NOTE,),
    ),
    ContentTable(
        name="state_before",
        one_row="the state of a share partition just before the window: all records with a log time before --from",
        order=_STATE,
        schemas=(PLACED_STATE,),
    ),
    ContentTable(
        name="state_after",
        one_row="the state of a share partition at the window's end: all records with a log time before --to",
        order=_STATE,
        schemas=(PLACED_STATE,),
    ),
    ContentTable(
        name="record",
        one_row="a record of `__share_group_state` in the window that concerns the group: bytes and decoded fields",
        order=_LOG,
        schemas=(schemas.RECORD,),
    ),
    ContentTable(
        name="trace_event",
        one_row="one event of a range of record offsets in the window, with its log record",
        order="share partition, log_offset, life_log_offset, first_offset",
        schemas=(schemas.TRACE_EVENT,),
    ),
    ContentTable(
        name="delivery_history",
        one_row="a range of record offsets in one delivery state, and its interval; intervals that touch the window",
        order="state_partition, share partition, valid_from_log_offset, first_offset",
        schemas=(DELIVERY_HISTORY,),
    ),
    ContentTable(
        name="share_partition_history",
        one_row="epochs, start offset and counts of a share partition after a record of the window",
        order=_LOG,
        schemas=(SHARE_PARTITION_HISTORY,),
    ),
    ContentTable(
        name="stall",
        one_row="an interval of a minute or more in which a share partition stood still; it overlaps the window",
        order=_EVERY,
        schemas=(measured.STALL,),
    ),
    ContentTable(
        name="poison",
        one_row="a range of record offsets archived in the window, near the delivery limit, or archived as a gap",
        order=_EVERY,
        schemas=(poison.LAYOUT.schema,),
    ),
    ContentTable(
        name="dlq",
        one_row="a dead letter of the window against the archived records: matched, missing, duplicate, …",
        order=_EVERY,
        schemas=(letter_columns.LAYOUT.schema,),
    ),
    ContentTable(
        name="dead_letter",
        one_row="a dead letter of the group, stamped in the window: headers typed, key and value as size and hash",
        order="dlq_topic, dlq_topic_id, dlq_partition, dlq_offset",
        schemas=(schemas.DEAD_LETTER,),
    ),
    ContentTable(
        name="redelivered",
        one_row="a range of record offsets that was delivered more than once, its newest outcome in the window",
        order=_EVERY,
        schemas=(redelivered.LAYOUT.schema,),
    ),
    ContentTable(
        name="life",
        one_row="a creation, reset, deletion or moved epoch in the window",
        order=_EVERY,
        schemas=(measured.LIFE, pa.schema([measured.DELETED_BY])),
    ),
    ContentTable(
        name="lag",
        one_row="how far a share partition was behind at the window's end",
        order=_EVERY,
        schemas=(measured.LAG,),
    ),
    ContentTable(
        name="account",
        one_row="a class of record offsets appended in the window, by their state at the window's end",
        order=_EVERY,
        schemas=(measured.ACCOUNTED,),
    ),
    ContentTable(
        name="audit",
        one_row="a rule of the audit (error or warning) that a share partition or its state log violates before --to",
        order=_EVERY,
        schemas=(FINDING,),
    ),
    ContentTable(
        name="group",
        one_row="the group in the group coordinator's log, before and after",
        order="moment",
        schemas=(GROUPS,),
    ),
    ContentTable(
        name="group_record",
        one_row="a record of `__consumer_offsets` about the group, stamped in the window: bytes and decoded fields",
        order="partition, log_offset",
        schemas=(schemas.GROUP_LOG_RECORD, GROUP_RECORD),
    ),
    ContentTable(
        name="extent",
        one_row="a state partition: its offsets in the evidence and in the window",
        order="state_partition",
        schemas=(schemas.EXTENT,),
    ),
    ContentTable(
        name="gap",
        one_row="a range of the state log that the evidence lacks, up to the window's end",
        order=_EVERY,
        schemas=(schemas.GAP,),
    ),
    ContentTable(
        name="quarantine",
        one_row="a batch or record of the window that could not be read or decoded",
        order=_EVERY,
        schemas=(schemas.QUARANTINED,),
    ),
    ContentTable(
        name="configuration",
        one_row="a setting of the group or its topics by the metadata log, in force before the window's end",
        order="entity_type, entity, key, valid_from_log_offset",
        schemas=(schemas.CONFIGURATION,),
    ),
    ContentTable(name="topic", one_row="a topic of the group: id and name", order="topic_id", schemas=(schemas.TOPIC,)),
)

STREAMS_TABLES = (
    ContentTable(
        name="finding",
        one_row="what was wrong with the streams group at the window's end, as `sharelens overview` says it",
        order="severity, kind",
        schemas=(FINDING_MEANING,),
    ),
    ContentTable(
        name="timeline",
        one_row="an event of the group in the window, with the record that proves it",
        order="at_ms, event",
        schemas=(TIMELINE_MEANING,),
    ),
    ContentTable(
        name="rebalance",
        one_row="a group epoch of the window: members, what moved, and for how long partitions or tasks had no owner",
        order="log_offset",
        schemas=(STREAMS_REBALANCE, CONSUMER_REBALANCE),
    ),
    ContentTable(
        name="group_history",
        one_row="state and epochs of the group, and their interval; intervals that touch the window",
        order="valid_from_log_offset",
        schemas=(GROUP_HISTORY,),
    ),
    ContentTable(
        name="member_history",
        one_row="what a member said, had and should get, and the interval; intervals that touch the window",
        order="valid_from_log_offset",
        schemas=(MEMBER_HISTORY,),
    ),
    ContentTable(
        name="task_history",
        one_row="a task that a member had, and the interval; intervals that touch the window",
        order="valid_from_log_offset",
        schemas=(TASK_HISTORY,),
    ),
)
"""Tables that only a folder about a streams group has; one about a consumer group has no finding and no tasks."""
ALL_TABLES = (TABLES[0], *STREAMS_TABLES, *TABLES[1:])


def kind_of(names: Collection[str]) -> GroupKind:
    """The kind of group that a folder with these tables is about."""
    if "task_history" in names:
        return GroupKind.STREAMS
    return GroupKind.CONSUMER if "member_history" in names else GroupKind.SHARE


def meaning(table: ContentTable, column: str) -> str:
    """The meaning of a column; empty where no schema has one."""
    for schema in (*table.schemas, pa.schema(COMPLETENESS)):
        if column in schema.names:
            comment = (schema.field(column).metadata or {}).get(b"comment")
            if comment:
                return str(comment.decode("utf-8"))
    return COMMON.get(column, "")
