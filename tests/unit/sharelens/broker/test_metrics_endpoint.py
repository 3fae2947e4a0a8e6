"""The metrics as Prometheus gets them."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from sharelens.broker.metrics import BrokerMetrics, IdleSelector
from sharelens.broker.metrics_endpoint import HOST, KafkaCollector, MetricsEndpoint
from sharelens.broker.protocol.server import ListenError
from sharelens.broker.share.acknowledgement import AcknowledgementBatch
from state_model.consumer.group_values import GroupState as ConsumerGroupState
from state_model.group_schemas import GroupKind
from state_model.streams.values import GroupState

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "broker-metrics.md"


class EpochGroups(list):
    """Groups of one kind, each in a state."""

    def __init__(self, kind, *states):
        super().__init__((state.value, SimpleNamespace(state=state)) for state in states)
        self.kind = kind


def collector(metrics: BrokerMetrics | None = None) -> KafkaCollector:
    groups = [SimpleNamespace(state="Stable"), SimpleNamespace(state="Empty"), SimpleNamespace(state="Stable")]
    consumers = EpochGroups(GroupKind.CONSUMER, ConsumerGroupState.RECONCILING)
    streams = EpochGroups(GroupKind.STREAMS, GroupState.NOT_READY, GroupState.STABLE)
    topics = SimpleNamespace(by_name=lambda name: SimpleNamespace(partitions=4))
    return KafkaCollector(metrics or BrokerMetrics(), groups, [consumers, streams], topics, IdleSelector())


def exchanged(*requests: bytes) -> list[bytes]:
    """The answers to requests, each on a connection of its own."""

    async def exchange(port: int, request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(HOST, port)
        writer.write(request)
        answer = await reader.read()
        writer.close()
        return answer

    async def exchange_all(endpoint: MetricsEndpoint, port: int) -> list[bytes]:
        return [await exchange(port, request) for request in requests]

    return served(exchange_all)


def served(work: Callable):
    async def run():
        endpoint = MetricsEndpoint(collector())
        port = await endpoint.listen(0)
        try:
            return await work(endpoint, port)
        finally:
            endpoint.close()

    return asyncio.run(run())


def samples(metrics: BrokerMetrics) -> dict[tuple[str, ...], float]:
    """Values by name and labels."""
    actual = {}
    for family in collector(metrics).collect():
        for sample in family.samples:
            actual[sample.name, *sample.labels.values()] = sample.value
    return actual


def test_numbers_come_out_under_kafkas_names():
    metrics = BrokerMetrics()
    metrics.share_acknowledgements = 2
    metrics.group_rebalances.update({GroupKind.SHARE: 3, GroupKind.STREAMS: 5, GroupKind.CONSUMER: 7})
    metrics.acknowledged([AcknowledgementBatch(first_offset=5, last_offset=8, types=(2,))])
    metrics.state_write.count, metrics.state_write.sum_s, metrics.state_write.max_s = 4, 0.5, 0.25
    actual = samples(metrics)
    groups, state = "kafka_server_group_coordinator_metrics", "kafka_server_share_coordinator_metrics"
    assert actual[f"{groups}_group_count", "share"] == 3
    assert actual[f"{groups}_share_group_count", "share", "Stable"] == 2
    assert actual[f"{groups}_share_group_count", "share", "Dead"] == 0
    assert actual[f"{groups}_rebalance_total", "share"] == 3
    assert (actual[f"{groups}_group_count", "consumer"], actual[f"{groups}_rebalance_total", "consumer"]) == (1, 7)
    states = {
        each.value: actual[f"{groups}_consumer_group_count", "consumer", each.value] for each in ConsumerGroupState
    }
    assert states == {"Empty": 0, "Assigning": 0, "Reconciling": 1, "Stable": 0}
    assert (actual[f"{groups}_group_count", "streams"], actual[f"{groups}_rebalance_total", "streams"]) == (2, 5)
    states = {each.value: actual[f"{groups}_streams_group_count", "streams", each.value] for each in GroupState}
    assert states == {"Empty": 0, "NotReady": 1, "Assigning": 0, "Reconciling": 0, "Stable": 1}
    assert actual["kafka_server_share_group_metrics_share_acknowledgement_total",] == 2
    assert actual["kafka_server_share_group_metrics_record_acknowledgement_total", "Release"] == 4
    assert actual[f"{state}_write_total",] == 4
    assert actual[f"{state}_write_latency_ms_sum",] == 500
    assert actual[f"{state}_write_latency_max_ms",] == 250
    assert actual[f"{state}_num_partitions",] == 4


def test_the_page_of_the_reference_lists_exactly_what_is_served():
    listed = set(re.findall(r"`(kafka_(?:server|network)_[a-z_]+)`", PAGE.read_text(encoding="utf-8")))
    assert listed == {name for name, *_ in samples(BrokerMetrics())}


def test_a_scrape_is_answered_in_the_text_format():
    (answer,) = exchanged(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain")
    assert f"Content-Length: {len(body)}".encode() in head
    assert len(list(text_string_to_metric_families(body.decode()))) > 10


def test_a_port_in_use_is_refused():
    async def work(endpoint: MetricsEndpoint, port: int) -> None:
        await MetricsEndpoint(collector()).listen(port)

    with pytest.raises(ListenError, match=r"^can't listen on 127\.0\.0\.1:\d+: Address already in use; "):
        served(work)
