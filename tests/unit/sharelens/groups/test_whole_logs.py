"""Logs of the group coordinator from which compaction removed nothing."""

import pyarrow as pa

from sharelens.groups.whole_logs import IS_LOG_WHOLE, is_log_whole, marked, marked_each, whole_groups

ROWS = pa.table({"group_id": ["a", "b", "a", "c"], "topic_id": ["x", "x", "y", "y"], "partition": [0, 1, 0, 1]})


def test_rows_have_the_mark_of_their_log() -> None:
    rows = marked_each(ROWS, "topic_id", {("x", 0), ("y", 1), ("z", 1)})
    assert rows.column(IS_LOG_WHOLE.name).to_pylist() == [True, False, False, True]
    assert whole_groups(rows) == {"c"}
    assert not is_log_whole(rows)
    assert is_log_whole(marked(ROWS, is_whole=True))
    assert marked(ROWS, is_whole=False).schema == rows.schema


def test_without_the_mark_compaction_may_have_removed_records() -> None:
    assert whole_groups(ROWS) == frozenset()
    assert not is_log_whole(ROWS)
