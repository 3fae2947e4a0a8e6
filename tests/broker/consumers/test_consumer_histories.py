"""Scripted histories of consumer groups: the light broker answers and records what a real Kafka 4.3.1 did.

What Kafka did is recorded; one more test, for machines with Java, plays all histories on a Kafka and compares the
recording with it.
"""

import pytest

from bench.brokers import kafka_broker
from sharelens.spark.java import JavaError
from tests.broker import running
from tests.broker.consumers.recorded_histories import SETTINGS, differences, play_all, recorded
from tools.kept_jars import ToolUnavailableError


@pytest.mark.broker
def test_histories_on_the_light_broker_are_those_of_kafka(tmp_path):
    settings = {name.replace(".", "_"): value for name, value in SETTINGS.items()}
    broker = running.start(tmp_path / "light", **settings)
    try:
        played = play_all(broker.bootstrap, broker.log_dir)
    finally:
        broker.kill()
    assert differences(played, recorded()) == {}


@pytest.mark.components
def test_the_recorded_histories_are_those_of_a_kafka_of_this_machine(tmp_path):
    expected = recorded()
    assert len(expected) >= 40
    try:
        with kafka_broker(tmp_path / "kafka", SETTINGS) as kafka:
            played = play_all(kafka.bootstrap, tmp_path / "kafka" / "log")
    except (ToolUnavailableError, JavaError) as error:
        pytest.skip(f"Kafka's broker: {error}")  # a Kafka that does not start is a failure
    assert differences(played, expected) == {}
