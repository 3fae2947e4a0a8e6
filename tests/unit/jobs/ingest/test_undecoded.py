"""Stages one by one: ingest alone knows which user topics matter, before anything is decoded."""

from pathlib import Path

import pytest

from jobs.options import STAGES
from sharelens.lake.lake import Lake
from tests.datasets import dataset
from tests.lakes import assert_same
from tests.processes.in_process import make_lake, recorded_lake

# The log of `timeouts` was written from 03:09:44 to 03:10:30.
HALFWAY_MS = 1795230600000
pytestmark = pytest.mark.slow


def test_ingest_alone_takes_the_headers_of_topics_that_its_own_records_speak_of(tmp_path: Path) -> None:
    logs = dataset("timeouts") / "logs"
    make_lake(tmp_path / "lake", logs, stages=("ingest",))
    result, expected = (
        Lake(lake).snapshot("bronze.topic_batch").dataset().to_table(columns=["topic", "partition", "base_offset"])
        for lake in (tmp_path / "lake", recorded_lake("timeouts"))
    )
    order = [(name, "ascending") for name in expected.column_names]
    assert expected.num_rows > 0
    assert result.sort_by(order).equals(expected.sort_by(order))


@pytest.mark.soak
def test_stages_one_by_one_make_the_lake_of_one_run(tmp_path: Path) -> None:
    logs = dataset("timeouts") / "logs"
    for until_ms in (HALFWAY_MS, None):
        for stage in STAGES:
            sources = (logs,) if stage == "ingest" else ()
            make_lake(tmp_path / "lake", *sources, stages=(stage,), until_ms=until_ms)
    assert_same(tmp_path / "lake", recorded_lake("timeouts"))
