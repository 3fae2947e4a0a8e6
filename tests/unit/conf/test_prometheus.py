"""The alert rules and all queries: tested by promtool; they ask for metrics that there are, alerts have their pages."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from jobs.run_metrics import RUN_METRICS
from sharelens.metrics.catalog import METRICS
from tests.unit.conf.test_grafana import expressions

ROOT = Path(__file__).parents[3]
RULES = ROOT / "conf" / "prometheus" / "sharelens-alerts.yaml"
CASES = Path(__file__).parent / "sharelens_alerts_test.yaml"
PAGE = ROOT / "docs" / "how-to" / "monitor-with-prometheus.md"
SERVICES = ROOT / "docs" / "how-to" / "run-it-as-a-service.md"
SCALED = ROOT / "conf" / "kubernetes" / "scaled-object.yaml"
CONFIGURATION = ROOT / "conf" / "prometheus" / "prometheus.yaml"
VARIABLE = re.compile(r"\$\w+")
TEMPLATE_QUERY = re.compile(r"label_values\((.*), *\w+\)")
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


@pytest.mark.slow
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


def of_page() -> list[str]:
    """The queries of the page's table."""
    return re.findall(r"^\| [^|]+ \| `([^`]+)` \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def scaler() -> dict[str, str]:
    (trigger,) = yaml.safe_load(SCALED.read_text(encoding="utf-8"))["spec"]["triggers"]
    return trigger["metadata"]


def of_dashboard() -> list[str]:
    return [VARIABLE.sub(".*", TEMPLATE_QUERY.sub(r"\1", expression)) for expression in expressions()]


def every_query() -> list[str]:
    alert = re.findall(r"`(time\(\) - [^`]+)`", SERVICES.read_text(encoding="utf-8"))
    return [*of_page(), *of_dashboard(), *alert, scaler()["query"]]


@pytest.mark.slow
def test_promtool_takes_every_query(tmp_path):
    rules = [{"record": f"query:{number}", "expr": query} for number, query in enumerate(every_query())]
    assert len(rules) > 25
    path = tmp_path / "rules.yaml"
    path.write_text(json.dumps({"groups": [{"name": "queries", "rules": rules}]}), encoding="utf-8")
    done = subprocess.run([promtool(), "check", "rules", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(rules)} rules found" in done.stdout


def test_the_queries_ask_for_metrics_that_there_are():
    known_metrics = {metric.name for metric in (*METRICS, *RUN_METRICS)}
    names = {name for query in every_query() for name in METRIC.findall(query)}
    assert len(names) > 10
    assert names <= known_metrics


def test_the_page_shows_the_scaler_that_the_file_has():
    block = PAGE.read_text(encoding="utf-8").partition("```yaml\n")[2].partition("```")[0]
    assert yaml.safe_load(block)["triggers"][0]["metadata"] == scaler()


@pytest.mark.slow
def test_the_scaler_sees_the_lag_of_its_group_while_the_exporter_reads_and_nothing_while_it_does_not(tmp_path):
    series = {
        'kafka_sharegroup_group_lag{cluster="c",group="orders-workers"}': "700x9",
        'kafka_sharegroup_group_lag{cluster="c",group="others"}': "9000x9",
        "sharelens_up": "1x4 0x4",
    }
    tests = [{"expr": scaler()["query"], "eval_time": "2m", "exp_samples": [{"labels": "{}", "value": 700}]}]
    tests.append({"expr": scaler()["query"], "eval_time": "7m", "exp_samples": []})
    case = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": tests,
    }
    path = tmp_path / "cases.yaml"
    path.write_text(json.dumps({"rule_files": [], "tests": [case]}), encoding="utf-8")
    done = subprocess.run([promtool(), "test", "rules", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_promtool_finds_no_fault_in_the_configuration():
    done = subprocess.run(
        [promtool(), "check", "config", str(CONFIGURATION)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
