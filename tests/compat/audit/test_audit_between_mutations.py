"""Every damage between logs is found, and no near one is."""

from collections import Counter

import pytest

from state_model.audit.table import RULES
from tests.audit.between_mutations import NEAR, OPERATORS, QUICK, SIMULATED, clusters, detection
from tests.depths import in_soak

pytestmark = pytest.mark.slow
ELSEWHERE = {
    "leader_epoch_beyond_topic",
    "unknown_topic_partition",
    "log_of_other_cluster",
    "window_over_locks",
    "more_updates_than_configured",
    "update_over_limit",
    "assigned_unevenly",
    "partition_not_in_topic",
    "cold_snapshot_too_early",
    "state_topic_created_again",
}
"""Rules on the metadata log, the configuration, windows, assignments: small logs of their own."""
FROM_OPTIONS = {"count_over_limit", "available_at_limit"}


PLACES = pytest.mark.parametrize("places", [QUICK, *in_soak(slice(None))], ids=["some", "all"])
"""Of the clusters that are damaged."""


@pytest.mark.one_in(4)
@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
@PLACES
def test_a_damage_between_logs_is_found(operator, places):
    result = detection(operator, places)
    assert result.mistakes == []
    assert result.detected >= (1 if places == QUICK else 2 if "never appended" in operator.name else 3)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("operator", NEAR, ids=lambda operator: operator.name)
@PLACES
def test_a_change_that_healthy_brokers_leave_is_none(operator, places):
    result = detection(operator, places)
    assert result.mistakes == []
    assert result.logs >= (1 if places == QUICK else len(SIMULATED))


@pytest.mark.soak
@PLACES
def test_every_rule_between_logs_is_broken_by_some_damages(places):
    broken = sum((detection(operator, places).rules for operator in OPERATORS), Counter())
    of_share_groups = [rule for rule in RULES if not rule.is_of_model_groups]
    between = {rule.code for rule in of_share_groups if rule.needs and rule.severity in ("error", "warning")}
    fewest = 1 if places == QUICK else 3
    assert {code for code in between if broken[code] < fewest} - FROM_OPTIONS == ELSEWHERE - {
        "state_topic_created_again"
    }


def test_the_logs_are_those_of_brokers():
    for cluster in clusters():
        assert sum(map(len, cluster.groups.values())) > 20
        assert sum(map(len, cluster.state.values())) > 100
