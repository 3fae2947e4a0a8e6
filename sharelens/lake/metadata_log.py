"""The metadata log of a cluster by the books of a lake: what was read, as far as it is committed, and its problems."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.coverage import coverage, gaps_of_extent
from sharelens.evidence.intervals import Interval, difference, union
from sharelens.evidence.metadata_events import MetadataHistory
from sharelens.evidence.metadata_rows import RECORD_COLUMNS, needed_for, record_history
from sharelens.lake.lake import Lake
from sharelens.lake.scan import Cut
from sharelens.lake.tables import SILVER_METADATA_RECORD
from state_model.topics import METADATA_TOPIC

RECORDS, CONTENT = SILVER_METADATA_RECORD, "metadata_record"
"""The table of the records: there is none with their bytes. `content` of the extents."""
PROBLEM_COLUMNS = ["file", "reason"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """The metadata log by the books.

    `read`: the offsets that were read. `committed`: those that need no second reading. `end`: where the last reading
    ended. `committed_end`: as far as is known.
    """

    read: Sequence[Interval] = ()
    committed: Sequence[Interval] = ()
    end: int = 0
    committed_end: int = 0
    sources: AbstractSet[str] = frozenset()


def books_of(extents: Sequence[Mapping[str, Any]]) -> Books:
    """The books from rows of bronze.ingest_extent of one cluster's metadata log."""
    if not extents:
        return Books()
    newest = max(row["run_id"] for row in extents)
    last = [row for row in extents if row["run_id"] == newest]
    ranges = (difference([(row["from_offset"], row["end_offset_exclusive"])], gaps_of_extent(row)) for row in last)
    committed = coverage(extents).covered
    return Books(
        read=union([*committed, *(interval for intervals in ranges for interval in intervals)]),
        committed=committed,
        end=last[0]["end_offset_exclusive"],
        committed_end=max(row["committed_end"] or 0 for row in extents),
        sources=frozenset(row["source_id"] for row in extents),
    )


def problems_of(cluster_id: str) -> pc.Expression:
    """The condition for rows of bronze.quarantine about the metadata log of a cluster."""
    return (pc.field("cluster_id") == cluster_id) & (pc.field("topic") == METADATA_TOPIC)


def problem_counts(problems: pa.Table) -> Mapping[str, int]:
    """How often each reason code comes up in PROBLEM_COLUMNS rows, beside records that can't be decoded."""
    return Counter(problems.filter(pc.field("file") != RECORDS).column("reason").to_pylist())


def read_history(lake: Cut, cluster_id: str) -> MetadataHistory | None:
    """The published metadata of a cluster over time but for partitions; None where no run has read a metadata log."""
    return _history(lake.scan, cluster_id, needed_for(pa.array([], pa.string())))


def stored_history(lake: Lake, cluster_id: str) -> MetadataHistory | None:
    """All metadata of a cluster over time, published or not; None where no run has read a metadata log."""
    return _history(
        lambda table, columns, where: lake.snapshot(table).rows(columns, where), cluster_id, pc.scalar(True)
    )


def _history(
    scan: Callable[[str, list[str] | None, pc.Expression], pa.Table], cluster_id: str, needed: pc.Expression
) -> MetadataHistory | None:
    in_cluster = pc.field("cluster_id") == cluster_id
    is_extent = (pc.field("content") == CONTENT) & (pc.field("status") == "taken")
    books = books_of(scan("bronze.ingest_extent", None, in_cluster & is_extent).to_pylist())
    if not books.end:
        return None
    problems = scan("bronze.quarantine", PROBLEM_COLUMNS, problems_of(cluster_id))
    rows = scan(RECORDS, RECORD_COLUMNS, in_cluster & needed)
    return record_history(rows, books.read, committed_end=books.committed_end, problems=problem_counts(problems))
