"""A running Kafka as the source of answers and of a lake: what its own tool and its log directory say."""

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest

from bench.brokers import kafka_broker
from jobs.spark.java import JavaError
from sharelens.cli import main
from tests.broker.kafka_tools import SHARE_GROUPS, kafka_tool
from tests.broker.share_clients import LOCK_MS, new_share_group, share_consumer
from tests.broker.test_clients import new_topic, produce
from tests.broker.test_live import answer
from tests.broker.test_live_lake import COMPARED
from tests.broker.test_overview import RECORDS, accept, filled
from tests.lakes import content, differences
from tools.kept_jars import ToolUnavailableError

SETTINGS = {
    "offsets.topic.num.partitions": 2,
    "share.coordinator.state.topic.num.partitions": 2,
    "group.share.min.record.lock.duration.ms": 1_000,
    "group.share.record.lock.duration.ms": LOCK_MS,
    "replica.high.watermark.checkpoint.interval.ms": 500,
    "log.flush.start.offset.checkpoint.interval.ms": 500,
}
OF_SETTINGS = ("window_limit", "window_limit_source", "throttled_offsets_inferred")
METADATA = "__cluster_metadata-0"


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
    assert len(lines) == 2
    assert sorted((row["group_id"], row["topic"], row["start_offset"], row["lag"]) for row in rows) == sorted(
        (group, topic, int(start), int(lag)) for group, topic, _, start, lag in (line[:5] for line in lines)
    )


def test_a_lake_from_a_kafka_is_that_from_its_directory(kafka, lake, tmp_path, capsys):
    time.sleep(2)  # checkpoints of the high watermark
    copy = tmp_path / "copy"
    shutil.copytree(kafka.log_dir, copy, ignore=shutil.ignore_patterns(METADATA))
    capsys.readouterr()
    assert main(["run", "--lake", str(tmp_path / "copied"), "--log-dir", str(copy)]) == 0
    assert json.loads(capsys.readouterr().out)["held_back"] == 0
    assert differences(without_settings(lake), without_settings(tmp_path / "copied")) == []


def without_settings(lake: Path) -> dict[str, pa.Table]:
    """The tables without what the settings of groups say, which a directory without the metadata log lacks."""
    tables = content(lake, COMPARED)
    return tables | {"gold.stall": tables["gold.stall"].drop_columns(list(OF_SETTINGS))}
