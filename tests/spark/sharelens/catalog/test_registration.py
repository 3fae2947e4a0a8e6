"""Views in the catalog of a session, and in a Hive metastore that outlives it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import sharelens
from sharelens.catalog.registration import ensure_kept, register
from sharelens.lake.scan import open_lake
from sharelens.lake.tables import TABLES
from sharelens.lake.view_columns import view_schema
from sharelens.opened import OpenLake
from state_model.errors import SharelensError
from tests.processes.in_process import recorded_lake

PREFIX = "lens_"
OF_EACH_KIND = ("gold.publication", "gold.quality_result", "gold.delivery_history", "silver.dlq_record")
"""Tables whose views end with the cut's run, show the newest version, have a history, have headers."""
PATIENCE_S = 600
"""For a JVM that starts beside others."""
PROGRAM = """
import sys
from pyspark.sql import SparkSession
from sharelens.configuration.settings import load_settings
from sharelens.spark.session import spark_session
from sharelens.cli import main

lake, *pairs = sys.argv[1:]
words = [word for pair in pairs for word in ("--conf", pair)]
assert main(["tables", "gold.delivery_history", "--lake", lake, "--register", *words]) == 0
SparkSession.getActiveSession().stop()
conf = dict(pair.split("=", 1) for pair in pairs)
session = spark_session("question", load_settings(flags={"spark_conf": conf}))
session.sql("USE gold")
names = [row.viewName for row in session.sql("SHOW VIEWS IN gold").collect()]
queries = (
    "SELECT count(*) FROM gold.delivery_history",
    "SELECT count(*) FROM gold.delivery_history_now",
    "SELECT count(*) FROM delivery_history_as_of(timestamp_millis(1))",
    "SELECT count(*) FROM delivery_history_as_of(timestamp '2100-01-01 00:00:00')",
)
print("answer", *names, *(session.sql(query).collect()[0][0] for query in queries))
"""
"""Registers the views in one session and asks them in another one, of the same JVM: half of the time is its start."""


@pytest.fixture(scope="module")
def registered(spark: SparkSession) -> Iterator[OpenLake]:
    """A lake whose tables are views of the session."""
    lake = sharelens.open(recorded_lake("dlq"))
    assert lake.register(spark, prefix=PREFIX) == [f"{PREFIX}{name}" for name in TABLES]
    yield lake
    for layer in ("bronze", "silver", "gold"):
        spark.sql(f"DROP SCHEMA IF EXISTS {PREFIX}{layer} CASCADE")


def in_order(rows: pa.Table, key: tuple[str, ...]) -> list[dict[str, object]]:
    return rows.sort_by([(name, "ascending") for name in key]).to_pylist()


def test_every_table_has_a_view_and_spark_reads_those_of_each_kind_as_python_does(
    spark: SparkSession, registered: OpenLake
) -> None:
    """A view selects all columns of a version: tests/spark/test_tables.py reads every table."""
    layers = {name.partition(".")[0] for name in TABLES}
    views = {layer: spark.sql(f"SHOW VIEWS IN {PREFIX}{layer}").collect() for layer in layers}
    assert {f"{layer}.{row.viewName}" for layer, rows in views.items() for row in rows} >= set(TABLES)
    for name in OF_EACH_KIND:
        view = spark.table(f"{PREFIX}{name}")
        assert view.columns == view_schema(TABLES[name]).names
        rows = view.toArrow().select(TABLES[name].schema.names)
        assert in_order(rows, TABLES[name].key) == in_order(registered.arrow(name), TABLES[name].key), name


def test_columns_keep_their_comments_and_a_second_registration_replaces_the_first(
    spark: SparkSession, registered: OpenLake
) -> None:
    registered.register(spark, prefix=PREFIX)
    fields = spark.table(f"{PREFIX}gold.delivery_history_now").schema.fields
    comments = [field.metadata["comment"] for field in fields]
    assert comments == [field.metadata[b"comment"].decode() for field in view_schema(TABLES["gold.delivery_history"])]


def test_a_table_with_the_name_of_a_view_is_refused_in_one_line(spark: SparkSession, tmp_path: Path) -> None:
    prefix = "taken_"
    spark.sql(f"CREATE SCHEMA {prefix}gold")
    spark.sql(f"CREATE TABLE {prefix}gold.lag (a INT) USING delta LOCATION '{tmp_path}/lag'")
    with pytest.raises(SharelensError, match=rf"VIEW {prefix}gold.lag: the catalog refuses it: .*drop it") as refused:
        register(spark, open_lake(recorded_lake("dlq")), "gold.lag", prefix)
    assert "\n" not in str(refused.value)
    spark.sql(f"DROP SCHEMA {prefix}gold CASCADE")


def test_a_catalog_that_ends_with_the_session_is_refused(spark: SparkSession) -> None:
    with pytest.raises(SharelensError, match="ends with this command; name one that lasts: --conf"):
        ensure_kept(spark)


@pytest.mark.soak
def test_views_outlive_the_session_in_a_hive_metastore(tmp_path: Path) -> None:
    lake = recorded_lake("dlq")
    conf = [
        "spark.sql.catalogImplementation=hive",
        f"spark.sql.warehouse.dir={tmp_path}/warehouse",
        f"spark.hadoop.javax.jdo.option.ConnectionURL=jdbc:derby:;databaseName={tmp_path}/metastore;create=true",
    ]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(lake), *conf],
        cwd=tmp_path,
        env={**os.environ, "SHARELENS_ENV": "test"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert f"registered 1 tables of {lake} as views at the cut of run 1" in done.stderr
    answer = done.stdout.partition("answer ")[2].split()
    rows = sharelens.open(lake).arrow("gold.delivery_history")
    still_valid = rows.column("valid_to_ms").null_count
    assert answer[:2] == ["delivery_history", "delivery_history_now"]
    assert list(map(int, answer[2:])) == [rows.num_rows, still_valid, 0, still_valid]
