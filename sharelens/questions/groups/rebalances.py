"""Rebalances of a group: who joined, who was removed, and which partitions or tasks moved from whom to whom.

A member that leaves and one that is fenced write the same records, so both are "removed".
"""

import pyarrow as pa

from sharelens.evidence.conditions import filter_rows
from sharelens.groups.model_rebalances import consumer_rebalances, streams_rebalances
from sharelens.groups.rebalances import rebalances as share_rebalances
from sharelens.output import Answer
from sharelens.output.layouts import Layout
from sharelens.questions.answers.completeness import closing_line, incomplete_rows
from sharelens.questions.groups import rebalances_consumer, rebalances_share, rebalances_streams
from sharelens.tables.known_groups import group_kind, records_of_groups, share_group_records
from sharelens.tables.port import Tables
from sharelens.tables.where import Span
from state_model.group_schemas import GroupKind

FIRST = 1
"""Nothing proves that the first rebalance was the first one, so its mark alone is worth no warning."""
COMPACTED = (
    "compaction of __consumer_offsets may have removed rebalances and members from the rows with the mark incomplete"
)


def rebalances(evidence: Tables, name: str, span: Span) -> Answer:
    """The answer to `sharelens rebalances`; `span` bounds the log time of the group epoch's record.

    Raises:
        UsageError: nothing names the group.
        SharelensError: only share state names it.
    """
    records = records_of_groups(evidence, frozenset([name]))
    match group_kind(records):
        case GroupKind.STREAMS:
            table = rebalances_streams.rows(evidence, _in_span(streams_rebalances(records), span))
            return _answer(evidence, table, rebalances_streams.LAYOUT, rebalances_streams.totals(table))
        case GroupKind.CONSUMER:
            table = rebalances_consumer.rows(evidence, _in_span(consumer_rebalances(records), span))
            return _answer(evidence, table, rebalances_consumer.LAYOUT, rebalances_consumer.totals(table))
    table = rebalances_share.rows(evidence, _in_span(share_rebalances(share_group_records(evidence, name)), span))
    return _answer(evidence, table, rebalances_share.LAYOUT, rebalances_share.totals(table))


def _in_span(table: pa.Table, span: Span) -> pa.Table:
    bounds = Span(from_ms=span.from_ms, to_ms=span.to_ms).expression()
    return filter_rows(table.rename_columns({"at_ms": "log_time_ms"}), bounds).rename_columns({"log_time_ms": "at_ms"})


def _answer(evidence: Tables, table: pa.Table, layout: Layout, totals: str) -> Answer:
    compacted = table.column("completeness_reason").to_pylist().count("compacted")
    closing = closing_line(evidence, incomplete_rows(table.column("completeness")))
    return Answer(
        table=table,
        columns=layout.columns(),
        summary=f"{totals}\n{closing}",
        warnings=(COMPACTED,) if compacted > FIRST else (),
        none="no rebalance",
    )
