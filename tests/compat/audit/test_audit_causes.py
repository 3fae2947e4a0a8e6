"""A damage that many share partitions or groups show has one cause, over log directories and over a lake."""

import pytest

from tests.audit.roads import over_lake, over_logs
from tests.audit.rule_cases.cause_cases import CASES

pytestmark = pytest.mark.slow


@pytest.mark.one_in(6)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_damage_is_the_cause_of_what_follows_from_it(case, tmp_path):
    logs = case.write(tmp_path)
    audited = over_logs(logs)
    causes = {row["rule"]: set() for row in audited.findings if row["severity"] != "info"}
    for row in audited.findings:
        if row["rule"] in causes:
            causes[row["rule"]].add(row["cause_inferred"])
    assert {rule: causes.get(rule) for rule in case.causes} == {rule: {cause} for rule, cause in case.causes.items()}
    roots = {rule for rule, inferred in causes.items() if None in inferred}
    assert roots == {rule for rule, cause in case.causes.items() if cause is None}
    assert over_lake(logs, tmp_path / "lake") == audited
