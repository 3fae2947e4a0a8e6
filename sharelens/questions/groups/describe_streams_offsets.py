"""Committed offsets and lag of a streams group at a moment, as kafka-streams-groups.sh --describe printed them.

End offsets are those of the topics in the evidence: at an earlier moment they are inferred from batches' timestamps.
"""

from dataclasses import replace

import pyarrow as pa

from sharelens.evidence.as_of import LogPrefix
from sharelens.groups.moment import StreamsMoment
from sharelens.groups.schemas import MARKS, STREAMS
from sharelens.measures.topics.file_ends import EndOffsets
from sharelens.output import Answer, name_cell
from sharelens.output.layouts import Layout
from sharelens.questions.groups.describe_answer import CLUSTER_AND_GROUP, Rows
from sharelens.questions.groups.describe_committed import (
    COMMITTED,
    LAG_INFERRED,
    READ_PARTITION,
    Reads,
    committed_rows,
    is_lag_unknown,
    unknown_lag,
)
from sharelens.questions.groups.describe_streams import answer_of, group_of, source_topics, subtopologies_of
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_offset_commits
from state_model.columnar.schemas import column
from state_model.offset_commits import OffsetPlace
from state_model.streams.values import StreamsGroup

OFFSET_ROW = pa.schema(
    [
        *CLUSTER_AND_GROUP,
        *READ_PARTITION,
        column("subtopology_id", pa.string(), "subtopology that reads the topic; null = none"),
        column("member_id", pa.string(), "member whose active task reads the partition; null = none"),
        *COMMITTED,
        column("lag", pa.int64(), "end_offset less the committed offset, or the log start offset; null = unknown"),
        LAG_INFERRED,
        *MARKS,
    ]
)


def offsets(
    evidence: Tables, name: str, moment: StreamsMoment, prefix: LogPrefix, end_offsets: EndOffsets | None
) -> Answer:
    """A row for each partition that an assigned active task reads, and each partition with a committed offset.

    Without a commit the lag counts from the log start offset, as the tool does it.
    """
    rows = offset_rows(evidence, name, moment, read_offset_commits(evidence, frozenset([name])), prefix, end_offsets)
    none = f"streams group {name_cell(name)} has no offset information"
    layout = LAYOUT if prefix.as_of_ms is None else EARLIER_LAYOUT
    answer = answer_of(evidence, moment, rows, layout, none=none)
    unknown = sum(map(is_lag_unknown, rows))
    return replace(answer, warnings=(*answer.warnings, *unknown_lag(unknown, STREAMS)))


def offset_rows(
    evidence: Tables,
    name: str,
    moment: StreamsMoment,
    commits: pa.Table,
    prefix: LogPrefix,
    end_offsets: EndOffsets | None,
) -> Rows:
    """OFFSET_ROW values of the answer; `commits`: COMMIT_COLUMNS rows of the group."""
    group = group_of(moment)
    subtopologies = {
        topic: subtopology.subtopology_id
        for subtopology in subtopologies_of(group)
        for topic in source_topics(subtopology)
    }
    reads = Reads(members=_readers(name, group), topic_ids={}, counts_from_start=True)
    rows = committed_rows(evidence, name, reads, commits, prefix, end_offsets)
    return [row | {"subtopology_id": subtopologies.get(row["topic"])} for row in rows]


def _readers(name: str, group: StreamsGroup) -> dict[OffsetPlace, str]:
    """The member that reads each partition: of assigned active tasks."""
    topics = {subtopology.subtopology_id: source_topics(subtopology) for subtopology in subtopologies_of(group)}
    return {
        OffsetPlace(name, topic, task.partition): member_id
        for member_id, member in group.members.items()
        if member.assignment is not None
        for task in member.assignment.assigned.active
        for topic in topics.get(task.subtopology_id, ())
    }


LAYOUT = Layout(
    schema=OFFSET_ROW,
    fields="group_id topic partition committed_offset leader_epoch end_offset lag member_id completeness",
    headings={"committed_offset": "CURRENT-OFFSET", "end_offset": "LOG-END-OFFSET", "lag": "OFFSET-LAG"},
    important="GROUP TOPIC PARTITION OFFSET-LAG OFFSET-LAG-INFERRED CURRENT-OFFSET LOG-END-OFFSET LEADER-EPOCH MEMBER",
)
EARLIER_LAYOUT = replace(
    LAYOUT,
    fields="group_id topic partition committed_offset leader_epoch end_offset_inferred lag lag_inferred member_id "
    "completeness",
    headings={
        "committed_offset": "CURRENT-OFFSET",
        "end_offset_inferred": "LOG-END-OFFSET",
        "lag": "OFFSET-LAG",
        "lag_inferred": "OFFSET-LAG-INFERRED",
    },
)
"""The lag of an earlier moment is inferred from batches' timestamps."""
