"""An export in Prometheus' text format."""

from collections.abc import Iterator

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from sharelens.metrics.catalog import Kind
from sharelens.metrics.samples import Export

CONTENT_TYPE = CONTENT_TYPE_LATEST


class _Collector(Collector):
    """Hands an export over, metric by metric."""

    def __init__(self, export: Export) -> None:
        self._export = export

    def collect(self) -> Iterator[Family]:
        for metric, samples in self._export.samples.items():
            kind = CounterMetricFamily if metric.kind is Kind.COUNTER else GaugeMetricFamily
            family = kind(metric.name, metric.text, labels=metric.labels)
            for sample in samples:
                family.add_metric([str(label) for label in sample.labels], sample.value)
            yield family


def prometheus_text(export: Export, *, with_process: bool = False) -> bytes:
    """The text, in UTF-8. Names of groups and topics are label values, escaped as the format asks.

    `with_process`: the memory, processor time and open files of this process too, by Prometheus' names.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(export))
    if with_process:
        ProcessCollector(registry=registry)
    return generate_latest(registry)
