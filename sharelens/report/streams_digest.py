"""What the report reads of streams groups."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.groups.histories import histories
from sharelens.groups.model_rebalances import streams_rebalances
from sharelens.groups.replay import is_of_types
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_group_records
from sharelens.tables.where import Span
from state_model.streams.records import STREAMS_TYPES


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsDigest:
    """GROUP_HISTORY and TASK_HISTORY rows of streams groups, their rebalances, and the time that charts show."""

    groups: pa.Table
    tasks: pa.Table
    rebalances: pa.Table
    from_ms: int
    to_ms: int


def streams_digest(evidence: Tables, groups: frozenset[str] | None, until_ms: int | None, span: Span) -> StreamsDigest:
    """The streams groups among `groups` (None: all) up to a moment, of the records in `span`."""
    records = read_group_records(evidence, groups)
    records = records.filter(is_of_types(records, STREAMS_TYPES))
    if until_ms is not None:
        records = records.filter(pc.field("timestamp_ms") <= until_ms)
    group_histories = histories(records)
    first, last = (pc.min_max(records.column("timestamp_ms"))[end].as_py() or 0 for end in ("min", "max"))
    from_ms = max(first, first if span.from_ms is None else span.from_ms)
    to_ms = last if span.to_ms is None else min(last, span.to_ms)
    return StreamsDigest(
        groups=group_histories.groups,
        tasks=group_histories.tasks,
        rebalances=streams_rebalances(records),
        from_ms=from_ms,
        to_ms=max(from_ms + 1, to_ms),
    )
