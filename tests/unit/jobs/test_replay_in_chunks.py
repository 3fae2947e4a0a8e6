"""State partitions that are replayed in chunks of row groups have the tables of one replay."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from jobs.replay import stage
from jobs.spark.executors import Engine
from sharelens.lake import parquet
from sharelens.lake.lake import Lake
from state_model.topics import STATE_TOPIC
from tests.lakes import assert_same
from tests.logs.state_logs import START_MS, encoded_records, snapshot, tombstone, update, write_log_directory
from tests.processes.in_process import make_lake, story_lake
from tools.log_writer.writer import encode_log, record_columns

pytestmark = pytest.mark.slow

LONG_STORY = [
    record
    for life in range(3)
    for record in [
        snapshot("g", start=10 * life, at_ms=START_MS + life),
        *(update("g", batches=[(10 * life + n, 10 * life + n, 2, 1)], start=10 * life + n) for n in range(6)),
        snapshot("h", batches=[(0, 4, 0, 1)], start=0),
        update("i", batches=[(life, life + 3, 4, life)], start=life),
        *([tombstone("h")] if life == 1 else []),
        snapshot("g", batches=[(10 * life + 6, 10 * life + 9, 0, 1)], start=10 * life + 6),
    ]
]


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """The number of tasks by name, of runs whose row groups have four rows and whose chunks have one row group."""
    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", 4)
    monkeypatch.setattr(stage, "CHUNK_BYTES", 1)
    counts: dict[str, int] = {}
    original_run = Engine.run

    def counting(
        engine: Engine, name: str, function: Callable[[Any], Any], specs: Sequence[Any], *rest: Any, **options: Any
    ) -> list[Any]:
        counts[name] = len(specs)
        return original_run(engine, name, function, specs, *rest, **options)

    monkeypatch.setattr(Engine, "run", counting)
    return counts


@pytest.mark.soak
def test_chunks_have_the_tables_of_one_replay(tmp_path: Path, tasks: dict[str, int]) -> None:
    one_replay_lake = story_lake("replay-whole", LONG_STORY, "a-cluster")
    make_lake(tmp_path / "lake", one_replay_lake.parent / "logs")
    assert tasks["replay summaries"] >= 6
    assert_same(tmp_path / "lake", one_replay_lake)


@pytest.mark.soak
def test_chunks_on_top_of_an_earlier_run_have_the_tables_of_one_replay(tmp_path: Path, tasks: dict[str, int]) -> None:
    one_replay_lake = story_lake("replay-whole", LONG_STORY, "a-cluster")
    first = story_lake("replay-first", LONG_STORY[:9], "a-cluster")
    lake = Path(shutil.copytree(first, tmp_path / "lake"))
    make_lake(lake, one_replay_lake.parent / "logs")
    assert tasks["replay summaries"] >= 4
    assert_same(lake, one_replay_lake)


@pytest.mark.soak
def test_a_rebuild_in_chunks_has_the_tables_of_one_replay(tmp_path: Path, tasks: dict[str, int]) -> None:
    one_replay_lake = story_lake("replay-whole", LONG_STORY, "a-cluster")
    make_lake(tmp_path / "lake", one_replay_lake.parent / "logs")
    make_lake(tmp_path / "lake", rebuild="replay")
    assert tasks["replay summaries"] >= 6
    assert_same(tmp_path / "lake", one_replay_lake)


@pytest.mark.soak
def test_units_before_a_gap_are_complete_and_those_behind_it_are_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = write_log_directory(tmp_path / "logs", LONG_STORY[:5])
    folder = logs / f"{STATE_TOPIC}-0"
    columns = record_columns(*zip(*encoded_records(LONG_STORY[5:]), strict=True))
    (folder / f"{40:020d}.log").write_bytes(encode_log(columns, records_per_batch=1, base_offset=40).data)
    make_lake(tmp_path / "whole", logs)
    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", 2)
    monkeypatch.setattr(stage, "ROWS_A_PLACE", 0)
    make_lake(tmp_path / "units", logs)
    assert_same(tmp_path / "units", tmp_path / "whole")
    rows = Lake(tmp_path / "units").snapshot("gold.share_partition_history").dataset().to_table().to_pylist()
    marked = {row["log_offset"] >= 40 for row in rows if row["completeness_reason"] == "gap"}
    assert marked == {True}
