"""Rows of Spark's own Kafka source, log time from earlier records, and DataFrames that do not fit."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from chispa.dataframe_comparer import assert_df_equality
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses
from pyspark.sql.types import StructField, StructType

from sharelens import frames
from sharelens.cli import main
from sharelens.frames.shapes import spark_schema
from sharelens.kafka_log.schemas import LOG_RECORD
from state_model.errors import UsageError
from state_model.uuids import ZERO_UUID
from tests.spark.sharelens.frames.recorded import rows_of
from tests.unit.sharelens.questions.test_early_draft import written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KAFKA = (
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, timestampType int, "
    "headers array<struct<key: string, value: binary>>"
)
ID = "AAAAAAAAAAAAAAAAAAAAAQ"
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
NOON_MS = 1_795_348_800_000


def test_rows_of_the_kafka_source_become_log_records(spark: "SparkSession") -> None:
    rows = [
        (b"k", b"v", "__share_group_state", 3, 7, NOON, 1, [("h", b"1")]),
        (None, None, "orders", 0, 8, NOON, 0, None),
    ]
    ids = {"__share_group_state": "AAAAAAAAAAAAAAAAAAAAAQ"}
    records = frames.log_records_of_kafka_source(spark.createDataFrame(rows, KAFKA), ids)
    unknown = {"base_offset": -1, "leader_epoch": -1, "producer_id": -1, "producer_epoch": -1}
    flags = dict.fromkeys(("is_control", "below_log_start", "uncommitted"), False)
    first = {"topic": "__share_group_state", "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ", "partition": 3, "offset": 7}
    second = {"topic": "orders", "topic_id": ZERO_UUID, "partition": 0, "offset": 8}
    stamps = {"timestamp_ms": NOON_MS}
    expected = [
        {**first, **stamps, "timestamp_type": "LogAppendTime", "key": b"k", "value": b"v", "attributes": 8}
        | {"headers": [("h", b"1")], **unknown, **flags},
        {**second, **stamps, "timestamp_type": "CreateTime", "key": None, "value": None, "attributes": 0}
        | {"headers": [], **unknown, **flags},
    ]
    schema = spark_schema(LOG_RECORD)
    expected_rows = spark.createDataFrame([tuple(row[name] for name in LOG_RECORD.names) for row in expected], schema)
    assert_df_equality(records, expected_rows, ignore_nullable=True)


def test_log_time_goes_on_from_earlier_records(spark: "SparkSession") -> None:
    logs = rows_of(spark, ["basic"], topics="__share_group_state").cache()
    all_records = logs.transform(frames.share_records).select("state_partition", "log_offset", "log_time_ms").cache()
    cut = F.col("log_offset") % 100 < 50  # some way into each state partition
    last = all_records.where(cut).groupBy("state_partition").agg(F.max("log_offset").alias("offset"))
    ends = all_records.join(last, "state_partition").where(F.col("log_offset") <= F.col("offset"))
    times = ends.groupBy("state_partition").agg(F.max("log_time_ms").alias("log_time_ms"))
    topic_id = logs.select("topic_id").first()[0]
    times = times.select(F.lit(topic_id).alias("log_topic_id"), "state_partition", "log_time_ms")
    later = logs.join(
        last.withColumnRenamed("state_partition", "partition").withColumnRenamed("offset", "last"), "partition"
    )
    later = later.where(F.col("offset") > F.col("last")).select(*logs.columns)
    continued = frames.share_records(later, log_times=times).select("state_partition", "log_offset", "log_time_ms")
    expected = (
        all_records.join(last, "state_partition")
        .where(F.col("log_offset") > F.col("offset"))
        .select(*continued.columns)
    )
    order = ("state_partition", "log_offset")
    assert_df_equality(continued.orderBy(*order), expected.orderBy(*order), ignore_nullable=True)


def test_a_frame_that_does_not_fit_is_refused_with_all_its_faults(spark: "SparkSession") -> None:
    rows = spark.createDataFrame([("t", "x")], "topic string, offset string")
    with pytest.raises(
        UsageError, match=r"frames.share_records: log_records does not fit: it lacks topic_id, .*"
    ) as error:
        rows.transform(frames.share_records)
    assert "offset is string, not bigint" in str(error.value)


REFUSED_RECORDS = {
    "frames.share_records: log_records has a row whose offset is null": [ID, 0, None],
    "frames.share_records: log_records: topic_id 'orders' is no id of a topic": ["orders", 0, 7],
    f"frames.share_records: log_records has a row twice (topic_id {ID}, partition 0, offset 7)": [ID, 0, 7],
}


@pytest.mark.parametrize("message", REFUSED_RECORDS)
def test_the_first_task_refuses_what_would_give_wrong_rows(message: str, spark: "SparkSession") -> None:
    other_columns = (NOON_MS, "CreateTime", b"key", b"value", [], 7, 0, -1, -1, 0, False, False, False)
    row = ("__share_group_state", *REFUSED_RECORDS[message], *other_columns)
    fields = [StructField(field.name, field.dataType) for field in spark_schema(LOG_RECORD).fields]
    rows = spark.createDataFrame([row, row], StructType(fields))
    with pytest.raises((PySparkException, Py4JJavaError)) as error:  # the latter from a broadcast
        rows.transform(frames.share_records).collect()
    assert message in str(error.value)


def test_control_records_of_the_early_design_are_read_by_the_same_source(
    spark: "SparkSession", tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = written(tmp_path / "logs")
    logs = spark.read.format("kafka_log").option("topics", "orders").load(folder)
    rows = logs.transform(frames.early_draft_records).orderBy("log_offset").toArrow().to_pylist()
    assert main(["records", "--early-draft", "--log-dir", folder, "--output", "json"]) == 0
    assert [json.loads(json.dumps(row)) for row in rows] == json.loads(capsys.readouterr().out)
    assert [row["log_offset"] for row in rows] == list(range(130, 138))
