"""A broker whose answers are changed on their way: what reads them ends in an answer or in one line, and soon."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import AcknowledgeType
from hypothesis import given
from hypothesis import strategies as st
from kafka.net.connection import KafkaConnection

from sharelens.cli import main
from sharelens.kafka_live import cluster as cluster_module
from sharelens.kafka_live.cluster import EARLIEST, LATEST, Cluster, Position
from sharelens.kafka_live.command_config import CommandConfig
from sharelens.kafka_live.configurations import broker_settings, group_ids, group_settings
from sharelens.kafka_live.connection import Connection
from sharelens.kafka_live.coordinators import Coordinators
from sharelens.kafka_live.errors import ClusterError
from sharelens.kafka_live.features import ensure_share_groups
from sharelens.kafka_live.log_copy import LogCopy
from sharelens.kafka_live.rights import ensure_visible, missing_rights, unreadable
from state_model.topics import STATE_TOPIC
from tests.broker import running
from tests.broker.running import RunningBroker
from tests.broker.share_clients import SHARE_SETTINGS, new_share_group, share_consumer, work
from tests.broker.test_overview import RECORDS, filled
from tests.depths import examples

HEAD_BYTES = 8
"""Length and correlation id of an answer."""
CONFIG, SHORT_MS = CommandConfig(timeout_ms=60_000), 300
"""To connect may take long on a busy machine; of an answer that is lost the end of the time-out is waited for."""
SOON_S = 60
SOAK = 5_000
"""Changed answers that the soak tries."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    running_broker = running.start(tmp_path_factory.mktemp("hostile") / "log", **SHARE_SETTINGS)
    yield running_broker
    assert running_broker.stop() == 0, running_broker.problems.read_text()[-2000:]


@pytest.fixture(scope="module")
def group(broker: RunningBroker) -> str:
    name, topic = new_share_group(broker), filled(broker)
    with share_consumer(broker, name, topic) as consumer:
        work(consumer, lambda _: AcknowledgeType.ACCEPT, lambda messages: len(messages) >= RECORDS)
    return name


@dataclass
class Way:
    """Changes what comes from brokers once it is `armed`: pieces from the `skipped`th one on."""

    change: Callable[[bytes], bytes] = bytes
    armed: bool = False
    skipped: int = 0
    passed: int = field(default=0)

    def carried(self, data: bytes) -> bytes:
        if not self.armed:
            return data
        self.passed += 1
        return self.change(data) if self.passed > self.skipped else data


@pytest.fixture
def way(monkeypatch: pytest.MonkeyPatch) -> Way:
    chosen = Way()
    receive = KafkaConnection.data_received
    monkeypatch.setattr(KafkaConnection, "data_received", lambda self, data: receive(self, chosen.carried(bytes(data))))
    monkeypatch.setattr(cluster_module.time, "sleep", lambda seconds: None)
    return chosen


def copied(cluster: Cluster, folder: Path) -> None:
    LogCopy(folder, cluster, most_bytes=1 << 20).refresh(
        [topic for topic in cluster.topics().values() if topic.name == STATE_TOPIC]
    )


def fetched(cluster: Cluster, group: str, folder: Path) -> None:
    """All that Metadata, ListOffsets, OffsetForLeaderEpoch and Fetch say."""
    numbers = cluster.topics()[STATE_TOPIC].leaders
    places = cluster.offsets([cluster_module.Place(STATE_TOPIC, number) for number in numbers], EARLIEST)
    cluster.offsets(places, LATEST)
    cluster.epoch_ends(dict.fromkeys(places, 0))
    cluster.fetch({place: Position(offset) for place, offset in places.items()})


CALLS: dict[str, Callable[[Cluster, str, Path], object]] = {
    "topics": lambda cluster, group, folder: cluster.topics(),
    "fetched": fetched,
    "copy": lambda cluster, group, folder: copied(cluster, folder),
    "groups": lambda cluster, group, folder: group_ids(cluster.connection),
    "settings": lambda cluster, group, folder: group_settings(cluster.connection, [group]),
    "broker settings": lambda cluster, group, folder: broker_settings(cluster.connection),
    "rights": lambda cluster, group, folder: missing_rights(cluster.connection),
    "visible": lambda cluster, group, folder: ensure_visible(cluster.connection, [STATE_TOPIC]),
    "unreadable": lambda cluster, group, folder: unreadable(cluster.connection, [STATE_TOPIC]),
    "features": lambda cluster, group, folder: ensure_share_groups(cluster.connection),
    "share groups": lambda cluster, group, folder: Coordinators(cluster.connection).share_groups([group]),
    "streams groups": lambda cluster, group, folder: Coordinators(cluster.connection).streams_groups([group]),
    "offsets": lambda cluster, group, folder: Coordinators(cluster.connection).offsets([group]),
}


def flipped(data: bytes, seed: int) -> bytes:
    """Some bytes behind the head have other values."""
    random, changed = Random(seed), bytearray(data)
    for _ in range(random.randint(1, 8)):
        if len(changed) > HEAD_BYTES:
            changed[random.randrange(HEAD_BYTES, len(changed))] = random.choice(
                [0, 255, 127, 128, random.randrange(256)]
            )
    return bytes(changed)


CHANGES: dict[str, Callable[[bytes, int], bytes]] = {
    "flipped": flipped,
    "zeros": lambda data, _: data[:HEAD_BYTES] + bytes(max(0, len(data) - HEAD_BYTES)),
    "ones": lambda data, _: data[:HEAD_BYTES] + b"\xff" * max(0, len(data) - HEAD_BYTES),
    "cut": lambda data, seed: data[: seed % (len(data) + 1)],
    "twice": lambda data, _: data + data,
    "throttled": lambda data, _: data[:HEAD_BYTES] + b"\x7f\xff\xff\xff" + data[HEAD_BYTES + 4 :],
}


def ends_soon(
    broker: RunningBroker, group: str, way: Way, folder: Path, call: str, change: str, seed: int, skipped: int
) -> None:
    """A call whose answers are changed ends in an answer or in an error of one line, within SOON_S."""
    way.armed, way.passed = False, 0
    with Connection(broker.bootstrap, CONFIG) as connection:
        cluster = Cluster(connection)
        cluster.topics()
        connection._timeout_ms = SHORT_MS
        way.change, way.skipped, way.armed = lambda data: CHANGES[change](data, seed), skipped, True
        begun = time.monotonic()
        try:
            CALLS[call](cluster, group, folder)
        except ClusterError as error:
            assert len(str(error).splitlines()) == 1, f"{call} {change} {seed} {skipped}: {error}"  # noqa: PT017
        finally:
            way.armed = False
        assert time.monotonic() - begun < SOON_S, f"{call} {change} {seed} {skipped}"


@examples("cluster", shrink=False)
@given(
    call=st.sampled_from(sorted(CALLS)),
    change=st.sampled_from(sorted(CHANGES)),
    seed=st.integers(0, 1 << 16),
    skipped=st.integers(0, 3),
)
def test_changed_answers_are_answers_or_one_line(
    broker: RunningBroker, group: str, way: Way, tmp_path_factory: pytest.TempPathFactory,
    call: str, change: str, seed: int, skipped: int,
) -> None:  # fmt: skip
    ends_soon(broker, group, way, tmp_path_factory.mktemp("copy"), call, change, seed, skipped)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(0, SOAK, SOAK // 10))
def test_thousands_of_changed_answers_are_answers_or_one_line(
    broker: RunningBroker, group: str, way: Way, tmp_path: Path, first: int
) -> None:
    for seed in range(first, first + SOAK // 10):
        chosen = Random(seed)
        call, change = chosen.choice(sorted(CALLS)), chosen.choice(sorted(CHANGES))
        ends_soon(broker, group, way, tmp_path / str(seed), call, change, seed, chosen.randint(0, 3))


@pytest.mark.parametrize("call", sorted(CALLS))
def test_unchanged_answers_are_read(broker: RunningBroker, group: str, way: Way, call: str, tmp_path: Path) -> None:
    with Connection(broker.bootstrap, CONFIG) as connection:
        cluster = Cluster(connection)
        cluster.topics()
        way.armed = True
        CALLS[call](cluster, group, tmp_path / "copy")
        assert way.passed > 0


@pytest.mark.parametrize("words", ["run --lake {lake}", "state", "metrics --output-file {lake}.prom"])
def test_a_command_that_is_to_wait_for_weeks_ends_in_one_line_and_holds_no_lake(
    broker: RunningBroker, group: str, way: Way, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "client.properties"
    config.write_text("request.timeout.ms=3000\n")
    command_line = words.format(lake=tmp_path / "lake").split()
    command_line += ["--bootstrap-server", broker.bootstrap, "--command-config", str(config)]
    way.change, way.armed = lambda data: CHANGES["throttled"](data, 0), True
    assert main(command_line) == 1
    assert capsys.readouterr().err.count("\n") == 1
    way.armed = False
    assert main(command_line) == 0
