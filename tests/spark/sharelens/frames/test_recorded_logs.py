"""Recorded logs give the rows of the tables that the pipeline makes of them."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from sharelens import frames
from sharelens.lake.scan import open_lake
from sharelens.lake.tables import TABLES
from state_model.audit.table import RULES
from tests.datasets import LAKE_KINDS, scenarios
from tests.processes.in_process import recorded_lake
from tests.spark.sharelens.frames.recorded import assert_same, id_in, rows_of, table_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LARGE = ("big-small", "big")
FIRST = (*LAKE_KINDS, "pruned")
OTHER_SCENARIOS = tuple(name for name in scenarios() if name not in (*FIRST, *LARGE))
SHARE_PARTITION = ("log_topic_id", "state_partition", "group_id", "topic_id", "partition")
STREAMS = "streams"
LETTER_LOGS = ("dlq", "edge44")
Logs = tuple[Sequence[str], "DataFrame", "DataFrame"]
HISTORIES_OF_GROUPS = ("group_history", "member_history", "task_history", "share_initialization_history")


@pytest.fixture(scope="module", params=["kinds", pytest.param("others", marks=pytest.mark.soak)])
def logs(request: pytest.FixtureRequest, spark: "SparkSession") -> Iterator[Logs]:
    """Names of logs, their LOG_RECORD rows and their decoded records."""
    names = FIRST if request.param == "kinds" else OTHER_SCENARIOS
    rows = rows_of(spark, names).transform(frames.log_records).cache()
    records = rows.transform(frames.share_records).cache()
    yield names, rows, records
    records.unpersist()
    rows.unpersist()


@pytest.fixture(scope="module")
def groups(logs: Logs) -> Iterator["DataFrame"]:
    """The decoded records of groups."""
    _, rows, _ = logs
    records = rows.transform(frames.group_records).cache()
    yield records
    records.unpersist()


@pytest.fixture(scope="module")
def losses(spark: "SparkSession", logs: Logs) -> Iterator["DataFrame"]:
    names, rows, _ = logs
    lost = frames.losses(rows, problems=rows_of(spark, names, rows="problems")).cache()
    yield lost
    lost.unpersist()


def test_share_records(logs: Logs) -> None:
    names, _, records = logs
    assert_same(records, table_of(names, "silver.share_record"), *SHARE_PARTITION, "log_offset")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("table", HISTORIES_OF_GROUPS)
def test_histories_of_groups(table: str, logs: Logs, groups: "DataFrame") -> None:
    names, log_records, _ = logs
    if table == "task_history" and STREAMS not in names:
        pytest.skip("no log of a streams group")
    history = groups.transform(getattr(frames, table), log_records=log_records)
    order = [*TABLES[f"gold.{table}"].key[1:], "valid_from_ms"]
    assert_same(history, table_of(names, f"gold.{table}"), *order)


def test_states(logs: Logs, losses: "DataFrame") -> None:
    names, _, records = logs
    states = frames.share_partition_states(records, losses=losses)
    assert_same(states, table_of(names, "gold.share_partition_state"), *SHARE_PARTITION)


def test_history(logs: Logs, losses: "DataFrame") -> None:
    names, _, records = logs
    history = frames.share_partition_history(records, losses=losses)
    assert_same(history, table_of(names, "gold.share_partition_history"), *SHARE_PARTITION, "log_offset")


def test_delivery_history(logs: Logs, losses: "DataFrame") -> None:
    names, _, records = logs
    deliveries = frames.delivery_history(records, losses=losses)
    order = (*SHARE_PARTITION, "first_offset", "valid_from_log_offset")
    assert_same(deliveries, table_of(names, "gold.delivery_history"), *order)


def test_findings_of_the_audit(spark: "SparkSession", logs: Logs, losses: "DataFrame") -> None:
    names, rows, _ = logs
    computed = frames.audit_findings(rows, losses=losses, log_starts=log_starts(spark, names))
    codes = [rule.code for rule in RULES if rule.needs_state_log]
    # Spark takes no batch behind an empty one.
    expected = table_of(names, "gold.audit_finding").filter(pc.field("rule").isin(codes)).combine_chunks()
    assert 0 < len(pc.unique(expected.column("log_topic_id"))) < len(names)  # some logs are clean
    assert_same(computed, expected, *SHARE_PARTITION, "rule")


def test_group_records(logs: Logs, groups: "DataFrame") -> None:
    names, _, _ = logs
    expected = table_of(names, "silver.group_record")
    assert_same(groups, expected, "log_topic_id", "partition", "log_offset")


def test_dead_letters(spark: "SparkSession") -> None:
    names = [name for name in LETTER_LOGS if name in scenarios()]
    letters = rows_of(spark, names).transform(frames.dead_letters)
    expected = table_of(names, "silver.dlq_record", "dlq_topic_id")
    assert_same(letters, expected, "dlq_topic_id", "dlq_partition", "dlq_offset")


def test_states_go_on_from_earlier_ones(spark: "SparkSession", logs: Logs, losses: "DataFrame") -> None:
    names, _, records = logs
    state_partitions = table_of(names, "silver.share_record").group_by(["log_topic_id", "state_partition"])
    middle = spark.createDataFrame(state_partitions.aggregate([("log_offset", "approximate_median")]))
    middle = middle.withColumnRenamed("log_offset_approximate_median", "cut")
    cut = records.join(F.broadcast(middle), ["log_topic_id", "state_partition"]).cache()
    earlier = cut.where(F.col("log_offset") <= F.col("cut")).drop("cut")
    later = cut.where(F.col("log_offset") > F.col("cut")).drop("cut")
    seeds = earlier.transform(frames.share_partition_states).cache()
    states = frames.share_partition_states(later, seeds=seeds, losses=losses, log_starts=log_starts(spark, names))
    assert_same(states, table_of(names, "gold.share_partition_state"), *SHARE_PARTITION)


def test_states_as_of_the_end_are_the_states(spark: "SparkSession", logs: Logs) -> None:
    names, _, _ = logs
    history = spark.createDataFrame(table_of(names, "gold.share_partition_history"))
    deliveries = spark.createDataFrame(table_of(names, "gold.delivery_history"))
    row = history.agg(F.max("log_time_ms").alias("last_ms")).first()
    assert row is not None
    states = frames.states_as_of(history, deliveries, row.last_ms, log_starts=log_starts(spark, names))
    expected = table_of(names, "gold.share_partition_state").drop_columns(["completeness", "completeness_reason"])
    assert_same(states.select(*expected.column_names), expected, *SHARE_PARTITION)


def log_starts(spark: "SparkSession", names: Sequence[str]) -> "DataFrame":
    """The log start offsets of state partitions that the lakes know."""
    rows = []
    for name in names:
        extents = open_lake(recorded_lake(name)).scan("bronze.ingest_extent")
        for row in extents.filter(pc.equal(extents.column("topic"), "__share_group_state")).to_pylist():
            rows.append((id_in(name, row["topic_id"]), row["partition"], row["log_start_offset"] or 0))
    return spark.createDataFrame(rows, "log_topic_id string, state_partition int, log_start_offset long")
