"""Brokers for the tests: each a process of its own, on a port that the system picks, ended when its test ends."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.broker import running
from tests.broker.java import end_java_machine
from tests.broker.running import RunningBroker

StartBroker = Callable[..., RunningBroker]


@pytest.fixture
def start_broker(tmp_path: Path) -> Iterator[StartBroker]:
    """`start_broker(*options, log_dir=None, listen=…, is_fork=True, **settings)`: Kafka's names, with `_` for `.`.

    Without `log_dir` every broker of a test gets the same directory, so that a second start follows the first.
    """
    started: list[RunningBroker] = []

    def start(
        *options: str,
        log_dir: Path | None = None,
        listen: str | None = "127.0.0.1:0",
        is_fork: bool = True,
        **settings: object,
    ) -> RunningBroker:
        defaults = {"group_initial_rebalance_delay_ms": 0, "offsets_topic_num_partitions": 4}
        broker = running.start(
            log_dir or tmp_path / "log", *options, listen=listen, is_fork=is_fork, **(defaults | settings)
        )
        started.append(broker)
        return broker

    yield start
    for broker in started:
        broker.kill()


@pytest.fixture(scope="module")
def shared_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """One broker for a module's tests that don't disturb each other; topics get names of their own."""
    broker = running.start(
        tmp_path_factory.mktemp("broker") / "log", group_initial_rebalance_delay_ms=0, offsets_topic_num_partitions=4
    )
    yield broker
    assert broker.stop() == 0, broker.problems.read_text()[-2000:]


@pytest.fixture(scope="module", autouse=True)
def clients_left_behind_end() -> Iterator[None]:
    """The JVM ends with a module: tools that fail leave clients behind, which look for their broker for ever."""
    yield
    end_java_machine()
