"""The search for Java and the jars of Kafka Streams, and instances that end by themselves."""

import sys
import time
from pathlib import Path

import pytest

from sharelens.workloads.admin import WorkloadError
from sharelens.workloads.application import COUNTING, JARS, Instance, Java, find_java


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    """A machine with Java and without Kafka."""
    java = tmp_path / "home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.touch(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("KAFKA_HOME", raising=False)


@pytest.fixture
def libs(tmp_path):
    folder = tmp_path / "kafka" / "libs"
    folder.mkdir(parents=True)
    for jar in JARS:
        (folder / f"{jar}-4.3.1.jar").touch()
    return folder


def test_the_jars_of_a_kafka_are_used(libs, monkeypatch):
    expected = f"{libs}/*"
    assert find_java([libs]).class_path == expected
    monkeypatch.setenv("KAFKA_HOME", str(libs.parent))
    assert find_java([]).class_path == expected


def test_a_missing_part_is_named_in_a_line(libs, monkeypatch):
    with pytest.raises(WorkloadError, match="give --kafka-libs DIR, the folder libs of Kafka"):
        find_java([])
    jar = libs / "kafka-streams-4.3.1.jar"
    jar.unlink()
    with pytest.raises(WorkloadError, match=r"no kafka-streams-VERSION\.jar"):
        find_java([libs])
    jar.touch()
    monkeypatch.setenv("JAVA_HOME", str(libs))
    with pytest.raises(WorkloadError, match="needs java: .*/bin has none"):
        find_java([libs])


def test_an_instance_that_ends_by_itself_is_reported_with_its_last_line(tmp_path):
    program = tmp_path / "java"
    program.write_text(f"#!{sys.executable}\nprint('first')\nraise SystemExit('no class')\n")
    program.chmod(0o755)
    instance = Instance(Java(program=str(program), class_path=""), COUNTING, {"application.id": "a"}, tmp_path / "one")
    with pytest.raises(WorkloadError, match="ended with 1: no class"):
        _check_again_and_again(instance)
    assert "application.id=a" in Path(tmp_path / "one" / "application.properties").read_text()


def _check_again_and_again(instance):
    for _ in range(1_000):
        instance.check()
        time.sleep(0.01)
