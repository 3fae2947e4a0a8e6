"""Rebalances of a streams group: who joined, who was removed, which tasks moved, how long they had no owner."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.groups.schemas import ACTIVE, STREAMS_REBALANCE
from sharelens.output import name_cell
from sharelens.output.layouts import Layout
from sharelens.output.wording import counted
from sharelens.questions.answers.shape import CLUSTER_ID
from sharelens.questions.groups.rebalances_cells import (
    FIRST_FIELDS,
    LAST_FIELDS,
    kept_column,
    list_total,
    members_column,
    members_total,
    movement_text,
    size_column,
    texts_column,
)
from sharelens.tables.port import Tables

ROW = pa.schema([CLUSTER_ID, *STREAMS_REBALANCE])


def rows(evidence: Tables, rebalances: pa.Table) -> pa.Table:
    """Rows of ROW: rebalances with the cluster."""
    cluster = pa.repeat(pa.scalar(evidence.cluster_id, pa.string()), rebalances.num_rows)
    return rebalances.add_column(0, ROW.field("cluster_id"), cluster).cast(ROW)


def totals(rebalances: pa.Table) -> str:
    """How many rebalances, members and moved tasks, and the longest time of an active task without an owner."""
    longest = pc.max(rebalances.column("longest_without_owner_ms")).as_py()
    owners = f"; an active task had no owner for {longest} ms at most" if longest else ""
    return f"{members_total(rebalances)}, {counted(list_total(rebalances, 'moved'), 'task')} moved{owners}"


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


LAYOUT = Layout(
    schema=ROW,
    fields=f"{FIRST_FIELDS} changed moved kept_tasks fewest_tasks stable_after_ms longest_without_owner_ms "
    f"tasks_still_without_owner {LAST_FIELDS}",
    headings={"longest_without_owner_ms": "WITHOUT-OWNER-MS", "tasks_still_without_owner": "STILL-WITHOUT-OWNER"},
    cells=(
        *map(members_column, ("joined", "removed", "changed")),
        texts_column("moved", _move_texts),
        kept_column("tasks"),
        size_column("tasks"),
    ),
    important="AT GROUP-EPOCH #MEMBERS JOINED REMOVED MOVED KEPT-TASKS WITHOUT-OWNER-MS STABLE-AFTER-MS STATE "
    "TASKS-PER-MEMBER STILL-WITHOUT-OWNER COMPLETENESS CHANGED ASSIGNMENT-EPOCH LOG-OFFSET GROUP",
)
