"""Rebalances of a streams group: who joined, who was removed, which tasks moved, how long they had no owner."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from sharelens.groups.schemas import ACTIVE, STREAMS_REBALANCE
from sharelens.output import name_cell
from sharelens.questions.answers.shape import CLUSTER_ID
from sharelens.questions.groups.rebalances_cells import movement_text, moves_layout, moves_total
from sharelens.tables.port import Tables

ROW = pa.schema([CLUSTER_ID, *STREAMS_REBALANCE])


def rows(evidence: Tables, rebalances: pa.Table) -> pa.Table:
    """Rows of ROW: rebalances with the cluster."""
    cluster = pa.repeat(pa.scalar(evidence.cluster_id, pa.string()), rebalances.num_rows)
    return rebalances.add_column(0, ROW.field("cluster_id"), cluster).cast(ROW)


def totals(rebalances: pa.Table) -> str:
    """How many rebalances, members and moved tasks, and the longest time of an active task without an owner."""
    return moves_total(rebalances, "task", "an active task")


def _move_texts(moves: Iterable[Mapping[str, Any]]) -> list[str]:
    """`0:[1,2] from a to b`, one text for the tasks of a subtopology that moved alike; only other types are named."""
    alike: dict[tuple[str, str, str], list[int]] = {}
    for move in moves:
        kind = "" if move["task_type"] == ACTIVE else f"{move['task_type']} "
        of = (kind, name_cell(move["subtopology_id"]), movement_text(move))
        alike.setdefault(of, []).append(move["partition"])
    return [
        f"{kind}{subtopology}:[{','.join(map(str, partitions))}]{movement}"
        for (kind, subtopology, movement), partitions in alike.items()
    ]


LAYOUT = moves_layout(ROW, "tasks", _move_texts)
