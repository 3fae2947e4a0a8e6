"""Histories of consumer groups as a real Kafka 4.3.1 answered them: a line each in histories.jsonl.

    python -m tests.broker.consumers.recorded_histories

plays all of them against a Kafka of this machine and replaces the file.
"""

import json
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

from bench.brokers import kafka_again, kafka_broker
from tests.broker.consumers.consumer_histories import WITH_TIES, History
from tests.broker.consumers.consumer_script import Script, decoded_log
from tests.broker.consumers.migration_histories import HISTORIES
from tests.broker.consumers.restarted_histories import RESTARTED

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


class RestartedBroker(Protocol):
    """A broker for histories; its address may change with a restart."""

    bootstrap: str
    log_dir: Path

    def restart(self) -> None:
        """End it in order and start it again."""


class Kafka:
    """A real Kafka with its files in a new folder; ended with the block."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._broker = folder, ExitStack()
        self.log_dir = folder / "log"

    def __enter__(self) -> Self:
        """Raises ToolUnavailableError, JavaError, BrokerUnavailableError."""
        self.bootstrap = self._broker.enter_context(kafka_broker(self._folder, SETTINGS)).bootstrap
        return self

    def __exit__(self, *_: object) -> None:
        self._broker.close()

    def restart(self) -> None:
        """See RestartedBroker."""
        self._broker.close()
        self._broker.enter_context(kafka_again(self._folder, self.bootstrap))


class Played(NamedTuple):
    """What a broker answered to each request of a history, and what it then had recorded, both comparable."""

    answers: Sequence[Any]
    records: Sequence[Any]


def play_all(broker: "RestartedBroker") -> dict[str, Played]:
    """Play all histories at the same time on a broker, which is restarted once; by name."""
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        played = [pool.submit(_play, broker.bootstrap, name) for name in HISTORIES]
        begun = [pool.submit(_begin, broker.bootstrap, name) for name in RESTARTED]
        scripts = [each.result() for each in played]
        waiting = [each.result() for each in begun]
        broker.restart()
        scripts += pool.map(lambda pair: _end(broker.bootstrap, *pair), waiting)
    log = decoded_log(broker.log_dir)
    of_groups = {script.group: [script.answers, script.records(log)] for script in scripts}
    return {name: Played(*json.loads(json.dumps(each))) for name, each in of_groups.items()}


def _play(bootstrap: str, name: str) -> Script:
    script = Script(bootstrap, name, has_ties=name in WITH_TIES)
    HISTORIES[name](script)
    return script


def _begin(bootstrap: str, name: str) -> tuple[Script, History]:
    script = Script(bootstrap, name)
    return script, RESTARTED[name](script)


def _end(bootstrap: str, script: Script, after: History) -> Script:
    script.connect(bootstrap)
    after(script)
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
    for part, entries, kafka_entries in zip(Played._fields, played, expected, strict=True):
        pairs = enumerate(zip_longest(entries, kafka_entries))
        for number, (entry, kafka_entry) in pairs:
            if entry != kafka_entry:
                return f"{part} {number}: {entry}, Kafka: {kafka_entry}"
    return ""


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="histories-") as scratch:
        with Kafka(Path(scratch) / "kafka") as kafka:
            of_kafka = play_all(kafka)
        lines = [{"history": name} | each._asdict() for name, each in of_kafka.items()]
        texts = [json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in lines]
        FILE.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
