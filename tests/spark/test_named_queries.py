"""The named queries give the same rows by DuckDB and by Spark, on lakes of real brokers' logs."""

import functools

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from sharelens.lake.scan import Cut, open_lake
from sharelens.questions.queries.named import named_query, names
from sharelens.questions.queries.spark_sql import spark_sql
from state_model.errors import UsageError
from tests.depths import rows_in_soak
from tests.processes.in_process import recorded_lake
from tests.sql_answers import answer_of

WITHOUT_A_CASE = {"longest_stalls", "quarantine", "incomplete", "resets", "gaps"}
"""Nothing of that kind in the data set dlq."""
CASES = [*(("dlq", name) for name in names()), ("admin", "resets"), ("pruned", "gaps")]


@functools.cache
def lake_of(name: str) -> Cut:
    return open_lake(recorded_lake(name))


def plain(table: pa.Table) -> list[dict[str, object]]:
    """Rows without the zone of times, which both engines hold in UTC."""
    fields = [
        pa.field(field.name, pa.timestamp("us") if pa.types.is_timestamp(field.type) else field.type)
        for field in table.schema
    ]
    return table.cast(pa.schema(fields)).to_pylist()


@pytest.mark.parametrize(
    ("scenario", "name"), [*CASES[::4], *rows_in_soak(*(case for n, case in enumerate(CASES) if n % 4))]
)
def test_both_engines_give_the_same_rows_in_the_same_order(scenario: str, name: str, spark: SparkSession) -> None:
    lake, query = lake_of(scenario), named_query(name)
    values = query.values([])
    by_duckdb = answer_of(lake, query.duckdb_sql, values)
    by_spark = spark_sql(spark, lake, query.spark_sql, values).read_all().table
    assert by_duckdb.column_names == by_spark.column_names
    assert plain(by_duckdb) == plain(by_spark)
    assert by_duckdb.num_rows > 0 or (scenario == "dlq" and name in WITHOUT_A_CASE)


def test_both_engines_bind_a_hostile_value(spark: SparkSession) -> None:
    query = named_query("lag_now")
    values = query.values(["group=x' OR '1' = '1"])
    assert answer_of(lake_of("dlq"), query.duckdb_sql, values).num_rows == 0
    assert spark_sql(spark, lake_of("dlq"), query.spark_sql, values).read_all().table.num_rows == 0


@pytest.mark.parametrize(
    "query",
    [
        "SELECT DISTINCT topic_id, topic FROM gold.delivery_history ORDER BY topic_id",
        "SELECT p.offset, p.first_offset FROM gold.poison_record AS p ORDER BY first_offset, last_offset",
    ],
)
def test_both_engines_have_the_names_of_topics_and_older_names_of_columns(query: str, spark: SparkSession) -> None:
    rows = answer_of(lake_of("dlq"), query).to_pylist()
    assert rows
    assert None not in [row.get("topic", "") for row in rows]
    assert spark_sql(spark, lake_of("dlq"), query).read_all().table.to_pylist() == rows


def test_both_engines_suggest_tables_of_the_lake(spark: SparkSession) -> None:
    message = r"no table (gold\.)?lags; did you mean gold\.lag\? "
    for ask in (answer_of, functools.partial(spark_sql, spark)):
        with pytest.raises(UsageError, match=message):
            ask(lake_of("dlq"), "SELECT 1 FROM gold.lags")


def test_both_engines_number_columns_of_the_same_name(spark: SparkSession) -> None:
    query = "SELECT 1 AS a, 2 AS a, 3 AS b"
    by_spark = spark_sql(spark, lake_of("dlq"), query).read_all().table
    assert by_spark.to_pylist() == answer_of(lake_of("dlq"), query).to_pylist() == [{"a": 1, "a_1": 2, "b": 3}]


def test_a_session_that_answered_is_left_as_it_was(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.runSQLOnFiles")
    spark_sql(spark, lake_of("dlq"), "SELECT 1 AS one")
    with pytest.raises(UsageError):
        spark_sql(spark, lake_of("dlq"), "SELECT nothing FROM nowhere")
    assert spark.conf.get("spark.sql.runSQLOnFiles") == before
