"""Work is cut into parts of about one size, each small enough to be sent."""

import pickle

import numpy as np
import pyarrow as pa

from sharelens.measures.ranges.parts import stretches


def test_parts_weigh_about_the_same_and_hold_all_rows_in_order() -> None:
    places = pa.table({"partition": np.arange(1000)})
    parts = list(stretches(places, np.ones(1000, np.int64), 100))
    assert [part.num_rows for part in parts] == [100] * 10
    assert pa.concat_tables(parts).equals(places)


def test_a_part_is_pickled_without_the_rows_of_the_others() -> None:
    places = pa.table({"partition": np.arange(100_000)})
    sizes = [len(pickle.dumps(part)) for part in stretches(places, np.ones(100_000, np.int64), 10_000)]
    assert sum(sizes) < 2 * places.nbytes


def test_groups_are_cut_only_where_they_are_larger_than_a_part() -> None:
    groups = np.repeat([0, 1, 2, 3, 4], [5, 5, 25, 3, 3])
    rows = pa.table({"group": groups})
    cut = stretches(rows, np.ones(len(groups), np.int64), 10, groups)
    parts = [part.column("group").to_pylist() for part in cut]
    assert [row for part in parts for row in part] == groups.tolist()
    assert [sum(group in part for part in parts) for group in (0, 1, 3, 4)] == [1] * 4
    assert max(map(len, parts)) <= 15 < 25
