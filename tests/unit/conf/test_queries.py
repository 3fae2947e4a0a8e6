"""The queries of the dashboard, of the pages and of KEDA: sound PromQL over metrics that there are."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from sharelens.metrics.catalog import METRICS
from sharelens.metrics.runs import RUN_METRICS
from tests.unit.conf.test_grafana import expressions
from tests.unit.conf.test_prometheus import METRIC, promtool

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "how-to" / "monitor-with-prometheus.md"
SERVICES = ROOT / "docs" / "how-to" / "run-it-as-a-service.md"
SCALED = ROOT / "conf" / "kubernetes" / "scaled-object.yaml"
CONFIGURATION = ROOT / "conf" / "prometheus" / "prometheus.yaml"
VARIABLE = re.compile(r"\$\w+")
TEMPLATE_QUERY = re.compile(r"label_values\((.*), *\w+\)")


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


def test_promtool_takes_every_query(tmp_path):
    rules = [{"record": f"query:{number}", "expr": query} for number, query in enumerate(every_query())]
    assert len(rules) > 25
    path = tmp_path / "rules.yaml"
    path.write_text(json.dumps({"groups": [{"name": "queries", "rules": rules}]}), encoding="utf-8")
    done = subprocess.run([promtool(), "check", "rules", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(rules)} rules found" in done.stdout


def test_the_queries_ask_for_metrics_that_there_are():
    known = {metric.name for metric in (*METRICS, *RUN_METRICS)}
    names = {name for query in every_query() for name in METRIC.findall(query)}
    assert len(names) > 10
    assert names <= known


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


def test_promtool_finds_no_fault_in_the_configuration():
    done = subprocess.run(
        [promtool(), "check", "config", str(CONFIGURATION)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
