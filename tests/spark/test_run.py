"""The pipeline on Spark: every recorded log gives the lake that the same tasks give in this process."""

import shutil
import socket
from pathlib import Path

import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from jobs.options import RunOptions
from jobs.progress import Progress
from jobs.run import run
from sharelens.kafka_log.errors import SourceMissingError
from sharelens.lake.lake import Lake
from sharelens.lake.scan import open_lake
from tests.datasets import FEW, dataset, kinds_first
from tests.lakes import assert_same
from tests.processes.in_process import make_lake, recorded_lake

LARGE = ("big-small", "big")


@pytest.mark.parametrize("name", kinds_first(FEW, but=LARGE))
def test_a_recorded_log_gives_the_lake_that_it_gives_without_spark(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    logs = dataset(name) / "logs"
    summary = run(RunOptions(lake=Lake(tmp_path / "lake"), log_dirs=(str(logs),)), lambda: spark)
    assert summary.counts["silver.share_record"] > 0
    assert_same(tmp_path / "lake", recorded_lake(name))


def test_many_small_splits_give_the_same_lake(spark: SparkSession, tmp_path: Path) -> None:
    logs = dataset("edge") / "logs"
    run(RunOptions(lake=Lake(tmp_path / "lake"), log_dirs=(str(logs),), split_bytes=10_000), lambda: spark)
    assert_same(tmp_path / "lake", recorded_lake("edge"))


def test_a_run_goes_on_from_a_lake_that_was_made_elsewhere(spark: SparkSession, tmp_path: Path) -> None:
    logs = dataset("timeouts") / "logs"
    whole_lake = open_lake(recorded_lake("timeouts"))
    first = pc.min(whole_lake.scan("silver.share_record").column("log_time_ms")).as_py()
    make_lake(tmp_path / "lake", logs, until_ms=first + 3000)
    before = open_lake(tmp_path / "lake").scan("silver.share_record").num_rows
    summary = run(RunOptions(lake=Lake(tmp_path / "lake"), log_dirs=(str(logs),)), lambda: spark)
    total_records = whole_lake.scan("silver.share_record").num_rows
    assert 0 < before < total_records
    assert summary.counts["silver.share_record"] == total_records - before
    assert open_lake(tmp_path / "lake").scan("gold.delivery_history").num_rows == (
        whole_lake.scan("gold.delivery_history").num_rows
    )


def test_progress_tells_of_every_stage(spark: SparkSession, tmp_path: Path) -> None:
    steps: list[tuple[str, int, int]] = []
    options = RunOptions(lake=Lake(tmp_path / "lake"), log_dirs=(str(dataset("basic") / "logs"),))
    run(options, lambda: spark, Progress(lambda *step: steps.append(step)))
    stages = {name for name, _, _ in steps}
    assert {"decode", "replay"} < stages
    for stage in stages:
        _, done, total = [step for step in steps if step[0] == stage][-1]
        assert done == total > 0


def test_a_directory_that_a_worker_does_not_see_fails_the_run_and_names_host_and_path(
    spark: SparkSession, tmp_path: Path
) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(dataset("basic") / "logs", logs)

    def session() -> SparkSession:
        logs.rename(tmp_path / "elsewhere")  # between the plan and the tasks
        return spark

    with pytest.raises(SourceMissingError, match=socket.gethostname()) as caught:
        run(RunOptions(lake=Lake(tmp_path / "lake"), log_dirs=(str(logs),)), session)
    assert str(logs) in str(caught.value)
    (tmp_path / "elsewhere").rename(logs)
    run(RunOptions(lake=Lake(tmp_path / "lake"), log_dirs=(str(logs),)), lambda: spark)
    make_lake(tmp_path / "here", logs)
    assert_same(tmp_path / "lake", tmp_path / "here")
