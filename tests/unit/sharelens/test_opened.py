"""A lake in Python: the same rows by every library, at the cut that was published when it was opened."""

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sharelens
from sharelens.lake.errors import LakeError
from sharelens.lake.tables import TABLES
from sharelens.opened import OpenLake
from state_model.errors import UsageError
from tests.datasets import dataset
from tests.processes.in_process import make_lake, recorded_lake

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def lake() -> OpenLake:
    return sharelens.open(recorded_lake("dlq"))


def test_every_table_is_there(lake: OpenLake) -> None:
    assert lake.tables == list(TABLES)
    for table in lake.tables:
        assert lake.dataset(table).schema.names == TABLES[table].schema.names


def test_all_libraries_see_the_same_rows(lake: OpenLake) -> None:
    rows = lake.arrow("gold.lag").sort_by([(name, "ascending") for name in ("group_id", "topic_id", "partition")])
    keys = ["group_id", "topic_id", "partition"]
    assert rows.num_rows > 0
    assert lake.pandas("gold.lag").sort_values(keys)["lag"].tolist() == rows.column("lag").to_pylist()
    assert lake.polars("gold.lag").sort(keys).collect()["lag"].to_list() == rows.column("lag").to_pylist()
    by_duckdb = lake.duckdb("gold.lag").order(", ".join(keys)).project("lag").fetchall()
    assert [lag for (lag,) in by_duckdb] == rows.column("lag").to_pylist()
    by_sql = lake.sql("SELECT lag FROM gold.lag ORDER BY group_id, topic_id, partition")
    assert by_sql.column("lag").to_pylist() == rows.column("lag").to_pylist()


def test_null_integers_stay_integers_in_pandas(lake: OpenLake) -> None:
    frame = lake.pandas("gold.stall", ["until_ms"])
    assert str(frame["until_ms"].dtype) == "int64[pyarrow]"


def test_an_unknown_column_is_refused_with_those_of_the_table(lake: OpenLake) -> None:
    for read in (lake.arrow, lake.pandas):
        with pytest.raises(
            UsageError, match=r"^gold\.lag has no column 'offset'; columns: cluster_id, [\w, ]+, run_id$"
        ):
            read("gold.lag", ["group_id", "offset"])


def test_conditions_of_polars_are_its_own(lake: OpenLake) -> None:
    import polars as pl

    polars_rows = lake.polars("gold.lag").filter(pl.col("group_id") == "gd-auto").collect()
    counted = pc.sum(pc.equal(lake.arrow("gold.lag").column("group_id"), "gd-auto")).as_py()
    assert polars_rows.height == counted > 0


def test_a_relation_belongs_to_its_connection(lake: OpenLake) -> None:
    with duckdb.connect(":memory:") as connection:
        lake.duckdb("gold.lag", connection).create_view("lags")
        assert connection.sql("SELECT count(*) FROM lags").fetchall() == [(lake.arrow("gold.lag").num_rows,)]


def test_named_queries_take_parameters(lake: OpenLake) -> None:
    assert "dead_letters_by_cause" in lake.queries
    name = next(name for name in lake.queries if "group" in lake_parameters(name))
    of_all, of_group = lake.query(name), lake.query(name, group="gd-auto")
    assert isinstance(of_all, pa.Table)
    assert of_group.num_rows <= of_all.num_rows
    with pytest.raises(UsageError, match="no parameter 'nonsense'"):
        lake.query(name, nonsense=1)
    with pytest.raises(UsageError, match="no query 'nonsense'"):
        lake.query("nonsense")


def lake_parameters(name: str) -> list[str]:
    from sharelens.questions.queries.named import named_query

    return [parameter.name for parameter in named_query(name).parameters]


def test_later_runs_change_no_answer(tmp_path: Path) -> None:
    make_lake(tmp_path / "lake", dataset("basic") / "logs")
    opened = sharelens.open(tmp_path / "lake")
    before = opened.arrow("gold.lag").num_rows
    make_lake(tmp_path / "lake", dataset("basic") / "logs", rebuild="replay")
    assert opened.arrow("gold.lag").num_rows == before == sharelens.open(tmp_path / "lake").arrow("gold.lag").num_rows


def test_what_is_no_lake_or_table_is_refused(lake: OpenLake, tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="not a directory"):
        sharelens.open(tmp_path / "none")
    with pytest.raises(UsageError, match="no table 'gold.lags'"):
        lake.arrow("gold.lags")
