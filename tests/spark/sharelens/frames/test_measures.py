"""The measures in Spark say what the functions say of all share partitions at once."""

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from chispa.dataframe_comparer import assert_df_equality

from lake.parquet import conform
from lake.tables import with_times
from measures.headers import HELD, NO_RECORD
from measures.lag import lag
from measures.life import life
from measures.poison import poison
from measures.redelivered import redelivered
from measures.schemas import LAG, LIFE, POISON_RECORD, REDELIVERED
from measures.settings import GroupSettings
from measures.topics import TOPIC_END
from sharelens.frames import measures as t
from state_model.columnar.replay import open_ranges, replay_records
from tests.replay_logs import parsed, table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOG = """
    0 snapshot start=0 snapshot=0
    1 snapshot start=0 snapshot=0
    0 update start=0 0-9 available 1
    1 update start=0 0-3 acknowledged 1, 4-4 archived 1
    0 update start=0 3-4 acknowledged 2
    0 snapshot start=2 epoch=2 snapshot=2
    0 update start=2 2-4 acknowledged 1
    1 update start=0 6-6 acknowledged 1
"""
KEY = ("group_id", "topic_id", "partition")


@pytest.fixture(scope="module")
def tables() -> tuple[pa.Table, pa.Table, pa.Table]:
    """States, history and deliveries after the log."""
    done = replay_records(table(parsed(LOG)))
    return done.state, done.history, pa.concat_tables([done.closed, open_ranges(done.state)])


@pytest.fixture(scope="module")
def frames(spark: "SparkSession", tables: tuple[pa.Table, ...]) -> "tuple[DataFrame, DataFrame]":
    return spark.createDataFrame(tables[1]), spark.createDataFrame(tables[2])


def assert_same(spark: "SparkSession", found: "DataFrame", wanted: pa.Table, schema: pa.Schema, *order: str) -> None:
    assert wanted.num_rows > 0
    expected = spark.createDataFrame(conform(wanted, pa.schema(with_times(list(schema)))))
    assert_df_equality(found.orderBy(*KEY, *order), expected.orderBy(*KEY, *order), ignore_nullable=True)


def test_redelivered_records(
    spark: "SparkSession", frames: "tuple[DataFrame, DataFrame]", tables: tuple[pa.Table, ...]
) -> None:
    wanted = redelivered(*tables[1:])
    assert_same(spark, t.redelivered_records(*frames), wanted, REDELIVERED, "first_offset", "kind")


def test_poison_records(
    spark: "SparkSession", frames: "tuple[DataFrame, DataFrame]", tables: tuple[pa.Table, ...]
) -> None:
    wanted = poison(*tables[1:], NO_RECORD.empty_table(), HELD.empty_table(), GroupSettings())
    assert_same(spark, t.poison_records(*frames), wanted, POISON_RECORD, "offset")


def test_life_events(
    spark: "SparkSession", frames: "tuple[DataFrame, DataFrame]", tables: tuple[pa.Table, ...]
) -> None:
    assert_same(spark, t.life_events(*frames), life(*tables[1:]), LIFE, "log_offset", "event")


def test_lags_against_the_ends_that_are_known(spark: "SparkSession", tables: tuple[pa.Table, ...]) -> None:
    state = tables[0]
    topic = state.column("topic_id")[0].as_py()
    end = {"topic_id": topic, "partition": 0, "end_offset": 20, "end_offset_source": "high_watermark"}
    ends = pa.Table.from_pylist([end], schema=TOPIC_END)
    assert_same(spark, t.lags(spark.createDataFrame(state), spark.createDataFrame(ends)), lag(state, ends, {}), LAG)


def test_what_stands_still_is_a_stall(spark: "SparkSession", frames: "tuple[DataFrame, DataFrame]") -> None:
    found = t.stalls(*frames).where("until_ms is null").select("partition", "first_incomplete_offset")
    expected = spark.createDataFrame([(1, 5)], "partition int, first_incomplete_offset long")
    assert_df_equality(found, expected, ignore_row_order=True, ignore_nullable=True)
