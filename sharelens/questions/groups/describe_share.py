"""A share group as kafka-share-groups.sh --describe printed it at a moment: offsets, members or state."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.as_of import LogPrefix
from sharelens.groups.histories import group_values, initialization_values, member_values
from sharelens.groups.moment import ShareMoment
from sharelens.groups.replay import Partitions
from sharelens.groups.schemas import GROUP_VALUES, INITIALIZED, MARKS, MEMBER_VALUES, TOPIC_PARTITIONS
from sharelens.measures.topics.file_ends import EndOffsets
from sharelens.output import (
    Answer,
    Column,
    Row,
    by_importance,
    name_cell,
    name_column,
    number_column,
    number_text,
    time_column,
)
from sharelens.questions.answers.completeness import check_cut, prefix_of, times
from sharelens.questions.answers.missing import unknown_ends
from sharelens.questions.groups.describe_answer import (
    CLUSTER_AND_GROUP,
    LAST_CHANGE,
    Rows,
    closed_answer,
    cluster_and_group,
    last_change,
)
from sharelens.questions.lag import lag_of
from sharelens.questions.state import COMPLETENESS, TOPIC
from sharelens.source.request import CutChoice
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_states
from sharelens.tables.where import Keys

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


def state(evidence: Tables, name: str, moment: ShareMoment) -> Answer:
    """One row: state, epochs and number of members."""
    row = {
        **cluster_and_group(evidence, name),
        **group_values(moment.group),
        **last_change(moment),
        **moment.group_marks,
    }
    table = pa.Table.from_pylist([row], schema=STATE_ROW)
    return _answer(evidence, moment, table, STATE_COLUMNS, none="no share group")


def members(evidence: Tables, name: str, moment: ShareMoment) -> Answer:
    """A row for each member, with its assigned and target partitions."""
    group = moment.group
    partitions = [*group.targets.values(), *(member.assigned for member in group.members.values())]
    names = evidence.names({topic_id for topics in partitions for topic_id, _ in topics})
    rows = []
    for member_id, member in sorted(group.members.items()):
        values = member_values(member_id, member, group.targets.get(member_id, ()))
        row = {
            **cluster_and_group(evidence, name),
            **values,
            "partition_count": sum(len(numbers) for _, numbers in member.assigned),
            **{field: _named(values[field], names) for field in ("assigned_partitions", "target_partitions")},
            **moment.member_marks(member_id),
        }
        rows.append(row)
    none = f"share group {name_cell(name)} has no active members"
    return _answer(evidence, moment, pa.Table.from_pylist(rows, schema=MEMBER_ROW), MEMBER_COLUMNS, none=none)


def _named(partitions: Partitions, names: Mapping[str, str]) -> Rows:
    """Partitions by topic with the topic's name, by name and id."""
    named = [
        {"topic": names.get(topic_id), "topic_id": topic_id, "partitions": numbers} for topic_id, numbers in partitions
    ]
    return sorted(named, key=lambda of_topic: (of_topic["topic"] or "", of_topic["topic_id"]))


def offsets(evidence: Tables, name: str, moment: ShareMoment, cut: CutChoice, end_offsets: EndOffsets | None) -> Answer:
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
            **cluster_and_group(evidence, name),
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
    evidence: Tables, name: str, cut: CutChoice, end_offsets: EndOffsets | None
) -> tuple[dict[tuple[str, int], dict[str, Any]], Sequence[str]]:
    """LAG rows by topic id and partition, and warnings; none where the group has no share state at the cut."""
    prefix = prefix_of(cut)
    last_ms = times(evidence.cover())[1]
    if prefix.as_of_ms is not None and last_ms is not None and prefix.as_of_ms >= last_ms:
        prefix = LogPrefix()
    states = read_states(evidence, Keys(groups=frozenset([name])), prefix)
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
    evidence: Tables,
    moment: ShareMoment,
    table: pa.Table,
    columns: Sequence[Column],
    *,
    none: str,
    warnings: Sequence[str] = (),
) -> Answer:
    group = moment.group
    state = f"share group: {group.state}, group epoch {number_text(group.group_epoch)}, {len(group.members)} members"
    return closed_answer(evidence, moment, table, columns, state=state, none=none, warnings=warnings)


def _assignment_cell(row: Row) -> str:
    """`topic:0,1;topic:2`, as the tool prints it."""
    partitions = row["assigned_partitions"]
    assert isinstance(partitions, list)
    texts = (f"{name_cell(of['topic'] or of['topic_id'])}:{','.join(map(str, of['partitions']))}" for of in partitions)
    return ";".join(texts) or number_text(None)


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
