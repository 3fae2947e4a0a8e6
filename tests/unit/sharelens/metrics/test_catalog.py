"""The names of metrics keep to Prometheus' and OpenTelemetry's conventions."""

import re

from sharelens.metrics.catalog import METRICS, Kind

UNITS = {"s": "_seconds"}


def test_no_name_is_given_twice():
    for names in ({metric.name for metric in METRICS}, {metric.twin for metric in METRICS}):
        assert len(names) == len(METRICS)


def test_only_counters_end_in_total():
    assert all(metric.name.endswith("_total") == (metric.kind is Kind.COUNTER) for metric in METRICS)


def test_a_name_tells_its_unit_and_its_twin_does_not():
    for metric in METRICS:
        assert metric.name.endswith("_seconds") == (metric.unit == "s"), metric.name
        assert re.fullmatch(r"[a-z_]+(\.[a-z_]+)+", metric.twin), metric.twin
        assert not metric.twin.endswith(("_seconds", "_total"))


def test_share_partitions_are_told_by_cluster_group_topic_and_partition():
    labels = {metric.labels for metric in METRICS if metric.name == "kafka_sharegroup_lag"}
    assert labels == {("cluster", "group", "topic", "partition")}
