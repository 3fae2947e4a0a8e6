"""Metrics of real brokers' logs: a lake and the log it was made of give the same, and Kafka's own figures."""

import json
from collections import Counter

import pytest

from sharelens.cli import main
from sharelens.findings.finding import IS_FOUND
from sharelens.findings.rules import RULES
from sharelens.metrics import catalog
from sharelens.metrics.otlp import otlp_json
from sharelens.metrics.prometheus import prometheus_text
from sharelens.metrics.reading import read
from sharelens.metrics.samples import Export, export
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.lag import lag
from sharelens.source.request import CutChoice, Source
from sharelens.tables.logs.tables import open_log_tables
from tests.datasets import dataset
from tests.depths import in_soak
from tests.processes.in_process import recorded_lake

pytestmark = pytest.mark.compat


LAKE_ALONE = (b"sharelens_read_timestamp_seconds", b"sharelens_audit_findings", b'kind="audit_', b'kind="lag_growing"')
"""What differs: the moment of a run, the audit, which is a stage of the pipeline, and lag between publications."""


def in_both(exported: Export) -> list[bytes]:
    lines = prometheus_text(exported).splitlines()
    return [line for line in lines if not any(name in line for name in LAKE_ALONE)]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["dlq", "pruned", *in_soak("timeouts", "transactions", "edge44")])
def test_a_lake_and_its_log_directory_give_the_same_samples(name: str):
    logs = dataset(name) / "logs"
    lake = recorded_lake(name)
    of_lake, of_log = export(read(Source(lake=str(lake)))), export(read(Source(log_dirs=(str(logs),))))
    assert in_both(of_lake) == in_both(of_log)
    assert len(otlp_json(of_lake)) > 1000


@pytest.mark.one_in(4)
@pytest.mark.parametrize("source", ["log-dir", "lake"])
@pytest.mark.parametrize("name", ["dlq", "timeouts"])
def test_findings_are_those_of_the_overview(name: str, source: str, capsys: pytest.CaptureFixture[str]):
    path = str(dataset(name) / "logs" if source == "log-dir" else recorded_lake(name))
    (figures,) = read(Source(log_dirs=(path,)) if source == "log-dir" else Source(lake=path))
    main(["overview", f"--{source}", path, "--output", "json"])
    rows = json.loads(capsys.readouterr().out)["findings"]
    counts = Counter((row["severity"], row["kind"], row["result"]) for row in rows)
    assert counts
    assert {kind: number for kind, number in figures.of_kinds.items() if number} == counts
    assert {(kind, result) for _, kind, result in figures.of_kinds} >= {(rule.kind, IS_FOUND) for rule in RULES}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["basic", "admin"])
def test_lags_are_those_of_the_command_and_sum_up_by_group(name: str):
    source = Source(log_dirs=(str(dataset(name) / "logs"),))
    (figures,) = read(source)
    with open_log_tables(source) as evidence:
        rows = lag(evidence, KeyFilter(), CutChoice()).table.to_pylist()
    lags = {(row["group_id"], row["topic_id"], row["partition"]): row["lag"] for row in rows}
    assert {key: figures.of_share_partitions[key].get(catalog.LAG) for key in lags} == lags
    for group, values in figures.of_groups.items():
        known_lags = [value for key, value in lags.items() if key[0] == group and value is not None]
        assert values.get(catalog.GROUP_LAG, 0) == sum(known_lags)
