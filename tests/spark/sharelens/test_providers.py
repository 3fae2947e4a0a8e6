"""A project of the user with packages of our names starts a session of its own and calls the DataFrame API in it."""

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sharelens import frames
from tests.datasets import dataset

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]
CODE = """
import sys, jobs, measures
from pyspark.sql import SparkSession
import sharelens
from sharelens import frames

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
for name in ("spark.driver.host", "spark.driver.bindAddress"):
    builder = builder.config(name, "127.0.0.1")
spark = sharelens.configure_spark(builder).getOrCreate()
records = spark.read.format("kafka_log").load(sys.argv[1]).transform(frames.log_records)
print(jobs.NAME, measures.NAME, records.transform(frames.share_records).count())
"""


@pytest.mark.soak
def test_frames_run_in_a_project_with_packages_of_the_same_names(tmp_path: Path, spark: "SparkSession") -> None:
    for name in ("jobs", "lake", "measures", "tables"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("NAME = __name__\n")
    logs = str(dataset("basic") / "logs")
    records = spark.read.format("kafka_log").load(logs).transform(frames.log_records)
    expected = records.transform(frames.share_records).count()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    done = subprocess.run(
        [sys.executable, "-c", CODE, logs], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert expected > 0
    assert done.stdout.split() == ["jobs", "measures", str(expected)], done.stderr
