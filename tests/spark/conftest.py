"""What tests with Spark share beside the session."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def remote(spark: "SparkSession") -> Iterator[str]:
    """The address of a Spark Connect server in the JVM of the test session, on a free port of this machine."""
    context = spark.sparkContext
    service = context._jvm.org.apache.spark.sql.connect.service.SparkConnectService
    service.start(context._jsc.sc())
    yield f"sc://127.0.0.1:{service.localPort()}"
    none = context._jvm.scala.Option.empty()
    service.stop(none, none)
