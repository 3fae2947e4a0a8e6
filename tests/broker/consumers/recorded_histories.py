"""Histories of consumer groups as a real Kafka 4.3.1 answered them: a line each in histories.jsonl.

    python -m tests.broker.consumers.recorded_histories

plays all of them against a Kafka of this machine and writes the file anew.
"""

import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.brokers import kafka_broker
from tests.broker.consumers.consumer_histories import WITH_TIES
from tests.broker.consumers.consumer_script import Script
from tests.broker.consumers.migration_histories import HISTORIES

FILE = Path(__file__).with_name("histories.jsonl")
SETTINGS = {
    "offsets.topic.num.partitions": 2,
    "transaction.state.log.num.partitions": 1,
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.max.size": 3,
    "group.consumer.assignment.interval.ms": 0,
    "group.consumer.min.session.timeout.ms": 1_000,
    "group.consumer.heartbeat.interval.ms": 200,
    "group.consumer.min.heartbeat.interval.ms": 200,
    "group.min.session.timeout.ms": 1_000,
    "group.share.assignment.interval.ms": 0,
}
"""Of each broker that plays histories."""


class Played(NamedTuple):
    """What a broker answered to each request of a history, and what it then had recorded, both comparable."""

    answers: Sequence[Any]
    records: Sequence[Any]


def play(name: str, bootstrap: str, log_dir: Path) -> Played:
    """Play a history on a broker whose log directory is there."""
    script = Script(bootstrap, name, has_ties=name in WITH_TIES)
    HISTORIES[name](script)
    return Played(*json.loads(json.dumps([script.answers, script.records(log_dir)])))


def recorded() -> dict[str, Played]:
    """What Kafka answered and recorded, by history."""
    lines = map(json.loads, FILE.read_text(encoding="utf-8").splitlines())
    return {line["history"]: Played(line["answers"], line["records"]) for line in lines}


def _of_kafka(folder: Path) -> Iterator[str]:
    with kafka_broker(folder / "kafka", SETTINGS) as kafka:
        for name in HISTORIES:
            played = play(name, kafka.bootstrap, folder / "kafka" / "log")
            line = {"history": name} | played._asdict()
            yield json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="histories-") as scratch:
        FILE.write_text("".join(_of_kafka(Path(scratch))), encoding="utf-8")
