"""Checks of a lake: bad rows that were planted close the gate of their table, and the publication stays."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from jobs.errors import JobError
from jobs.options import CHECKED_STAGES
from jobs.publish import is_current, published_versions
from jobs.quality.check import Checked, CheckOptions, check, scope_of
from jobs.quality.facts import counting, facts_of
from jobs.quality.references import REFERENCES_OF, fact_of
from jobs.quality.suites import rules_of
from sharelens.configuration.limits import Limits
from sharelens.lake import gates
from sharelens.lake.commit import commit as commit_files
from sharelens.lake.errors import LakeError
from sharelens.lake.lake import Lake
from sharelens.lake.parquet import DataFile, write_rows
from sharelens.lake.scan import open_lake
from sharelens.lake.tables import TABLES
from tests.logs.state_logs import START_MS, snapshot, update, write_log_directory
from tests.logs.user_topics import write_orders
from tests.processes.in_process import make_lake
from tests.quality_rows import frame, good_row

pytestmark = pytest.mark.slow

STORY = [
    snapshot("g", start=0),
    update("g", start=0, batches=[(0, 4, 2, 1)], delivery_complete_count=5, at_ms=START_MS + 1),
    snapshot("h", start=10, at_ms=START_MS + 2),
]
LATER_RECORDS = [update("g", start=5, batches=[(5, 9, 4, 2)], delivery_complete_count=5, at_ms=START_MS + 3)]
NOW_MS = START_MS + 60_000
FEW = ("silver.share_record", "gold.share_partition_history")


def logs_of(folder: Path, story: list[dict[str, Any]]) -> Path:
    logs = write_log_directory(folder, story, cluster_id="a-cluster")
    shutil.rmtree(logs / "orders-0")
    write_orders(logs)
    return logs


@pytest.fixture(scope="module")
def lake_and_logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of one run, published, and beside it the logs of the next."""
    folder = tmp_path_factory.mktemp("gates")
    make_lake(folder / "lake", logs_of(folder / "first", STORY))
    logs_of(folder / "second", STORY + LATER_RECORDS)
    return folder


@pytest.fixture
def lake(lake_and_logs: Path, tmp_path: Path) -> Path:
    """A copy of it, to plant things in."""
    shutil.copytree(lake_and_logs / "lake", tmp_path / "lake")
    return tmp_path / "lake"


def looked_at(lake: Path, **options: Any) -> Checked:
    return check(CheckOptions(lake=Lake(lake), now_ms=NOW_MS, **options))


def broken(checked: Checked) -> set[tuple[str, str]]:
    """(table, expectation) of what was not met."""
    rows = checked.results.to_pylist()
    return {(row["table_name"], row["expectation"]) for row in rows if row["success"] is False}


def plant(lake: Path, table: str, rows: pa.Table) -> None:
    """Adds rows to a table as a job would."""
    commit(lake, table, write_rows(Lake(lake), TABLES[table], rows, {}))


def commit(lake: Path, table: str, files: list[DataFile]) -> None:
    opened = Lake(lake)
    commit_files(opened, table, stage="plant", run=opened.version(table) + 1, adds=files)


def plant_raw(lake: Path, table: str, rows: pa.Table) -> None:
    """Adds a file that no writer of ours would write: nothing is checked of it, and it has no statistics."""
    names = TABLES[table].partition_by
    values = {name: str(rows.column(name)[0].as_py()).lower() for name in names}
    folder = "".join(f"{name}={value}/" for name, value in values.items())
    root = Lake(lake).table_storage(table).path
    (root / folder).mkdir(exist_ok=True)
    pq.write_table(rows.drop_columns(list(names)), root / folder / "planted.parquet")
    stats = {"numRecords": rows.num_rows}
    commit(lake, table, [DataFile(path=f"{folder}planted.parquet", size_bytes=1, stats=stats, partition_values=values)])


def test_a_lake_as_it_is_made_has_open_gates_and_its_results_are_kept(lake: Path) -> None:
    published_cut = open_lake(lake)
    checked = looked_at(lake, tables=(*FEW, "silver.name"))
    assert (broken(checked), checked.failed, checked.closed, checked.slice) == (set(), (), (), "run_id 1..1")
    rows = gates.gates(Lake(lake))
    assert {gate.check_id for gate in rows.values()} == {1}
    assert published_versions(Lake(lake)) == published_cut.versions
    assert looked_at(lake, tables=FEW).check_id == 2
    assert {name for name, gate in gates.gates(Lake(lake)).items() if gate.check_id == 2} == set(FEW)


def a_record_twice(lake: Path) -> None:
    plant(lake, FEW[0], open_lake(lake).scan(FEW[0]).slice(0, 1))


def a_null_where_none_may_be(lake: Path) -> None:
    rows = open_lake(lake).scan(FEW[0]).slice(0, 1).to_pylist()
    plant_raw(lake, FEW[0], frame(FEW[0], [{**rows[0], "log_offset": 2, "group_id": None}]))


def a_kind_of_record_that_nobody_knows(lake: Path) -> None:
    rows = open_lake(lake).scan("bronze.log_record").slice(0, 1).to_pylist()
    odd = [{**rows[0], "timestamp_type": "Never"}]
    plant(lake, "bronze.log_record", pa.Table.from_pylist(odd, schema=TABLES["bronze.log_record"].schema))


def a_row_about_a_record_that_is_not_there(lake: Path) -> None:
    rows = open_lake(lake).scan(FEW[1]).slice(0, 1).to_pylist()
    plant(lake, FEW[1], pa.Table.from_pylist([{**rows[0], "log_offset": 77}], schema=TABLES[FEW[1]].schema))


Planted = dict[Callable[[Path], None], set[tuple[str, str]]]
"""What is planted in different tables, with the table and rule that each planting breaks."""
PLANTED: tuple[Planted, ...] = (
    {
        a_record_twice: {(FEW[0], "key_is_unique")},
        a_kind_of_record_that_nobody_knows: {
            ("bronze.log_record", "timestamp_type_is_known"),
            ("bronze.log_record", "key_is_unique"),
        },
    },
    {
        a_null_where_none_may_be: {(FEW[0], "group_id_is_not_null"), (FEW[0], "key_is_unique")},
        a_row_about_a_record_that_is_not_there: {(FEW[1], "is_in_silver_share_record")},
    },
)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: "-".join(planting.__name__ for planting in planted))
def test_what_is_planted_closes_the_gate_of_its_table_and_no_other(lake: Path, planted: Planted) -> None:
    for planting in planted:
        planting(lake)
    expected = set.union(*planted.values())
    checked = looked_at(lake, tables=("bronze.log_record", *FEW, "gold.delivery_history"))
    assert broken(checked) == expected
    assert {gate.table for gate in checked.closed} == {table for table, _ in expected} == set(checked.failed)


def test_a_table_of_another_shape_is_not_judged_further(lake: Path, tmp_path: Path) -> None:
    path = Lake(lake).table_storage("silver.name").path / "_delta_log" / f"{0:020d}.json"
    text = path.read_text(encoding="utf-8")
    assert text.count('\\"valid_from_ms\\"') == 1
    path.write_text(text.replace('\\"valid_from_ms\\"', '\\"valid_from_s\\"'), encoding="utf-8")
    checked = looked_at(lake, tables=("silver.name",))
    assert broken(checked) == {("silver.name", "columns_are_known"), ("silver.name", "columns_are_there")}
    unsaid = checked.results.filter(pc.field("success").is_null())
    assert set(unsaid.column("details").to_pylist()) == {"not judged: the table has another shape"}


@pytest.mark.one_in(6)
@pytest.mark.parametrize("table", [name for name in TABLES if not name.startswith("gold.qu")])
def test_a_row_that_comes_twice_from_nowhere_is_a_repeated_key_and_a_lost_reference(lake: Path, table: str) -> None:
    scope = scope_of(CheckOptions(lake=Lake(lake)))
    rules = [rule for rule in rules_of(table) if rule.kind in ("keys", "references")]
    with counting() as connection:
        clean = facts_of(scope, table, rules, NOW_MS, connection)
    assert clean.columns["repeated_key"].to_pylist() == []
    row = {**good_row(table), "run_id": scope.run}
    plant_raw(lake, table, frame(table, [row, row]))
    with counting() as connection:
        outcome = facts_of(scope_of(CheckOptions(lake=Lake(lake))), table, rules, NOW_MS, connection)
    (key,) = set(outcome.columns["repeated_key"].to_pylist())
    assert key.startswith(f"{TABLES[table].key[0]}=")
    for reference in REFERENCES_OF.get(table, ()):
        assert clean.columns[fact_of(reference)].to_pylist() == [0]
        assert outcome.columns[fact_of(reference)].to_pylist() == [1]
        assert "the first: " in outcome.details[fact_of(reference)]


@pytest.mark.soak
def test_a_closed_gate_keeps_the_publication_until_a_check_finds_it_mended(lake_and_logs: Path, lake: Path) -> None:
    a_record_twice(lake)
    looked_at(lake, tables=FEW)
    before = published_versions(Lake(lake))
    summary = make_lake(lake, lake_and_logs / "second", skip_checks=("freshness",))
    assert (summary.withheld, [gate.table for gate in summary.gates]) == (True, [FEW[0]])
    assert published_versions(Lake(lake)) == before
    make_lake(lake, rebuild="decode")
    assert published_versions(Lake(lake)) == before, "a closed gate stays closed until it is checked again"
    mended = make_lake(lake, stages=("check", "publish"), skip_checks=("freshness",), require_check=True)
    assert (mended.withheld, mended.gates, mended.run_id) == (False, (), None)
    assert is_current(Lake(lake))
    checks = {gate.check_id for gate in gates.gates(Lake(lake)).values()}
    assert (set(gates.gates(Lake(lake))), checks) == (set(TABLES), {2})


def test_what_was_not_checked_is_not_published_where_a_check_is_required(lake_and_logs: Path, lake: Path) -> None:
    make_lake(lake, lake_and_logs / "second", stages=CHECKED_STAGES[:4])
    with pytest.raises(JobError, match=r"no check of the newest version; run `sharelens check"):
        make_lake(lake, stages=("publish",), require_check=True)


def test_a_stage_that_was_left_out_closes_the_gates_behind_it(lake_and_logs: Path, lake: Path) -> None:
    make_lake(lake, lake_and_logs / "second", stages=("ingest", "decode"))
    outcome = broken(looked_at(lake, tables=(*FEW, "gold.delivery_history")))
    assert outcome == {(name, "stage_is_done") for name in ("gold.share_partition_history", "gold.delivery_history")}


@pytest.mark.soak
def test_old_evidence_warns_blocks_where_asked_and_is_not_looked_at_where_skipped(lake: Path) -> None:
    table = ("bronze.ingest_extent",)
    late = START_MS + 3 * 3_600_000
    warned = check(CheckOptions(lake=Lake(lake), tables=table, now_ms=late))
    assert (broken(warned), warned.failed) == ({(*table, "evidence_is_fresh")}, ())
    limits = Limits(stale_ms=3_600_000)
    assert check(CheckOptions(lake=Lake(lake), tables=table, now_ms=late, limits=limits)).failed == table
    skipped = check(CheckOptions(lake=Lake(lake), tables=table, now_ms=late, limits=limits, skip=("freshness",)))
    assert (broken(skipped), skipped.closed) == (set(), ())


@pytest.mark.soak
def test_data_docs_are_written_for_their_owner_alone_and_reach_for_no_network(lake: Path, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    a_record_twice(lake)
    results = [looked_at(lake, tables=("silver.name", FEW[0]), data_docs=folder).results for folder in (docs, None)]
    outcome = [rows.drop_columns(["check_id", "checked_ms"]) for rows in results]
    assert outcome[0].num_rows > 0
    assert outcome[0].equals(outcome[1])
    index = (docs / "index.html").read_text(encoding="utf-8")
    links = re.findall(r'<td><a href="([^"]+)">([^<]+)</a></td><td>(.*?)</td>', index)
    assert [name for _, name, _ in links] == [
        f"{FEW[0]}.facts", "silver.name.facts", "silver.name.rows", f"{FEW[0]}.rows",
    ]  # fmt: skip
    assert ["not met" in result for _, _, result in links] == [True, False, False, False]
    pages = list(docs.rglob("*.html"))
    assert {docs / page for page, _, _ in links} < set(pages)
    policy = """<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">"""
    for page in pages:
        head, _, rest = page.read_text(encoding="utf-8").partition(policy)
        assert rest
        assert "://" not in head
    assert {path.stat().st_mode & 0o077 for path in docs.rglob("*")} == {0}


def test_the_published_cut_is_judged_whatever_came_after_it(lake_and_logs: Path, lake: Path) -> None:
    make_lake(lake, lake_and_logs / "second", stages=("ingest", "decode"))
    rows = open_lake(lake).scan(FEW[0]).slice(0, 1).to_pylist()
    plant(lake, FEW[0], pa.Table.from_pylist([{**rows[0], "run_id": 2}], schema=TABLES[FEW[0]].schema))
    assert broken(looked_at(lake, published=True, tables=(FEW[0],))) == set()
    assert broken(looked_at(lake, tables=(FEW[0],))) == {(FEW[0], "key_is_unique")}


def test_a_folder_without_a_lake_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="holds no lake"):
        check(CheckOptions(lake=Lake(tmp_path)))
