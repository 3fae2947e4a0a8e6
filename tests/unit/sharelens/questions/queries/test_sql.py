"""SQL over the published cut: what is offered and what is refused."""

import tempfile
from pathlib import Path

import pytest

from sharelens.lake.scan import Cut, open_lake
from sharelens.lake.tables import TABLES
from sharelens.questions.queries import sql as sql_module
from sharelens.questions.queries.sql import BATCH_ROWS, Limits, sql
from sharelens.questions.queries.tables import table_columns, tables
from state_model.errors import SharelensError, UsageError
from tests.logs.state_logs import snapshot, update, write_log_directory
from tests.processes.in_process import make_lake
from tests.sql_answers import answer_of

pytestmark = pytest.mark.slow

HOSTILE = "x'; DROP TABLE gold.share_partition_state; --\x1b[2J"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Cut:
    folder = tmp_path_factory.mktemp("sql")
    logs = write_log_directory(
        folder / "logs", [snapshot(), snapshot(HOSTILE), update(start=2, batches=[(2, 5, 0, 1)])]
    )
    make_lake(folder / "lake", logs)
    return open_lake(folder / "lake")


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT count(*) AS n FROM silver.share_record", [{"n": 3}]),
        ("FROM gold.share_partition_state SELECT group_id g ORDER BY 1", [{"g": "g"}, {"g": HOSTILE}]),
        ("WITH a AS (SELECT 1 AS n) SELECT * FROM a", [{"n": 1}]),
        ("SELECT count(*) AS n FROM GOLD.\"delivery_history\"", [{"n": 1}]),
        ("SELECT count(*) AS n FROM gold.publication", [{"n": 1}]),
        ("SELECT count(*) AS n FROM bronze.quarantine", [{"n": 0}]),
        ("SELECT topic FROM gold.delivery_history", [{"topic": "orders"}]),
        ("SELECT q.offset, q.first_offset FROM bronze.quarantine AS q", []),
        ("SELECT current_setting('TimeZone') AS zone", [{"zone": "UTC"}]),
    ],
)  # fmt: skip
def test_a_select_sees_the_tables_of_the_cut(lake: Cut, query: str, rows: list[dict[str, object]]) -> None:
    assert answer_of(lake, query).to_pylist() == rows


@pytest.mark.parametrize("query", ["SHOW TABLES", "show all tables;"])
def test_show_tables_lists_the_documented_names(lake: Cut, query: str) -> None:
    assert answer_of(lake, query).select(["name"]).to_pylist() == [{"name": name} for name in TABLES]


@pytest.mark.parametrize("query", ["DESCRIBE gold.lag", "SHOW gold.lag", "SUMMARIZE gold.lag"])
def test_describe_and_summarize_name_the_columns(lake: Cut, query: str) -> None:
    assert answer_of(lake, query).column("column_name").to_pylist() == TABLES["gold.lag"].schema.names


@pytest.mark.parametrize("row_limit", [None, 5])
def test_columns_of_the_same_name_get_numbers(lake: Cut, row_limit: int | None) -> None:
    query = "SELECT 1 AS a, 2 AS a, 3 AS A, 4 AS a_1, 5 AS b"
    with sql(lake, query, row_limit=row_limit) as answer:
        assert answer.read_all().table.to_pylist() == [{"a": 1, "a_1": 2, "A_2": 3, "a_1_1": 4, "b": 5}]


def test_tables_of_one_layer_are_listed(lake: Cut) -> None:
    names = answer_of(lake, "SHOW TABLES FROM gold").column("name").to_pylist()
    assert [f"gold.{name}" for name in names] == sorted(name for name in TABLES if name.startswith("gold."))


@pytest.mark.parametrize(
    "query",
    [
        "",
        "SELEC 1",
        "SELECT 1; SELECT 2",
        "DROP VIEW gold.share_partition_state",
        "CREATE TABLE x AS SELECT 1",
        "INSERT INTO silver.name VALUES (1)",
        "COPY (SELECT 1) TO 'out.csv'",
        "ATTACH 'other.db'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "PRAGMA database_list",
        "SELECT * FROM read_csv('{file}')",
        "SELECT * FROM '{file}'",
        "SELECT * FROM read_text('{file}')",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM gold.nothing",
        "SELECT * FROM query_table(['x'])",
        "SELECT nothing FROM silver.name",
        "SELECT * FROM lake",
    ],
)
def test_anything_but_one_select_over_tables_is_refused(lake: Cut, tmp_path: Path, query: str) -> None:
    file = tmp_path / "secret.csv"
    file.write_text("a\n1\n")
    before = sorted(Path().iterdir())
    with pytest.raises(UsageError, match=r"^sql: [^\n]+$"):
        answer_of(lake, query.replace("{file}", str(file)))
    assert sorted(Path().iterdir()) == before


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("gold.zebra", "no table zebra; "),
        ("lag", "no table lag; did you mean gold.lag? "),
        ("silver.lag", "no table lag; did you mean gold.lag? "),
        ("warehouse.lag", "no table warehouse.lag; did you mean gold.lag? "),
        ("gold.Stalls", "no table Stalls; did you mean gold.stall? "),
        ('"a b"', 'no table "a b"; '),
    ],
)
def test_an_unknown_table_names_ours_that_are_like_it(lake: Cut, table: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        answer_of(lake, f"SELECT * FROM {table}")
    assert str(refused.value) == f"sql: {message}`sharelens tables --lake DIR` lists the tables"


def test_a_query_that_fails_on_the_way_is_a_failure(lake: Cut) -> None:
    with pytest.raises(SharelensError, match="^sql: .*Conversion"):
        answer_of(lake, "SELECT CAST(group_id AS INT) FROM gold.share_partition_state")


def test_tables_lists_every_table_with_rows_and_bytes(lake: Cut) -> None:
    rows = {row["table"]: row for row in tables(lake).table.to_pylist()}
    assert list(rows) == list(TABLES)
    assert rows["silver.share_record"]["rows"] == 3
    assert rows["gold.publication"]["rows"] == 1
    assert all(row["bytes"] > 0 for row in rows.values() if row["rows"])


@pytest.mark.parametrize("name", sorted(TABLES))
def test_every_column_has_its_comment(name: str) -> None:
    rows = table_columns(name).table.to_pylist()
    assert [row["column"] for row in rows] == TABLES[name].schema.names
    assert [row["column"] for row in rows if not row["comment"]] == []
    assert [row["column"] for row in rows if row["in_key"]] != []


ENDLESS = "SELECT range AS n, repeat('x', 100) AS text FROM range(100000000000)"


def test_a_limit_ends_a_query_without_end(lake: Cut) -> None:
    with sql(lake, ENDLESS, row_limit=10) as answer:
        assert answer.read_all().table.num_rows == 11


def test_without_a_limit_rows_come_as_they_are_read(lake: Cut) -> None:
    with sql(lake, ENDLESS) as answer:
        first = [next(answer.batches).num_rows for _ in range(3)]
    assert 0 < max(first) <= BATCH_ROWS


def test_a_limit_keeps_the_order_of_the_query(lake: Cut) -> None:
    with sql(lake, "SELECT range AS n FROM range(1000) ORDER BY n DESC", row_limit=2) as answer:
        assert answer.read_all().table.column("n").to_pylist() == [999, 998, 997]


BIG_SORT = "SELECT hash(range) AS h, range AS n FROM range(4000000) ORDER BY h"


def test_what_memory_does_not_hold_goes_to_a_private_folder_that_is_gone_afterwards(
    lake: Cut, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with sql(lake, BIG_SORT, limits=Limits(memory_bytes=64 << 20)) as answer:
        next(answer.batches)
        (folder,) = tmp_path.iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
        assert sum(file.stat().st_size for file in folder.rglob("*")) > 1 << 20
    assert list(tmp_path.iterdir()) == []


def test_a_query_that_needs_more_than_its_disk_is_told_what_to_do(lake: Cut) -> None:
    limits = Limits(memory_bytes=64 << 20, spill_bytes=1 << 20)
    with (
        pytest.raises(SharelensError, match=r"^sql: [^\n]*--memory and --spill"),
        sql(lake, BIG_SORT, limits=limits) as answer,
    ):
        answer.read_all()


def test_a_user_cannot_raise_the_limits(lake: Cut) -> None:
    with sql(lake, "SELECT current_setting('memory_limit') AS m", limits=Limits(memory_bytes=64 << 20)) as answer:
        assert answer.read_all().table.to_pylist() == [{"m": "64.0 MiB"}]
    with pytest.raises(UsageError):
        answer_of(lake, "SET memory_limit = '64GB'")


COUNTED = "SELECT count(*) FROM range(100000000000) a(n), range(1000) b(m) WHERE n % 7 = m"


def test_a_query_that_computes_for_too_long_is_ended(lake: Cut) -> None:
    with (
        pytest.raises(SharelensError, match=r"^sql: the query took longer than 0\.2 s; narrow it, or raise --timeout$"),
        sql(lake, COUNTED, limits=Limits(time_ms=200)) as answer,
    ):
        answer.read_all()


def test_what_a_reader_does_between_two_batches_is_no_time_of_the_query(
    lake: Cut, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(0, 1_000_000, 1000))  # each look at the clock is 1,000 s after the one before
    with sql(lake, ENDLESS, limits=Limits(time_ms=3_500_000)) as answer:
        next(answer.batches)
        monkeypatch.setattr(sql_module.time, "monotonic", lambda: next(clock))
        assert [next(answer.batches).num_rows > 0 for _ in range(3)] == [True] * 3


@pytest.mark.parametrize(
    "value",
    ["DATE '10000-01-01'", "DATE '0001-01-01 (BC)'", "'infinity'::TIMESTAMP", "TIMESTAMPTZ '12000-01-01 00:00:00Z'",
     "[DATE '12000-01-01']", "{'a': {'b': TIMESTAMP_S '12000-01-01'}}", "MAP {DATE '12000-01-01': 1}"],
)  # fmt: skip
def test_a_date_that_no_output_writes_is_refused_by_its_column(lake: Cut, value: str) -> None:
    with pytest.raises(SharelensError, match="^sql: column odd has a date outside the years 1 to 9999; CAST it AS V"):
        answer_of(lake, f"SELECT 1 AS n, {value} AS odd")


def test_the_first_and_the_last_date_and_none_are_answers(lake: Cut) -> None:
    values = ["DATE '0001-01-01'", "DATE '9999-12-31'", "TIMESTAMP '9999-12-31 23:59:59.999999'", "NULL::DATE"]
    (row,) = answer_of(lake, f"SELECT {', '.join(f'{value} AS c{n}' for n, value in enumerate(values))}").to_pylist()
    assert [str(value) for value in row.values()] == ["0001-01-01", "9999-12-31", "9999-12-31 23:59:59.999999", "None"]
