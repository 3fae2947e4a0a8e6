"""What views over the tables of a lake add to them: names of topics, and names that columns had in the version before.

A view shows what a table can't keep: the name of a topic may become known after a row was written. Every engine gets
its views from here (`sharelens.catalog`, `sharelens sql`).
"""

from collections.abc import Callable, Mapping

import pyarrow as pa

from sharelens.lake.tables import TABLES, TOPIC, Table

NAMES = "silver.name"
OLD_NAMES: Mapping[str, Mapping[str, str]] = {
    "bronze.quarantine": {"offset": "first_offset"},
    "gold.poison_record": {"offset": "first_offset"},
    "gold.dlq_reconciliation": {"offset": "first_offset"},
    "gold.redelivered_record": {"life": "life_log_offset", "earlier_life": "earlier_life_log_offset"},
}
"""By table the names of its columns by those that schema version 8 had; views have both until version 10."""


def has_named_topics(table: Table) -> bool:
    """Whether the table has the ids of topics, and no names of them."""
    return "topic_id" in table.schema.names and "topic" not in table.schema.names


def view_schema(table: Table) -> pa.Schema:
    """The columns of the table's views: its own, `topic` behind a topic_id without one, and old names at the end."""
    fields: list[pa.Field] = []
    for field in table.schema:
        fields.append(field)
        if field.name == "topic_id" and has_named_topics(table):
            fields.append(TOPIC)
    renamed = OLD_NAMES.get(table.name, {}).items()
    return pa.schema([*fields, *(_old_field(table.schema.field(name), old) for old, name in renamed)])


def _old_field(field: pa.Field, name: str) -> pa.Field:
    return field.with_name(name).with_metadata({"comment": f"older name of {field.name}"})


def quoted(name: str) -> str:
    """An identifier of standard SQL."""
    return '"' + name.replace('"', '""') + '"'


def view_query(table: Table, rows: str, name_rows: str, identifier: Callable[[str], str] = quoted) -> str:
    """A query in the SQL of every engine, with the columns of `view_schema` in their order.

    Args:
        table: the table.
        rows: its rows: a relation, or a query in parentheses.
        name_rows: those of silver.name; of tables without `has_named_topics` they are not read.
        identifier: a name as the engine quotes it.
    """
    new_names = OLD_NAMES.get(table.name, {})
    columns = []
    for field in view_schema(table):
        name = new_names.get(field.name, field.name)
        relation = "named" if name == "topic" and has_named_topics(table) else "stored"
        columns.append(
            f"{relation}.{identifier(name)}" + ("" if name == field.name else f" AS {identifier(field.name)}")
        )
    query = f"SELECT {', '.join(columns)}\nFROM {rows} AS stored"
    if not has_named_topics(table):
        return query
    return (
        f"{query}\nLEFT JOIN (\nSELECT cluster_id, topic_id, max_by(topic, run_id) AS topic\n"
        f"FROM {name_rows} AS name_row\nGROUP BY cluster_id, topic_id\n) AS named\n"
        "ON named.cluster_id = stored.cluster_id AND named.topic_id = stored.topic_id"
    )


def no_rows_query(
    schema: pa.Schema, type_of: Callable[[pa.DataType], str], identifier: Callable[[str], str] = quoted
) -> str:
    """A query in the SQL of every engine that has the columns of a schema and no row."""
    columns = (f"CAST(NULL AS {type_of(field.type)}) AS {identifier(field.name)}" for field in schema)
    return f"SELECT {', '.join(columns)} WHERE false"


NAMED_TABLES = tuple(name for name, table in TABLES.items() if has_named_topics(table))
"""The tables whose views need the rows of silver.name."""
