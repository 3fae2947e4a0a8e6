"""Healthy clusters raise nothing: simulated logs of every profile, and what Kafka's own coordinator appended."""

import json
from collections import Counter

import pytest

from sharelens.broker.simulator.settings import PROFILES, profile
from sharelens.broker.simulator.simulation import simulate
from sharelens.cli import main
from state_model.audit.table import BY_ID
from tests.audit.reference.steps import steps
from tests.audit.reference.violations import violations
from tests.compat.model.test_coordinator_shard import BOTH_VERSIONS, RECORDS, runs
from tests.depths import in_soak, rows_in_soak

pytestmark = pytest.mark.slow
SMALL = {"records": 3000, "state_partitions": 3, "partitions": 2, "groups": 4, "checkpoints": 1}
HOSTILE = frozenset({27, 37, 39, 40, 41, 42, 47, 48, 49, 58, 60, 62, 63, 64})
"""Rules about what leaders send; the requests to Kafka's coordinator had random offsets, states and counts."""
OLDER_THAN_4_4 = frozenset({27, 37, 64})
NEVER_THERE = {("dead-letters", "4.3")}
"""Dead letters came with Kafka 4.4."""
SIMULATED = [(name, version) for name in PROFILES for version in ("4.3", "4.4") if (name, version) not in NEVER_THERE]


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("name", "version"), [*SIMULATED[::2], *rows_in_soak(*SIMULATED[1::2])])
def test_a_simulated_cluster_has_no_finding(name, version, tmp_path, capsys):
    logs = tmp_path / "logs"
    simulate(profile(name, kafka_version=version, **SMALL), 5, logs)
    capsys.readouterr()
    assert main(["audit", "--log-dir", str(logs), "--kafka-version", version, "--output", "json"]) in (0, None)
    assert json.loads(capsys.readouterr().out)["findings"] == []


@pytest.mark.one_in(2)
@BOTH_VERSIONS
@pytest.mark.parametrize("step", [5, *in_soak(1)])
def test_kafkas_coordinator_violates_no_rule_of_its_own(version, step):
    """In each `step`th run."""
    violation_counts: Counter[int] = Counter()
    records = 0
    for run in runs(version)[::step]:
        entries = [(step.log_offset, time_of(step), step.record) for step in run]
        records += len(entries)
        violation_counts.update(BY_ID[violation.rule_id].number for violation in violations(steps(entries)))
    assert records == RECORDS if step == 1 else records > RECORDS / 2 / step
    assert set(violation_counts) - HOSTILE == set()
    if version == "4.4.0":
        assert not set(violation_counts) & OLDER_THAN_4_4
    else:
        assert violation_counts[27] > 100 / step


def time_of(step):
    return getattr(step.record.value, "write_timestamp_ms", 0)
