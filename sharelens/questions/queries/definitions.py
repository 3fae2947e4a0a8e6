"""The documented tables in the languages of other tools: Spark's CREATE TABLE, and a dbt sources file."""

import pyarrow as pa

from sharelens.lake.lake import Lake
from sharelens.lake.tables import TABLES, TIME, Table
from sharelens.output import name_cell, yaml_text
from state_model.columnar.schemas import comment
from state_model.errors import UsageError

SPARK_TYPES = {
    pa.string(): "string",
    pa.binary(): "binary",
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    TIME: "timestamp",
    pa.float64(): "double",
}


def table_named(name: str) -> Table:
    """The definition of a table.

    Raises:
        UsageError: no such table; the message lists those there are.
    """
    if name not in TABLES:
        raise UsageError(f"no table {name_cell(name)}; tables: {', '.join(TABLES)}")
    return TABLES[name]


def create_tables(name: str | None = None, lake: Lake | None = None) -> str:
    """CREATE TABLE statements in Spark's SQL, of all tables or one; with a lake, for its tables where they are."""
    tables = list(TABLES.values()) if name is None else [table_named(name)]
    layers = dict.fromkeys(table.name.partition(".")[0] for table in tables)
    schemas = [f"CREATE SCHEMA IF NOT EXISTS {layer};\n" for layer in layers]
    return "\n".join([*schemas, *(_create_table(table, lake) for table in tables)])


def _create_table(table: Table, lake: Lake | None) -> str:
    columns = ",\n".join(f"  {_column(field)}" for field in table.schema)
    lines = [f"CREATE TABLE IF NOT EXISTS {table.name} (\n{columns}\n)", "USING delta"]
    if table.partition_by:
        lines.append(f"PARTITIONED BY ({', '.join(table.partition_by)})")
    lines.append(f"COMMENT {text_literal(table.comment)}")
    if lake is not None and lake.exists(table.name):
        lines.append(f"LOCATION {text_literal(lake.table_storage(table.name).root)}")
    return "\n".join(lines) + ";\n"


def _column(field: pa.Field) -> str:
    null = "" if field.nullable else " NOT NULL"
    return f"`{field.name}` {spark_type(field.type)}{null} COMMENT {text_literal(comment(field))}"


def spark_type(kind: pa.DataType) -> str:
    """A column type as Spark SQL writes it."""
    if pa.types.is_list(kind):
        return f"array<{spark_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{field.name}: {spark_type(field.type)}' for field in kind)}>"
    return SPARK_TYPES[kind]


def text_literal(value: str) -> str:
    """A string literal of Spark's SQL."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def dbt_sources(name: str | None = None) -> str:
    """A dbt properties file: each layer is a source of the schema of its name, each table has its columns and tests."""
    sources: dict[str, list[dict[str, object]]] = {}
    for table in TABLES.values() if name is None else [table_named(name)]:
        layer, _, short = table.name.partition(".")
        columns = [_dbt_column(field) for field in table.schema]
        sources.setdefault(layer, []).append({"name": short, "description": table.comment, "columns": columns})
    return yaml_text(
        {
            "version": 2,
            "sources": [
                {"name": f"sharelens_{layer}", "schema": layer, "tables": tables} for layer, tables in sources.items()
            ],
        }
    )


def _dbt_column(field: pa.Field) -> dict[str, object]:
    column: dict[str, object] = {
        "name": field.name,
        "description": comment(field),
        "data_type": spark_type(field.type),
    }
    return column if field.nullable else {**column, "data_tests": ["not_null"]}
