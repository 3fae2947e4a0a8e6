"""The documented tables as DDL and as dbt sources; Spark runs the DDL in tests/spark/test_table_definitions.py."""

from pathlib import Path

import pytest
import yaml

from sharelens.cli import main
from sharelens.lake.tables import TABLES
from tests.processes.in_process import recorded_lake

SOURCE_FIELDS = {"name", "schema", "tables"}
TABLE_FIELDS = {"name", "description", "columns"}
COLUMN_FIELDS = {"name", "description", "data_type", "data_tests"}


@pytest.mark.slow
def test_dbt_sources_have_every_documented_table_and_column(capsys: pytest.CaptureFixture[str]) -> None:
    """The fields are those of dbt's sources file: version, sources, tables, columns, data_tests."""
    assert main(["tables", "--dbt-sources"]) == 0
    document = yaml.safe_load(capsys.readouterr().out)
    assert (set(document), document["version"]) == ({"version", "sources"}, 2)
    listed = {}
    for source in document["sources"]:
        assert set(source) == SOURCE_FIELDS
        assert source["name"] == f"sharelens_{source['schema']}"
        for table in source["tables"]:
            assert set(table) == TABLE_FIELDS
            listed[f"{source['schema']}.{table['name']}"] = table
    assert list(listed) == list(TABLES)
    for name, table in TABLES.items():
        assert listed[name]["description"] == table.comment
        columns = listed[name]["columns"]
        assert [column["name"] for column in columns] == table.schema.names
        for column, field in zip(columns, table.schema, strict=True):
            assert set(column) <= COLUMN_FIELDS
            assert column["description"] == field.metadata[b"comment"].decode()
            assert column.get("data_tests") == (None if field.nullable else ["not_null"])


@pytest.mark.slow
def test_ddl_of_one_table_names_its_place_in_a_lake(capsys: pytest.CaptureFixture[str]) -> None:
    lake = recorded_lake("dlq")
    assert main(["tables", "gold.stall", "--ddl", "--lake", str(lake)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "CREATE SCHEMA IF NOT EXISTS gold;"
    assert "  `group_id` string NOT NULL COMMENT 'share group'," in lines
    assert r"COMMENT 'state_log, log_append_time or create_time (a producer\'s clock)'," in "\n".join(lines)
    assert lines[-4:] == [
        "USING delta",
        "PARTITIONED BY (is_final)",
        f"COMMENT '{TABLES['gold.stall'].comment}'",
        f"LOCATION '{Path(lake).resolve() / 'gold' / 'stall'}';",
    ]


def test_ddl_without_a_lake_has_all_tables_and_no_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tables", "--ddl"]) == 0
    text = capsys.readouterr().out
    assert [line.split()[5] for line in text.splitlines() if line.startswith("CREATE TABLE")] == list(TABLES)
    assert "LOCATION" not in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--ddl", "--dbt-sources"], "give --ddl or --dbt-sources, not both"),
        (["--ddl", "--output", "json"], "exclude the options of output"),
        (["--dbt-sources", "--lake", "here"], "leave --lake out"),
        (["gold.lags", "--ddl"], "no table gold.lags; tables: bronze.log_record"),
    ],
)
def test_options_that_exclude_each_other_are_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tables", *words]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
