"""Tables of an opened lake as DataFrames of a session."""

from chispa.dataframe_comparer import assert_df_equality
from pyspark.sql import SparkSession

import sharelens
from tests.processes.in_process import recorded_lake


def test_a_table_is_a_data_frame_at_the_cut(spark: SparkSession) -> None:
    lake = sharelens.open(recorded_lake("dlq"))
    keys = ["group_id", "topic_id", "partition"]
    columns = [*keys, "start_offset", "lag"]
    expected = spark.createDataFrame(lake.arrow("gold.lag", columns))
    actual = lake.spark(spark, "gold.lag").select(columns)
    assert_df_equality(actual, expected, ignore_row_order=True, ignore_nullable=True, ignore_metadata=True)
    assert actual.count() == 15
