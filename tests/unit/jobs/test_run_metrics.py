"""Figures of a process that keeps a lake fresh."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from jobs.freshness import Freshness
from jobs.run_metrics import LAST_RUNS, RUN_METRICS, Outcome, RunFigures, percentiles
from sharelens.metrics.prometheus import prometheus_text

ages = st.lists(st.integers(0, 10**9), min_size=1, max_size=50)


def scraped(figures: RunFigures) -> dict[tuple[str, ...], float]:
    """Values by name and label values."""
    families = text_string_to_metric_families(prometheus_text(figures.export()).decode())
    return {(sample.name, *sample.labels.values()): sample.value for family in families for sample in family.samples}


def fresh(oldest_ms: int) -> Freshness:
    return Freshness(oldest_ms=oldest_ms, newest_ms=0, log_time_ms=5000)


@given(values=ages, quantile=st.floats(0.01, 1))
def test_a_percentile_is_a_value_that_so_many_do_not_exceed(values: list[int], quantile: float) -> None:
    value = percentiles(values, [quantile])[quantile]
    assert value in values
    assert sum(other <= value for other in values) >= quantile * len(values)
    assert sum(other < value for other in values) < quantile * len(values)


@given(values=ages)
def test_percentiles_rise_with_the_quantile_and_do_not_depend_on_order(values: list[int]) -> None:
    low, high = percentiles(values, [0.5, 0.99]).values()
    assert low <= high
    assert percentiles(values[::-1], [0.5, 0.99]) == percentiles(values, [0.5, 0.99])


def test_nothing_has_no_percentiles() -> None:
    assert percentiles([], [0.5]) == {}


def test_before_the_first_run_there_are_counts_alone() -> None:
    values = scraped(RunFigures())
    assert values["sharelens_runs_total", "published"] == 0
    assert {name for name, *_ in values if "freshness" in name or name.endswith("_up")} == set()


def test_runs_are_counted_by_outcome_with_their_freshness() -> None:
    figures = RunFigures()
    figures.ran(Outcome.NO_NEWS, 0.5)
    for age_ms in (1000, 2000, 4000):
        figures.ran(Outcome.PUBLISHED, 1.0, fresh(age_ms))
    values = scraped(figures)
    assert (values["sharelens_runs_total", "published"], values["sharelens_runs_total", "no_news"]) == (3, 1)
    assert values["sharelens_run_freshness_seconds", "0.5"] == 2
    assert values["sharelens_run_freshness_seconds", "0.99"] == 4
    assert values["sharelens_run_published_timestamp_seconds",] == 5
    assert values["sharelens_run_duration_seconds_total",] == 3.5
    assert time.time() - values["sharelens_run_last_success_timestamp_seconds",] == pytest.approx(0, abs=60)


def test_a_run_that_failed_is_down_until_one_gets_through() -> None:
    figures = RunFigures()
    ups = []
    for outcome in (Outcome.NO_NEWS, Outcome.FAILED, Outcome.WITHHELD):
        figures.ran(outcome, 0.1)
        ups.append(scraped(figures)["sharelens_run_up",])
    assert ups == [1, 0, 1]


def test_percentiles_are_those_of_the_last_runs() -> None:
    figures = RunFigures()
    figures.ran(Outcome.PUBLISHED, 1.0, fresh(10**6))
    for _ in range(LAST_RUNS):
        figures.ran(Outcome.PUBLISHED, 1.0, fresh(7))
    assert set(figures.freshness_ms().values()) == {7}


def test_upkeep_is_counted_with_its_time() -> None:
    figures = RunFigures()
    assert ("sharelens_upkeep_last_success_timestamp_seconds",) not in scraped(figures)
    figures.maintained(2.5)
    values = scraped(figures)
    assert (values["sharelens_upkeeps_total",], values["sharelens_upkeep_duration_seconds_total",]) == (1, 2.5)
    assert ("sharelens_upkeep_last_success_timestamp_seconds",) in values


def test_names_are_those_that_prometheus_recommends() -> None:
    for metric in RUN_METRICS:
        assert metric.name.startswith("sharelens_")
        assert metric.name.endswith("_total") == (metric.kind.value == "counter")
