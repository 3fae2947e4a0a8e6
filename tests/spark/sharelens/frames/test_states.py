"""Transformations in Spark say what the reference tables and the in-process replay say."""

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from chispa.dataframe_comparer import assert_df_equality

from kafka_log import reader
from kafka_log.layout import scan_log_directory
from kafka_log.union import unite
from lake.parquet import conform
from lake.tables import with_times
from sharelens.frames import states as t
from state_model.columnar import replay, schemas
from state_model.columnar.decode import decode_share_records
from tests.datasets import dataset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCENARIO = "timeouts"


def in_process() -> list[pa.Table]:
    """SHARE_RECORD rows of the scenario, one table a state partition, without Spark."""
    tables = []
    for partition in unite([scan_log_directory(str(dataset(SCENARIO) / "logs"))]):
        if partition.topic != "__share_group_state":
            continue
        end = reader.readable_end(partition, include_uncommitted=False)
        rows = [c.records for s in reader.splits(partition, 0, end, 1 << 30) for c in reader.read_split(s)]
        table = pa.Table.from_batches(rows).combine_chunks()
        running = pa.compute.cumulative_max(table.column("timestamp_ms")).to_numpy()
        batch = table.to_batches()[0]
        tables.append(pa.Table.from_batches([decode_share_records(batch, log_time_ms=running).records]))
    assert len(tables) > 1
    return tables


@pytest.fixture(scope="module")
def records(spark: "SparkSession") -> "DataFrame":
    logs = spark.read.format("kafka_log").load(str(dataset(SCENARIO) / "logs"))
    return logs.transform(t.share_records).cache()


def assert_same(found: "DataFrame", wanted: pa.Table, spark: "SparkSession", *keys: str) -> None:
    """Rows and columns are equal; Arrow's nullability is not Spark's concern."""
    expected = spark.createDataFrame(wanted)
    assert expected.count() > 0
    assert_df_equality(found.orderBy(*keys), expected.orderBy(*keys), ignore_nullable=True, ignore_row_order=False)


def test_share_records_from_the_data_source_equal_the_decoder_in_process(
    spark: "SparkSession", records: "DataFrame"
) -> None:
    assert_same(records, pa.concat_tables(in_process()), spark, "state_partition", "log_offset")


def test_states_and_histories_equal_the_replay_in_process(spark: "SparkSession", records: "DataFrame") -> None:
    done = [replay.replay_records(table) for table in in_process()]
    state = pa.concat_tables([part.state for part in done])
    history = pa.concat_tables([part.history for part in done])
    delivery = pa.concat_tables([part.closed for part in done] + [replay.open_ranges(part.state) for part in done])
    key = ["group_id", "topic_id", "partition"]
    timed = [(state, schemas.SHARE_PARTITION_STATE), (history, schemas.SHARE_PARTITION_HISTORY)]
    frames = (t.share_partition_states(records), t.share_partition_history(records))
    for frame, (rows, schema), order in zip(frames, timed, (key, [*key, "log_offset"]), strict=True):
        assert_same(frame, conform(rows, pa.schema(with_times(list(schema)))), spark, *order)
    ranges = conform(delivery, pa.schema(with_times(list(schemas.DELIVERY_HISTORY))))
    assert_same(t.delivery_history(records), ranges, spark, *key, "first_offset", "valid_from_log_offset")


HISTORY = (
    "log_topic_id string, group_id string, topic_id string, partition int, "
    "log_offset long, log_time_ms long, record_type string"
)
FIRST = ("L", "g", "T", 0)
ROWS = [
    (*FIRST, 0, 100, "snapshot"),
    (*FIRST, 3, 250, "update"),
    (*FIRST, 7, 400, "tombstone"),
    ("L", "h", "T", 0, 5, 300, "snapshot"),
]


def test_with_valid_to_ends_a_row_at_the_next_record_of_its_share_partition(spark: "SparkSession") -> None:
    found = t.with_valid_to(spark.createDataFrame(ROWS, HISTORY)).select(
        "group_id", "log_offset", "valid_to_log_offset", "valid_to_ms"
    )
    wanted: list[tuple[Any, ...]] = [("g", 0, 3, 250), ("g", 3, 7, 400), ("g", 7, None, None), ("h", 5, None, None)]
    expected = spark.createDataFrame(
        wanted, "group_id string, log_offset long, valid_to_log_offset long, valid_to_ms long"
    )
    assert_df_equality(found, expected, ignore_row_order=True, ignore_nullable=True)


@pytest.mark.parametrize(
    ("as_of_ms", "wanted"),
    [
        (99, []),  # before the first record
        (100, [("g", 0)]),  # at the record's own time it counts
        (300, [("g", 3), ("h", 5)]),
        (400, [("h", 5)]),  # deleted share partitions are absent
    ],
)
def test_scalars_as_of_takes_the_newest_row_up_to_the_moment(
    spark: "SparkSession", as_of_ms: int, wanted: list[tuple[str, int]]
) -> None:
    history = spark.createDataFrame(ROWS, HISTORY)
    found = t.scalars_as_of(history, as_of_ms).select("group_id", "log_offset")
    expected = spark.createDataFrame(wanted, "group_id string, log_offset long")
    assert_df_equality(found, expected, ignore_row_order=True, ignore_nullable=True)


def test_ranges_as_of_takes_what_had_begun_and_not_ended(spark: "SparkSession") -> None:
    delivery = spark.createDataFrame(
        [(0, 100, 250), (1, 250, None), (2, 300, 400)], "first_offset long, valid_from_ms long, valid_to_ms long"
    )
    found = t.ranges_as_of(delivery, 250).select("first_offset")
    assert_df_equality(found, spark.createDataFrame([(1,)], "first_offset long"), ignore_nullable=True)
