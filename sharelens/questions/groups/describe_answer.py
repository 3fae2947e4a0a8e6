"""What the answers to `describe` share for groups of each type: first columns, last change, the closing line."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import pyarrow as pa

from sharelens.groups.moment import GroupMoment
from sharelens.groups.replay import Partitions
from sharelens.groups.schemas import TOPIC_PARTITIONS
from sharelens.output import Answer, Column, Row, number_text, table_name
from sharelens.output.layouts import Layout
from sharelens.parameters.times import time_text
from sharelens.questions.answers.completeness import closing_line, incomplete_rows
from sharelens.questions.answers.shape import CLUSTER_ID
from sharelens.tables.metadata_history import PARTITIONS, leaders
from sharelens.tables.port import Tables
from state_model.columnar.schemas import column
from state_model.topics import OFFSETS_TOPIC

Rows: TypeAlias = list[dict[str, Any]]
CLUSTER_AND_GROUP = (CLUSTER_ID, column("group_id", pa.string(), "group"))
LAST_CHANGE = (
    column("last_change_ms", pa.int64(), "log time of the group's newest record"),
    column("log_partition", pa.int32(), "partition of __consumer_offsets"),
    column("log_offset", pa.int64(), "offset of that record"),
)
NAMED_PARTITIONS = pa.list_(pa.struct([pa.field("topic", pa.string()), *TOPIC_PARTITIONS.value_type]))
"""Partitions by topic, with its name where it is known."""
NO_COORDINATOR = "the coordinator is not in the logs and is left out"
NOT_READ = "the coordinator is not in the logs that were read; --state names it where there is a metadata log"
COMPACTION = (
    "the group has later records, and compaction of __consumer_offsets may have removed earlier ones: values can be "
    "older than the moment, and members that left later can be absent"
)


def named_partitions(partitions: Partitions, names: Mapping[str, str]) -> Rows:
    """A NAMED_PARTITIONS value: by name and id of the topic."""
    named = [
        {"topic": names.get(topic_id), "topic_id": topic_id, "partitions": numbers} for topic_id, numbers in partitions
    ]
    return sorted(named, key=lambda of_topic: (of_topic["topic"] or "", of_topic["topic_id"]))


def assignment_column(heading: str, *fields: str) -> Column:
    """`topic:0,1;topic:2` of NAMED_PARTITIONS values together, as the tools print them."""

    def cell(row: Row) -> str:
        partitions: dict[str, list[int]] = {}
        for field in fields:
            value = row[field]
            assert isinstance(value, list)
            for of in value:
                partitions.setdefault(of["topic"] or of["topic_id"], []).extend(of["partitions"])
        numbers = ((topic, ",".join(map(str, sorted(of_topic)))) for topic, of_topic in sorted(partitions.items()))
        return ";".join(f"{table_name(topic)}:{text}" for topic, text in numbers) or number_text(None)

    return Column(heading=heading, cell=cell, fields=fields)


def cluster_and_group(evidence: Tables, name: str) -> dict[str, Any]:
    """The columns CLUSTER_AND_GROUP."""
    return {"cluster_id": evidence.cluster_id, "group_id": name}


def last_change(moment: GroupMoment[Any]) -> dict[str, Any]:
    """The columns LAST_CHANGE: time and place of the group's newest record."""
    newest = moment.newest
    return {
        "last_change_ms": newest.log_time_ms,
        "log_partition": newest.log_partition,
        "log_offset": newest.log_offset,
    }


def closed_answer(
    evidence: Tables,
    moment: GroupMoment[Any],
    table: pa.Table,
    layout: Layout,
    *,
    state: str,
    none: str,
    warnings: Sequence[str] = (),
) -> Answer:
    """The answer of these rows, closed by the group's state, its newest record and the evidence.

    A warning says where compaction can have removed records of the group.
    """
    newest = moment.newest
    record = f"newest record: __consumer_offsets-{newest.log_partition} @ {newest.log_offset}"
    closing = closing_line(evidence, incomplete_rows(table.column("completeness")))
    compacted = (COMPACTION,) if moment.group_marks["completeness_reason"] == "compacted" else ()
    return Answer(
        table=table,
        columns=layout.columns(),
        summary=f"{state}; {record}, {time_text(newest.log_time_ms)}\n{closing}",
        warnings=(*compacted, *warnings),
        none=none,
    )


def with_coordinator(
    evidence: Tables, answer: Answer, moment: GroupMoment[Any], as_of_ms: int | None, *, reads_log: bool
) -> Answer:
    """The answer with the group coordinator in its first line, as far as the metadata log says it.

    Without `reads_log` a metadata log beside the others is not read for it; the tables of a lake are.
    """
    number = moment.newest.log_partition
    if reads_log or evidence.stored(PARTITIONS):
        leader = leaders(evidence, OFFSETS_TOPIC, as_of_ms).get(number)
        named = f"coordinator: broker {leader}, the leader of {OFFSETS_TOPIC}-{number}"
        line = NO_COORDINATOR if leader is None else named
    else:
        line = NOT_READ
    first, _, closing = (answer.summary or "").partition("\n")
    return replace(answer, summary=f"{first}; {line}\n{closing}")
