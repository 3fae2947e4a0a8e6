"""What-if with the setting that was in force is the history itself, on every recorded log."""

import json

import pytest

from sharelens.cli import main
from tests.datasets import dataset, kinds_first
from tests.in_process import recorded_lake

pytestmark = pytest.mark.usefixtures("evidence_opened_once")

INTERVAL = "share.coordinator.snapshot.update.records.per.snapshot"
WITHOUT_CREATION = ("pruned",)
"""Logs whose records begin in the middle of a history: figures are bounds."""


def answer_of(capsys, *words):
    assert main([*words, "--output", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def config(name):
    return json.loads((dataset(name) / "meta.json").read_text())["brokerConfig"]


@pytest.mark.parametrize("name", kinds_first())
def test_the_snapshot_interval_in_force_gives_the_history(name, capsys):
    limit = config(name).get(INTERVAL, "500")
    rows = answer_of(capsys, "what-if", "--snapshot-update-records", limit, "--log-dir", str(dataset(name) / "logs"))
    assert rows
    assert all(row["at_least"] <= row["in_history"] <= row["at_most"] for row in rows)
    if name not in WITHOUT_CREATION:
        assert {row["certainty"] for row in rows} == {"exact"}
        assert all(row["at_least"] == row["at_most"] for row in rows)


def test_figures_of_the_history_are_those_of_cost(capsys):
    logs = str(dataset("edge") / "logs")
    rows = answer_of(capsys, "what-if", "--snapshot-update-records", "7", "--log-dir", logs)
    key = ("group_id", "topic_id", "partition")
    figures = {(*(row[name] for name in key), row["figure"]): row["in_history"] for row in rows}
    costs = answer_of(capsys, "cost", "--log-dir", logs)
    assert costs
    for row in costs:
        for figure in ("records", "snapshots", "updates", "cold_snapshots", "bytes"):
            assert figures[(*(row[name] for name in key), figure)] == row[figure]


def test_a_lake_answers_as_its_logs_do(capsys):
    words = ("what-if", "--snapshot-update-records", "5")
    straight = answer_of(capsys, *words, "--log-dir", str(dataset("admin") / "logs"))
    assert straight
    assert answer_of(capsys, *words, "--lake", str(recorded_lake("admin"))) == straight


def test_a_group_alone_has_the_figures_that_it_has_among_all(capsys):
    words = ("what-if", "--snapshot-update-records", "5", "--log-dir", str(dataset("admin") / "logs"))
    alone = answer_of(capsys, *words, "--group", "gE")
    assert alone
    assert alone == [row for row in answer_of(capsys, *words) if row["group_id"] == "gE"]


@pytest.mark.parametrize(("value", "range_"), [("-1", "0 to 500"), ("501", "0 to 500")])
def test_a_setting_that_kafka_refuses_is_refused_with_its_range(value, range_, capsys):
    assert main(["what-if", "--snapshot-update-records", value, "--log-dir", str(dataset("basic") / "logs")]) == 2
    assert range_ in capsys.readouterr().err
