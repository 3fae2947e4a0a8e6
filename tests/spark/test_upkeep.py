"""Spark and delta-rs read a lake after upkeep: compacted tables, checkpoints, a log that was cut."""

import time
from pathlib import Path

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from jobs.maintain import MaintainOptions, maintain
from lake import delta
from lake.scan import open_lake
from lake.tables import TABLES
from tests.datasets import dataset
from tests.in_process import make_lake
from tests.lakes import content, differences

MIDDLE_MS = 1_795_230_763_000
"""A moment in the middle of the data set `basic`."""
MONTH_MS = 30 * 86_400_000


def test_spark_and_delta_rs_read_what_upkeep_leaves(tmp_path: Path, spark: SparkSession) -> None:
    lake, logs = tmp_path / "lake", dataset("basic") / "logs"
    make_lake(lake, logs, until_ms=MIDDLE_MS)
    make_lake(lake, logs)
    before = content(lake)
    later = time.time_ns() // 1_000_000 + MONTH_MS
    maintain(MaintainOptions(lake=lake, dry_run=False))
    cut = maintain(MaintainOptions(lake=lake, dry_run=False, now_ms=later))
    assert cut.as_dict()["log_files"] > 0
    assert not differences(before, content(lake))
    opened = open_lake(lake)
    for name in opened.versions:
        path = delta.table_path(lake, name)
        rows = opened.scan(name).num_rows
        assert spark.read.format("delta").load(str(path)).count() == rows
        assert DeltaTable(path).to_pyarrow_dataset(schema=TABLES[name].schema).count_rows() == rows
    table = spark.sql(f"DESCRIBE HISTORY delta.`{delta.table_path(lake, 'silver.share_record')}`")
    assert table.first()["operation"] == "maintain"  # type: ignore[index]
