"""Scan conditions and columns for the group coordinator's records that committed offsets depend on."""

from collections.abc import Iterable

import numpy as np
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


def commits_by_group(rows: pa.Table) -> dict[str, pa.Table]:
    """COMMIT_COLUMNS rows of each group's offset commits, with the markers of their transactions.

    `rows`: by (partition, offset), offset commits and markers alone; those of a group stay in that order. O(n log n)
    for all groups: a filter for each would read all rows again.
    """
    markers, commits = rows.filter(pc.field("is_control")), rows.filter(~pc.field("is_control"))
    keys = commits.column("key").combine_chunks().dictionary_encode()
    names, group_of_key = np.unique([_group_of(key) for key in keys.dictionary.to_pylist()], return_inverse=True)
    group_of_row = group_of_key[keys.indices.to_numpy()] if len(names) else np.zeros(0, np.int64)
    order = np.argsort(group_of_row, kind="stable")  # stable: rows of a group keep their order
    ends = np.searchsorted(group_of_row[order], np.arange(len(names) + 1))
    commits = commits.take(pa.array(order))
    return {
        str(name): _with_markers(commits.slice(begin, end - begin), markers)
        for name, begin, end in zip(names, ends[:-1], ends[1:], strict=True)
    }


def _group_of(key: bytes) -> str:
    """The group in the key of an offset commit: behind its type and its length."""
    return key[4 : 4 + int.from_bytes(key[2:4], "big")].decode("utf-8", "replace")


def _with_markers(commits: pa.Table, markers: pa.Table) -> pa.Table:
    is_transactional = pc.any(pc.greater_equal(commits.column("producer_id"), 0)).as_py()
    return without_other_markers(pa.concat_tables([commits, markers])) if is_transactional else commits
