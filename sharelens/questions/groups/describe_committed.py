"""Committed offsets and lags of a group that reads topic partitions, at a moment.

End offsets are those of the topics in the evidence: at an earlier moment they are inferred from batches' timestamps.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sharelens.evidence.as_of import LogPrefix
from sharelens.groups.committed_offsets import Committed, committed_offsets
from sharelens.groups.intervals import marks
from sharelens.measures.inputs import topic_ends
from sharelens.measures.topics.file_ends import EndOffsets, with_end_offsets
from sharelens.output.wording import counted
from sharelens.questions.answers.shape import TOPIC
from sharelens.questions.groups.describe_answer import Rows, cluster_and_group
from sharelens.tables.measure_inputs import EvidenceInputs
from sharelens.tables.port import Tables
from state_model.columnar.schemas import column
from state_model.offset_commits import CommittedOffset, OffsetPlace
from state_model.uuids import ZERO_UUID

COMPLETE = marks(uncommitted=False, undecoded=False, compacted=False)
READ_PARTITION = (
    TOPIC,
    column("topic_id", pa.string(), "id of the topic; null = several topics had the name"),
    column("partition", pa.int32(), "partition of the topic"),
)
LAG_INFERRED = column("lag_inferred", pa.int64(), "lag with end_offset_inferred as the end offset")
COMMITTED = (
    column("committed_offset", pa.int64(), "committed offset; null = none"),
    column("leader_epoch", pa.int32(), "leader epoch of the commit; null = unknown"),
    column("metadata", pa.string(), "metadata of the commit"),
    column("commit_timestamp_ms", pa.int64(), "time of the commit"),
    column("log_start_offset", pa.int64(), "log start offset of the partition; null = unknown"),
    column("end_offset", pa.int64(), "end offset of the partition; null = unknown"),
    column("end_offset_inferred", pa.int64(), "end offset at an earlier moment by timestamps; null = unknown"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """What a group reads.

    Attributes:
        members: the member by partition that it reads.
        topic_ids: ids of topics by name, as far as the group's records have them; a topic without a known name has its
            id as the name.
        counts_from_start: whether the lag counts from the log start offset where nothing is committed.
    """

    members: Mapping[OffsetPlace, str]
    topic_ids: Mapping[str, str]
    counts_from_start: bool


def is_lag_unknown(row: Mapping[str, Any]) -> bool:
    """Whether neither lag of a row is known."""
    return row["lag"] is None and row["lag_inferred"] is None


def unknown_lag(partitions: int, group_type: str) -> tuple[str, ...]:
    """The warning that the lag of so many partitions is unknown; none for 0."""
    if not partitions:
        return ()
    warning = (
        f"the lag of {counted(partitions, 'partition')} of {group_type} groups is unknown: the evidence lacks end "
        "offsets, or start offsets where nothing is committed; copy the folders of the topics too, or give "
        "--end-offsets FILE"
    )
    return (warning,)


def committed_rows(
    evidence: Tables, name: str, reads: Reads, commits: pa.Table, prefix: LogPrefix, end_offsets: EndOffsets | None
) -> Rows:
    """A row for each partition that a member reads, and each partition with a committed offset, by name and partition.

    `commits`: COMMIT_COLUMNS rows of the group. A row has topic, partition, member_id, COMMITTED, topic_id, lags and
    marks.
    """
    committed = committed_offsets(commits, prefix.as_of_ms)
    places = {place for place, offset in committed.items() if offset.committed or offset.marks != COMPLETE}
    topic_ids = _topic_ids(evidence, places | reads.members.keys(), committed, prefix) | dict(reads.topic_ids)
    rows = [
        {
            **cluster_and_group(evidence, name),
            "topic": place.topic,
            "partition": place.partition,
            "member_id": reads.members.get(place),
            **_committed_values(committed.get(place), topic_ids[place.topic]),
        }
        for place in sorted(places | reads.members.keys())
    ]
    _add_lags(evidence, rows, prefix, end_offsets, counts_from_start=reads.counts_from_start)
    return rows


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


def _add_lags(
    evidence: Tables, rows: Rows, prefix: LogPrefix, end_offsets: EndOffsets | None, *, counts_from_start: bool
) -> None:
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
        begin = row["committed_offset"]
        if begin is None and counts_from_start:
            begin = row["log_start_offset"]
        for lag, of_end in (("lag", "end_offset"), ("lag_inferred", "end_offset_inferred")):
            is_lag_known = begin is not None and row[of_end] is not None and row["completeness"] == "complete"
            row[lag] = row[of_end] - begin if is_lag_known else None
