"""A lake from a running cluster that is slow, cuts connections, prunes and compacts its logs: nothing is missing that
the cluster gave, and what it removed too early is named.
"""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from sharelens.cli import main
from sharelens.kafka_live.cluster import EARLIEST, Cluster, Place
from sharelens.kafka_live.connection import Connection
from sharelens.lake.scan import open_lake
from state_model.topics import OFFSETS_TOPIC, STATE_TOPIC
from tests.broker import running
from tests.broker.live.test_live_lake import COMPARED, consumed, run
from tests.broker.running import RunningBroker
from tests.broker.share_clients import SHARE_SETTINGS, new_share_group, share_consumer
from tests.broker.test_clients import new_topic, produce
from tests.broker.test_overview import RECORDS, accept, filled
from tests.lakes import content, differences

PATIENCE_S = 120
TROUBLE = (
    "api=*,action=close,probability=0.15,seed=3,after=2,count=6",
    "api=Fetch,action=lose,probability=0.5,seed=5,count=3",
    "api=ListOffsets,action=lose,count=1",
    "api=Fetch,action=error:not_leader_or_follower,after=3,count=2",
    "api=Metadata,action=delay:300ms,count=2",
    "api=Fetch,action=delay:200ms,probability=0.5,seed=7,count=5",
)
PRUNED = SHARE_SETTINGS | {
    "share_coordinator_state_topic_num_partitions": 1,
    "share_coordinator_state_topic_prune_interval_ms": 200,
    "share_coordinator_snapshot_update_records_per_snapshot": 1,
}
COMPACTED = SHARE_SETTINGS | {
    "offsets_topic_num_partitions": 1,
    "offsets_topic_segment_bytes": 3_000,
    "log_cleaner_backoff_ms": 50,
}
COMMITS = 120
RECORDS_OF_LOGS = ("bronze.log_record",)


def live(broker: RunningBroker) -> tuple[str, ...]:
    return "--bootstrap-server", broker.bootstrap, "--user-topics", "all"


@pytest.mark.soak
def test_a_broker_that_is_slow_and_cuts_connections_gives_the_same_lake(tmp_path, capsys):
    broker = running.start(tmp_path / "log", **SHARE_SETTINGS)
    consumed(broker)
    consumed(broker)
    assert broker.stop() == 0
    broker = running.start(broker.log_dir, *(f"--fault={rule}" for rule in TROUBLE), **SHARE_SETTINGS)
    first = run(capsys, tmp_path / "live", *live(broker))
    idle = run(capsys, tmp_path / "live", *live(broker))
    assert broker.stop() == 0
    assert (first["gaps"], idle["gaps"]) == (0, 0)
    run(capsys, tmp_path / "copied", "--log-dir", str(broker.log_dir))
    assert differences(content(tmp_path / "live", COMPARED), content(tmp_path / "copied", COMPARED)) == []


@pytest.mark.parametrize("action", ["drop", "close"])
def test_a_broker_that_never_answers_a_fetch_is_one_line_and_leaves_no_half_a_lake(tmp_path, capsys, action):
    broker = running.start(tmp_path / "log", **SHARE_SETTINGS)
    consumed(broker)
    assert broker.stop() == 0
    broker = running.start(broker.log_dir, f"--fault=api=Fetch,action={action}", **SHARE_SETTINGS)
    config = tmp_path / "client.properties"
    config.write_text("request.timeout.ms=500\n")
    words = ("--bootstrap-server", broker.bootstrap, "--command-config", str(config))
    lake = tmp_path / "lake"
    assert main(["run", "--lake", str(lake), *words]) == 1
    message = capsys.readouterr().err
    assert message.count("\n") == 1, message
    assert "the cluster does not answer" in message
    assert not list(lake.glob("*/*/_delta_log"))
    assert not (lake / ".fetched").exists()
    assert broker.stop() == 0


def log_start(bootstrap: str) -> int:
    """Of the state log with one partition, by the broker itself."""
    with Connection(bootstrap) as connection:
        cluster = Cluster(connection)
        cluster.topics()
        return cluster.offsets([Place(STATE_TOPIC, 0)], EARLIEST)[STATE_TOPIC, 0]


def until(condition: Any) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.1)


@pytest.mark.soak
def test_state_records_that_were_pruned_before_a_run_are_a_gap_that_is_printed_at_once(tmp_path, capsys):
    broker = running.start(tmp_path / "log", **PRUNED)
    group, topic = new_share_group(broker), filled(broker)
    with share_consumer(broker, group, topic) as consumer:
        accept(consumer, RECORDS)
    lake = tmp_path / "lake"
    first = run(capsys, lake, *live(broker))
    assert first["gaps"] == 0
    end = max(row["end_offset_exclusive"] for row in extents(lake, STATE_TOPIC))
    with share_consumer(broker, group, topic) as consumer:
        for _ in range(3):
            produce(broker, topic, [str(number) for number in range(RECORDS)])
            accept(consumer, RECORDS)
    until(lambda: log_start(broker.bootstrap) > end)
    assert main(["run", "--lake", str(lake), *live(broker)]) == 0
    answer = capsys.readouterr()
    (line,) = [line for line in answer.err.splitlines() if ": gap: " in line]
    assert f"the brokers removed offsets {end} to " in line
    assert f" of {STATE_TOPIC}-0 before they were fetched, written between 20" in line
    assert "and -" not in line
    summary = json.loads(answer.out)
    (gap,) = [gap for row in extents(lake, STATE_TOPIC) for gap in row["gaps"]]
    assert f"offsets {gap['first_offset']} to {gap['last_offset']} of" in line
    assert (summary["gaps"], summary["lost_offsets"]) == (1, gap["last_offset"] - gap["first_offset"] + 1)
    assert broker.stop() == 0


def extents(lake: Path, topic: str) -> list[dict[str, Any]]:
    rows = open_lake(lake).scan("bronze.ingest_extent").to_pylist()
    return [row for row in rows if row["topic"] == topic and row["status"] == "taken"]


def committed(broker: RunningBroker, topic: str, first: int) -> None:
    """Offsets of a classic group, each in a request of its own."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "readers", "enable.auto.commit": False})
    try:
        for offset in range(first, first + COMMITS):
            consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    finally:
        consumer.close()


def size(broker: RunningBroker) -> int:
    return sum(path.stat().st_size for path in broker.log_dir.glob(f"{OFFSETS_TOPIC}-*/*.log"))


@pytest.mark.soak
def test_a_compacted_coordinators_log_is_read_while_it_is_compacted(tmp_path, capsys):
    broker = running.start(tmp_path / "log", **COMPACTED)
    lake, late, topic = tmp_path / "lake", tmp_path / "late", new_topic(broker)
    for first in (1, 1 + COMMITS):
        consumed(broker)
        before = size(broker)
        committed(broker, topic, first)
        assert run(capsys, lake, *live(broker))["gaps"] == 0
        until(lambda before=before: size(broker) < before + 4 * 3_000)
    assert run(capsys, late, *live(broker))["gaps"] == 0
    assert run(capsys, lake, *live(broker))["gaps"] == 0
    assert broker.stop() == 0
    copied = tmp_path / "copied"
    run(capsys, copied, "--log-dir", str(broker.log_dir))
    assert differences(content(late, COMPARED), content(copied, COMPARED)) == []
    share = [name for name in COMPARED if "group" not in name and name != "bronze.log_record"]
    assert differences(content(lake, share), content(copied, share)) == []
    (difference,) = differences(content(lake, RECORDS_OF_LOGS), content(copied, RECORDS_OF_LOGS))
    assert difference.endswith("only right: []")  # the lake also has what was compacted after it was read
    assert groups(lake, capsys) == groups(copied, capsys)


def groups(lake: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    assert main(["groups", "--lake", str(lake), "--output", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == 2
    return rows
