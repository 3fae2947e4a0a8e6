"""The alert rules: each is tested by promtool, has its page, and asks for metrics that there are."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from sharelens.metrics.catalog import METRICS

ROOT = Path(__file__).parents[3]
RULES = ROOT / "conf" / "prometheus" / "sharelens-alerts.yaml"
CASES = Path(__file__).parent / "sharelens_alerts_test.yaml"
METRIC = re.compile(r"\b(?:kafka_sharegroup|sharelens)_\w+")


def promtool() -> str:
    """The program; the test is skipped where there is none."""
    program = shutil.which("promtool") or shutil.which("promtool", path=str(ROOT / ".venv" / "tools"))
    if program is None:
        pytest.skip("no promtool here; `make promtool` gets it")
    return program


def rules() -> list[dict]:
    (group,) = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return group["rules"]


def test_promtool_finds_no_fault_in_the_rules():
    done = subprocess.run([promtool(), "check", "rules", str(RULES)], capture_output=True, text=True, check=False)
    assert (done.returncode, "FAILED" in done.stdout) == (0, False), done.stdout + done.stderr


@pytest.mark.slow
def test_the_alerts_fire_when_they_should_and_only_then():
    done = subprocess.run([promtool(), "test", "rules", str(CASES)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_cases_in_which_it_fires():
    cases = yaml.safe_load(CASES.read_text(encoding="utf-8"))["tests"]
    fired = {test["alertname"] for case in cases for test in case["alert_rule_test"] if test["exp_alerts"]}
    assert fired == {rule["alert"] for rule in rules()}


def test_every_alert_has_a_page_that_is_named_after_it():
    for rule in rules():
        page = ROOT / rule["annotations"]["runbook"]
        assert page.name == re.sub(r"(?<!^)(?=[A-Z])", "-", rule["alert"]).lower() + ".md"
        text = page.read_text(encoding="utf-8")
        assert text.startswith(f"# {rule['alert']}\n")
        assert [line for line in text.splitlines() if line.startswith("## ")] == [
            "## What it means",
            "## What to look at",
            "## What to do",
        ]
    pages = {page.name for page in (ROOT / "docs" / "runbooks").glob("share-group-*.md")}
    assert pages == {Path(rule["annotations"]["runbook"]).name for rule in rules()}


def test_the_rules_ask_for_metrics_that_there_are():
    names = {name for rule in rules() for name in METRIC.findall(rule["expr"])}
    assert names <= {metric.name for metric in METRICS}
