"""The broker compacts its compacted topics: nothing that a client or a reader asks for changes, the files shrink."""

import json
import shutil
import time

import pytest
from confluent_kafka import Consumer, TopicPartition

from sharelens.cli import main
from sharelens.workloads.load import Amount
from tests.broker.workload_runs import SETTINGS, assert_kafkas_tool_reads, run_profiles

pytestmark = pytest.mark.broker

GROUP, TOPIC = "readers", "t-steady"
SMALL = SETTINGS | {"offsets_topic_segment_bytes": 3_000, "log_cleaner_backoff_ms": 50}
COMMITS = 150
PATIENCE_S = 120


def commits(bootstrap, count):
    """Commit offset 1, 2, … of a partition, each in a request of its own."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP, "enable.auto.commit": False})
    try:
        for offset in range(1, count + 1):
            consumer.commit(offsets=[TopicPartition(TOPIC, 0, offset)], asynchronous=False)
    finally:
        consumer.close()


def committed(bootstrap):
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP})
    try:
        return consumer.committed([TopicPartition(TOPIC, 0)], timeout=30)[0].offset
    finally:
        consumer.close()


def size(log_dir):
    return sum(path.stat().st_size for path in log_dir.glob("__consumer_offsets-*/*.log"))


def groups(log_dir, capsys):
    assert main(["groups", "--log-dir", str(log_dir), "--include-uncommitted", "--output", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows
    return rows


def test_the_offsets_topic_shrinks_and_clients_and_readers_see_no_difference(start_broker, tmp_path, capsys):
    broker = start_broker("--feature", "share.version=2", **SMALL, log_cleaner_enable=False)
    run_profiles(broker.bootstrap, tmp_path, ["steady"], Amount(records=50))
    commits(broker.bootstrap, COMMITS)
    assert broker.stop() == 0
    before = tmp_path / "before"
    shutil.copytree(broker.log_dir, before)
    broker = start_broker("--feature", "share.version=2", **SMALL)
    deadline_s = time.monotonic() + PATIENCE_S
    while size(broker.log_dir) > size(before) // 2:
        assert time.monotonic() < deadline_s, "it is not compacted"
        time.sleep(0.05)
    assert committed(broker.bootstrap) == COMMITS
    broker.kill()
    broker = start_broker("--feature", "share.version=2", **SMALL)
    assert committed(broker.bootstrap) == COMMITS
    assert broker.stop() == 0
    assert groups(broker.log_dir, capsys) == groups(before, capsys)


@pytest.mark.components
def test_kafkas_tool_reads_what_was_compacted(start_broker, tmp_path):
    broker = start_broker("--feature", "share.version=2", **SMALL)
    run_profiles(broker.bootstrap, tmp_path, ["steady"], Amount(records=50))
    commits(broker.bootstrap, COMMITS)
    deadline_s = time.monotonic() + PATIENCE_S
    while size(broker.log_dir) > 4 * 3_000:
        assert time.monotonic() < deadline_s, "it is not compacted"
        time.sleep(0.05)
    assert broker.stop() == 0
    assert assert_kafkas_tool_reads(broker.log_dir) > 50
