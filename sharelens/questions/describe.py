"""A group as the tool for its type printed it at a moment: offsets, members or state; of streams groups also tasks.

The group coordinator's log has neither the coordinator, which is left out, nor a lag, which is that of `lag`.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from evidence.as_of import LogPrefix
from measures.file_ends import EndOffsets
from measures.group_histories import group_values, initialization_values, member_values
from measures.group_moment import GroupMoment, ShareMoment, groups_at, streams_groups_at
from measures.group_replay import SHARE_TYPES, ShareGroup, changes
from measures.group_schemas import GROUP_VALUES, INITIALIZED, MARKS, MEMBER_VALUES, TOPIC_PARTITIONS
from measures.streams_replay import StreamsReplay
from sharelens.output import (
    Answer,
    Column,
    Row,
    by_importance,
    known,
    name_cell,
    name_column,
    number_column,
    time_column,
)
from sharelens.questions import describe_streams, describe_streams_offsets
from sharelens.questions.completeness import check_cut, evidence_line, incomplete_rows, prefix_of, times
from sharelens.questions.evidence import Evidence, Keys
from sharelens.questions.known_groups import is_streams_group, records_of_groups, share_group_records
from sharelens.questions.lag import lag_of
from sharelens.questions.missing import unknown_ends
from sharelens.questions.state import COMPLETENESS, TOPIC
from sharelens.request import CutChoice
from sharelens.times import time_text
from state_model.errors import SharelensError, UsageError
from state_model.streams.records import STREAMS_TYPES


class View(Enum):
    """What to describe; the words are those of kafka-share-groups.sh and kafka-streams-groups.sh."""

    OFFSETS = "offsets"
    MEMBERS = "members"
    STATE = "state"
    TASKS = "tasks"


CLUSTER_AND_GROUP = (pa.field("cluster_id", pa.string()), pa.field("group_id", pa.string()))
LAST_CHANGE = (
    pa.field("last_change_ms", pa.int64()),
    pa.field("log_partition", pa.int32()),
    pa.field("log_offset", pa.int64()),
)
NAMED_PARTITIONS = pa.list_(pa.struct([pa.field("topic", pa.string()), *TOPIC_PARTITIONS.value_type]))
STATE_ROW = pa.schema([*CLUSTER_AND_GROUP, *GROUP_VALUES, *LAST_CHANGE, *MARKS])
MEMBER_ROW = pa.schema(
    [
        *CLUSTER_AND_GROUP,
        pa.field("member_id", pa.string()),
        *(field for field in MEMBER_VALUES if field.name not in ("assigned_partitions", "target_partitions")),
        pa.field("partition_count", pa.int32()),
        pa.field("assigned_partitions", NAMED_PARTITIONS),
        pa.field("target_partitions", NAMED_PARTITIONS),
        *MARKS,
    ]
)
LAG_VALUES = (
    "leader_epoch",
    "start_offset",
    "lag",
    "lag_inferred",
    "end_offset",
    "end_offset_inferred",
    "unknown_reason",
)
OFFSET_ROW = pa.schema(
    [
        *CLUSTER_AND_GROUP,
        pa.field("topic_id", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("leader_epoch", pa.int32()),
        *(pa.field(name, pa.int64()) for name in LAG_VALUES[1:-1]),
        pa.field("unknown_reason", pa.string()),
        *MARKS,
    ]
)
NO_STATE = {"completeness": "incomplete", "completeness_reason": "no_share_state"}
LEFT_OUT = "the coordinator is not in the logs and is left out"
Rows = list[dict[str, Any]]
Existing = TypeVar("Existing", ShareGroup, StreamsReplay)


def describe(
    evidence: Evidence, name: str, as_of_ms: int | None, view: View, *, end_offsets: EndOffsets | None = None
) -> Answer:
    """The answer to `sharelens describe`; `end_offsets` replaces the end offsets of the evidence.

    Raises:
        UsageError: nothing names the group.
        SharelensError: the group did not exist at the moment.
    """
    records = records_of_groups(evidence, frozenset([name]))
    if is_streams_group(records, as_of_ms):
        return _streams(evidence, name, records, CutChoice(as_of_ms=as_of_ms), view, end_offsets)
    moment = _moment(evidence, name, as_of_ms)
    match view:
        case View.TASKS:
            raise UsageError(f"describe: {name_cell(name)} is a share group, which has no tasks; leave --tasks out")
        case View.STATE:
            return _state(evidence, name, moment)
        case View.MEMBERS:
            return _members(evidence, name, moment)
        case View.OFFSETS:
            return _offsets(evidence, name, moment, CutChoice(as_of_ms=as_of_ms), end_offsets)


def _streams(
    evidence: Evidence, name: str, records: pa.Table, cut: CutChoice, view: View, end_offsets: EndOffsets | None
) -> Answer:
    """The view of a streams group."""
    moment = _existing(streams_groups_at(records, cut.as_of_ms).get(name), name, records, cut.as_of_ms)
    match view:
        case View.STATE:
            return describe_streams.state(evidence, name, moment)
        case View.MEMBERS:
            return describe_streams.members(evidence, name, moment)
        case View.TASKS:
            return describe_streams.tasks(evidence, name, moment)
        case View.OFFSETS:
            return describe_streams_offsets.offsets(evidence, name, moment, prefix_of(cut), end_offsets)


def _moment(evidence: Evidence, name: str, as_of_ms: int | None) -> ShareMoment:
    """The share group at the moment; an error that says why there is none."""
    records = share_group_records(evidence, name)
    return _existing(groups_at(records, as_of_ms).get(name), name, records, as_of_ms)


def _existing(
    moment: GroupMoment[Existing] | None, name: str, records: pa.Table, as_of_ms: int | None
) -> GroupMoment[Existing]:
    """The moment of a group that exists; an error that says since when, or until when."""
    types = STREAMS_TYPES if is_streams_group(records, as_of_ms) else SHARE_TYPES
    kind = "streams group" if types is STREAMS_TYPES else "share group"
    if moment is None:
        first_ms = next(changes(records, types)).log_time_ms
        raise SharelensError(
            f"{kind} {name_cell(name)} has no record up to {time_text(as_of_ms)}; the first one is of "
            f"{time_text(first_ms)}: describe it as of then, or later"
        )
    if moment.group.is_deleted:
        newest = moment.newest
        when = "is deleted" if as_of_ms is None else f"did not exist at {time_text(as_of_ms)}"
        raise SharelensError(
            f"{kind} {name_cell(name)} {when}: its tombstone is of {time_text(newest.log_time_ms)} "
            f"(__consumer_offsets-{newest.log_partition} @ {newest.log_offset}); describe it as of a time before"
        )
    return moment


def _state(evidence: Evidence, name: str, moment: ShareMoment) -> Answer:
    row = {
        "cluster_id": evidence.cluster_id,
        "group_id": name,
        **group_values(moment.group),
        "last_change_ms": moment.newest.log_time_ms,
        "log_partition": moment.newest.log_partition,
        "log_offset": moment.newest.log_offset,
        **moment.group_marks,
    }
    table = pa.Table.from_pylist([row], schema=STATE_ROW)
    return _answer(evidence, moment, table, STATE_COLUMNS, none="no share group")


def _members(evidence: Evidence, name: str, moment: ShareMoment) -> Answer:
    group = moment.group
    partitions = [*group.targets.values(), *(member.assigned for member in group.members.values())]
    names = evidence.names({topic_id for topics in partitions for topic_id, _ in topics})
    rows = []
    for member_id, member in sorted(group.members.items()):
        values = member_values(member_id, member, group.targets.get(member_id, ()))
        row = {
            "cluster_id": evidence.cluster_id,
            "group_id": name,
            **values,
            "partition_count": sum(len(numbers) for _, numbers in member.assigned),
            **{field: _named(values[field], names) for field in ("assigned_partitions", "target_partitions")},
            **moment.member_marks(member_id),
        }
        rows.append(row)
    none = f"share group {name_cell(name)} has no active members"
    return _answer(evidence, moment, pa.Table.from_pylist(rows, schema=MEMBER_ROW), MEMBER_COLUMNS, none=none)


def _named(partitions: Rows, names: Mapping[str, str]) -> Rows:
    """Partitions by topic with the topic's name, by name and id."""
    named = [{"topic": names.get(of_topic["topic_id"]), **of_topic} for of_topic in partitions]
    return sorted(named, key=lambda of_topic: (of_topic["topic"] or "", of_topic["topic_id"]))


def _offsets(
    evidence: Evidence, name: str, moment: ShareMoment, cut: CutChoice, end_offsets: EndOffsets | None
) -> Answer:
    """The initialized share partitions, as Admin.listShareGroupOffsets lists them."""
    initialized = [row for row in initialization_values(moment.group).values() if row["status"] == INITIALIZED]
    names = evidence.names({row["topic_id"] for row in initialized})
    lags, warnings = _lags(evidence, name, cut, end_offsets)
    rows = []
    for about in initialized:
        lag = lags.get((about["topic_id"], about["partition"]), {})
        start_offset = lag.get("start_offset")
        has_start = start_offset is not None and start_offset >= 0
        row = {
            "cluster_id": evidence.cluster_id,
            "group_id": name,
            "topic_id": about["topic_id"],
            "topic": about["topic"] or names.get(about["topic_id"]),
            "partition": about["partition"],
            **({field: lag[field] for field in LAG_VALUES} if has_start else {}),
            **_worse(moment.initialization_marks, lag),
        }
        rows.append(row)
    rows.sort(key=lambda row: (row["topic"] or "", row["topic_id"], row["partition"]))
    table = pa.Table.from_pylist(rows, schema=OFFSET_ROW)
    columns = offset_columns(inferred=cut.as_of_ms is not None)
    none = f"share group {name_cell(name)} has no offset information"
    return _answer(evidence, moment, table, columns, none=none, warnings=[*warnings, *unknown_ends(table)])


def _lags(
    evidence: Evidence, name: str, cut: CutChoice, end_offsets: EndOffsets | None
) -> tuple[dict[tuple[str, int], dict[str, Any]], Sequence[str]]:
    """LAG rows by topic id and partition, and warnings; none where the group has no share state at the cut."""
    prefix = prefix_of(cut)
    last_ms = times(evidence.cover())[1]
    if prefix.as_of_ms is not None and last_ms is not None and prefix.as_of_ms >= last_ms:
        prefix = LogPrefix()
    states = evidence.states(Keys(groups=frozenset([name])), prefix)
    states = states.filter(pc.invert(states.column("misplaced")))
    if states.num_rows == 0:
        return {}, ()
    rows = lag_of(evidence, states, prefix, end_offsets).to_pylist()
    return {(row["topic_id"], row["partition"]): row for row in rows}, check_cut(evidence, prefix)


def _worse(of_group: Mapping[str, Any], of_state: Mapping[str, Any]) -> dict[str, Any]:
    """The marks of the group's record, or where that is complete those of the share state.

    A share partition is initialized after its state was written, so one without state lacks evidence.
    """
    marks = (of_state or NO_STATE) if of_group["completeness"] == "complete" else of_group
    return {field.name: marks[field.name] for field in MARKS}


def _answer(
    evidence: Evidence,
    moment: ShareMoment,
    table: pa.Table,
    columns: Sequence[Column],
    *,
    none: str,
    warnings: Sequence[str] = (),
) -> Answer:
    group, newest = moment.group, moment.newest
    state = f"share group: {group.state}, group epoch {known(group.group_epoch)}, {len(group.members)} members"
    record = f"newest record: __consumer_offsets-{newest.log_partition} @ {newest.log_offset}"
    closing = evidence_line(evidence.cover(), incomplete_rows(table.column("completeness")))
    compacted = () if moment.group_marks["completeness_reason"] != "compacted" else (COMPACTION,)
    return Answer(
        table=table,
        columns=tuple(columns),
        summary=f"{state}; {record}, {time_text(newest.log_time_ms)}; {LEFT_OUT}\n{closing}",
        warnings=(*compacted, *warnings),
        none=none,
    )


COMPACTION = (
    "the group has later records, and compaction of __consumer_offsets may have removed earlier ones: values can be "
    "older than the moment, and members that left later can be absent"
)


def _assignment_cell(row: Row) -> str:
    """`topic:0,1;topic:2`, as the tool prints it."""
    partitions = row["assigned_partitions"]
    assert isinstance(partitions, list)
    texts = (f"{name_cell(of['topic'] or of['topic_id'])}:{','.join(map(str, of['partitions']))}" for of in partitions)
    return ";".join(texts) or known(None)


STATE_COLUMNS = by_importance(
    (
        name_column("GROUP", "group_id"),
        name_column("STATE", "state"),
        number_column("GROUP-EPOCH", "group_epoch"),
        number_column("ASSIGNMENT-EPOCH", "assignment_epoch"),
        number_column("#MEMBERS", "member_count"),
        time_column("LAST-CHANGE", "last_change_ms"),
        number_column("LOG-PARTITION", "log_partition"),
        number_column("LOG-OFFSET", "log_offset"),
        COMPLETENESS,
    ),
    "GROUP STATE GROUP-EPOCH ASSIGNMENT-EPOCH #MEMBERS LAST-CHANGE COMPLETENESS LOG-OFFSET LOG-PARTITION",
)
MEMBER_COLUMNS = by_importance(
    (
        name_column("GROUP", "group_id"),
        name_column("CONSUMER-ID", "member_id"),
        name_column("HOST", "client_host"),
        name_column("CLIENT-ID", "client_id"),
        number_column("#PARTITIONS", "partition_count"),
        number_column("MEMBER-EPOCH", "member_epoch"),
        Column(heading="ASSIGNMENT", cell=_assignment_cell, fields=("assigned_partitions",)),
        COMPLETENESS,
    ),
    "GROUP CONSUMER-ID CLIENT-ID HOST #PARTITIONS ASSIGNMENT MEMBER-EPOCH COMPLETENESS",
)


def offset_columns(*, inferred: bool) -> tuple[Column, ...]:
    """The tool's words and order; `inferred`: the lag of an earlier moment is inferred from batches' timestamps."""
    columns = (
        name_column("GROUP", "group_id"),
        TOPIC,
        number_column("PARTITION", "partition"),
        number_column("LEADER-EPOCH", "leader_epoch"),
        number_column("START-OFFSET", "start_offset"),
        number_column("LAG", "lag"),
        *((number_column("LAG-INFERRED", "lag_inferred"),) if inferred else ()),
        COMPLETENESS,
    )
    return by_importance(columns, "GROUP TOPIC PARTITION LAG LAG-INFERRED START-OFFSET LEADER-EPOCH COMPLETENESS")
