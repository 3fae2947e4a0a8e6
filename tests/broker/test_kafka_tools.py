"""Kafka's own tools, unmodified, against the broker."""

import json
import uuid

import pytest

from tests.broker.kafka_tools import (
    CONFIGS,
    CONSOLE_CONSUMER,
    CONSOLE_PRODUCER,
    DELETE_RECORDS,
    GET_OFFSETS,
    LOG_DIRS,
    PRODUCER_PERFORMANCE,
    TOPICS,
    kafka_process,
    kafka_tool,
)

pytestmark = pytest.mark.components


@pytest.fixture
def server(shared_broker):
    return ("--bootstrap-server", shared_broker.bootstrap)


@pytest.fixture
def topic():
    return f"t-{uuid.uuid4().hex[:8]}"


def test_topics_are_created_listed_described_altered_and_deleted(server, topic):
    kafka_tool(TOPICS, *server, "--create", "--topic", topic, "--partitions", "2", "--config", "retention.ms=5000")
    assert topic in kafka_tool(TOPICS, *server, "--list").lines
    described = kafka_tool(TOPICS, *server, "--describe", "--topic", topic).lines
    assert "PartitionCount: 2" in described[0]
    assert "ReplicationFactor: 1" in described[0]
    assert "retention.ms=5000" in described[0]
    assert len(described) == 3
    assert "Leader: 1\tReplicas: 1\tIsr: 1" in described[1]
    kafka_tool(TOPICS, *server, "--alter", "--topic", topic, "--partitions", "3")
    assert "PartitionCount: 3" in kafka_tool(TOPICS, *server, "--describe", "--topic", topic).lines[0]
    kafka_tool(TOPICS, *server, "--delete", "--topic", topic)
    assert topic not in kafka_tool(TOPICS, *server, "--list").lines


def test_what_the_console_producer_writes_the_console_consumer_reads(server, topic):
    kafka_tool(TOPICS, *server, "--create", "--topic", topic)
    lines = "".join(f"line {number}\n" for number in range(20))
    kafka_process(CONSOLE_PRODUCER, *server, "--topic", topic, stdin=lines)
    place = ("--topic", topic, "--partition", "0", "--offset", "5")
    read = kafka_process(CONSOLE_CONSUMER, *server, *place, "--max-messages", "15")
    assert read.lines == [f"line {number}" for number in range(5, 20)]


def test_the_offsets_of_a_topic(server, topic):
    kafka_tool(TOPICS, *server, "--create", "--topic", topic, "--partitions", "2")
    kafka_process(CONSOLE_PRODUCER, *server, "--topic", topic, stdin="a\nb\nc\n")
    offsets = kafka_tool(GET_OFFSETS, *server, "--topic", topic).lines
    assert sum(int(line.rpartition(":")[2]) for line in offsets) == 3
    earliest = kafka_tool(GET_OFFSETS, *server, "--topic", topic, "--time", "earliest").lines
    assert earliest == [f"{topic}:0:0", f"{topic}:1:0"]
    largest = kafka_tool(GET_OFFSETS, *server, "--topic", topic, "--time", "max-timestamp").lines
    assert any(not line.endswith(":-1") for line in largest)


def test_the_performance_tool_gets_all_its_records_in(server, topic):
    kafka_tool(TOPICS, *server, "--create", "--topic", topic)
    run = ("--num-records", "20000", "--record-size", "100", "--throughput", "-1")
    done = kafka_tool(PRODUCER_PERFORMANCE, "--topic", topic, *run, *server)
    assert done.lines[-1].startswith("20000 records sent")
    assert kafka_tool(GET_OFFSETS, *server, "--topic", topic).lines == [f"{topic}:0:20000"]


def test_configurations_of_groups_topics_and_the_broker(server, topic):
    group = ("--entity-type", "groups", "--entity-name", f"g-{topic}")
    kafka_tool(CONFIGS, *server, *group, "--alter", "--add-config", "share.auto.offset.reset=earliest")
    described = kafka_tool(CONFIGS, *server, *group, "--describe").out
    assert "share.auto.offset.reset=earliest sensitive=false" in described
    refused = kafka_tool(
        CONFIGS, *server, *group, "--alter", "--add-config", "share.delivery.count.limit=99", code=None
    )
    assert refused.code != 0
    assert "takes an integer from 2 to 10" in refused.out + refused.err
    kafka_tool(TOPICS, *server, "--create", "--topic", topic)
    of_topic = ("--entity-type", "topics", "--entity-name", topic)
    kafka_tool(CONFIGS, *server, *of_topic, "--alter", "--add-config", "cleanup.policy=[compact,delete]")
    assert "cleanup.policy=compact,delete" in kafka_tool(CONFIGS, *server, *of_topic, "--describe").out
    kafka_tool(CONFIGS, *server, *of_topic, "--alter", "--delete-config", "cleanup.policy")
    assert "cleanup.policy" not in kafka_tool(CONFIGS, *server, *of_topic, "--describe").out
    of_broker = ("--entity-type", "brokers", "--entity-name", "1")
    kafka_tool(CONFIGS, *server, *of_broker, "--alter", "--add-config", "log.retention.ms=100000")
    assert "log.retention.ms=100000" in kafka_tool(CONFIGS, *server, *of_broker, "--describe").out
    all_configurations = kafka_tool(CONFIGS, *server, *of_topic, "--describe", "--all").out
    assert "retention.ms=100000" in all_configurations
    assert "DYNAMIC_BROKER_CONFIG:log.retention.ms=100000" in all_configurations


def test_records_are_deleted(server, topic, tmp_path):
    kafka_tool(TOPICS, *server, "--create", "--topic", topic)
    kafka_process(CONSOLE_PRODUCER, *server, "--topic", topic, stdin="a\nb\nc\n")
    plan = tmp_path / "plan.json"
    plan.write_text(f'{{"partitions": [{{"topic": "{topic}", "partition": 0, "offset": 2}}], "version": 1}}')
    done = kafka_tool(DELETE_RECORDS, *server, "--offset-json-file", str(plan))
    assert f"partition: {topic}-0\tlow_watermark: 2" in done.out


def test_the_log_directory_is_described_with_the_size_of_each_log(server, topic, shared_broker):
    kafka_tool(TOPICS, *server, "--create", "--topic", topic, "--partitions", "2")
    kafka_process(CONSOLE_PRODUCER, *server, "--topic", topic, stdin="a\n")
    described = json.loads(kafka_tool(LOG_DIRS, *server, "--describe", "--topic-list", topic).lines[-1])
    ((log_dir,),) = [broker["logDirs"] for broker in described["brokers"]]
    assert (log_dir["error"], log_dir["logDir"]) == (None, str(shared_broker.log_dir))
    sizes = {each["partition"]: each["size"] for each in log_dir["partitions"]}
    files = [f"{topic}-0", f"{topic}-1"]
    assert sizes == {
        name: sum(each.stat().st_size for each in (shared_broker.log_dir / name).glob("*.log")) for name in files
    }
    assert sum(sizes.values()) > 0
