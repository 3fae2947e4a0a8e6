"""Batch headers and extents of the user topics of a lake."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.lake import user_topics
from sharelens.lake.user_topics import BOOK_COLUMNS, HIGH_WATERMARK, LOG_END
from sharelens.measures.topics.extents import TopicPartition

COLUMNS = ["topic_id", "partition", "base_offset", "last_offset"]
HEADERS = pa.schema([("topic_id", pa.string()), ("partition", pa.int32()), ("base_offset", pa.int64()),
                     ("last_offset", pa.int64())])  # fmt: skip
BOOKS = pa.schema([
    ("topic_id", pa.string()), ("partition", pa.int32()), ("end_offset_exclusive", pa.int64()),
    ("held_back", pa.int64()), ("log_start_offset", pa.int64()), ("log_start_known", pa.bool_()),
    ("committed_end", pa.int64()), ("record_count", pa.int64()),
])  # fmt: skip
PLACES = [(topic_id, partition) for topic_id in ("A", "B", "C") for partition in (0, 1, 2)]
BATCH_SIZE = 10


def book_row(place: TopicPartition, **values: object) -> dict[str, object]:
    """A row of the books: a run that took 100 offsets of a partition, with the exceptions of `values`."""
    row = {"end_offset_exclusive": 100, "held_back": 0, "log_start_offset": 0, "log_start_known": True}
    return {
        "topic_id": place[0], "partition": place[1], "committed_end": 100, "record_count": 10, **row, **values,
    }  # fmt: skip


def headers_of(batch_counts: dict[TopicPartition, int]) -> list[dict[str, object]]:
    """Headers of batches of BATCH_SIZE offsets, from offset 0 on."""
    return [
        {"topic_id": topic_id, "partition": partition, "base_offset": first, "last_offset": first + BATCH_SIZE - 1}
        for (topic_id, partition), count in batch_counts.items()
        for first in range(0, count * BATCH_SIZE, BATCH_SIZE)
    ]


@given(
    batch_counts=st.dictionaries(st.sampled_from(PLACES), st.integers(0, 5)),
    begins=st.dictionaries(st.sampled_from(PLACES), st.integers(0, 6 * BATCH_SIZE)),
    rows_at_once=st.integers(1, 20),
    data=st.data(),
)
def test_batches_are_the_headers_that_reach_the_beginning_of_their_own_partition(
    batch_counts: dict[TopicPartition, int], begins: dict[TopicPartition, int], rows_at_once: int, data: st.DataObject
) -> None:
    headers = data.draw(st.permutations(headers_of(batch_counts)))
    table = pa.Table.from_pylist(headers, schema=HEADERS)
    extents = [book_row(place, record_count=count) for place, count in batch_counts.items()]

    def scan(name: str, columns: list[str], condition: pc.Expression) -> pa.Table:
        assert name == "bronze.topic_batch"
        return table.filter(condition).select(columns)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(user_topics, "ROWS_AT_ONCE", rows_at_once)
        tables = list(user_topics.batches(scan, pa.Table.from_pylist(extents, schema=BOOKS), begins, COLUMNS))
    expected = [
        header
        for place in sorted(begins)
        for header in headers_of({place: batch_counts.get(place, 0)})
        if int(str(header["last_offset"])) >= begins[place]
    ]
    assert [row for rows in tables for row in rows.to_pylist()] == expected
    largest = max((batch_counts[place] for place in begins if place in batch_counts), default=0)
    assert all(rows.num_rows <= max(rows_at_once, largest) for rows in tables)


def extents_of(*rows: dict[str, object]) -> list[tuple[object, ...]]:
    table = user_topics.extents(pa.Table.from_pylist(list(rows), schema=BOOKS).select(BOOK_COLUMNS), [("A", 0)])
    return [tuple(row.values()) for row in table.to_pylist()]


def test_an_extent_is_the_maximum_over_the_runs_of_its_own_partition() -> None:
    rows = [
        book_row(("A", 0), log_start_offset=7, committed_end=90),
        book_row(("A", 0), log_start_offset=30, log_start_known=False, committed_end=120),
        book_row(("A", 1), log_start_offset=50, committed_end=500),
        book_row(("B", 0), log_start_offset=60, committed_end=600),
    ]
    assert extents_of(*rows) == [("A", 0, 7, 120, HIGH_WATERMARK)]


@pytest.mark.parametrize(
    ("values", "end"),
    [
        ({"committed_end": 80}, (80, HIGH_WATERMARK)),
        ({"committed_end": None}, (100, LOG_END)),
        ({"committed_end": None, "held_back": 5}, (105, LOG_END)),
        ({"committed_end": 0}, (None, None)),
        ({"committed_end": 0, "end_offset_exclusive": 0}, (0, LOG_END)),
    ],
)
def test_the_end_of_a_partition_is_its_high_watermark_or_the_end_of_its_log(
    values: dict[str, object], end: tuple[int | None, str | None]
) -> None:
    assert extents_of(book_row(("A", 0), **values)) == [("A", 0, 0, *end)]


def test_a_log_start_that_is_inferred_is_none() -> None:
    assert extents_of(book_row(("A", 0), log_start_known=False)) == [("A", 0, None, 100, HIGH_WATERMARK)]
