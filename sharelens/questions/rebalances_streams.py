"""Rebalances of a streams group: who joined, who was removed, which tasks moved, how long they had no owner."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from evidence.conditions import filter_rows
from measures.group_schemas import ACTIVE, STREAMS_REBALANCE
from measures.streams_rebalances import streams_rebalances
from sharelens.output import (
    UNKNOWN,
    Answer,
    Column,
    Row,
    by_importance,
    known,
    name_cell,
    name_column,
    number_column,
    shortened,
    time_column,
)
from sharelens.questions.completeness import evidence_line, incomplete_rows
from sharelens.questions.evidence import Evidence, Span
from sharelens.questions.state import COMPLETENESS
from sharelens.wording import counted

ROW = pa.schema([pa.field("cluster_id", pa.string()), *STREAMS_REBALANCE])
FIRST = 1
"""Nothing proves that the first rebalance was the first one, so its mark alone is worth no warning."""
COMPACTED = (
    "compaction of __consumer_offsets may have removed rebalances and members from the rows with the mark incomplete"
)


def rebalances(evidence: Evidence, records: pa.Table, span: Span) -> Answer:
    """The answer to `sharelens rebalances` of a streams group; `span` bounds the log time of the epoch's record."""
    table = streams_rebalances(records)
    bounds = Span(from_ms=span.from_ms, to_ms=span.to_ms).expression()
    rows = filter_rows(table.rename_columns({"at_ms": "log_time_ms"}), bounds).rename_columns({"log_time_ms": "at_ms"})
    listed = [{"cluster_id": evidence.cluster_id, **row} for row in rows.to_pylist()]
    compacted = rows.column("completeness_reason").to_pylist().count("compacted")
    closing = evidence_line(evidence.cover(), incomplete_rows(rows.column("completeness")))
    return Answer(
        table=pa.Table.from_pylist(listed, schema=ROW),
        columns=TEXT_COLUMNS,
        summary=f"{_totals(listed)}\n{closing}",
        warnings=(COMPACTED,) if compacted > FIRST else (),
        none="no rebalance",
    )


def _totals(rows: Sequence[Mapping[str, Any]]) -> str:
    sums = {field: sum(len(row[field]) for row in rows) for field in ("joined", "removed", "moved")}
    members = f"{counted(sums['joined'], 'member')} joined, {sums['removed']} removed (left or fenced)"
    longest = max((row["longest_without_owner_ms"] or 0 for row in rows), default=0)
    owners = f"; an active task had no owner for {longest} ms at most" if longest else ""
    return f"{counted(len(rows), 'rebalance')}: {members}, {counted(sums['moved'], 'task')} moved{owners}"


def _member_text(member: Mapping[str, Any]) -> str:
    client = member["client_id"]
    return (
        name_cell(member["member_id"]) if client is None else f"{name_cell(client)}({name_cell(member['member_id'])})"
    )


def _texts(row: Row, field: str) -> list[str]:
    values = row[field]
    assert isinstance(values, list)
    return [_member_text(member) for member in values]


def _moves(row: Row) -> list[str]:
    """`0:[1,2] from a to b`, one text for the tasks of a subtopology that moved alike; only other types are named."""
    moves = row["moved"]
    assert isinstance(moves, list)
    alike: dict[tuple[str, str, str], list[int]] = {}
    for move in moves:
        kind = "" if move["task_type"] == ACTIVE else f"{move['task_type']} "
        lost, gained = (list(map(_member_text, move[field])) for field in ("from_members", "to_members"))
        movement = (f" from {' and '.join(lost)}" if lost else "") + (f" to {' and '.join(gained)}" if gained else "")
        alike.setdefault((kind, name_cell(move["subtopology_id"]), movement), []).append(move["partition"])
    return [
        f"{kind}{subtopology}:[{','.join(map(str, partitions))}]{movement}"
        for (kind, subtopology, movement), partitions in alike.items()
    ]


def _kept_cell(row: Row) -> str:
    """`6/8`: the active tasks that stay, of those in the targets before and after."""
    kept, lost = row["kept_tasks"], row["lost_tasks"]
    assert isinstance(kept, int)
    assert isinstance(lost, int)
    return f"{kept}/{kept + lost}" if kept + lost else UNKNOWN


def _tasks_cell(row: Row) -> str:
    """`2-3`: the tasks of the members with the fewest and the most."""
    fewest, most = row["fewest_tasks"], row["most_tasks"]
    return known(most) if fewest == most else f"{fewest}-{most}"


def _members_column(heading: str, field: str) -> Column:
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
        _members_column("JOINED", "joined"),
        _members_column("REMOVED", "removed"),
        _members_column("CHANGED", "changed"),
        Column(
            heading="MOVED",
            cell=lambda row: ", ".join(_moves(row)) or UNKNOWN,
            fields=("moved",),
            short=lambda row, width: shortened(_moves(row), str, width),
        ),
        Column(heading="KEPT-TASKS", cell=_kept_cell, right=True, fields=("kept_tasks", "lost_tasks")),
        Column(heading="TASKS-PER-MEMBER", cell=_tasks_cell, right=True, fields=("fewest_tasks", "most_tasks")),
        number_column("STABLE-AFTER-MS", "stable_after_ms"),
        number_column("WITHOUT-OWNER-MS", "longest_without_owner_ms"),
        number_column("STILL-WITHOUT-OWNER", "tasks_still_without_owner"),
        number_column("LOG-PARTITION", "log_partition"),
        number_column("LOG-OFFSET", "log_offset"),
        COMPLETENESS,
    ),
    "AT GROUP-EPOCH #MEMBERS JOINED REMOVED MOVED KEPT-TASKS WITHOUT-OWNER-MS STABLE-AFTER-MS STATE TASKS-PER-MEMBER "
    "STILL-WITHOUT-OWNER COMPLETENESS CHANGED ASSIGNMENT-EPOCH LOG-OFFSET GROUP",
)
