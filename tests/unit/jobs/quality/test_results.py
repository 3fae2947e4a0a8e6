"""Results of checks that upkeep drops by age, and those that something still rests on."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from jobs.quality import results
from jobs.upkeep.maintain import MaintainOptions, maintain
from sharelens.lake import gates
from sharelens.lake.lake import Lake
from sharelens.lake.tables import TABLES
from tests.processes.in_process import recorded_lake

pytestmark = pytest.mark.slow

DAY = 86_400_000


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A lake with the results of thirty checks, one a day, before its newest record; of one table only the first."""
    path = Path(shutil.copytree(recorded_lake("basic"), tmp_path / "lake"))
    (newest,) = set(
        Lake(path).snapshot("gold.progress").dataset().to_table(columns=["cluster_id"]).column("cluster_id").to_pylist()
    )
    extents = (
        Lake(path).snapshot("bronze.ingest_extent").dataset().to_table(columns=["log_time_ms"]).column("log_time_ms")
    )
    end_ms = max(time for time in extents.to_pylist() if time is not None)
    for number in range(1, 31):
        tables = ["silver.name", "gold.lag"] if number == 1 else ["gold.lag"]
        rows = [_row(table, number, newest, end_ms - (30 - number) * DAY) for table in tables]
        results.commit(Lake(path), number, results.table_of(rows))
    return path


def _row(table: str, number: int, cluster_id: str, checked_ms: int) -> dict[str, object]:
    schema = TABLES[gates.RESULTS].schema
    empty = {field.name: "" if pa.types.is_string(field.type) else 0 for field in schema if not field.nullable}
    outcome = {"check_id": number, "run_id": number, "cluster_id": cluster_id, "table_name": table}
    return {**empty, **outcome, "checked_ms": checked_ms, "level": "blocking", "kind": "volume", "slice_rows": number}


@pytest.mark.soak
def test_old_results_go_but_for_those_that_gates_and_volumes_rest_on(lake: Path) -> None:
    before = gates.gates(Lake(lake)), results.earlier_volumes(Lake(lake), "gold.lag", 30)
    maintain(MaintainOptions(lake=Lake(lake), dry_run=False, retain={"checks": 3 * DAY}))
    kept_check_ids = (
        Lake(lake).snapshot(gates.RESULTS).dataset().to_table(columns=["check_id"]).column("check_id").to_pylist()
    )
    assert sorted(set(kept_check_ids)) == [1, *range(20, 31)]
    assert (gates.gates(Lake(lake)), results.earlier_volumes(Lake(lake), "gold.lag", 30)) == before
    assert results.next_check(Lake(lake)) == 31


@pytest.mark.soak
def test_results_younger_than_the_age_stay(lake: Path) -> None:
    maintain(MaintainOptions(lake=Lake(lake), dry_run=False, retain={"checks": 15 * DAY + 1}))
    kept_check_ids = (
        Lake(lake).snapshot(gates.RESULTS).dataset().to_table(columns=["check_id"]).column("check_id").to_pylist()
    )
    assert sorted(set(kept_check_ids)) == [1, *range(15, 31)]
