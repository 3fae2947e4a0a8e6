"""States and histories of recorded logs are those of the pipeline's tables."""

from typing import TYPE_CHECKING

import pytest

from sharelens import frames
from tests.datasets import kinds_first
from tests.spark.sharelens.frames.recorded import assert_same, logs_of, table_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LARGE = ("big-small", "big")
KEY = ("log_topic_id", "state_partition", "group_id", "topic_id", "partition")


@pytest.mark.parametrize("name", kinds_first(but=LARGE))
def test_a_recorded_log_gives_the_rows_of_the_lake(name: str, spark: "SparkSession") -> None:
    logs = logs_of(spark, name)
    records = logs.transform(frames.share_records).cache()
    assert_same(spark, records, table_of(name, "silver.share_record"), *KEY, "log_offset")
    states = records.transform(frames.share_partition_states)
    assert_same(spark, states, table_of(name, "gold.share_partition_state"), *KEY)
    history = records.transform(frames.share_partition_history)
    assert_same(spark, history, table_of(name, "gold.share_partition_history"), *KEY, "log_offset")
    deliveries = records.transform(frames.delivery_history)
    expected = table_of(name, "gold.delivery_history")
    assert_same(spark, deliveries, expected, *KEY, "first_offset", "valid_from_log_offset")
    for frame in (records, logs):
        frame.unpersist()
