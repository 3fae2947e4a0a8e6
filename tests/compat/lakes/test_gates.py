"""What real brokers wrote closes no gate, whichever scenario, all of them in one lake; odd requests draw warnings."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pyarrow.compute as pc
import pytest

from jobs.quality.check import CheckOptions, check
from sharelens.lake.gates import gates
from sharelens.lake.lake import Lake
from sharelens.lake.tables import TABLES
from tests.datasets import LAKE_KINDS, dataset, scenarios
from tests.processes.in_process import make_lake, recorded_lake

ODD_REQUESTS = "acquired_state_written, count_over_maximum"
"""Rules that `edge` violates: requests that no leader sends, and that brokers accept."""


@pytest.mark.soak
@pytest.mark.parametrize(
    ("names", "records"),
    [
        pytest.param(LAKE_KINDS, 4_000, id="a log of each kind"),
        pytest.param(scenarios(), 50_000, id="every scenario"),
    ],
)
def test_all_gates_are_open_over_every_scenario(names: Sequence[str], records: int, tmp_path: Path) -> None:
    first, *other_names = names
    shutil.copytree(recorded_lake(first), tmp_path / "lake")
    for name in other_names:
        make_lake(tmp_path / "lake", dataset(name) / "logs")
    checked = check(CheckOptions(lake=Lake(tmp_path / "lake"), all_rows=True, skip=("freshness", "volume")))
    columns = ["table_name", "expectation", "details"]
    assert checked.results.filter(pc.field("success") == pc.scalar(False)).select(columns).to_pylist() == [
        {"table_name": "gold.audit_finding", "expectation": "no_error_stands", "details": ODD_REQUESTS}
    ]
    assert checked.closed == ()
    assert set(gates(Lake(tmp_path / "lake"))) == set(TABLES)
    judged = checked.results.filter(pc.field("success").is_valid())
    assert judged.num_rows > 400
    rows = dict(zip(judged.column("table_name").to_pylist(), judged.column("slice_rows").to_pylist(), strict=True))
    assert rows["silver.share_record"] == rows["gold.share_partition_history"] > records
