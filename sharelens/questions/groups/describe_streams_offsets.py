"""Committed offsets and lag of a streams group at a moment, as kafka-streams-groups.sh --describe printed them.

End offsets are those of the topics in the evidence: at an earlier moment they are inferred from batches' timestamps.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from sharelens.evidence.as_of import LogPrefix
from sharelens.groups.committed_offsets import Committed, committed_offsets
from sharelens.groups.intervals import marks
from sharelens.groups.moment import StreamsMoment
from sharelens.groups.schemas import MARKS
from sharelens.measures.inputs import topic_ends
from sharelens.measures.topics.file_ends import EndOffsets, with_end_offsets
from sharelens.output import Answer, name_cell
from sharelens.output.layouts import Layout
from sharelens.output.wording import counted
from sharelens.questions.answers.shape import TOPIC
from sharelens.questions.groups.describe_answer import CLUSTER_AND_GROUP, Rows, cluster_and_group
from sharelens.questions.groups.describe_streams import answer_of, group_of, source_topics, subtopologies_of
from sharelens.tables.measure_inputs import EvidenceInputs
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_offset_commits
from state_model.columnar.schemas import column
from state_model.offset_commits import CommittedOffset, OffsetPlace
from state_model.streams.values import StreamsGroup
from state_model.uuids import ZERO_UUID

COMPLETE = marks(uncommitted=False, undecoded=False, compacted=False)
OFFSET_ROW = pa.schema(
    [
        *CLUSTER_AND_GROUP,
        TOPIC,
        column("topic_id", pa.string(), "id of the topic; null = several topics had the name"),
        column("partition", pa.int32(), "partition of the topic"),
        column("subtopology_id", pa.string(), "subtopology that reads the topic; null = none"),
        column("member_id", pa.string(), "member whose active task reads the partition; null = none"),
        column("committed_offset", pa.int64(), "committed offset; null = none"),
        column("leader_epoch", pa.int32(), "leader epoch of the commit; null = unknown"),
        column("metadata", pa.string(), "metadata of the commit"),
        column("commit_timestamp_ms", pa.int64(), "time of the commit"),
        column("log_start_offset", pa.int64(), "log start offset of the partition; null = unknown"),
        column("end_offset", pa.int64(), "end offset of the partition; null = unknown"),
        column("end_offset_inferred", pa.int64(), "end offset at an earlier moment by timestamps; null = unknown"),
        column("lag", pa.int64(), "end_offset less the committed offset, or the log start offset; null = unknown"),
        column("lag_inferred", pa.int64(), "lag with end_offset_inferred as the end offset"),
        *MARKS,
    ]
)


def unknown_lag(partitions: int) -> str:
    """The warning that the lag of so many partitions is unknown."""
    return (
        f"the lag of {counted(partitions, 'partition')} of streams groups is unknown: the evidence lacks end offsets, "
        "or start offsets where nothing is committed; copy the folders of the topics too, or give --end-offsets FILE"
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
    unknown = sum(row["lag"] is None and row["lag_inferred"] is None for row in rows)
    answer = answer_of(evidence, moment, rows, layout, none=none)
    return replace(answer, warnings=(*answer.warnings, unknown_lag(unknown))) if unknown else answer


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
    committed = committed_offsets(commits, prefix.as_of_ms)
    readers = _readers(name, group)
    places = {place for place, offset in committed.items() if offset.committed or offset.marks != COMPLETE}
    subtopologies = {
        topic: subtopology.subtopology_id
        for subtopology in subtopologies_of(group)
        for topic in source_topics(subtopology)
    }
    topic_ids = _topic_ids(evidence, places | readers.keys(), committed, prefix)
    rows = [
        {
            **cluster_and_group(evidence, name),
            "topic": place.topic,
            "partition": place.partition,
            "subtopology_id": subtopologies.get(place.topic),
            "member_id": readers.get(place),
            **_committed_values(committed.get(place), topic_ids[place.topic]),
        }
        for place in sorted(places | readers.keys())
    ]
    _add_lags(evidence, rows, prefix, end_offsets)
    return rows


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


def _topic_ids(
    evidence: Tables, places: Iterable[OffsetPlace], committed: Mapping[OffsetPlace, Committed], prefix: LogPrefix
) -> dict[str, str | None]:
    """The id of each topic of these places at the moment; None where several topics had the name.

    Offsets of a deleted topic are deleted with it, so those that are committed are of the topic that has the name.
    """
    of_commits: dict[str, set[str]] = {}
    for place, offset in committed.items():
        if offset.committed is not None and offset.committed.topic_id != ZERO_UUID:
            of_commits.setdefault(place.topic, set()).add(offset.committed.topic_id)
    topic_ids: dict[str, str | None] = {}
    for name in {place.topic for place in places}:
        ids = list(of_commits.get(name, ())) or evidence.topic_ids(name)
        if len(ids) != 1 and prefix.is_whole:
            topic_ids[name] = evidence.topic_id_now(name)
        else:
            topic_ids[name] = ids[0] if len(ids) == 1 else None
    return topic_ids


def _committed_values(committed: Committed | None, topic_id: str | None) -> dict[str, Any]:
    value: CommittedOffset | None = None if committed is None else committed.committed
    return {
        "topic_id": topic_id if value is None or value.topic_id == ZERO_UUID else value.topic_id,
        "committed_offset": None if value is None else value.offset,
        "leader_epoch": None if value is None or value.leader_epoch < 0 else value.leader_epoch,
        "metadata": None if value is None else value.metadata,
        "commit_timestamp_ms": None if value is None else value.commit_timestamp_ms,
        **(COMPLETE if committed is None else committed.marks),
    }


def _add_lags(evidence: Tables, rows: Rows, prefix: LogPrefix, end_offsets: EndOffsets | None) -> None:
    """Adds the extent of the topic partitions and the lags to the rows, as far as they are known."""
    begins = {
        (row["topic_id"], row["partition"]): row["committed_offset"] or 0 for row in rows if row["topic_id"] is not None
    }
    ends = topic_ends(EvidenceInputs(evidence, prefix), begins)
    names = {row["topic_id"]: row["topic"] for row in rows if row["topic_id"] is not None}
    only_higher = end_offsets is None
    if end_offsets is None:
        end_offsets = evidence.settings.end_offsets if prefix.is_whole else {}
    ends = with_end_offsets(ends, end_offsets, names, only_higher=only_higher)
    by_place = {(end["topic_id"], end["partition"]): end for end in ends.to_pylist()}
    for row in rows:
        end: Mapping[str, Any] = by_place.get((row["topic_id"], row["partition"]), {})
        for field in ("log_start_offset", "end_offset", "end_offset_inferred"):
            row[field] = end.get(field)
        if (
            row["end_offset_inferred"] is None
            and prefix.as_of_ms is not None
            and end.get("newest_batch_ms") is not None
        ):
            # All batches from the committed offset on are newer than the moment, and no commit lies above the end.
            row["end_offset_inferred"] = row["committed_offset"]
        if row["log_start_offset"] is None and row["end_offset"] == 0:
            row["log_start_offset"] = 0
        begin = row["log_start_offset"] if row["committed_offset"] is None else row["committed_offset"]
        for lag, of_end in (("lag", "end_offset"), ("lag_inferred", "end_offset_inferred")):
            is_lag_known = begin is not None and row[of_end] is not None and row["completeness"] == "complete"
            row[lag] = row[of_end] - begin if is_lag_known else None


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
