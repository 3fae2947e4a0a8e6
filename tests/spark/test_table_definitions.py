"""Spark runs the DDL of `sharelens tables --ddl`: the tables are those of a lake, column by column."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pyspark_kafka_log import spark_schema
from sharelens.lake.lake import Lake
from sharelens.lake.tables import TABLES
from sharelens.questions.queries.definitions import create_tables
from tests.processes.in_process import recorded_lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LAYERS = ("bronze", "silver", "gold")


def run(spark: "SparkSession", ddl: str) -> None:
    for statement in ddl.split(";\n"):
        if statement.strip():
            spark.sql(statement)


@pytest.fixture
def own_schemas(spark: "SparkSession") -> Iterator[None]:
    yield
    for layer in LAYERS:
        spark.sql(f"DROP SCHEMA IF EXISTS {layer} CASCADE")


def test_the_columns_are_those_of_the_tables_with_nulls_and_comments(spark: "SparkSession") -> None:
    from pyspark.sql.types import StructType

    for name, table in TABLES.items():
        columns = create_tables(name).partition("(\n")[2].partition("\n)\n")[0]
        assert StructType.fromDDL(columns) == spark_schema(table.schema)


@pytest.mark.usefixtures("own_schemas")
def test_tables_of_a_lake_are_registered_in_their_places(spark: "SparkSession") -> None:
    lake = Lake(recorded_lake("dlq"))
    for name in ("gold.lag", "gold.stall", "bronze.log_record"):
        run(spark, create_tables(name, lake))
        assert spark.table(name).count() == lake.snapshot(name).record_count
        assert spark.table(name).schema == spark_schema(TABLES[name].schema)


@pytest.mark.usefixtures("own_schemas")
def test_delta_refuses_a_definition_that_is_not_the_table_in_the_place(spark: "SparkSession") -> None:
    ddl = create_tables("gold.lag", Lake(recorded_lake("dlq")))
    with pytest.raises(Exception, match="schema"):
        run(spark, ddl.replace("  `group_id` string NOT NULL", "  `group_id` string"))


@pytest.mark.usefixtures("own_schemas")
def test_a_new_table_is_made_as_ours_are(spark: "SparkSession", tmp_path: Path) -> None:
    ddl = create_tables("gold.stall").rstrip().removesuffix(";")
    run(spark, f"{ddl}\nLOCATION '{tmp_path}/stall';\n")
    assert spark.table("gold.stall").schema == spark_schema(TABLES["gold.stall"].schema)
    (detail,) = spark.sql("DESCRIBE DETAIL gold.stall").collect()
    assert (detail.partitionColumns, detail.description) == (["is_final"], TABLES["gold.stall"].comment)
