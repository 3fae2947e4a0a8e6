"""What tests with Spark share beside the session."""

import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOPBACK = "127.0.0.1"


@pytest.fixture(scope="session")
def remote(spark: "SparkSession") -> Iterator[str]:
    """The address of a Spark Connect server in the JVM of the test session, on a free port of this machine."""
    context = spark.sparkContext
    service = context._jvm.org.apache.spark.sql.connect.service.SparkConnectService
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port = probe.getsockname()[1]
    settings = context._jsc.sc().conf()
    settings.set("spark.connect.grpc.binding.address", LOOPBACK)
    settings.set("spark.connect.grpc.binding.port", str(port))
    service.start(context._jsc.sc())
    yield f"sc://{LOOPBACK}:{port}"
    none = context._jvm.scala.Option.empty()
    service.stop(none, none)
