"""The named queries: each answers over a small lake, and what is typed is bound, never pasted."""

from pathlib import Path

import pytest

from sharelens.cli import main
from sharelens.lake.scan import Cut, open_lake
from sharelens.questions.queries.named import listed, named_query, names, parse
from state_model.errors import UsageError
from tests.logs.state_logs import START_MS, snapshot, update, write_log_directory
from tests.logs.user_topics import write_orders
from tests.once import made_once
from tests.processes.in_process import make_lake
from tests.sql_answers import answer_of

pytestmark = pytest.mark.slow

HOSTILE = "x' OR '1' = '1"
ACKNOWLEDGED, ARCHIVED = 2, 4


@pytest.fixture(scope="module")
def lake() -> Cut:
    return open_lake(made_once("named-queries", make) / "lake")


def make(folder: Path) -> None:
    story = [
        snapshot(start=0),
        update(batches=[(0, 2, ACKNOWLEDGED, 1), (3, 3, 0, 2)], delivery_complete_count=3, at_ms=START_MS + 1_000),
        update(batches=[(4, 5, ARCHIVED, 5)], delivery_complete_count=5, at_ms=START_MS + 90_000),
        snapshot(start=1, epoch=1, state_epoch=2, at_ms=START_MS + 100_000),
        snapshot(HOSTILE, 1, at_ms=START_MS + 100_000),
    ]
    logs = write_log_directory(folder / "logs", story)
    write_orders(logs)
    make_lake(folder / "lake", logs)


def rows(lake: Cut, name: str, *arguments: str) -> list[dict[str, object]]:
    query = named_query(name)
    return answer_of(lake, query.duckdb_sql, query.values(arguments)).to_pylist()


@pytest.mark.parametrize("name", names())
def test_a_query_answers_and_says_what_it_is(lake: Cut, name: str):
    assert isinstance(rows(lake, name), list)
    query = named_query(name)
    assert query.title.endswith(".")
    assert query.about
    assert query.columns


ANSWERS = {
    "poison_by_topic": {"group_id": "g", "records": 2, "most_deliveries": 5},
    "often_delivered": None,
    "resets": {"group_id": "g", "state_epoch_before": 1, "state_epoch": 2, "start_offset": 1},
    "throughput_by_hour": {"group_id": "g", "finished": 5, "writes": 2},
    "lag_now": {"group_id": "g", "partition": 0, "lag": 39},
    "lag_over_time": {"group_id": "g", "start_offset": 0, "lag_inferred": 37, "unknown_reason": None},
    "state_cost": {"group_id": "g", "records": 4, "snapshots": 2, "updates": 2},
    "freshness": {"state_partition": 0, "end_log_offset_exclusive": 5, "log_time_ms": START_MS + 100_000},
}


@pytest.mark.parametrize("name", ANSWERS)
def test_the_first_row_of_a_small_case(lake: Cut, name: str):
    answer, expected = rows(lake, name), ANSWERS[name]
    if expected is None:
        assert answer == []  # the reset took it
    else:
        assert {field: answer[0][field] for field in expected} == expected


def test_deliveries_count_each_offset_once_a_life_with_its_last_state(lake: Cut):
    counts = [(row["delivery_state_name"], row["delivery_count"], row["records"])
            for row in rows(lake, "deliveries_histogram", "group=g")]  # fmt: skip
    assert counts == [("ACKNOWLEDGED", 1, 3), ("ARCHIVED", 5, 2)]


def test_a_value_is_bound_and_never_becomes_sql(lake: Cut):
    assert [row["group_id"] for row in rows(lake, "lag_now", f"group={HOSTILE}")] == [HOSTILE]
    assert rows(lake, "lag_now", "group=' OR 1=1 --") == []
    assert rows(lake, "lag_now", "group=") == []


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("lag_now", ["group"], "'group' is not NAME=VALUE"),
        ("lag_now", ["grp=x"], "lag_now has no parameter 'grp'; parameters: group, topic"),
        ("gaps", ["group=x"], "gaps has no parameter 'group'; parameters: none"),
        ("lag_now", ["group=a", "group=b"], "group is given twice"),
        ("resets", ["days=soon"], "days is an integer, and 'soon' is none"),
        ("resets", ["days=99999999999999999999"], "days is an integer"),
    ],
)
def test_parameters_that_can_not_be_meant(name: str, arguments: list[str], message: str):
    with pytest.raises(UsageError, match=message):
        named_query(name).values(arguments)


def test_an_unknown_name_is_told_with_those_that_are_there():
    with pytest.raises(UsageError, match=r"no query '\.\./settings'; queries: dead_letters_by_cause, "):
        named_query("../settings")


def test_the_list_has_every_query_with_its_sql():
    table = listed().table
    assert table.column("name").to_pylist() == names()
    assert len(names()) >= 12
    assert all("SELECT" in text for text in table.column("sql").to_pylist())


@pytest.mark.parametrize(
    "text",
    [
        "-- Title.\n-- param: group words = null; x\nSELECT :group",
        "-- Title.\nSELECT :group",
        "-- T.\n-- param: a text",
    ],
)
def test_a_file_whose_head_does_not_fit_is_refused(text: str):
    with pytest.raises(ValueError, match=r"parameter"):
        parse("x", text + "\nSELECT 1")


BAD_LINES = {
    "no query": (["--lake", "L"], "give either the query or --file FILE, or --query NAME"),
    "two queries": (["--lake", "L", "SELECT 1", "--query", "gaps"], "give either the query"),
    "a parameter for a text": (["--lake", "L", "SELECT 1", "--param", "a=b"], "--param goes with --query"),
    "a list and more": (["--list", "--query", "gaps"], "--list excludes a query"),
    "no lake": (["--query", "gaps"], "give --lake DIR"),
    "an unknown name": (["--lake", "L", "--query", "nothing"], "no query 'nothing'"),
}


@pytest.mark.parametrize("case", BAD_LINES)
def test_what_can_not_be_meant_is_one_line(case: str, capsys: pytest.CaptureFixture[str]):
    words, message = BAD_LINES[case]
    assert main(["sql", *words]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err


def test_the_command_lists_and_runs_them(lake: Cut, capsys: pytest.CaptureFixture[str]):
    assert main(["sql", "--list"]) == 0
    assert "poison_by_topic" in capsys.readouterr().out
    assert (
        main(["sql", "--lake", lake.lake.storage.root, "--query", "lag_now", "--param", "group=g", "--output", "csv"])
        == 0
    )
    assert capsys.readouterr().out.count("\n") == 2
