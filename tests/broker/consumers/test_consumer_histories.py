"""Scripted histories of consumer groups: the light broker answers and records what a real Kafka 4.3.1 did.

What Kafka did is recorded; one more test, for machines with Java, plays all histories on a Kafka and compares the
recording with it.
"""

import json

import pytest

from sharelens.cli import main
from sharelens.spark.java import JavaError
from state_model.audit.table import BY_CODE
from tests.broker import running
from tests.broker.consumers.recorded_histories import SETTINGS, Kafka, differences, play_all, recorded
from tools.kept_jars import ToolUnavailableError


class LightBroker:
    """The light broker for histories."""

    def __init__(self, log_dir):
        self.log_dir = log_dir
        self._start()

    def _start(self):
        settings = {name.replace(".", "_"): value for name, value in SETTINGS.items()}
        self._broker = running.start(self.log_dir, **settings)
        self.bootstrap = self._broker.bootstrap

    def restart(self):
        assert self._broker.stop() == 0
        self._start()

    def kill(self):
        self._broker.kill()


@pytest.mark.broker
def test_histories_on_the_light_broker_are_those_of_kafka_and_legal(tmp_path, capsys):
    broker = LightBroker(tmp_path / "light")
    try:
        played = play_all(broker)
    finally:
        broker.kill()
    assert differences(played, recorded()) == {}
    assert main(["audit", "--log-dir", str(broker.log_dir), "--output", "json"]) == 0
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert [row for row in findings if BY_CODE[row["rule"]].is_of_model_groups] == []


@pytest.mark.components
def test_the_recorded_histories_are_those_of_a_kafka_of_this_machine(tmp_path):
    expected = recorded()
    assert len(expected) >= 40
    try:
        with Kafka(tmp_path / "kafka") as kafka:
            played = play_all(kafka)
    except (ToolUnavailableError, JavaError) as error:
        pytest.skip(f"Kafka's broker: {error}")  # a Kafka that does not start is a failure
    assert differences(played, expected) == {}
