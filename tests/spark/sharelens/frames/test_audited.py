"""Findings of a small log with many faults: those of its lake, in batches of a few records."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from sharelens import frames
from sharelens.frames.envelopes import LOSS
from sharelens.frames.shapes import spark_schema
from sharelens.lake.scan import open_lake
from sharelens.measures.settings.observations import settings_of
from state_model.java import partition_for
from tests.logs.state_logs import (
    ORDERS_ID,
    START_MS,
    STATE_TOPIC,
    STATE_TOPIC_ID,
    snapshot,
    update,
    write_log_directory,
    write_state_partition,
)
from tests.processes.in_process import make_lake
from tests.settings_in_files import group_configs
from tests.spark.sharelens.frames.recorded import OF_THE_LAKE, assert_same
from tools.log_writer.writer import write_checkpoints

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCH_RECORDS = "spark.sql.execution.arrow.maxRecordsPerBatch"
LIMITS = group_configs(h=3)
FAULTS = [
    snapshot("g", start=0),
    snapshot("h", start=0),
    snapshot("i", start=0),
    *(update("g", batches=[(n, n, 1, 0)], at_ms=START_MS + n) for n in range(3)),
    update("h", batches=[(0, 4, 4, 3)], at_ms=START_MS + 4),
    {**update("h"), "damage": "value_version"},
    snapshot("g", epoch=7, at_ms=START_MS + 5),
    update("g", start=2, epoch=3, at_ms=START_MS + 2),
    update("h", start=5, batches=[(5, 5, 0, 3)], at_ms=START_MS + 7),
    update("i", start=1, at_ms=START_MS + 8),
]
IN_PARTITION_1 = [n for n in range(1, 50) if partition_for("g", ORDERS_ID, n, 2) == 1]
IN_PARTITION_0 = next(n for n in range(1, 50) if partition_for("g", ORDERS_ID, n, 2) == 0)
PRUNED, MISPLACED, MISSING = "needed_snapshot_pruned", "misplaced_share_partition", "log_offsets_missing"


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """State partition 0 has a log start above its first snapshots; the first records of partition 1 are gone."""
    folder = write_log_directory(tmp_path_factory.mktemp("audited") / "logs", FAULTS)
    partition_1_snapshots = [snapshot("g", number) for number in [*IN_PARTITION_1, IN_PARTITION_0]]
    write_state_partition(folder, partition_1_snapshots, number=1, base_offset=5)
    write_checkpoints(folder, log_starts={(STATE_TOPIC, 0): 4})
    return folder


@pytest.fixture
def rows(spark: "SparkSession", logs: Path) -> Iterator["DataFrame"]:
    """LOG_RECORD rows that come to a task two at a time."""
    before = str(spark.conf.get(BATCH_RECORDS))
    spark.conf.set(BATCH_RECORDS, 2)
    yield spark.read.format("kafka_log").load(str(logs)).transform(frames.log_records)
    spark.conf.set(BATCH_RECORDS, before)


def test_findings_are_those_of_the_lake(logs: Path, rows: "DataFrame", tmp_path: Path) -> None:
    make_lake(tmp_path / "lake", logs, observations=(LIMITS,))
    expected = open_lake(tmp_path / "lake").scan("gold.audit_finding")
    expected = expected.drop_columns([name for name in OF_THE_LAKE if name in expected.column_names])
    assert {PRUNED, MISPLACED, "available_at_limit"} <= set(expected.column("rule").to_pylist())
    computed = rows.transform(frames.audit_findings, settings=settings_of((LIMITS,)).groups)
    assert_same(computed, expected, "rule", "state_partition", "group_id", "partition")


def test_losses_say_what_is_missing_at_both_ends(spark: "SparkSession", rows: "DataFrame") -> None:
    behind = {"first_offset": len(FAULTS), "last_offset": len(FAULTS), "reason": "quarantined"}
    below = {"first_offset": 0, "last_offset": 4, "reason": "quarantined"}
    lost = [
        {"log_topic_id": STATE_TOPIC_ID, "state_partition": number, **loss}
        for number, loss in enumerate((behind, below))
    ]
    losses = spark.createDataFrame(pa.Table.from_pylist(lost, LOSS).to_pylist(), spark_schema(LOSS))
    computed = frames.audit_findings(rows, losses=losses).select("rule", "state_partition", "first_log_offset")
    places = [tuple(row.values()) for row in computed.toArrow().to_pylist()]
    assert PRUNED not in {rule for rule, *_ in places}  # the newest record of state partition 0 is missing
    assert (MISSING, 1, 5) in places


def test_part_of_a_log_is_not_tested_for_pruned_snapshots(rows: "DataFrame") -> None:
    rules = frames.audit_findings(rows, has_newest=False).select("rule").toArrow().column("rule").unique().to_pylist()
    assert PRUNED not in rules
    assert MISPLACED in rules
