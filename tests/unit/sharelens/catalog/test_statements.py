"""Scripts for engines: DuckDB and SQLGlot's Trino run and read them here, Spark in tests/spark/sharelens/catalog."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
import sqlglot
from sqlglot import expressions

import sharelens
from sharelens.catalog.statements import script
from sharelens.cli import main
from sharelens.lake.scan import open_lake
from sharelens.lake.tables import TABLES
from sharelens.lake.view_columns import NAMED_TABLES, OLD_NAMES, view_schema
from tests.processes.in_process import recorded_lake

LAKES = ("dlq", "streams")
HISTORIES = [name for name, table in TABLES.items() if {"valid_from_ms", "valid_to_ms"} <= set(table.schema.names)]
NO_EXTENSIONS = "SET autoinstall_known_extensions = false; SET autoload_known_extensions = false"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=LAKES)
def lake(request: pytest.FixtureRequest) -> Path:
    return recorded_lake(request.param)


@pytest.fixture(scope="module")
def registered(lake: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:") as connection:
        connection.execute(NO_EXTENSIONS)
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(script("duckdb", open_lake(lake)))
        yield connection


def sorted_rows(rows: pa.Table, key: tuple[str, ...]) -> list[dict[str, object]]:
    return rows.sort_by([(name, "ascending") for name in key]).to_pylist()


@pytest.mark.one_in(2)
def test_duckdb_reads_every_table_as_python_does(lake: Path, registered: duckdb.DuckDBPyConnection) -> None:
    opened = sharelens.open(lake)
    filled = 0
    for name, table in TABLES.items():
        expected, actual = opened.arrow(name), registered.sql(f"FROM {name}").to_arrow_table()
        assert actual.schema.names == view_schema(table).names
        actual = actual.select(expected.schema.names)
        assert sorted_rows(actual, table.key) == sorted_rows(expected, table.key), name
        filled += bool(expected.num_rows)
    assert filled > 10


def test_views_have_the_names_of_topics_and_the_older_names_of_columns(
    lake: Path, registered: duckdb.DuckDBPyConnection
) -> None:
    names = sharelens.open(lake).arrow("silver.name")
    name_of = dict(zip(names.column("topic_id").to_pylist(), names.column("topic").to_pylist(), strict=True))
    checked = 0
    for table in NAMED_TABLES:
        for topic_id, topic in registered.sql(f"SELECT DISTINCT topic_id, topic FROM {table}").fetchall():
            assert topic == name_of.get(topic_id), table
            checked += topic is not None
    for table, new_names in OLD_NAMES.items():
        for old, new in new_names.items():
            query = f'SELECT 1 FROM {table} WHERE "{old}" IS DISTINCT FROM {new}'
            assert registered.sql(query).fetchall() == []
    assert checked > 3


def test_views_say_what_a_row_is(registered: duckdb.DuckDBPyConnection) -> None:
    views = registered.sql("SELECT comment FROM duckdb_views() WHERE schema_name = 'gold' AND view_name = 'stall'")
    ((of_view,),) = views.fetchall()
    assert of_view.startswith(TABLES["gold.stall"].comment)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", HISTORIES)
def test_now_and_as_of_are_the_rows_that_are_valid(
    lake: Path, registered: duckdb.DuckDBPyConnection, name: str
) -> None:
    rows = sharelens.open(lake).arrow(name)
    of_now = registered.sql(f"FROM {name}_now").to_arrow_table()
    assert of_now.num_rows == rows.column("valid_to_ms").null_count
    spans = list(zip(rows.column("valid_from_ms").to_pylist(), rows.column("valid_to_ms").to_pylist(), strict=True))
    moments = sorted({moment for span in spans for moment in span if moment is not None})
    for moment in {*moments[:: max(1, len(moments) // 5)], *moments[-1:]}:
        for at in (moment - 1, moment):
            valid_rows = registered.sql(f"FROM {name}_as_of(make_timestamptz({at} * 1000))").to_arrow_table()
            valid = [span for span in spans if span[0] <= at and (span[1] is None or span[1] > at)]
            assert valid_rows.num_rows == len(valid)


def test_the_publications_end_with_the_cut(lake: Path, registered: duckdb.DuckDBPyConnection) -> None:
    newest = open_lake(lake).publication["run_id"]
    assert registered.sql("SELECT max(run_id) FROM gold.publication").fetchall() == [(newest,)]


def test_schemas_take_a_prefix(lake: Path) -> None:
    with duckdb.connect(":memory:") as connection:
        connection.execute(script("duckdb", open_lake(lake), "gold.group_history", "lake_"))
        views = connection.sql("SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal").fetchall()
    assert sorted(views) == [("lake_gold", "group_history"), ("lake_gold", "group_history_now")]


def test_the_script_of_trino_registers_each_table_and_makes_its_views(lake: Path) -> None:
    statements = sqlglot.parse(script("trino", open_lake(lake)), read="trino")
    names = [
        statement.this.sql() for statement in statements if isinstance(statement, expressions.Create) and statement.this
    ]
    views = [*TABLES, *(f"{name}_now" for name in HISTORIES)]
    assert sorted(names) == sorted(["bronze", "silver", "gold", *views])
    calls = [line for line in script("trino", open_lake(lake)).splitlines() if line.startswith("CALL ")]
    assert len(calls) == len([name for name in TABLES if (lake / name.replace(".", "/")).is_dir()])
    assert f"table_location => 'file://{lake.resolve()}/gold/stall'" in "\n".join(calls)


def test_the_script_of_spark_has_a_view_of_each_table_at_its_version(lake: Path) -> None:
    cut = open_lake(lake)
    text = script("spark", cut)
    for name, version in cut.versions.items():
        root = lake.resolve() / name.replace(".", "/")
        assert f"FROM delta.`{root}` VERSION AS OF {version}" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--ddl", "trino"], "give --lake DIR"),
        (["--register"], "give --lake DIR"),
        (["gold.lag", "--ddl", "oracle"], "no such engine; engines: spark, trino, duckdb"),
        (["--ddl", "oracle"], "no such engine; engines: spark, trino, duckdb"),
        (["--ddl", "gold.lags"], "no table gold.lags; tables: bronze.log_record"),
        (["--lake", "here", "--ddl", "duckdb", "--schema-prefix", "a b"], "not a directory"),
        (["--dbt-sources", "--register"], "--register alone"),
        (["--ddl", "--schema-prefix", "a_"], "--schema-prefix goes with --register or --ddl spark|trino|duckdb"),
        (["--ddl", "duckdb", "--lake", "here", "--conf", "a=b"], "options of Spark go with --register"),
        (["--register", "--lake", "here", "--output", "json"], "exclude the options of output"),
    ],
)
def test_a_command_line_that_means_nothing_is_refused_in_one_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tables", *words]) in (1, 2)
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_a_table_behind_the_option_is_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for words in (["gold.lag", "--ddl"], ["--ddl", "gold.lag"]):
        assert main(["tables", *words]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert "CREATE TABLE IF NOT EXISTS gold.lag (" in printed[0]


def test_a_prefix_that_is_no_identifier_is_refused(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tables", "--lake", str(lake), "--ddl", "duckdb", "--schema-prefix", "a;b"]) == 2
    assert "--schema-prefix: 'a;b' is not made of letters, digits and _" in capsys.readouterr().err


def test_the_command_line_writes_what_duckdb_runs_from_a_file(
    lake: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["tables", "gold.lag", "--lake", str(lake), "--ddl", "duckdb"]) == 0
    with duckdb.connect(tmp_path / "lake.duckdb") as connection:
        connection.execute(capfd.readouterr().out)
    with duckdb.connect(tmp_path / "lake.duckdb", read_only=True) as connection:
        counted = connection.sql("SELECT count(*) FROM gold.lag").fetchall()
    assert counted == [(sharelens.open(lake).arrow("gold.lag").num_rows,)]
