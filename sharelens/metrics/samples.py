"""The samples of an export: every metric with its labels and values, in a fixed order and a bounded number."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from sharelens import __version__
from sharelens.metrics import catalog
from sharelens.metrics.catalog import METRICS, Metric
from sharelens.metrics.figures import Figures, Key

MAX_SERIES = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One value; `labels` in the order of the metric's label names, `of`: place in the figures, None for the export."""

    labels: tuple[str | int, ...]
    value: float
    of: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """Samples by metric, in the order of METRICS; a metric without samples is absent."""

    figures: Sequence[Figures]
    samples: dict[Metric, list[Sample]]
    left_out: int


def export(figures: Sequence[Figures], max_series: int = MAX_SERIES) -> Export:
    """The samples of clusters: sums of groups always, share partitions up to `max_series` series in all.

    The share partitions that have stood still longest come first, then those with the largest lag.
    """
    exported_keys = _exported_keys(figures, max_series)
    samples_of: dict[Metric, list[Sample]] = {metric: [] for metric in METRICS}
    samples_of[catalog.BUILD].append(Sample(labels=(__version__,), value=1, of=None))
    left_out = 0
    for number, cluster in enumerate(figures):
        _add_cluster(samples_of, number, cluster)
        missing = len(cluster.of_share_partitions) - len(exported_keys[number])
        left_out += missing
        samples_of[catalog.LEFT_OUT].append(Sample(labels=(cluster.cluster,), value=missing, of=number))
        labelled = sorted(
            (group, cluster.topics[topic], partition, topic) for group, topic, partition in exported_keys[number]
        )
        for group, topic, partition, topic_id in labelled:
            for metric, value in cluster.of_share_partitions[group, topic_id, partition].items():
                labels = (cluster.cluster, group, topic, partition)
                samples_of[metric].append(Sample(labels=labels, value=value, of=number))
    samples = {metric: samples_of[metric] for metric in METRICS if samples_of[metric]}
    return Export(figures=figures, samples=samples, left_out=left_out)


def _add_cluster(samples_of: dict[Metric, list[Sample]], number: int, cluster: Figures) -> None:
    for metric, value in cluster.of_cluster.items():
        samples_of[metric].append(Sample(labels=(cluster.cluster,), value=value, of=number))
    for rule, value in sorted(cluster.of_rules.items()):
        samples_of[catalog.AUDIT_FINDINGS].append(Sample(labels=(cluster.cluster, *rule), value=value, of=number))
    for kind, value in sorted(cluster.of_kinds.items()):
        samples_of[catalog.FINDINGS].append(Sample(labels=(cluster.cluster, *kind), value=value, of=number))
    for group, values in sorted(cluster.of_groups.items()):
        for metric, value in values.items():
            samples_of[metric].append(Sample(labels=(cluster.cluster, group), value=value, of=number))


def _exported_keys(figures: Sequence[Figures], max_series: int) -> list[list[Key]]:
    """The share partitions of each cluster that have series of their own."""
    group_series = sum(len(values) for cluster in figures for values in cluster.of_groups.values())
    cluster_series = sum(
        len(cluster.of_cluster) + len(cluster.of_rules) + len(cluster.of_kinds) + 1 for cluster in figures
    )
    room = max_series - 1 - group_series - cluster_series
    if sum(len(values) for cluster in figures for values in cluster.of_share_partitions.values()) <= room:
        return [list(cluster.of_share_partitions) for cluster in figures]
    ranked = [
        (-values.get(catalog.STALLED, 0), -values.get(catalog.LAG, 0), number, key, len(values))
        for number, cluster in enumerate(figures)
        for key, values in cluster.of_share_partitions.items()
    ]
    kept_keys: list[list[Key]] = [[] for _ in figures]
    heapq.heapify(ranked)
    while ranked and (worst := heapq.heappop(ranked))[4] <= room:
        room -= worst[4]
        kept_keys[worst[2]].append(worst[3])
    return kept_keys
