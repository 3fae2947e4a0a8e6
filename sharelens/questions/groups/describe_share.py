"""A share group as kafka-share-groups.sh --describe printed it at a moment: offsets, members or state."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.as_of import LogPrefix
from sharelens.groups.histories import group_values, initialization_values, member_values
from sharelens.groups.moment import ShareMoment
from sharelens.groups.schemas import (
    CONSUMER_MEMBER_VALUES,
    GROUP_VALUES,
    INITIALIZED,
    MARKS,
    MEMBER_VALUES,
)
from sharelens.measures.schemas import LAG
from sharelens.measures.topics.file_ends import EndOffsets
from sharelens.output import Answer, name_cell, number_text
from sharelens.output.layouts import Layout
from sharelens.questions.answers.completeness import check_cut, prefix_of, times
from sharelens.questions.answers.missing import unknown_ends
from sharelens.questions.answers.shape import ABOUT
from sharelens.questions.groups.describe_answer import (
    CLUSTER_AND_GROUP,
    LAST_CHANGE,
    NAMED_PARTITIONS,
    assignment_column,
    closed_answer,
    cluster_and_group,
    last_change,
    named_partitions,
)
from sharelens.questions.lag import lag_of
from sharelens.source.request import CutChoice
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_states
from sharelens.tables.where import Keys
from state_model.columnar.schemas import column

STATE_ROW = pa.schema([*CLUSTER_AND_GROUP, *GROUP_VALUES, *LAST_CHANGE, *MARKS])
NOT_SHOWN = ("assigned_partitions", "target_partitions", *(field.name for field in CONSUMER_MEMBER_VALUES))
"""Columns of members with ids of topics, shown by name, and those of consumer groups."""
MEMBER_ROW = pa.schema(
    [
        *CLUSTER_AND_GROUP,
        column("member_id", pa.string(), "member"),
        *(field for field in MEMBER_VALUES if field.name not in NOT_SHOWN),
        column("partition_count", pa.int32(), "number of assigned partitions"),
        column("assigned_partitions", NAMED_PARTITIONS, "current assignment, by topic"),
        column("target_partitions", NAMED_PARTITIONS, "target assignment, by topic"),
        *MARKS,
    ]
)
LAG_VALUES = (
    *("leader_epoch", "start_offset", "lag", "lag_inferred", "end_offset", "end_offset_inferred", "unknown_reason"),
)
OFFSET_ROW = pa.schema(
    [
        *CLUSTER_AND_GROUP,
        *ABOUT[2:],
        *(LAG.field(name).with_nullable(True) for name in LAG_VALUES),
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
    return _answer(evidence, moment, table, STATE_LAYOUT, none="no share group")


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
            **{field: named_partitions(values[field], names) for field in ("assigned_partitions", "target_partitions")},
            **moment.member_marks(member_id),
        }
        rows.append(row)
    none = f"share group {name_cell(name)} has no active members"
    return _answer(evidence, moment, pa.Table.from_pylist(rows, schema=MEMBER_ROW), MEMBER_LAYOUT, none=none)


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
    layout = OFFSET_LAYOUT if cut.as_of_ms is None else EARLIER_OFFSET_LAYOUT
    none = f"share group {name_cell(name)} has no offset information"
    return _answer(evidence, moment, table, layout, none=none, warnings=[*warnings, *unknown_ends(table)])


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
    layout: Layout,
    *,
    none: str,
    warnings: Sequence[str] = (),
) -> Answer:
    group = moment.group
    state = f"share group: {group.state}, group epoch {number_text(group.group_epoch)}, {len(group.members)} members"
    return closed_answer(evidence, moment, table, layout, state=state, none=none, warnings=warnings)


STATE_LAYOUT = Layout(
    schema=STATE_ROW,
    fields="group_id state group_epoch assignment_epoch member_count last_change_ms log_partition log_offset "
    "completeness",
    important="GROUP STATE GROUP-EPOCH ASSIGNMENT-EPOCH #MEMBERS LAST-CHANGE COMPLETENESS LOG-OFFSET LOG-PARTITION",
)
MEMBER_LAYOUT = Layout(
    schema=MEMBER_ROW,
    fields="group_id member_id client_host client_id partition_count member_epoch assigned_partitions completeness",
    headings={"member_id": "CONSUMER-ID", "partition_count": "#PARTITIONS"},
    cells=(assignment_column("ASSIGNMENT", "assigned_partitions"),),
    important="GROUP CONSUMER-ID CLIENT-ID HOST #PARTITIONS ASSIGNMENT MEMBER-EPOCH COMPLETENESS",
)


OFFSET_LAYOUT = Layout(
    schema=OFFSET_ROW,
    fields="group_id topic partition leader_epoch start_offset lag completeness",
    important="GROUP TOPIC PARTITION LAG LAG-INFERRED START-OFFSET LEADER-EPOCH COMPLETENESS",
)
EARLIER_OFFSET_LAYOUT = replace(
    OFFSET_LAYOUT, fields="group_id topic partition leader_epoch start_offset lag lag_inferred completeness"
)
"""The lag of an earlier moment is inferred from batches' timestamps."""
