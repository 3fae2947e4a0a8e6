"""Scan conditions and columns for the group coordinator's records that committed offsets depend on."""

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

COMMIT_COLUMNS = (
    "partition",
    "offset",
    "timestamp_ms",
    "key",
    "value",
    "producer_id",
    "attributes",
    "is_control",
    "uncommitted",
)
"""Columns of LOG_RECORD rows that `sharelens.groups.committed_offsets` reads: offset commits and transaction
markers."""


def offset_commit_or_marker(groups: Iterable[str]) -> pc.Expression:
    """The condition for LOG_RECORD rows of the groups' offset commits, and for transaction markers."""
    from state_model.offset_commits import key_prefix  # the schemas of records, which most questions do without

    condition = pc.field("is_control")
    for group in sorted(groups):
        condition |= pc.starts_with(pc.field("key"), key_prefix(group))
    return condition


def without_other_markers(rows: pa.Table) -> pa.Table:
    """COMMIT_COLUMNS rows by (partition, offset), without markers of producers that committed none of the offsets."""
    producers = pc.unique(rows.filter(~pc.field("is_control")).column("producer_id"))
    kept_rows = rows.filter(~pc.field("is_control") | pc.field("producer_id").isin(producers))
    return kept_rows.sort_by([("partition", "ascending"), ("offset", "ascending")])
