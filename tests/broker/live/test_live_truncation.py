"""A lake from a running cluster whose logs lose their tails, are pruned, compacted, or begin again."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from sharelens.kafka_live.cluster import Cluster
from sharelens.lake.scan import open_lake
from tests.broker import running
from tests.broker.live.test_live_lake import COMPARED, run
from tests.broker.running import RunningBroker
from tests.broker.share_clients import SHARE_SETTINGS, TIMEOUT_S, new_share_group, share_consumer
from tests.broker.test_clients import produce
from tests.broker.test_overview import RECORDS, accept, filled
from tests.lakes import content, differences

Restart = Callable[..., RunningBroker]


@pytest.fixture
def restart(tmp_path: Path) -> Iterator[Restart]:
    """Starts the broker of a log directory with more options, and ends the one before in order."""
    started: list[RunningBroker] = []

    def start(*options: str) -> RunningBroker:
        for broker in started[-1:]:
            assert broker.stop() == 0, broker.problems.read_text()[-2000:]
        started.append(running.start(tmp_path / "log", *options, **SHARE_SETTINGS))
        return started[-1]

    yield start
    assert started[-1].stop() == 0, started[-1].problems.read_text()[-2000:]


def live(broker: RunningBroker) -> tuple[str, ...]:
    return "--bootstrap-server", broker.bootstrap, "--user-topics", "all"


def consume(broker: RunningBroker, group: str, topic: str) -> None:
    with share_consumer(broker, group, topic) as consumer:
        accept(consumer, RECORDS)


def assert_same_as_directory(lake: Path, broker: RunningBroker, capsys: pytest.CaptureFixture[str]) -> None:
    """The broker is stopped, so that its directory says how its logs end."""
    assert broker.stop() == 0
    copied = lake.with_name("copied")
    run(capsys, copied, "--log-dir", str(broker.log_dir))
    assert differences(content(lake, COMPARED), content(copied, COMPARED)) == []


def test_a_lake_follows_logs_that_lost_their_tails(restart, tmp_path, capsys):
    broker, lake = restart(), tmp_path / "lake"
    group, topic = new_share_group(broker), filled(broker)
    consume(broker, group, topic)
    produce(broker, topic, ["a", "b", "c"])
    run(capsys, lake, *live(broker))
    lost = {"__share_group_state": 1, "__consumer_offsets": 3, f"{topic}-0": 3}
    broker = restart(*(f"--fault=open={log},action=truncate:{count}" for log, count in lost.items()))
    produce(broker, topic, [f"again {number}" for number in range(RECORDS)])
    consume(broker, group, topic)
    after = run(capsys, lake, *live(broker))
    assert after["gaps"] == 0
    extents = open_lake(lake).scan("bronze.ingest_extent").to_pylist()
    superseded = {row["topic"] for row in extents if row["superseded_from"] is not None}
    assert superseded == {"__share_group_state", "__consumer_offsets", topic}
    assert_same_as_directory(lake, broker, capsys)


@pytest.mark.soak
def test_a_directory_that_is_read_again_is_followed_in_the_same_way(restart, tmp_path, capsys):
    broker, lake = restart(), tmp_path / "lake"
    group, topic = new_share_group(broker), filled(broker)
    consume(broker, group, topic)
    assert broker.stop() == 0
    run(capsys, lake, "--log-dir", str(broker.log_dir))
    broker = restart("--fault=open=__share_group_state,action=truncate:1")
    produce(broker, topic, [f"again {number}" for number in range(RECORDS)])
    consume(broker, group, topic)
    assert broker.stop() == 0
    run(capsys, lake, "--log-dir", str(broker.log_dir))
    assert_same_as_directory(lake, broker, capsys)


@pytest.mark.soak
def test_leader_epochs_without_a_truncation_supersede_nothing(restart, tmp_path, capsys):
    broker, lake = restart(), tmp_path / "lake"
    group, topic = new_share_group(broker), filled(broker)
    for _ in range(3):
        produce(broker, topic, [f"more {number}" for number in range(RECORDS)])
        consume(broker, group, topic)
        run(capsys, lake, *live(broker))
        broker = restart()
    rows = open_lake(lake).scan("bronze.ingest_extent")
    assert rows.column("superseded_from").drop_null().to_pylist() == []
    epochs = [entry["leader_epoch"] for row in rows.column("leader_epochs").to_pylist() for entry in row]
    assert {0, 2, 4} <= set(epochs)
    assert_same_as_directory(lake, broker, capsys)


@pytest.mark.soak
def test_a_topic_that_was_created_again_is_a_new_incarnation(restart, tmp_path, capsys):
    broker, lake = restart(), tmp_path / "lake"
    topic = filled(broker)
    consume(broker, new_share_group(broker), topic)
    run(capsys, lake, *live(broker))
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics([topic])[topic].result(TIMEOUT_S)
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(TIMEOUT_S)
    produce(broker, topic, [f"other {number}" for number in range(RECORDS + 2)])
    consume(broker, new_share_group(broker), topic)
    run(capsys, lake, *live(broker))
    rows = open_lake(lake).scan("silver.name").to_pylist()
    assert len({row["topic_id"] for row in rows if row["topic"] == topic}) == 2
    extents = open_lake(lake).scan("bronze.ingest_extent").to_pylist()
    topic_extents = [row for row in extents if row["topic"] == topic]
    assert len({row["topic_id"] for row in topic_extents}) == 2
    assert max(row["end_offset_exclusive"] for row in topic_extents) == RECORDS + 2


@pytest.mark.soak
def test_records_deleted_between_plan_and_fetch_are_left_out_and_the_run_goes_on(
    restart, tmp_path, capsys, monkeypatch
):
    """The log start moves once the end offsets are known and nothing was fetched yet."""
    broker, lake = restart(), tmp_path / "lake"
    group, topic = new_share_group(broker), filled(broker)
    consume(broker, group, topic)
    run(capsys, lake, *live(broker))
    produce(broker, topic, [f"more {number}" for number in range(RECORDS)], **{"batch.num.messages": 1})
    consume(broker, group, topic)
    fetch, deleted = Cluster.fetch, []

    def fetch_after_deletion(self: Cluster, positions: object) -> object:
        if not deleted:
            admin = AdminClient({"bootstrap.servers": broker.bootstrap})
            place = TopicPartition(topic, 0, RECORDS + 5)
            deleted.append(admin.delete_records([place])[place].result(TIMEOUT_S))
        return fetch(self, positions)

    monkeypatch.setattr(Cluster, "fetch", fetch_after_deletion)
    run(capsys, lake, *live(broker))
    batches = [row for row in open_lake(lake).scan("bronze.topic_batch").to_pylist() if row["topic"] == topic]
    assert deleted
    assert {row["base_offset"] for row in batches if row["base_offset"] >= RECORDS} <= set(range(RECORDS + 5, 99))
    assert max(row["last_offset"] for row in batches) == 2 * RECORDS - 1
