"""Ad hoc SQL by Spark: the same tables and the same cut as with DuckDB, in Spark's dialect."""

import logging
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from sharelens.lake.scan import Cut
from sharelens.lake.tables import TABLES
from sharelens.lake.view_columns import NAMED_TABLES, NAMES, view_query
from sharelens.output import Stream
from sharelens.questions.queries.sql import SHOW_TABLES, table_names, unknown_table, with_distinct_names
from state_model.errors import SharelensError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARAMETERS = "sharelens_parameter"
UNKNOWN_RELATION = "TABLE_OR_VIEW_NOT_FOUND"
FILES_AS_TABLES = "spark.sql.runSQLOnFiles"
"""Off while a question runs, so that it reads no file by its path."""
QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
"""String literals, which are left alone."""
NAMED = re.compile(rf"({QUOTED})|\b(bronze|silver|gold)\s*\.\s*(\w+)\b", re.IGNORECASE)


def spark_sql(
    spark: "SparkSession",
    lake: Cut,
    query: str,
    parameters: Mapping[str, str | int | None] | None = None,
    *,
    row_limit: int | None = None,
) -> Stream:
    """The result of one query; the tables it names become temporary views at the published versions.

    `row_limit`: rows that will be read at most, for Spark to stop behind one more. `parameters` become the one row of
    the view `sharelens_parameter`: bound as data, because Delta's parser knows no parameter markers.

    Raises:
        UsageError: not one query (a statement that is no subquery is refused by Spark's own parser).
        SharelensError: the query failed while it ran.
    """
    from pyspark.errors import AnalysisException, ParseException, PySparkException

    if SHOW_TABLES.fullmatch(query):
        return table_names()
    text = with_view_names(query)
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # its log line repeats our error message
    lake.lake.ensure_local()
    _offer_tables(spark, lake, named_tables(query))
    if parameters:
        _offer_parameters(spark, parameters)
    before = spark.conf.get(FILES_AS_TABLES)
    spark.conf.set(FILES_AS_TABLES, "false")
    try:
        wrapped = f"SELECT * FROM (\n{text}\n)"  # noqa: S608  # the user's own query, as a subquery only
        rows = spark.sql(wrapped)
        table = (rows if row_limit is None else rows.limit(row_limit + 1)).toArrow()
        return with_distinct_names(table.schema, iter(table.to_batches()))
    except (ParseException, AnalysisException) as error:
        if error.getCondition() == UNKNOWN_RELATION:
            name = (error.getMessageParameters() or {}).get("relationName", "")
            raise UsageError(f"sql: {unknown_table(name.replace('`', ''))}") from error
        raise UsageError(f"sql: {_first_line(error)}") from error
    except PySparkException as error:
        raise SharelensError(f"sql: {_first_line(error)}") from error
    finally:
        spark.conf.set(FILES_AS_TABLES, before or "true")  # the session may be somebody else's


def _offer_tables(spark: "SparkSession", lake: Cut, names: set[str]) -> None:
    """Creates a temporary view of each table."""
    for name in sorted({*names, *([NAMES] if names & {*NAMED_TABLES} else [])}):
        reader = spark.read.format("delta")
        if name in lake.versions:
            reader = reader.option("versionAsOf", lake.versions[name])
        reader.load(lake.lake.table_storage(name).root).createOrReplaceTempView(_stored_name(name))
    for name in sorted(names):
        rows = view_query(TABLES[name], _stored_name(name), _stored_name(NAMES), str)
        spark.sql(rows).createOrReplaceTempView(view_name(name))


def _stored_name(table: str) -> str:
    """The temporary view of a table's own columns."""
    return f"sharelens_stored_{view_name(table)}"


def _offer_parameters(spark: "SparkSession", parameters: Mapping[str, str | int | None]) -> None:
    from pyspark.sql import functions

    columns = [
        functions.lit(value).cast("bigint" if isinstance(value, int) else "string").alias(name)
        for name, value in parameters.items()
    ]
    spark.range(1).select(*columns).createOrReplaceTempView(PARAMETERS)


def view_name(table: str) -> str:
    """Temporary views have no layer of their own."""
    return table.replace(".", "_")


def named_tables(query: str) -> set[str]:
    """The tables that a query names, as layer.table outside of string literals."""
    names = (f"{match[2]}.{match[3]}".lower() for match in NAMED.finditer(query) if match[2])
    return {name for name in names if name in TABLES}


def with_view_names(query: str) -> str:
    """The query with views in the place of the tables of the lake."""

    def replaced(match: re.Match[str]) -> str:
        name = f"{match[2]}.{match[3]}".lower() if match[2] else ""
        return view_name(name) if name in TABLES else match[0]

    return NAMED.sub(replaced, query.strip().removesuffix(";"))


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
