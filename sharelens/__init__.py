"""The command line and the questions about share groups, answered from tables or from a copied log."""

from os import PathLike
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sharelens.opened import OpenLake

__version__ = "0.1.0"


def open(lake: str | PathLike[str]) -> "OpenLake":  # noqa: A001  # sharelens.open(lake) reads as what it does
    """The tables of a lake at its newest published cut, for Arrow, pandas, Polars, DuckDB, Spark and SQL.

    Raises:
        LakeError: no lake, or nothing was published yet.
        LakeVersionError: written by a version with other schemas.
    """
    from sharelens.opened import OpenLake  # deferred: a command line starts without it

    return OpenLake(lake)


def configure_spark(builder: "SparkSession.Builder") -> "SparkSession.Builder":
    """A `SparkSession.builder` that starts a session with the data source `kafka_log` and Delta's tables.

    Raises:
        JavaError, JarsError: what Spark needs is missing; the message says what to do.
    """
    from sharelens.spark.builder import configured  # deferred: a command line starts without it

    return configured(builder)
