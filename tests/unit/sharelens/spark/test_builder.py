"""A builder of the caller gets what our source and tables need, and keeps what it had; no session is started."""

import os
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import sharelens
from sharelens.spark import builder as builders
from sharelens.spark.java import BUNDLED, Java
from sharelens.spark.session import DELTA_CATALOG, DELTA_EXTENSION

OURS = "/jars/delta.jar"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builders, "delta_jars", lambda settings: (Path(OURS),))
    monkeypatch.setattr(builders, "find_java", lambda: Java(home=Path("/java"), version=17, origin="PATH"))
    for name in ("PYSPARK_PYTHON", "JAVA_HOME"):
        monkeypatch.setenv(name, "")  # restored after the test
        monkeypatch.delenv(name)


def options(**before: str) -> dict[str, str]:
    builder = SparkSession.builder
    for key, value in before.items():
        builder = builder.config(key.replace("_", "."), value)
    return dict(sharelens.configure_spark(builder)._options)


def test_a_bare_builder_gets_delta_utc_and_the_python_of_the_driver() -> None:
    assert options() == {
        "spark.jars": OURS,
        "spark.sql.ansi.enabled": "true",
        "spark.sql.catalog.spark_catalog": DELTA_CATALOG,
        "spark.sql.extensions": DELTA_EXTENSION,
        "spark.sql.session.timeZone": "UTC",
    }
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    assert "JAVA_HOME" not in os.environ


def test_jars_and_extensions_of_the_caller_stay() -> None:
    chosen = options(spark_jars="/mine.jar", spark_sql_extensions="my.Extension", spark_app_name="mine")
    assert chosen["spark.jars"] == f"/mine.jar,{OURS}"
    assert chosen["spark.sql.extensions"] == f"my.Extension,{DELTA_EXTENSION}"
    assert chosen["spark.app.name"] == "mine"


def test_delta_as_a_package_of_the_caller_is_not_added_twice() -> None:
    assert "spark.jars" not in options(spark_jars_packages="io.delta:delta-spark_4.1_2.13:4.4.0")


def test_the_python_of_workers_is_left_alone_on_a_cluster_and_where_it_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    options(spark_master="spark://somewhere:7077")
    assert "PYSPARK_PYTHON" not in os.environ
    monkeypatch.setenv("PYSPARK_PYTHON", "/my/python")
    options()
    assert os.environ["PYSPARK_PYTHON"] == "/my/python"


def test_the_java_of_the_wheel_is_used_where_there_is_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builders, "find_java", lambda: Java(home=Path("/java"), version=21, origin=BUNDLED))
    monkeypatch.setattr(builders, "home_for_spark", lambda java: Path("/launcher"))
    options()
    assert os.environ["JAVA_HOME"] == "/launcher"
