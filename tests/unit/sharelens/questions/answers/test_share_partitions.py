"""Rows by share partition."""

import pyarrow as pa

from sharelens.questions.answers.share_partitions import rows_of_keys


def test_rows_of_share_partitions_keep_their_order() -> None:
    keys = {"group_id": ["a", "b", "a", "a"], "topic_id": ["t"] * 4, "partition": pa.array([1, 0, 0, 1], pa.int32())}
    table = pa.table(keys | {"place": [0, 1, 2, 3]})
    assert rows_of_keys(table, [("b", "t", 0), ("a", "t", 1)]).column("place").to_pylist() == [0, 1, 3]
    assert rows_of_keys(table, []).num_rows == 0
