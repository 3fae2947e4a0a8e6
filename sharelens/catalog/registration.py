"""Registers the views of a lake in the catalog of a Spark session."""

from typing import TYPE_CHECKING

from sharelens.catalog import spark
from sharelens.catalog.views import views
from sharelens.lake.scan import Cut
from state_model.errors import SharelensError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CATALOG_KIND = "spark.sql.catalogImplementation"


def register(session: "SparkSession", lake: Cut, name: str | None = None, prefix: str = "") -> list[str]:
    """Creates or replaces the views of all tables, or of one; the names of the views, as schema.name.

    Raises:
        UsageError: no such table, or a prefix that is no identifier.
        SharelensError: the catalog refuses a statement, as where the name is that of a table.
    """
    from pyspark.errors import PySparkException

    registered = views(lake, name, prefix)
    for statement in spark.statements(registered, int(str(lake.publication["run_id"]))):
        try:
            session.sql(statement)
        except PySparkException as error:
            reason = " ".join(str(error).strip().splitlines()[:1])
            begin = " ".join(statement.split("(", 1)[0].split())
            raise SharelensError(
                f"{begin}: the catalog refuses it: {reason}; where a table has the name, drop it or give "
                "--schema-prefix PREFIX"
            ) from error
    return [view.qualified for view in registered]


def ensure_kept(session: "SparkSession") -> None:
    """SharelensError where the session's catalog ends with the session, so that a registration would be lost."""
    if session.conf.get(CATALOG_KIND) == "in-memory":
        raise SharelensError(
            "tables --register: the session's catalog is in memory and ends with this command; name one that lasts: "
            f"--conf {CATALOG_KIND}=hive --conf spark.hadoop.hive.metastore.uris=thrift://HOST:9083"
        )
