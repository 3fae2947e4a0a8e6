"""Histories come in parts of whole share partitions."""

from typing import Any

import pyarrow as pa

from sharelens.tables.parts import NO_PART, Part, parts_of
from sharelens.tables.places import PLACED


def places(*records: int) -> pa.Table:
    """A share partition with each number of records, in two state partitions by turns."""
    rows: list[dict[str, Any]] = [
        {"group_id": "g", "topic_id": "t", "partition": number, "state_partition": number % 2, "records": count}
        for number, count in enumerate(records)
    ]
    return pa.Table.from_pylist(rows, schema=PLACED)


def part_of(of_part: pa.Table) -> Part:
    return Part(places=of_part, history=NO_PART.history, deliveries=NO_PART.deliveries)


def test_a_part_has_whole_share_partitions_of_about_the_records_asked_for():
    parts = parts_of(places(6, 1, 1, 50, 6, 1), 10, part_of)
    numbers = [part.places.column("partition").to_pylist() for part in parts]
    assert numbers == [[0, 2], [4, 1], [3], [5]]
    assert parts.each(lambda part: part.places.num_rows) == [2, 2, 1, 1]


def test_without_places_there_is_one_part():
    assert [part.places.num_rows for part in parts_of(places(), 10, part_of)] == [0]


def test_a_single_part_is_read_once_and_several_each_time():
    sizes: list[int] = []

    def read(of_part: pa.Table) -> Part:
        sizes.append(of_part.num_rows)
        return part_of(of_part)

    for part_records in (100, 1):
        parts = parts_of(places(3, 3), part_records, read)
        assert len([*parts, *parts]) == 2 * len(parts.places)
    assert sizes == [2, 1, 1, 1, 1]
