"""Spark's own Kafka source against the light broker: the internal topics, and user topics with transactions."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import AcknowledgeType, Producer
from pyspark.sql import DataFrame, SparkSession

from sharelens.kafka_log import reader
from sharelens.kafka_log.layout import scan_log_directory
from sharelens.kafka_log.union import unite
from tests.broker import running
from tests.broker.running import RunningBroker
from tests.broker.share_clients import SHARE_SETTINGS, new_share_group, share_consumer
from tests.broker.test_clients import TIMEOUT_S, new_topic, produce
from tools.kafka_source import read_topic
from tools.kept_jars import ToolUnavailableError

pytestmark = [pytest.mark.spark, pytest.mark.broker]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """No fork: the process that forks is the one of test_kill.py here, which has imported other code."""
    started = running.start(tmp_path_factory.mktemp("source") / "log", is_fork=False, **SHARE_SETTINGS)
    yield started
    started.kill()


def by_source(spark: SparkSession, broker: RunningBroker, topic: str, **options: str) -> DataFrame:
    try:
        return read_topic(spark, broker.bootstrap, topic, **options)
    except ToolUnavailableError as error:
        pytest.skip(f"Spark's Kafka source: {error}")


def in_segments(log_dir: Path, topic: str) -> set[tuple[int, int, bytes | None, bytes | None]]:
    """What lies in the log directory, by our own reader."""
    records = set()
    for partition in unite([scan_log_directory(str(log_dir))]):
        if partition.topic != topic:
            continue
        end = reader.readable_end(partition, include_uncommitted=True)
        for split in reader.splits(partition, 0, end, 1 << 20):
            for chunk in reader.read_split(split, include_uncommitted=True):
                rows = chunk.records.select(["offset", "key", "value", "is_control"]).to_pylist()
                records |= {
                    (partition.partition, row["offset"], row["key"], row["value"])
                    for row in rows
                    if not row["is_control"]
                }
    return records


@pytest.mark.soak
def test_it_reads_the_state_of_share_groups_as_it_lies_in_the_segments(
    spark: SparkSession, broker: RunningBroker
) -> None:
    topic, group = new_topic(broker, 2), new_share_group(broker)
    for partition in (0, 1):
        produce(broker, topic, [f"{number}" for number in range(20)], partition=partition)
    remaining_count = 40
    with share_consumer(broker, group, topic) as consumer:
        while remaining_count:
            for message in consumer.poll(TIMEOUT_S):
                consumer.acknowledge(message, AcknowledgeType.ACCEPT)
                remaining_count -= 1
            consumer.commit_sync()
    for internal in ("__share_group_state", "__consumer_offsets"):
        frame = by_source(spark, broker, internal)
        rows = {
            (row.partition, row.offset, row.key and bytes(row.key), row.value and bytes(row.value))
            for row in frame.select("partition", "offset", "key", "value").collect()
        }
        assert rows
        assert rows == in_segments(broker.log_dir, internal)


def test_it_reads_committed_records_alone(spark: SparkSession, broker: RunningBroker) -> None:
    topic = new_topic(broker)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "spark"})
    producer.init_transactions(TIMEOUT_S)
    for value, is_commit in (("a", True), ("never", False), ("b", True)):
        producer.begin_transaction()
        producer.produce(topic, value)
        assert producer.flush(TIMEOUT_S) == 0
        if is_commit:
            producer.commit_transaction(TIMEOUT_S)
        else:
            producer.abort_transaction(TIMEOUT_S)
    frame = by_source(spark, broker, topic, **{"kafka.isolation.level": "read_committed"})
    rows = frame.selectExpr("CAST(value AS STRING) AS value", "offset").orderBy("offset").collect()
    assert [(row.value, row.offset) for row in rows] == [("a", 0), ("b", 4)]
