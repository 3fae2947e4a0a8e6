"""A running Kafka as the source of answers and of a lake: what its own tool and its log directory say."""

import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from bench.brokers import kafka_again, kafka_broker
from sharelens.cli import main
from sharelens.kafka_live.cluster import LATEST, Cluster, Place
from sharelens.kafka_live.connection import Connection
from sharelens.lake.scan import open_lake
from sharelens.spark.java import JavaError
from state_model.topics import STATE_TOPIC
from tests.broker.java import java_machine
from tests.broker.kafka_tools import GET_OFFSETS, SHARE_GROUPS, kafka_tool
from tests.broker.live.test_live import answer
from tests.broker.live.test_live_lake import COMPARED
from tests.broker.live.test_live_samples import stalls_of
from tests.broker.live.test_live_troubled import log_start, until
from tests.broker.share_clients import LOCK_MS, TIMEOUT_S, new_share_group, share_consumer
from tests.broker.test_clients import new_topic, produce
from tests.broker.test_overview import RECORDS, accept, filled
from tests.lakes import content, differences
from tools.kept_jars import ToolUnavailableError

pytestmark = pytest.mark.components

SETTINGS = {
    "offsets.topic.num.partitions": 2,
    "share.coordinator.state.topic.num.partitions": 2,
    "group.share.min.record.lock.duration.ms": 1_000,
    "group.share.record.lock.duration.ms": LOCK_MS,
    "replica.high.watermark.checkpoint.interval.ms": 500,
    "log.flush.start.offset.checkpoint.interval.ms": 500,
}
OF_SETTINGS = ("window_limit", "window_limit_source", "throttled_offsets_inferred")
PRUNED = SETTINGS | {
    "share.coordinator.state.topic.num.partitions": 1,
    "share.coordinator.state.topic.prune.interval.ms": 1_000,
    "share.coordinator.snapshot.update.records.per.snapshot": 1,
}
OF_RUNS = ("run_id", "below_log_start", "uncommitted")
METADATA = "__cluster_metadata-0"
NOT_COPIED = shutil.ignore_patterns(METADATA, "*.tmp")
MOST_ATTEMPTS, BREATH_S = 12, 0.3
CHECKPOINTED_S = 0.7
"""Longer than the broker's checkpoints of high watermarks are apart."""


class Kafka(NamedTuple):
    """A broker and its log directory."""

    bootstrap: str
    log_dir: Path


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """Skipped, with the reason in a line, where Java or Kafka's jars can't be had."""
    folder = tmp_path_factory.mktemp("real") / "kafka"
    try:
        with kafka_broker(folder, SETTINGS) as started:
            yield Kafka(started.bootstrap, folder / "log")
    except (ToolUnavailableError, JavaError) as error:
        pytest.skip(f"Kafka's broker: {error}")


@pytest.fixture(scope="module")
def lake(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake from the cluster in two runs; between them a second group became active, one behind with its topic."""
    path = tmp_path_factory.mktemp("lakes") / "live"
    words = ["run", "--lake", str(path), "--bootstrap-server", kafka.bootstrap, "--user-topics", "all"]
    done, behind = new_share_group(kafka), new_share_group(kafka)
    with share_consumer(kafka, done, filled(kafka)) as consumer:
        accept(consumer, RECORDS)
    assert main(words) == 0
    other = filled(kafka)
    with share_consumer(kafka, behind, other) as consumer:
        accept(consumer, RECORDS)
    produce(kafka, other, ["unread"])
    produce(kafka, new_topic(kafka), ["of no group"])
    assert main(words) == 0
    return path


def test_the_lag_of_a_kafka_is_what_its_tool_prints(kafka, lake, capsys):
    printed = kafka_tool(SHARE_GROUPS, "--bootstrap-server", kafka.bootstrap, "--describe", "--all-groups").out
    lines = [line.split() for line in printed.splitlines() if line.startswith("g-")]
    rows = answer(capsys, "lag", "--bootstrap-server", kafka.bootstrap)
    assert len(lines) >= 2  # those of the lake, and of other tests
    assert sorted((row["group_id"], row["topic"], row["start_offset"], row["lag"]) for row in rows) == sorted(
        (group, topic, int(start), int(lag)) for group, topic, _, start, lag in (line[:5] for line in lines)
    )


@pytest.mark.soak
def test_ends_and_start_offsets_are_those_of_kafkas_own_clients(kafka, lake, capsys):
    """kafka-get-offsets.sh, and offsets and members by the Java Admin client, beside `lag`, `state`, `describe`."""
    of_cluster = ("--bootstrap-server", kafka.bootstrap)
    printed = kafka_tool(GET_OFFSETS, *of_cluster).out.split()
    ends = {(topic, int(number)): int(end) for topic, number, end in (line.split(":") for line in printed)}
    rows = answer(capsys, "lag", *of_cluster)
    assert {(row["topic"], row["partition"]): row["end_offset"] for row in rows}.items() <= ends.items()
    group, topic = new_share_group(kafka), filled(kafka)
    with share_consumer(kafka, group, topic) as consumer, java_admin(kafka) as admin:
        accept(consumer, RECORDS)
        (row,) = answer(capsys, "state", *of_cluster, "--group", group)
        (member,) = answer(capsys, "describe", *of_cluster, "--group", group, "--members")
        assert admin.start_offsets(group) == {(topic, 0): row["start_offset"]}
        assert admin.members(group) == {member["member_id"]: {(topic, 0)}}
        assert [each["topic"] for each in member["assigned_partitions"]] == [topic]
        assert main(["describe", *of_cluster, "--group", group]) == 0
    assert "1 of 1 group the same" in capsys.readouterr().out


def test_single_batches_of_a_kafka_say_what_all_headers_say(kafka, lake, tmp_path, capsys):
    """Stalls of a lake, and those that the cluster itself gives; the lag at a moment between two batches."""
    sampled, of_cluster = str(tmp_path / "sampled"), ("--bootstrap-server", kafka.bootstrap)
    group, topic = new_share_group(kafka), filled(kafka)
    with share_consumer(kafka, group, topic) as consumer:
        accept(consumer, RECORDS)
        time.sleep(0.01)
        moment_ms = time.time_ns() // 1_000_000
        time.sleep(0.01)
        produce(kafka, topic, ["later"])
        accept(consumer, 1)
    produce(kafka, topic, ["unread"])
    assert main(["run", "--lake", sampled, *of_cluster]) == 0
    capsys.readouterr()
    with_all = (*of_cluster, "--user-topics", "all")
    of_lake, direct, by_headers = (stalls_of(capsys, *each) for each in (("--lake", sampled), of_cluster, with_all))
    assert of_lake == direct == [row for row in by_headers if row["until_ms"] is None]
    assert group in {row["group_id"] for row in of_lake}
    words = ("lag", "--group", group, "--as-of", str(moment_ms))
    ends = [answer(capsys, *words, *each)[0]["end_offset_inferred"] for each in (of_cluster, with_all)]
    assert ends == [RECORDS, RECORDS]


class JavaAdmin:
    """The Java Admin client."""

    def __init__(self, bootstrap: str) -> None:
        self._machine = java_machine()
        properties = self._machine.jvm.java.util.Properties()
        properties.put("bootstrap.servers", bootstrap)
        self.java = self._machine.jvm.org.apache.kafka.clients.admin.Admin.create(properties)

    def start_offsets(self, group: str) -> dict[tuple[str, int], int]:
        """The start offsets of a share group, by topic and partition."""
        spec = self._machine.jvm.org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec()
        offsets = self.java.listShareGroupOffsets({group: spec}).partitionsToOffsetInfo(group).get()
        return {(place.topic(), place.partition()): info.startOffset() for place, info in offsets.items()}

    def members(self, group: str) -> dict[str, set[tuple[str, int]]]:
        """The partitions that each member of a share group is assigned."""
        described = self.java.describeShareGroups([group]).all().get()[group]
        return {
            member.consumerId(): {(each.topic(), each.partition()) for each in member.assignment().topicPartitions()}
            for member in described.members()
        }


@contextmanager
def java_admin(kafka: Kafka) -> Iterator[JavaAdmin]:
    admin = JavaAdmin(kafka.bootstrap)
    try:
        yield admin
    finally:
        admin.java.close()


@pytest.mark.soak
def test_a_lake_filled_while_clients_work_is_that_of_the_directory(kafka, tmp_path, capsys):
    """Runs go on while a member works in bursts. Between two of them, where the logs end alike before and after a run
    and a copy of the directory, each table of the lake equals that of a lake from the copy.
    """
    live, words = tmp_path / "live", ["run", "--bootstrap-server", kafka.bootstrap, "--user-topics", "all", "--lake"]
    group, topic, ends = new_share_group(kafka), filled(kafka), []
    stop, quiet = threading.Event(), threading.Lock()
    work = threading.Thread(target=bursts, args=(kafka, group, topic, stop, quiet))
    work.start()
    try:
        for attempt in range(MOST_ATTEMPTS):
            assert main([*words, str(live)]) == 0
            copy, copied = tmp_path / f"copy-{attempt}", tmp_path / f"copied-{attempt}"
            with quiet:
                before = log_ends(kafka)
                time.sleep(CHECKPOINTED_S)
                assert main([*words, str(live)]) == 0
                shutil.copytree(kafka.log_dir, copy, ignore=NOT_COPIED)
                after = log_ends(kafka)
            if after != before or before in ends:
                continue
            assert work.is_alive()
            capsys.readouterr()
            assert main(["run", "--lake", str(copied), "--log-dir", str(copy)]) == 0
            assert json.loads(capsys.readouterr().out)["held_back"] == 0
            assert differences(without_settings(live), without_settings(copied)) == []
            ends.append(before)
            if len(ends) == 2:
                break
    finally:
        stop.set()
        work.join()
    assert len(ends) == 2


def bursts(kafka: Kafka, group: str, topic: str, stop: threading.Event, quiet: threading.Lock) -> None:
    """Writes records and takes them as one member, in bursts; between them another thread may have `quiet`."""
    with share_consumer(kafka, group, topic) as consumer:
        accept(consumer, RECORDS)
        while not stop.wait(BREATH_S):
            with quiet:
                produce(kafka, topic, [str(number) for number in range(RECORDS)])
                accept(consumer, RECORDS)


def log_ends(kafka: Kafka) -> Mapping[Place, int]:
    """The end of each partition."""
    with Connection(kafka.bootstrap) as connection:
        cluster = Cluster(connection)
        places = [Place(name, number) for name, topic in cluster.topics().items() for number in topic.leaders]
        return cluster.offsets(places, LATEST)


def test_a_lake_from_a_kafka_is_that_from_its_directory(kafka, lake, tmp_path, capsys):
    words = ["--lake", str(lake), "--bootstrap-server", kafka.bootstrap, "--user-topics", "all"]
    assert main(["run", *words]) == 0  # what other tests wrote
    time.sleep(2)  # checkpoints of the high watermark
    copy = tmp_path / "copy"
    shutil.copytree(kafka.log_dir, copy, ignore=NOT_COPIED)
    capsys.readouterr()
    assert main(["run", "--lake", str(tmp_path / "copied"), "--log-dir", str(copy)]) == 0
    assert json.loads(capsys.readouterr().out)["held_back"] == 0
    assert differences(without_settings(lake), without_settings(tmp_path / "copied")) == []


def without_settings(lake: Path) -> dict[str, pa.Table]:
    """The tables without what the settings of groups say, which a directory without the metadata log lacks."""
    tables = content(lake, COMPARED)
    return tables | {"gold.stall": tables["gold.stall"].drop_columns(list(OF_SETTINGS))}


def test_a_lake_follows_a_kafka_that_is_killed_and_prunes(tmp_path, capsys):
    """Kafka is killed and starts again between two runs, deletes records of a topic, and prunes its state log."""
    folder, lake = tmp_path / "kafka", tmp_path / "lake"
    words = ["run", "--user-topics", "all", "--bootstrap-server"]
    try:
        with kafka_broker(folder, PRUNED) as started:
            broker = Kafka(started.bootstrap, folder / "log")
            group, topic = new_share_group(broker), filled(broker)
            consume(broker, group, topic)
            assert main([*words, broker.bootstrap, "--lake", str(lake)]) == 0
            produce(broker, topic, [str(number) for number in range(RECORDS)])
            os.kill(started.pid, signal.SIGKILL)
    except (ToolUnavailableError, JavaError) as error:
        pytest.skip(f"Kafka's broker: {error}")
    with kafka_again(folder, broker.bootstrap):
        begun = log_start(broker.bootstrap)
        consume(broker, group, topic)
        delete_records(broker, topic, RECORDS + 3)
        for _ in range(3):
            produce(broker, topic, [str(number) for number in range(RECORDS)])
            consume(broker, group, topic)
            assert main([*words, broker.bootstrap, "--lake", str(lake)]) == 0
        until(lambda: log_start(broker.bootstrap) > begun)
        for lake_path in (lake, tmp_path / "late"):
            assert main([*words, broker.bootstrap, "--lake", str(lake_path)]) == 0
        printed = capsys.readouterr().err
    copied, late = tmp_path / "copied", tmp_path / "late"
    shutil.rmtree(broker.log_dir / METADATA)
    assert main(["run", "--lake", str(copied), "--log-dir", str(broker.log_dir)]) == 0
    first = min(row["log_offset"] for row in state_records(late))
    assert first > 0
    offsets, gaps = {row["log_offset"] for row in state_records(lake)}, gaps_of(lake)
    assert set(range(max(offsets))) - offsets == {offset for gap in gaps for offset in range(*gap)}
    assert printed.count(": gap: ") == len(gaps)
    assert state_records(late) == state_records(lake, first) == state_records(copied, first)
    assert len({row["log_leader_epoch"] for row in state_records(lake)}) > 1
    assert current(lake) == current(late) == current(copied)


def consume(broker: Kafka, group: str, topic: str) -> None:
    with share_consumer(broker, group, topic) as consumer:
        accept(consumer, RECORDS)


def delete_records(broker: Kafka, topic: str, offset: int) -> None:
    admin, place = AdminClient({"bootstrap.servers": broker.bootstrap}), TopicPartition(topic, 0, offset)
    admin.delete_records([place])[place].result(TIMEOUT_S)


def state_records(lake: Path, first: int = 0) -> list[dict[str, Any]]:
    """From a log offset on; a segment keeps records below the log start, which a cluster does not give any more."""
    rows = open_lake(lake).scan("silver.share_record").sort_by("log_offset").filter(pc.field("log_offset") >= first)
    return rows.drop_columns([name for name in rows.column_names if name in OF_RUNS]).to_pylist()


def gaps_of(lake: Path) -> list[tuple[int, int]]:
    """First offset of each gap of the state log, and the offset behind it."""
    extents = open_lake(lake).scan("bronze.ingest_extent").to_pylist()
    rows = [row for row in extents if row["topic"] == STATE_TOPIC and row["status"] == "taken"]
    return [(gap["first_offset"], gap["last_offset"] + 1) for row in rows for gap in row["gaps"]]


def current(lake: Path) -> list[dict[str, Any]]:
    rows = open_lake(lake).scan("gold.lag").sort_by([("group_id", "ascending"), ("partition", "ascending")])
    return rows.select(["group_id", "partition", "start_offset", "end_offset", "lag", "completeness"]).to_pylist()
