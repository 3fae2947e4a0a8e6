"""Rebalances of a group: who joined, who was removed, and which partitions moved from whom to whom.

A member that leaves and one that is fenced write the same records, so both are "removed". `rebalances_streams` has the
rebalances of streams groups.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa

from evidence.conditions import filter_rows
from measures.group_schemas import MOVES, REBALANCE
from measures.rebalances import rebalances as measure
from sharelens.output import (
    UNKNOWN,
    Answer,
    Column,
    Row,
    by_importance,
    name_cell,
    name_column,
    number_column,
    shortened,
    time_column,
)
from sharelens.questions import rebalances_streams
from sharelens.questions.completeness import evidence_line, incomplete_rows
from sharelens.questions.evidence import Evidence, Span
from sharelens.questions.known_groups import is_streams_group, records_of_groups, share_group_records
from sharelens.questions.state import COMPLETENESS
from sharelens.wording import counted

NAMED_MOVES = pa.list_(pa.struct([pa.field("topic", pa.string()), *MOVES.value_type]))
ROW = pa.schema(
    [
        pa.field("cluster_id", pa.string()),
        *(pa.field(of.name, NAMED_MOVES) if of.name == "moved" else of for of in REBALANCE),
    ]
)
FIRST = 1
"""Nothing proves that the first rebalance was the first one, so its mark alone is worth no warning."""
COMPACTED = (
    "compaction of __consumer_offsets may have removed rebalances and members from the rows with the mark incomplete"
)


def rebalances(evidence: Evidence, name: str, span: Span) -> Answer:
    """The answer to `sharelens rebalances`; `span` bounds the log time of the group epoch's record.

    Raises:
        UsageError: nothing names the group.
        SharelensError: only share state names it.
    """
    records = records_of_groups(evidence, frozenset([name]))
    if is_streams_group(records):
        return rebalances_streams.rebalances(evidence, records, span)
    table = measure(share_group_records(evidence, name))
    bounds = Span(from_ms=span.from_ms, to_ms=span.to_ms).expression()
    rows = filter_rows(table.rename_columns({"at_ms": "log_time_ms"}), bounds).rename_columns({"log_time_ms": "at_ms"})
    listed = rows.to_pylist()
    names = evidence.names({move["topic_id"] for row in listed for move in row["moved"]})
    for row in listed:
        row["cluster_id"] = evidence.cluster_id
        row["moved"] = [{"topic": names.get(move["topic_id"]), **move} for move in row["moved"]]
    answered = pa.Table.from_pylist(listed, schema=ROW)
    compacted = rows.column("completeness_reason").to_pylist().count("compacted")
    closing = evidence_line(evidence.cover(), incomplete_rows(answered.column("completeness")))
    return Answer(
        table=answered,
        columns=TEXT_COLUMNS,
        summary=f"{_totals(listed)}\n{closing}",
        warnings=(COMPACTED,) if compacted > FIRST else (),
        none="no rebalance",
    )


def _totals(rows: Sequence[Mapping[str, Any]]) -> str:
    sums = {field: sum(len(row[field]) for row in rows) for field in ("joined", "removed", "moved")}
    members = f"{counted(sums['joined'], 'member')} joined, {sums['removed']} removed (left or fenced)"
    return f"{counted(len(rows), 'rebalance')}: {members}, {counted(sums['moved'], 'partition')} moved"


def _member_text(member: Mapping[str, Any]) -> str:
    client = member["client_id"]
    return (
        name_cell(member["member_id"]) if client is None else f"{name_cell(client)}({name_cell(member['member_id'])})"
    )


def _move_texts(moves: Iterable[Mapping[str, Any]]) -> list[str]:
    """`topic:0,1 from a to b`, one text for neighbouring partitions that moved alike."""

    def movement(move: Mapping[str, Any]) -> tuple[str, list[str], list[str]]:
        lost, gained = ([_member_text(member) for member in move[field]] for field in ("from_members", "to_members"))
        return name_cell(move["topic"] or move["topic_id"]), lost, gained

    texts = []
    for (topic, lost, gained), alike in groupby(moves, movement):
        partitions = ",".join(str(move["partition"]) for move in alike)
        source = f" from {' and '.join(lost)}" if lost else ""
        sink = f" to {' and '.join(gained)}" if gained else ""
        texts.append(f"{topic}:{partitions}{source}{sink}")
    return texts


def _texts(row: Row, field: str) -> list[str]:
    values = row[field]
    assert isinstance(values, list)
    return _move_texts(values) if field == "moved" else [_member_text(member) for member in values]


def _list_column(heading: str, field: str) -> Column:
    return Column(
        heading=heading,
        cell=lambda row: ", ".join(_texts(row, field)) or UNKNOWN,
        fields=(field,),
        short=lambda row, width: shortened(_texts(row, field), str, width),
    )


TEXT_COLUMNS = by_importance(
    (
        time_column("AT", "at_ms"),
        name_column("GROUP", "group_id"),
        number_column("GROUP-EPOCH", "group_epoch"),
        number_column("ASSIGNMENT-EPOCH", "assignment_epoch"),
        name_column("STATE", "state"),
        number_column("#MEMBERS", "member_count"),
        _list_column("JOINED", "joined"),
        _list_column("REMOVED", "removed"),
        _list_column("RESUBSCRIBED", "resubscribed"),
        _list_column("MOVED", "moved"),
        number_column("LOG-PARTITION", "log_partition"),
        number_column("LOG-OFFSET", "log_offset"),
        COMPLETENESS,
    ),
    "AT GROUP-EPOCH #MEMBERS JOINED REMOVED MOVED STATE COMPLETENESS RESUBSCRIBED ASSIGNMENT-EPOCH LOG-OFFSET GROUP",
)
