"""Scripted histories of consumer groups: the light broker answers and records what a real Kafka 4.3.1 did.

What Kafka did is recorded; one more test, for machines with Java, plays all histories on a Kafka and compares the
recording with it.
"""

import pytest

from bench.brokers import kafka_broker
from sharelens.spark.java import JavaError
from tests.broker import running
from tests.broker.consumers.recorded_histories import HISTORIES, SETTINGS, play, recorded
from tools.kept_jars import ToolUnavailableError

MIXED = {
    "classic-member-joins", "consumer-member-upgrades-a-classic-group", "last-consumer-member-downgrades-the-group",
    "static-member-changes-its-protocol", "last-static-consumer-member-becomes-classic", "refused-classic-members",
    "full-group-with-classic-members", "classic-member-that-joins-again-with-other-topics",
    "silent-classic-member-is-fenced", "classic-member-that-does-not-rejoin-is-fenced",
    "classic-member-that-does-not-sync-is-fenced", "commits-of-classic-members",
    "classic-member-with-an-unreadable-subscription",
}  # fmt: skip
"""Histories of groups with members of both protocols, which the light broker does not have yet."""


def histories():
    mixed = [pytest.mark.xfail(reason="no classic members in a consumer group")]
    return [pytest.param(name, marks=mixed if name in MIXED else []) for name in HISTORIES]


@pytest.fixture(scope="module")
def light(tmp_path_factory):
    settings = {name.replace(".", "_"): value for name, value in SETTINGS.items()}
    broker = running.start(tmp_path_factory.mktemp("histories") / "light", **settings)
    yield broker
    broker.kill()


@pytest.mark.broker
@pytest.mark.parametrize("name", histories())
def test_a_history_is_that_of_kafka(light, name):
    compare(play(name, light.bootstrap, light.log_dir), recorded()[name])


@pytest.mark.components
def test_the_recorded_histories_are_those_of_a_kafka_of_this_machine(tmp_path):
    expected = recorded()
    assert expected.keys() == HISTORIES.keys()
    assert len(expected) >= 40
    try:
        with kafka_broker(tmp_path / "kafka", SETTINGS) as kafka:
            for name in HISTORIES:
                compare(play(name, kafka.bootstrap, tmp_path / "kafka" / "log"), expected[name])
    except (ToolUnavailableError, JavaError) as error:
        pytest.skip(f"Kafka's broker: {error}")  # a Kafka that does not start is a failure


def compare(played, expected):
    """Answer by answer, so that the first difference shows."""
    for number, (answer, kafka) in enumerate(zip(played.answers, expected.answers, strict=True)):
        assert answer == kafka, number
    for number, (record, kafka) in enumerate(zip(played.records, expected.records, strict=False)):
        assert record == kafka, number
    assert len(played.records) == len(expected.records)
