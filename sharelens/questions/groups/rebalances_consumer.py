"""Rebalances of a consumer group: who joined, who was removed, which partitions moved, how long they had no owner."""

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.groups.schemas import CONSUMER_REBALANCE
from sharelens.output.layouts import Layout
from sharelens.output.wording import counted
from sharelens.questions.groups.rebalances_cells import (
    FIRST_FIELDS,
    LAST_FIELDS,
    kept_column,
    list_total,
    members_column,
    members_total,
    size_column,
    texts_column,
)
from sharelens.questions.groups.rebalances_share import move_texts, named_moves_schema, rows_of
from sharelens.tables.port import Tables

ROW = named_moves_schema(CONSUMER_REBALANCE)


def rows(evidence: Tables, rebalances: pa.Table) -> pa.Table:
    """Rows of ROW: rebalances with the cluster, and moves with the names of their topics."""
    return rows_of(evidence, rebalances, ROW)


def totals(rebalances: pa.Table) -> str:
    """How many rebalances, members and moved partitions, and the longest time of a partition without an owner."""
    longest = pc.max(rebalances.column("longest_without_owner_ms")).as_py()
    owners = f"; a partition had no owner for {longest} ms at most" if longest else ""
    return f"{members_total(rebalances)}, {counted(list_total(rebalances, 'moved'), 'partition')} moved{owners}"


LAYOUT = Layout(
    schema=ROW,
    fields=f"{FIRST_FIELDS} changed moved kept_partitions fewest_partitions stable_after_ms longest_without_owner_ms "
    f"partitions_still_without_owner {LAST_FIELDS}",
    headings={"longest_without_owner_ms": "WITHOUT-OWNER-MS", "partitions_still_without_owner": "STILL-WITHOUT-OWNER"},
    cells=(
        *map(members_column, ("joined", "removed", "changed")),
        texts_column("moved", move_texts),
        kept_column("partitions"),
        size_column("partitions"),
    ),
    important="AT GROUP-EPOCH #MEMBERS JOINED REMOVED MOVED KEPT-PARTITIONS WITHOUT-OWNER-MS STABLE-AFTER-MS STATE "
    "PARTITIONS-PER-MEMBER STILL-WITHOUT-OWNER COMPLETENESS CHANGED ASSIGNMENT-EPOCH LOG-OFFSET GROUP",
)
