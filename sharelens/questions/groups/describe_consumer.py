"""A consumer group as kafka-consumer-groups.sh --describe printed it at a moment: offsets, members or state."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from sharelens.evidence.as_of import LogPrefix
from sharelens.groups.committed_offsets import names_in_commits
from sharelens.groups.consumer_values import (
    consumer_group_values,
    consumer_member_values,
    owned_partitions,
    partition_cell,
    preferred_assignor,
)
from sharelens.groups.moment import ConsumerMoment
from sharelens.groups.schemas import CONSUMER, GROUP_VALUES, MARKS, MEMBER_VALUES
from sharelens.measures.topics.file_ends import EndOffsets
from sharelens.output import Answer, name_cell, number_text
from sharelens.output.layouts import Layout
from sharelens.output.wording import counted
from sharelens.questions.groups.describe_answer import (
    CLUSTER_AND_GROUP,
    LAST_CHANGE,
    NAMED_PARTITIONS,
    Rows,
    assignment_column,
    closed_answer,
    cluster_and_group,
    last_change,
    named_partitions,
)
from sharelens.questions.groups.describe_committed import (
    COMMITTED,
    LAG_INFERRED,
    READ_PARTITION,
    Reads,
    committed_rows,
    is_lag_unknown,
    unknown_lag,
)
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_offset_commits
from state_model.columnar.schemas import column
from state_model.consumer.group_values import ConsumerGroup, member_assignment, member_metadata
from state_model.offset_commits import OffsetPlace

OF_STREAMS = ("topology_epoch", "validated_topology_epoch", "num_standby_replicas")
OF_STREAMS_MEMBERS = (
    *("process_id", "topology_epoch", "user_endpoint", "client_tags"),
    *("assigned_tasks", "pending_tasks", "target_tasks"),
)
PARTITIONS = ("assigned_partitions", "pending_partitions", "target_partitions")
STATE_ROW = pa.schema(
    [
        *CLUSTER_AND_GROUP,
        *(field for field in GROUP_VALUES if field.name not in OF_STREAMS),
        column(
            "server_assignor",
            pa.string(),
            "assignor that the most members prefer; null = none: the broker's first, which no record has",
        ),
        *LAST_CHANGE,
        *MARKS,
    ]
)
MEMBER_ROW = pa.schema(
    [
        *CLUSTER_AND_GROUP,
        column("member_id", pa.string(), "member"),
        *(field for field in MEMBER_VALUES if field.name not in (*OF_STREAMS_MEMBERS, *PARTITIONS)),
        column(
            "matched_topics",
            pa.list_(pa.string()),
            "topics that the member's regular expression matched when it was last resolved; null = no record of it",
        ),
        column(
            "partition_count",
            pa.int32(),
            "number of partitions that the member has: assigned ones, and those that it must give up",
        ),
        column("assigned_partitions", NAMED_PARTITIONS, "current assignment without what it must give up, by topic"),
        column("pending_partitions", NAMED_PARTITIONS, "partitions that the member must give up, by topic"),
        column("target_partitions", NAMED_PARTITIONS, "target assignment, by topic"),
        *MARKS,
    ]
)
OFFSET_ROW = pa.schema(
    [
        *CLUSTER_AND_GROUP,
        *READ_PARTITION,
        column("member_id", pa.string(), "member that has the partition, perhaps to give it up; null = none"),
        column("client_id", pa.string(), "client id of the member; null = no member, or no record of its metadata"),
        column("client_host", pa.string(), "host of the member; null as before"),
        *COMMITTED,
        column("lag", pa.int64(), "end_offset less the committed offset; null = unknown, or nothing is committed"),
        LAG_INFERRED,
        *MARKS,
    ]
)


def state(evidence: Tables, name: str, moment: ConsumerMoment) -> Answer:
    """One row: state, epochs, number of members, preferred assignor."""
    group = group_of(moment)
    row = {
        **cluster_and_group(evidence, name),
        **consumer_group_values(group),
        "server_assignor": preferred_assignor(group),
        **last_change(moment),
        **moment.group_marks,
    }
    return _answer(evidence, moment, [row], STATE_LAYOUT, none="no consumer group")


def members(evidence: Tables, name: str, moment: ConsumerMoment) -> Answer:
    """A row for each member, with its subscription, its current and target assignment, and what it must give up."""
    group = group_of(moment)
    names = _topic_names(evidence, group)
    rows = []
    for member_id, member in sorted(group.members.items()):
        values = consumer_member_values(member_id, member, partition_cell(group.targets.get(member_id, frozenset())))
        resolved = group.resolved.get(member_metadata(member).subscribed_topic_regex or "")
        row = {
            **cluster_and_group(evidence, name),
            **values,
            "matched_topics": None if resolved is None else sorted(resolved.topics),
            "partition_count": len(owned_partitions(member_assignment(member))),
            **{field: named_partitions(values[field] or (), names) for field in PARTITIONS},
            **moment.member_marks(member_id),
        }
        rows.append(row)
    none = f"consumer group {name_cell(name)} has no active members"
    return _answer(evidence, moment, rows, MEMBER_LAYOUT, none=none)


def offsets(
    evidence: Tables, name: str, moment: ConsumerMoment, prefix: LogPrefix, end_offsets: EndOffsets | None
) -> Answer:
    """A row for each partition that a member has, and each partition with a committed offset.

    Without a commit there is no lag, as in the tool.
    """
    commits = read_offset_commits(evidence, frozenset([name]))
    rows = offset_rows(evidence, name, moment, commits, prefix, end_offsets)
    unknown = sum(map(is_lag_unknown, committed_of(rows)))
    layout = OFFSET_LAYOUT if prefix.as_of_ms is None else EARLIER_LAYOUT
    none = f"consumer group {name_cell(name)} has no offset information"
    answer = _answer(evidence, moment, rows, layout, none=none)
    return replace(answer, warnings=(*answer.warnings, *unknown_lag(unknown, CONSUMER)))


def committed_of(rows: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """The OFFSET_ROW values with a committed offset: the others have no lag, as in the tool."""
    return [row for row in rows if row["committed_offset"] is not None]


def offset_rows(
    evidence: Tables,
    name: str,
    moment: ConsumerMoment,
    commits: pa.Table,
    prefix: LogPrefix,
    end_offsets: EndOffsets | None,
) -> Rows:
    """OFFSET_ROW values of the answer; `commits`: COMMIT_COLUMNS rows of the group."""
    group = group_of(moment)
    names = names_in_commits(commits) | _topic_names(evidence, group)
    readers = {
        OffsetPlace(name, names.get(partition.topic_id, partition.topic_id), partition.partition): member_id
        for member_id, member in group.members.items()
        for partition in owned_partitions(member_assignment(member))
    }
    topic_ids = {names.get(topic_id, topic_id): topic_id for topic_id in _topic_ids(group)}
    rows = committed_rows(
        evidence,
        name,
        Reads(members=readers, topic_ids=topic_ids, counts_from_start=False),
        commits,
        prefix,
        end_offsets,
    )
    for row in rows:
        member = group.members.get(row["member_id"])
        row["topic"] = None if row["topic"] == row["topic_id"] else row["topic"]
        row["client_id"] = member and member.metadata and member.metadata.client_id
        row["client_host"] = member and member.metadata and member.metadata.client_host
    return rows


def group_of(moment: ConsumerMoment) -> ConsumerGroup:
    """The group, which exists at the moment."""
    assert moment.group.group is not None
    return moment.group.group


def _topic_ids(group: ConsumerGroup) -> set[str]:
    """The topics of all assignments."""
    assignments = map(member_assignment, group.members.values())
    current = {partition.topic_id for each in assignments for partition in owned_partitions(each)}
    return current | {partition.topic_id for target in group.targets.values() for partition in target}


def _topic_names(evidence: Tables, group: ConsumerGroup) -> dict[str, str]:
    names = evidence.names(_topic_ids(group))
    return {topic_id: names[topic_id] for topic_id in _topic_ids(group) if topic_id in names}


def _answer(evidence: Tables, moment: ConsumerMoment, rows: Rows, layout: Layout, *, none: str) -> Answer:
    """The answer of these rows, closed by the group's state and the evidence."""
    values = consumer_group_values(group_of(moment))
    epoch, count = number_text(values["group_epoch"]), counted(values["member_count"], "member")
    line = f"consumer group: {values['state']}, group epoch {epoch}, {count}"
    table = pa.Table.from_pylist(rows, schema=layout.schema)
    return closed_answer(evidence, moment, table, layout, state=line, none=none)


STATE_LAYOUT = Layout(
    schema=STATE_ROW,
    fields="group_id state group_epoch assignment_epoch server_assignor member_count last_change_ms log_partition "
    "log_offset completeness",
    headings={"assignment_epoch": "TARGET-ASSIGNMENT-EPOCH", "server_assignor": "ASSIGNMENT-STRATEGY"},
    important="GROUP STATE GROUP-EPOCH TARGET-ASSIGNMENT-EPOCH #MEMBERS LAST-CHANGE COMPLETENESS LOG-OFFSET",
)
MEMBER_LAYOUT = Layout(
    schema=MEMBER_ROW,
    fields="group_id member_id client_host client_id instance_id member_type partition_count member_epoch member_state "
    "assigned_partitions target_partitions completeness",
    headings={"member_id": "CONSUMER-ID", "partition_count": "#PARTITIONS"},
    cells=(
        assignment_column("CURRENT-ASSIGNMENT", "assigned_partitions", "pending_partitions"),
        assignment_column("TARGET-ASSIGNMENT", "target_partitions"),
    ),
    important="GROUP CONSUMER-ID CLIENT-ID #PARTITIONS CURRENT-ASSIGNMENT MEMBER-EPOCH MEMBER-STATE COMPLETENESS HOST",
)
OFFSET_LAYOUT = Layout(
    schema=OFFSET_ROW,
    fields="group_id topic partition committed_offset leader_epoch end_offset lag member_id client_host client_id "
    "completeness",
    headings={"committed_offset": "CURRENT-OFFSET", "end_offset": "LOG-END-OFFSET", "member_id": "CONSUMER-ID"},
    important="GROUP TOPIC PARTITION LAG LAG-INFERRED CURRENT-OFFSET LOG-END-OFFSET LEADER-EPOCH CONSUMER-ID",
)
EARLIER_LAYOUT = replace(
    OFFSET_LAYOUT,
    fields="group_id topic partition committed_offset leader_epoch end_offset_inferred lag lag_inferred member_id "
    "client_host client_id completeness",
    headings={
        "committed_offset": "CURRENT-OFFSET",
        "end_offset_inferred": "LOG-END-OFFSET",
        "member_id": "CONSUMER-ID",
    },
)
"""The lag of an earlier moment is inferred from batches' timestamps."""
