"""Histories of consumer groups as a real Kafka 4.3.1 answered them: a line each in histories.jsonl.

    python -m tests.broker.consumers.recorded_histories

plays all of them against a Kafka of this machine and writes the file anew.
"""

import json
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from bench.brokers import kafka_broker
from tests.broker.consumers.consumer_histories import WITH_TIES
from tests.broker.consumers.consumer_script import Script, decoded_log
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


AT_A_TIME = 12
"""Histories that play at the same time: they wait more than they work."""


class Played(NamedTuple):
    """What a broker answered to each request of a history, and what it then had recorded, both comparable."""

    answers: Sequence[Any]
    records: Sequence[Any]


def play_all(bootstrap: str, log_dir: Path) -> dict[str, Played]:
    """Play all histories at the same time on a broker whose log directory is there; by name."""
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        scripts = dict(zip(HISTORIES, pool.map(partial(_play, bootstrap), HISTORIES), strict=True))
    log = decoded_log(log_dir)
    played = {name: [script.answers, script.records(log)] for name, script in scripts.items()}
    return {name: Played(*json.loads(json.dumps(each))) for name, each in played.items()}


def _play(bootstrap: str, name: str) -> Script:
    script = Script(bootstrap, name, has_ties=name in WITH_TIES)
    HISTORIES[name](script)
    return script


def recorded() -> dict[str, Played]:
    """What Kafka answered and recorded, by history."""
    lines = map(json.loads, FILE.read_text(encoding="utf-8").splitlines())
    return {line["history"]: Played(line["answers"], line["records"]) for line in lines}


def differences(played: Mapping[str, Played], expected: Mapping[str, Played]) -> dict[str, str]:
    """The first difference of each history that differs, by its name."""
    assert played.keys() == expected.keys()
    compared = {name: _difference(each, expected[name]) for name, each in played.items()}
    return {name: difference for name, difference in compared.items() if difference}


def _difference(played: Played, expected: Played) -> str:
    for what, entries, kafka_entries in zip(Played._fields, played, expected, strict=True):
        pairs = enumerate(zip_longest(entries, kafka_entries))
        for number, (entry, kafka_entry) in pairs:
            if entry != kafka_entry:
                return f"{what} {number}: {entry}, Kafka: {kafka_entry}"
    return ""


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="histories-") as scratch:
        with kafka_broker(Path(scratch) / "kafka", SETTINGS) as kafka:
            of_kafka = play_all(kafka.bootstrap, Path(scratch) / "kafka" / "log")
        lines = [{"history": name} | each._asdict() for name, each in of_kafka.items()]
        texts = [json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in lines]
        FILE.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
