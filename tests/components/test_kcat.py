"""kcat, the command line tool on librdkafka, drives a light broker: codecs, transactions, groups, offsets by time."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from sharelens.broker.storage import record_batch
from sharelens.kafka_log.codecs import NAMES
from tests.broker import running
from tests.broker.running import RunningBroker

TOPIC, READ_TOPIC, GROUP = "kcat-records", "kcat-read", "kcat-readers"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
COMMAND_S = 60
PADDING = "padding=" + "." * 300


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker with empty topics of one partition."""
    if shutil.which("kcat") is None:
        pytest.skip("no kcat here; `make kcat` installs it, with apt-get")
    broker = running.start(tmp_path_factory.mktemp("broker") / "log", group_initial_rebalance_delay_ms=0)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for created in admin.create_topics([NewTopic(topic, 1) for topic in (TOPIC, READ_TOPIC)]).values():
        created.result(COMMAND_S)
    yield broker
    assert broker.stop() == 0, broker.problems.read_text()[-2000:]


def kcat(broker: RunningBroker, *options: str, sent: str | None = None, code: int = 0) -> str:
    """What a kcat prints that gets `sent` on its standard input."""
    command = ["kcat", "-b", broker.bootstrap, *options]
    done = subprocess.run(command, input=sent, capture_output=True, text=True, timeout=COMMAND_S)
    assert done.returncode == code, f"{command[3:]} ended with {done.returncode}: {done.stderr[-2000:]}"
    return done.stdout


def consumed(broker: RunningBroker, *options: str) -> list[dict[str, Any]]:
    """The records that kcat reads from the beginning to the end."""
    lines = kcat(broker, "-C", "-t", TOPIC, "-o", "beginning", "-e", "-q", "-J", *options).splitlines()
    return [json.loads(line) for line in lines]


def batches(log: Path) -> Iterator[tuple[record_batch.BatchHeader, list[str]]]:
    """The headers of a partition's batches, each with its values; of control batches without."""
    for path in sorted(log.glob("*.log")):
        data = path.read_bytes()
        for header in record_batch.split(data):
            records = [] if header.is_control else record_batch.parse(data, header)
            yield header, [(record.value or b"").decode() for record in records]


def test_what_kcat_sends_and_reads_is_what_the_log_holds(broker: RunningBroker) -> None:
    for codec in CODECS:
        lines = "".join(f"key of {codec}:{codec} {number}\n" for number in range(3))
        kcat(broker, "-P", "-t", TOPIC, "-K", ":", "-z", codec, "-H", PADDING, sent=lines)
    kcat(broker, "-P", "-t", TOPIC, "-X", "enable.idempotence=true", sent="idempotent\n")
    kcat(broker, "-P", "-t", TOPIC, "-X", "transactional.id=kcat", sent="committed 0\ncommitted 1\n")
    plain = [f"{codec} {number}" for codec in CODECS for number in range(3)]
    records = consumed(broker, "-X", "isolation.level=read_committed")
    assert [record["payload"] for record in records] == [*plain, "idempotent", "committed 0", "committed 1"]
    assert [record["offset"] for record in records] == list(range(18))
    assert (records[0]["key"], records[0]["headers"]) == ("key of none", PADDING.split("=", 1))

    codecs: dict[str, str] = {}
    sequenced, transactional = [], []
    for header, values in batches(broker.log_dir / f"{TOPIC}-0"):
        codecs |= dict.fromkeys(values, NAMES[header.codec])
        sequenced += values if header.producer_id >= 0 else []
        transactional += values if header.is_transactional else []
    assert {value: codecs[value] for value in plain} == {value: value.split()[0] for value in plain}
    assert sequenced == ["idempotent", "committed 0", "committed 1"]
    assert transactional == ["committed 0", "committed 1"]

    metadata = json.loads(kcat(broker, "-L", "-J", "-t", TOPIC))
    assert [topic["topic"] for topic in metadata["topics"]] == [TOPIC]
    assert len(metadata["topics"][0]["partitions"]) == len(metadata["brokers"]) == 1
    assert kcat(broker, "-Q", "-t", f"{TOPIC}:0:{records[0]['ts']}").split() == [TOPIC, "[0]", "offset", "0"]


def test_a_group_of_kcat_reads_on_where_it_ended(broker: RunningBroker) -> None:
    read = ("-G", GROUP, "-X", "auto.offset.reset=earliest", "-e", "-q", "-f", "%o ", READ_TOPIC)
    kcat(broker, "-P", "-t", READ_TOPIC, sent="first\nsecond\n")
    assert kcat(broker, *read).split() == ["0", "1"]
    kcat(broker, "-P", "-t", READ_TOPIC, sent="third\n")
    assert kcat(broker, *read).split() == ["2"]
