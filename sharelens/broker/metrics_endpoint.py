"""The metrics for Prometheus: GET /metrics on the loopback address, in the broker's own loop.

Names are those of Kafka's MBeans in Prometheus' spelling; docs/reference/broker-metrics.md has the mapping. A rate of
Kafka is the counter that it comes from. Only a broker with --metrics-port loads this module.
"""

from collections.abc import Iterator, Sequence

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.registry import Collector

from sharelens.broker.coordinators.epoch_groups import AnyEpochGroups
from sharelens.broker.coordinators.share_groups import ShareGroups
from sharelens.broker.errors import listen_problem
from sharelens.broker.metrics import BrokerMetrics, IdleSelector, Timing
from sharelens.broker.ports import Topics
from sharelens.broker.protocol.server import ListenError
from sharelens.broker.share.acknowledgement import AcknowledgeType
from sharelens.broker.text_endpoint import TextEndpoint
from sharelens.kafka_formats.messages.api_keys import ApiKey
from state_model.consumer.group_values import GroupState as ConsumerGroupState
from state_model.group_schemas import GroupKind
from state_model.streams.values import GroupState as StreamsGroupState
from state_model.topics import STATE_TOPIC

HOST = "127.0.0.1"

_GROUPS = "kafka_server_group_coordinator_metrics"
_SHARE = "kafka_server_share_group_metrics"
_STATE = "kafka_server_share_coordinator_metrics"
_STATES = {
    GroupKind.SHARE: ("Empty", "Stable", "Dead"),
    GroupKind.CONSUMER: tuple(state.value for state in ConsumerGroupState),
    GroupKind.STREAMS: tuple(state.value for state in StreamsGroupState),
}
_REQUESTS = "kafka_network_request_metrics_requests"
_TYPES = (AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT, AcknowledgeType.RENEW)


class KafkaCollector(Collector):
    """Makes samples of the current numbers at each scrape."""

    def __init__(
        self,
        metrics: BrokerMetrics,
        groups: ShareGroups,
        epoch_groups: Sequence[AnyEpochGroups],
        topics: Topics,
        idle: IdleSelector | None = None,
    ) -> None:
        self._metrics = metrics
        self._groups = groups
        self._epoch_groups = epoch_groups
        self._topics = topics
        self._idle = idle

    def collect(self) -> Iterator[Metric]:
        """All metric families."""
        yield self._requests()
        yield from self._group_coordinator()
        yield from self._share_groups()
        yield from self._share_coordinator()

    def _requests(self) -> Metric:
        family = CounterMetricFamily(_REQUESTS, "Requests by API.", labels=("request",))
        for key in ApiKey:
            family.add_metric((key.name.title().replace("_", ""),), self._metrics.requests[key])
        return family

    def _group_coordinator(self) -> Iterator[Metric]:
        states = {GroupKind.SHARE: [group.state for group in self._groups]}
        for groups in self._epoch_groups:
            states[groups.kind] = [group.state.value for _, group in groups]
        counts = GaugeMetricFamily(f"{_GROUPS}_group_count", "Groups of a type.", labels=("protocol",))
        rebalances = CounterMetricFamily(f"{_GROUPS}_rebalance", "Rebalances of groups.", labels=("protocol",))
        for kind, of_kind in states.items():
            counts.add_metric((kind.value,), len(of_kind))
            rebalances.add_metric((kind.value,), self._metrics.group_rebalances[kind])
        yield counts
        for kind, of_kind in states.items():
            yield _by_state(kind.value, of_kind, _STATES[kind])
        yield rebalances

    def _share_groups(self) -> Iterator[Metric]:
        metrics = self._metrics
        yield CounterMetricFamily(
            f"{_SHARE}_share_acknowledgement", "Requests with acknowledgements.", metrics.share_acknowledgements
        )
        records = CounterMetricFamily(
            f"{_SHARE}_record_acknowledgement", "Acknowledged records by type.", labels=("ack_type",)
        )
        for kind in _TYPES:
            records.add_metric((kind.name.capitalize(),), metrics.acknowledged_records[kind])
        yield records
        yield from _timing(f"{_SHARE}_partition_load_time", "Loading a share partition.", metrics.share_partition_load)

    def _share_coordinator(self) -> Iterator[Metric]:
        metrics = self._metrics
        topic = self._topics.by_name(STATE_TOPIC)
        count = 0 if topic is None else topic.partitions
        yield _gauge(f"{_STATE}_num_partitions", f"Partitions of {STATE_TOPIC}.", count)
        yield CounterMetricFamily(f"{_STATE}_write", "WriteShareGroupState calls.", metrics.state_write.count)
        yield from _timing(f"{_STATE}_write_latency", "A WriteShareGroupState call.", metrics.state_write)
        load = metrics.state_partition_load
        yield from _timing(f"{_STATE}_partition_load_time", f"Loading a partition of {STATE_TOPIC}.", load)
        if self._idle is not None:
            ratios, idle = self._idle.ratios(), f"{_STATE}_thread_idle_ratio"
            yield _gauge(f"{idle}_avg", "Idle part of the broker's one thread.", sum(ratios) / len(ratios))
            yield _gauge(f"{idle}_min", "Least idle part in ten seconds of the last minute.", min(ratios))


def _by_state(protocol: str, states: Sequence[str], names: Sequence[str]) -> Metric:
    family = GaugeMetricFamily(
        f"{_GROUPS}_{protocol}_group_count",
        f"{protocol.capitalize()} groups in a state.",
        labels=("protocol", "state"),
    )
    for name in names:
        family.add_metric((protocol, name), states.count(name))
    return family


def _gauge(name: str, text: str, value: float, **labels: str) -> Metric:
    family = GaugeMetricFamily(name, text, labels=tuple(labels))
    family.add_metric(tuple(labels.values()), value)
    return family


def _timing(name: str, text: str, timing: Timing) -> Iterator[Metric]:
    """Sum and count, whose quotient is Kafka's average, and the maximum since the start."""
    yield SummaryMetricFamily(f"{name}_ms", f"{text} Milliseconds.", timing.count, timing.sum_s * 1000)
    yield _gauge(f"{name}_max_ms", f"{text} Milliseconds at most since the start.", timing.max_s * 1000)


class MetricsEndpoint(TextEndpoint):
    """Serves the samples of a collector on the loopback address."""

    def __init__(self, collector: Collector) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(collector)
        super().__init__(self._metrics_page, CONTENT_TYPE_LATEST)

    async def listen(self, port: int) -> int:
        """Listen on the loopback address and return the port, which the system picks for port 0. Raises ListenError."""
        try:
            return await self.open(HOST, port)
        except OSError as error:
            raise ListenError(listen_problem(HOST, port, error)) from error

    async def _metrics_page(self) -> bytes:
        return generate_latest(self._registry)
