"""Rebalances of a consumer group: who joined, who was removed, which partitions moved, how long they had no owner."""

import pyarrow as pa

from sharelens.groups.schemas import CONSUMER_REBALANCE
from sharelens.questions.groups.rebalances_cells import moves_layout, moves_total
from sharelens.questions.groups.rebalances_share import move_texts, named_moves_schema, rows_of
from sharelens.tables.port import Tables

ROW = named_moves_schema(CONSUMER_REBALANCE)


def rows(evidence: Tables, rebalances: pa.Table) -> pa.Table:
    """Rows of ROW: rebalances with the cluster, and moves with the names of their topics."""
    return rows_of(evidence, rebalances, ROW)


def totals(rebalances: pa.Table) -> str:
    """How many rebalances, members and moved partitions, and the longest time of a partition without an owner."""
    return moves_total(rebalances, "partition", "a partition")


LAYOUT = moves_layout(ROW, "partitions", move_texts)
