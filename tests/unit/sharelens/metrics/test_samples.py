"""Which samples an export has, and in what order; whatever there is, their number is bounded."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from sharelens.metrics import catalog
from sharelens.metrics.figures import Figures
from sharelens.metrics.samples import Export, export

TOPIC = "AAAAAAAAAAAAAAAAAAAABQ"


def figures(stalled: dict[int, float], cluster: str = "c", topics: dict[str, str] | None = None) -> Figures:
    """A cluster of one group: how long each partition has stood still."""
    return Figures(
        cluster=cluster,
        first_ms=1,
        data_ms=2,
        read_ms=3,
        of_cluster={catalog.READ_TIMESTAMP: 0.003},
        of_groups={"g": {catalog.GROUP_LAG: 7}},
        of_share_partitions={
            ("g", TOPIC, partition): {catalog.STALLED: seconds, catalog.LAG: partition}
            for partition, seconds in stalled.items()
        },
        topics=topics or {TOPIC: "orders"},
    )


def partitions(metric_export: Export) -> list[int]:
    return [sample.labels[3] for sample in metric_export.samples.get(catalog.STALLED, [])]


def count(metric_export: Export) -> int:
    return sum(map(len, metric_export.samples.values()))


def test_samples_come_in_the_order_of_their_labels():
    metric_export = export([figures({10: 1, 9: 5, 1: 3})])
    assert partitions(metric_export) == [1, 9, 10]
    assert [metric.name for metric in metric_export.samples] == [
        "kafka_sharegroup_lag",
        "kafka_sharegroup_stalled_seconds",
        "kafka_sharegroup_group_lag",
        "sharelens_read_timestamp_seconds",
        "sharelens_share_partitions_left_out",
        "sharelens_build_info",
    ]


def test_the_worst_share_partitions_have_series_of_their_own_and_the_others_are_counted():
    metric_export = export([figures({0: 1, 1: 5, 2: 3, 3: 0})], max_series=4 + 2 * 2)
    assert partitions(metric_export) == [1, 2]
    assert metric_export.left_out == 2
    assert [sample.value for sample in metric_export.samples[catalog.LEFT_OUT]] == [2]


def test_findings_have_labels_in_order_and_count_as_series():
    kinds = {("error", "stuck", "found"): 2, ("error", "stuck", "not_judged"): 0}
    metric_export = export([replace(figures({0: 1}), of_kinds=kinds)], max_series=4 + 2)
    assert {sample.labels: sample.value for sample in metric_export.samples[catalog.FINDINGS]} == {
        ("c", "error", "stuck", "found"): 2,
        ("c", "error", "stuck", "not_judged"): 0,
    }
    assert partitions(metric_export) == []


def test_of_equal_stalls_the_larger_lag_comes_first():
    assert partitions(export([figures({0: 0, 1: 0, 2: 0})], max_series=4 + 2)) == [2]


def test_sums_of_groups_are_there_however_few_series_are_wanted():
    metric_export = export([figures({0: 1})], max_series=1)
    assert catalog.GROUP_LAG in metric_export.samples
    assert catalog.LAG not in metric_export.samples


@given(
    st.lists(st.dictionaries(st.integers(0, 20), st.integers(0, 3), max_size=8), min_size=1, max_size=3),
    st.integers(1, 60),
)
def test_the_bound_holds_and_nothing_is_lost_without_being_counted(clusters, max_series):
    metric_export = export(
        [figures(stalled, cluster=str(number)) for number, stalled in enumerate(clusters)], max_series
    )
    always = 1 + 3 * len(clusters)
    assert count(metric_export) <= max(max_series, always)
    assert len(partitions(metric_export)) + metric_export.left_out == sum(map(len, clusters))
