"""The broker's metrics, as a scrape finds them after real clients were there."""

import urllib.request

import pytest
from confluent_kafka import AcknowledgeType, Producer
from prometheus_client.parser import text_string_to_metric_families

from tests.broker.conftest import StartBroker
from tests.broker.share_clients import SHARE_SETTINGS, new_share_group, share_consumer, work

pytestmark = pytest.mark.broker

RECORDS = 20


def scraped(address: str) -> dict[tuple[str, ...], float]:
    """Values by name without its first two words, and labels."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    return {
        (sample.name.removeprefix("kafka_server_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_scrape_counts_what_share_consumers_did(start_broker: StartBroker):
    broker = start_broker("--metrics-port", "0", **SHARE_SETTINGS)
    address = broker.ready_line.rpartition("metrics=")[2]
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(RECORDS):
        producer.produce("counted", value=b"%d" % number)
    assert producer.flush(30) == 0
    group = new_share_group(broker)
    with share_consumer(broker, group, "counted") as consumer:
        work(
            consumer,
            lambda message: AcknowledgeType.REJECT if message.offset() % 4 == 0 else AcknowledgeType.ACCEPT,
            lambda messages: len(messages) >= RECORDS,
        )
        during = scraped(address)
    after = scraped(address)
    assert during["group_coordinator_metrics_group_count", "share"] == 1
    assert during["group_coordinator_metrics_share_group_count", "share", "Stable"] == 1
    assert after["group_coordinator_metrics_share_group_count", "share", "Empty"] == 1
    assert after["group_coordinator_metrics_rebalance_total", "share"] >= 1
    assert after["share_group_metrics_record_acknowledgement_total", "Accept"] == RECORDS * 3 / 4
    assert after["share_group_metrics_record_acknowledgement_total", "Reject"] == RECORDS / 4
    assert after["share_group_metrics_share_acknowledgement_total",] >= 1
    assert after["share_group_metrics_partition_load_time_ms_count",] >= 1
    assert after["share_coordinator_metrics_write_total",] >= 1
    assert 0 < after["share_coordinator_metrics_write_latency_max_ms",] < 30_000
    assert after["share_coordinator_metrics_num_partitions",] == 4
    assert 0 <= after["share_coordinator_metrics_thread_idle_ratio_min",] <= 1


def test_metrics_are_off_by_default(start_broker: StartBroker):
    assert "metrics=" not in start_broker().ready_line
