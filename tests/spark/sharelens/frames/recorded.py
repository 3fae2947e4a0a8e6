"""The recorded logs as DataFrames, and the tables of a lake that they are held to."""

from typing import TYPE_CHECKING

import pyarrow as pa
from chispa.dataframe_comparer import assert_df_equality

from lake.scan import open_lake
from sharelens import frames
from tests.datasets import dataset
from tests.in_process import recorded_lake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OF_THE_LAKE = ("cluster_id", "run_id")
"""Columns that say where rows of a lake come from."""


def logs_of(spark: "SparkSession", name: str) -> "DataFrame":
    """LOG_RECORD rows of a recorded log, kept in memory."""
    rows = spark.read.format("kafka_log").load(str(dataset(name) / "logs"))
    return rows.transform(frames.log_records).cache()


def table_of(name: str, table: str) -> pa.Table:
    """A table of the lake that the pipeline makes of a recorded log, without the columns that only a lake has."""
    rows = open_lake(recorded_lake(name)).scan(table)
    return rows.drop_columns([column for column in (*OF_THE_LAKE, "misplaced") if column in rows.column_names])


def assert_same(spark: "SparkSession", computed: "DataFrame", expected: pa.Table, *order: str) -> None:
    """Rows and columns are equal; Arrow's nullability is not Spark's concern."""
    rows = spark.createDataFrame(expected)
    rows = rows.select(*(rows[name].cast(rows.schema[name].dataType).alias(name) for name in expected.column_names))
    assert_df_equality(computed.orderBy(*order), rows.orderBy(*order), ignore_nullable=True)
