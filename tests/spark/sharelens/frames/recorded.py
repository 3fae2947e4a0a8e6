"""The recorded logs as DataFrames, and the tables of the lakes that they are held to.

Several logs are read as one: Spark takes longer to plan a query than to compute one of them. The id of the log's topic
says which log a row is of.
"""

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from chispa.dataframe_comparer import assert_df_equality
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from lake.scan import open_lake
from tests.datasets import dataset
from tests.in_process import recorded_lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OF_THE_LAKE = ("cluster_id", "run_id", "first_run_id", "withdrawn_run_id", "misplaced", "is_final", "topic")
"""Columns that only a lake has: where rows come from, and what takes all share partitions or other tables to know."""

WITH_TOPIC = ("silver.dlq_record", "gold.share_initialization_history")
"""Tables whose rows have the name of a topic from their records."""


def rows_of(spark: "SparkSession", names: Sequence[str], **options: str) -> DataFrame:
    """What the data source kafka_log reads of recorded logs."""
    logs = []
    for name in names:
        rows = spark.read.format("kafka_log").options(**options).load(str(dataset(name) / "logs"))
        logs.append(rows.withColumn("topic_id", F.concat(F.lit(f"{name}:"), "topic_id")))
    return reduce(DataFrame.unionByName, logs)


def table_of(names: Sequence[str], table: str, log_topic_id: str = "log_topic_id") -> pa.Table:
    """A table of the lakes that the pipeline makes of recorded logs, without the columns that only a lake has."""
    tables = []
    for name in names:
        rows = open_lake(recorded_lake(name)).scan(table)
        index = rows.schema.get_field_index(log_topic_id)
        if index < 0:
            tables.append(rows)
            continue
        prefix = pa.repeat(f"{name}:", rows.num_rows)
        ids = pc.binary_join_element_wise(prefix, rows.column(index).cast(pa.string()), "")
        tables.append(rows.set_column(index, rows.schema.field(index).with_type(pa.string()), ids))
    whole = pa.concat_tables(tables)
    extra = [column for column in OF_THE_LAKE if column in whole.column_names and table not in WITH_TOPIC]
    return whole.drop_columns(extra or [column for column in ("cluster_id", "run_id") if column in whole.column_names])


def assert_same(spark: "SparkSession", computed: DataFrame, expected: pa.Table, *order: str) -> None:
    """Rows and columns are equal; Arrow's nullability is not Spark's concern."""
    assert expected.num_rows > 0
    rows = spark.createDataFrame(expected)
    assert_df_equality(in_order(computed, *order), in_order(rows, *order), ignore_nullable=True)


def in_order(rows: DataFrame, *order: str) -> DataFrame:
    """The rows sorted in one partition: `orderBy` computes them twice, first for the bounds of its partitions."""
    return rows.repartition(1).sortWithinPartitions(*order)
