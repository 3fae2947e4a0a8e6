"""Incidents made with real clients: the first line of `overview` names each, and says that a healthy group is so."""

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import AcknowledgeType, Message, ShareConsumer

from sharelens.cli import main
from tests.broker import running
from tests.broker.kafka_tools import SHARE_GROUPS, kafka_tool
from tests.broker.running import RunningBroker
from tests.broker.share_clients import SHARE_SETTINGS, new_share_group, place, share_consumer, work
from tests.broker.test_clients import new_topic, produce

CHECKPOINT_S = 0.2
SETTINGS = SHARE_SETTINGS | {"replica_high_watermark_checkpoint_interval_ms": round(CHECKPOINT_S * 1000)}
LEAST_S = 1
RECORDS = 10


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    running_broker = running.start(tmp_path_factory.mktemp("overview") / "log", **SETTINGS)
    yield running_broker
    assert running_broker.stop() == 0, running_broker.problems.read_text()[-2000:]


def filled(broker: RunningBroker) -> str:
    """A topic with ten records in one partition."""
    topic = new_topic(broker)
    produce(broker, topic, [str(number) for number in range(RECORDS)])
    return topic


def accept(consumer: ShareConsumer, count: int) -> list[Message]:
    return work(consumer, lambda _: AcknowledgeType.ACCEPT, lambda messages: len(messages) >= count)


def hold(consumer: ShareConsumer, count: int) -> list[Message]:
    """Acquires records without an acknowledgement."""
    messages: list[Message] = []
    while len(messages) < count:
        messages += consumer.poll(1.0)
    return messages


@contextmanager
def consumed(broker: RunningBroker, group: str, topic: str) -> Iterator[None]:
    """All records are accepted; the member stays."""
    with share_consumer(broker, group, topic) as consumer:
        accept(consumer, RECORDS)
        yield


def overview(log_dir: Path, group: str, capsys: pytest.CaptureFixture[str], *options: str) -> list[dict[str, Any]]:
    """The findings about a group."""
    time.sleep(2 * CHECKPOINT_S)
    capsys.readouterr()
    words = ["--log-dir", str(log_dir), "--group", group, "--min-duration", f"{LEAST_S}s", "--output", "json"]
    try:
        code = main(["overview", *words, *options]) or 0
    except SystemExit as stop:
        code = int(stop.code or 0)
    out, err = capsys.readouterr()
    assert code == 0, err
    findings: list[dict[str, Any]] = json.loads(out)["findings"]
    return findings


def kinds(findings: list[dict[str, Any]]) -> list[str]:
    return [row["kind"] for row in findings]


def test_a_healthy_group_has_no_finding(broker: RunningBroker, capsys: pytest.CaptureFixture[str]) -> None:
    group, topic = new_share_group(broker), filled(broker)
    with consumed(broker, group, topic):
        time.sleep(LEAST_S)
        assert overview(broker.log_dir, group, capsys) == []
        main(["overview", "--log-dir", str(broker.log_dir), "--group", group])
        assert "nothing is wrong: 1 group, 1 share partition" in capsys.readouterr().out


def test_a_silent_member(broker: RunningBroker, capsys: pytest.CaptureFixture[str]) -> None:
    group, topic = new_share_group(broker), filled(broker)
    with share_consumer(broker, group, topic) as consumer:
        accept(consumer, RECORDS)
        produce(broker, topic, ["more"] * 6)
        hold(consumer, 6)
        time.sleep(2 * LEAST_S)
        first, *_ = overview(broker.log_dir, group, capsys)
        assert (first["kind"], first["severity"], first["size"]) == ("stuck", "error", 6)
        assert "silent_with_backlog" in first["text"]
        assert first["command"] == f"sharelens stalled --log-dir {broker.log_dir} --group={group}"


def test_a_member_that_never_did_a_record(broker: RunningBroker, capsys: pytest.CaptureFixture[str]) -> None:
    group, topic = new_share_group(broker), filled(broker)
    with share_consumer(broker, group, topic) as consumer:
        hold(consumer, RECORDS)
        time.sleep(2 * LEAST_S)
        first, *_ = overview(broker.log_dir, group, capsys)
    # The records are older than the group, and no file says from where on it reads.
    assert (first["kind"], first["severity"], first["topic"]) == ("not_started", "info", topic)


def test_no_members(broker: RunningBroker, capsys: pytest.CaptureFixture[str]) -> None:
    group, topic = new_share_group(broker), filled(broker)
    with consumed(broker, group, topic):
        pass
    produce(broker, topic, ["more"] * 6)
    time.sleep(LEAST_S)
    first, *_ = overview(broker.log_dir, group, capsys)
    assert (first["kind"], first["size"]) == ("no_members", 6)
    assert first["text"].startswith("lag 6, no members since ")
    assert "stuck" not in kinds(overview(broker.log_dir, group, capsys))


def test_a_pinned_record(broker: RunningBroker, capsys: pytest.CaptureFixture[str]) -> None:
    group, topic = new_share_group(broker), filled(broker)
    with share_consumer(broker, group, topic) as consumer:
        for message in hold(consumer, RECORDS):
            if place(message)[1] > 0:
                consumer.acknowledge(message, AcknowledgeType.ACCEPT)
        consumer.commit_sync(10.0)
        time.sleep(2 * LEAST_S)
        first, *_ = overview(broker.log_dir, group, capsys)
        assert first["kind"] == "stuck"
        assert "stands still at offset 0" in first["text"]
        assert "blocked_by_record" in first["text"]
        assert first["command"].startswith("sharelens trace ")
        assert first["command"].endswith("--offset=0")


def test_a_burst_of_poison(broker: RunningBroker, capsys: pytest.CaptureFixture[str]) -> None:
    group, topic = new_share_group(broker), filled(broker)
    with share_consumer(broker, group, topic) as consumer:
        work(consumer, lambda _: AcknowledgeType.REJECT, lambda messages: len(messages) >= RECORDS)
        first, *_ = overview(broker.log_dir, group, capsys)
        assert (first["kind"], first["size"]) == ("records_archived", RECORDS)


@pytest.mark.components
def test_a_reset(broker: RunningBroker, capsys: pytest.CaptureFixture[str]) -> None:
    group, topic = new_share_group(broker), filled(broker)
    with consumed(broker, group, topic):
        pass
    words = ("--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute")
    kafka_tool(SHARE_GROUPS, "--bootstrap-server", broker.bootstrap, *words)
    with consumed(broker, group, topic):
        first, *_ = overview(broker.log_dir, group, capsys)
    assert first["kind"] == "start_offset_reset"
    assert f"{topic}-0 was reset to start offset 0 at " in first["text"]


@pytest.mark.components
def test_a_deletion_and_a_creation(broker: RunningBroker, capsys: pytest.CaptureFixture[str]) -> None:
    group, topic = new_share_group(broker), filled(broker)
    with consumed(broker, group, topic):
        pass
    kafka_tool(SHARE_GROUPS, "--bootstrap-server", broker.bootstrap, "--delete", "--group", group)
    with consumed(broker, group, topic):
        first, *_ = overview(broker.log_dir, group, capsys)
    assert first["kind"] == "deleted_and_created"


def test_a_gap_in_the_evidence(broker: RunningBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    group, topic = new_share_group(broker), filled(broker)
    with consumed(broker, group, topic):
        time.sleep(2 * CHECKPOINT_S)
        copy = shutil.copytree(broker.log_dir, tmp_path / "copy")
        segment = max(copy.glob("__share_group_state-*/*.log"), key=lambda path: path.stat().st_size)
        content = bytearray(segment.read_bytes())
        content[len(content) // 2] ^= 0xFF
        segment.write_bytes(content)
        first, *_ = overview(copy, group, capsys)
    assert first["kind"] == "evidence_gap"
