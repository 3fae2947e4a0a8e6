"""Rebalances of a share group: who joined, who was removed, and which partitions moved from whom to whom."""

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

import pyarrow as pa

from sharelens.groups.schemas import MOVES, REBALANCE
from sharelens.output import name_cell
from sharelens.output.layouts import Layout
from sharelens.output.wording import counted
from sharelens.questions.answers.shape import CLUSTER_ID
from sharelens.questions.groups.rebalances_cells import (
    FIRST_FIELDS,
    LAST_FIELDS,
    list_total,
    members_column,
    members_total,
    movement_text,
    texts_column,
)
from sharelens.tables.port import Tables

NAMED_MOVES = pa.list_(pa.struct([pa.field("topic", pa.string()), *MOVES.value_type]))


def named_moves_schema(schema: pa.Schema) -> pa.Schema:
    """The columns of rebalances with the cluster, moves with names of topics."""
    return pa.schema([CLUSTER_ID, *(of.with_type(NAMED_MOVES) if of.name == "moved" else of for of in schema)])


ROW = named_moves_schema(REBALANCE)


def rows(evidence: Tables, rebalances: pa.Table) -> pa.Table:
    """Rows of ROW: rebalances with the cluster, and moves with the names of their topics."""
    return rows_of(evidence, rebalances, ROW)


def rows_of(evidence: Tables, rebalances: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rebalances as rows of a schema of `named_moves_schema`."""
    listed = rebalances.to_pylist()
    names = evidence.names({move["topic_id"] for row in listed for move in row["moved"]})
    for row in listed:
        row["cluster_id"] = evidence.cluster_id
        row["moved"] = [{"topic": names.get(move["topic_id"]), **move} for move in row["moved"]]
    return pa.Table.from_pylist(listed, schema=schema)


def totals(rebalances: pa.Table) -> str:
    """How many rebalances, members and moved partitions."""
    return f"{members_total(rebalances)}, {counted(list_total(rebalances, 'moved'), 'partition')} moved"


def move_texts(moves: Iterable[Mapping[str, Any]]) -> list[str]:
    """`topic:0,1 from a to b`, one text for neighbouring partitions that moved alike."""

    def of(move: Mapping[str, Any]) -> tuple[str, str]:
        return name_cell(move["topic"] or move["topic_id"]), movement_text(move)

    return [
        f"{topic}:{','.join(str(move['partition']) for move in alike)}{movement}"
        for (topic, movement), alike in groupby(moves, of)
    ]


LAYOUT = Layout(
    schema=ROW,
    fields=f"{FIRST_FIELDS} resubscribed moved {LAST_FIELDS}",
    cells=(*map(members_column, ("joined", "removed", "resubscribed")), texts_column("moved", move_texts)),
    important="AT GROUP-EPOCH #MEMBERS JOINED REMOVED MOVED STATE COMPLETENESS RESUBSCRIBED ASSIGNMENT-EPOCH "
    "LOG-OFFSET GROUP",
)
