"""One share partition with a million records is computed by all tasks, not by one."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from sharelens import frames
from sharelens.frames.shapes import spark_schema
from sharelens.kafka_log.schemas import LOG_RECORD
from state_model.share_records import ShareRecord, ShareSnapshot, ShareUpdate, StateBatch, encode_record
from state_model.uuids import ZERO_UUID
from tests.logs.replay_logs import KEYS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow
RECORDS = 1_000_000
SPAN = 500
LARGEST_SHARE = 0.6
MANY_ROWS = {
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}
"""Settings for many rows; those of the test session are for few."""


def value(number: int) -> ShareSnapshot | ShareUpdate:
    """The value of every record whose offset is `number` modulo SPAN: a snapshot, then updates that move on."""
    batch = StateBatch(first_offset=number, last_offset=number, delivery_state=2 * (number % 2), delivery_count=1)
    if number:
        return ShareUpdate(
            snapshot_epoch=1, leader_epoch=0, start_offset=-1, state_batches=(batch,), delivery_complete_count=-1
        )
    return ShareSnapshot(
        snapshot_epoch=1,
        state_epoch=0,
        leader_epoch=0,
        start_offset=0,
        create_timestamp_ms=0,
        write_timestamp_ms=0,
        state_batches=(batch,),
        delivery_complete_count=-1,
    )


@pytest.fixture(scope="module")
def logs(spark: "SparkSession") -> "Iterator[DataFrame]":
    """LOG_RECORD rows of the share partition, whose clock goes back at each chunk's end."""
    keys, values = zip(
        *(encode_record(ShareRecord(key=KEYS[0], value=value(number))) for number in range(SPAN)), strict=True
    )
    place = F.col("id") % SPAN + 1
    columns = {
        "topic": F.lit("__share_group_state"),
        "topic_id": F.lit(ZERO_UUID),
        "partition": F.lit(0),
        "offset": F.col("id"),
        "timestamp_ms": F.col("id") - F.when(F.col("id") % 30_000 == 1, 5_000).otherwise(0) + 10_000,
        "timestamp_type": F.lit("CreateTime"),
        "key": F.element_at(F.array(*map(F.lit, keys)), place.cast("int")),
        "value": F.element_at(F.array(*map(F.lit, values)), place.cast("int")),
        "headers": F.array(),
        "is_control": F.lit(False),
        "below_log_start": F.lit(False),
        "uncommitted": F.lit(False),
    }
    rows = spark.range(RECORDS).select(
        *(
            columns.get(field.name, F.lit(0)).cast(field.dataType).alias(field.name)
            for field in spark_schema(LOG_RECORD).fields
        )
    )
    before = {name: str(spark.conf.get(name)) for name in MANY_ROWS}
    for name, setting in MANY_ROWS.items():
        spark.conf.set(name, setting)
    yield rows
    for name, setting in before.items():
        spark.conf.set(name, setting)


def records_by_task(spark: "SparkSession", work: Callable[[], object]) -> list[list[int]]:
    """How many records each task of each stage read from a shuffle, while `work` ran."""
    context = spark.sparkContext
    group = "hot share partition"
    context.setJobGroup(group, group)
    work()
    context.setLocalProperty("spark.jobGroup.id", None)
    tracker, store = context.statusTracker(), context._jsc.sc().statusStore()
    stages = []
    for job in tracker.getJobIdsForGroup(group):
        for stage in tracker.getJobInfo(job).stageIds:
            tasks = store.taskList(stage, 0, 1000)
            metrics = [tasks.apply(number).taskMetrics() for number in range(tasks.size())]
            stages.append(
                [of_task.get().shuffleReadMetrics().recordsRead() for of_task in metrics if of_task.isDefined()]
            )
    return stages


@pytest.mark.soak
def test_no_task_does_most_of_the_work(spark: "SparkSession", logs: "DataFrame") -> None:
    records = logs.transform(frames.share_records).cache()
    history = records.transform(frames.share_partition_history)
    measured = history.agg(F.count("*").alias("rows"), F.max("log_time_ms").alias("last_ms"))
    states = records.transform(frames.share_partition_states)
    states = states.select("log_offset", "update_count_from_log", "log_time_ms")
    answers: list[pa.Table] = []  # one query: both functions use the same states between chunks
    by_task = records_by_task(spark, lambda: answers.append(measured.crossJoin(states).toArrow()))
    records.unpersist()
    stages = [tasks for tasks in by_task if sum(tasks) >= RECORDS / 10]
    assert len(stages) >= 3  # decode, summaries of the chunks, replay of the chunks
    for tasks in stages:
        assert max(tasks) <= LARGEST_SHARE * sum(tasks)
    last = {"log_offset": RECORDS - 1, "update_count_from_log": 499 * 2, "log_time_ms": RECORDS - 1 + 10_000}
    assert answers[0].to_pylist() == [{"rows": RECORDS, "last_ms": RECORDS - 1 + 10_000, **last}]
