"""The dashboard: sound JSON that asks for metrics and labels that there are."""

import json
import re
from pathlib import Path

from sharelens.metrics.catalog import METRICS

DASHBOARD = Path(__file__).parents[3] / "conf" / "grafana" / "sharelens.json"
BY_NAME = {metric.name: metric for metric in METRICS}
SELECTED = re.compile(r"((?:kafka_sharegroup|sharelens)_\w+)(?:\{([^}]*)\})?")


def dashboard() -> dict:
    return json.loads(DASHBOARD.read_text(encoding="utf-8"))


def expressions() -> list[str]:
    panels = [target["expr"] for panel in dashboard()["panels"] for target in panel["targets"]]
    variables = [variable["definition"] for variable in dashboard()["templating"]["list"] if "definition" in variable]
    return panels + variables


def test_it_asks_for_metrics_and_labels_that_there_are():
    queried_names = set()
    for expression in expressions():
        for name, selector in SELECTED.findall(expression):
            labels = set(re.findall(r"(\w+)=~", selector))
            assert labels <= set(BY_NAME[name].labels), expression
            queried_names.add(name)
    assert len(queried_names) > 10


def test_legends_name_labels_of_what_they_stand_for():
    for panel in dashboard()["panels"]:
        for target in panel["targets"]:
            names = {name for name, _ in SELECTED.findall(target["expr"])}
            labels = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert all(labels <= set(BY_NAME[name].labels) for name in names), panel["title"]


def test_data_source_cluster_group_and_topic_are_chosen_by_the_reader():
    names = [variable["name"] for variable in dashboard()["templating"]["list"]]
    assert names == ["datasource", "cluster", "group", "topic"]
    sources = {target["datasource"]["uid"] for panel in dashboard()["panels"] for target in panel["targets"]}
    assert sources == {"${datasource}"}


def test_panels_have_places_of_their_own_and_say_what_they_show():
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (panel["gridPos"]["x"] + across, panel["gridPos"]["y"] + down)
        for panel in panels
        for across in range(panel["gridPos"]["w"])
        for down in range(panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(across for across, _ in cells) == 23
    assert all(panel["title"] and panel["description"] for panel in panels)
