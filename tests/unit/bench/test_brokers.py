"""Brokers that the bench starts."""

import socket
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench import brokers
from bench.brokers import HOST, BrokerUnavailableError, Started, free_ports, kafka_broker, light_broker, measure
from tools import kafka_tools
from tools.kept_jars import ToolUnavailableError


def test_free_ports_are_free_and_differ():
    ports = free_ports(3)
    assert len(set(ports)) == 3
    for port in ports:
        with socket.socket() as listening:
            listening.bind((HOST, port))


@pytest.mark.slow
def test_a_broker_that_ends_at_once_is_told_with_its_last_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(brokers.SHARE_SETTINGS, "group.share.max.size", "many")
    with pytest.raises(BrokerUnavailableError, match="group.share.max.size"), light_broker(tmp_path / "light"):
        pass


def test_without_jars_there_is_no_kafka_and_the_reason_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def none_there():
        raise ToolUnavailableError("no jars")

    monkeypatch.setattr(kafka_tools, "fetch_tools", none_there)
    with pytest.raises(ToolUnavailableError, match="no jars"), kafka_broker(tmp_path / "kafka"):
        pass


def test_a_client_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    @contextmanager
    def nobody(folder: Path):
        yield Started(bootstrap="127.0.0.1:1", start_s=0.0, pid=1)

    monkeypatch.setattr(Started, "idle_bytes", lambda self: 0)
    monkeypatch.setattr("sys.executable", "false")
    with pytest.raises(BrokerUnavailableError, match="the client failed: it said nothing"):
        measure(nobody, tmp_path, 1)


@pytest.mark.broker
def test_the_light_broker_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(brokers, "IDLE_S", 0.1)
    speed = measure(light_broker, tmp_path / "light", 2_000)
    assert sorted(speed.records_per_s) == [100, 10_000]
    assert all(rate > 0 for rate in speed.records_per_s.values())
    assert 0 < speed.idle_bytes < 100 << 20
    assert 0 < speed.start_s < brokers.START_TIMEOUT_S
