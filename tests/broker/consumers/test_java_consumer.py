"""Kafka's Java consumer with the new protocol and its tool for consumer groups, unmodified, beside a real Kafka."""

import pytest

from bench.brokers import kafka_broker
from tests.broker import running
from tests.broker.consumers.java_consumers import PARTITIONS, RECORDS, SETTINGS, TOPIC, Session
from tests.broker.java import java_machine

pytestmark = pytest.mark.components

LEAST_STEPS = 90


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
    """What each step of a session showed on the light broker."""
    folder = tmp_path_factory.mktemp("light")
    broker = running.start(folder / "log", **{name.replace(".", "_"): text for name, text in SETTINGS.items()})
    yield Session(java_machine(), broker.bootstrap, folder).run()
    assert broker.stop() == 0, broker.problems.read_text()[-2000:]


def test_members_read_commit_and_are_described(steps):
    assert steps["records"] == (0, sorted(f"{p} {n}" for p in range(PARTITIONS) for n in range(RECORDS)))
    assert steps["list both"] == (0, ["GROUP TYPE STATE", "readers Consumer Stable"])
    code, lines = steps["stable describe --members --verbose"]
    assert code == 0
    assert [line.split()[-5:] for line in lines[1:]] == [
        ["2", "3", f"{TOPIC}:2,3", "3", f"{TOPIC}:2,3"],
        ["2", "3", f"{TOPIC}:0,1", "3", f"{TOPIC}:0,1"],
    ]


def test_the_same_session_shows_the_same_on_a_real_kafka(steps, tmp_path):
    with kafka_broker(tmp_path / "kafka", SETTINGS) as kafka:
        kafkas = Session(java_machine(), kafka.bootstrap, tmp_path).run()
    assert len(steps) >= LEAST_STEPS
    assert {name: step for name, step in steps.items() if step != kafkas[name]} == {}
    assert steps.keys() == kafkas.keys()
