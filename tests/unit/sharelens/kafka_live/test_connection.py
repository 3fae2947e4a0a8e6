"""A connection to a scripted broker that throttles its clients and cuts connections."""

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse, MetadataRequest, MetadataResponse

from sharelens.kafka_live import connection as connection_module
from sharelens.kafka_live.command_config import CommandConfig
from sharelens.kafka_live.connection import TRIES, Connection
from sharelens.kafka_live.errors import ClusterError

HOST, NODE, THROTTLE_MS = "127.0.0.1", 1, 700
VERSIONS = {ApiVersionsRequest.API_KEY: 3, MetadataRequest.API_KEY: 9, ListOffsetsRequest.API_KEY: 7}


class ScriptedBroker:
    """Node 1. `throttle_ms` and `topics` stand in answers to ListOffsets, whose frames are `changed` before they go.

    The next `cuts` of them are cut connections instead.
    """

    def __init__(self) -> None:
        self.throttle_ms, self.cuts, self.received = 0, 0, 0
        self.topics: list[object] | None = []
        self.changed: Callable[[bytes], bytes] = bytes
        self._listener = socket.create_server((HOST, 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, client.makefile("rb") as requests:
            while size := requests.read(4):
                key, version, correlation_id = struct.unpack(">hhi", requests.read(struct.unpack(">i", size)[0])[:8])
                answer = self._answer(key)
                if answer is None:
                    return
                is_flexible = answer.flexible_version_q(version) and key != ApiVersionsRequest.API_KEY
                data = struct.pack(">i", correlation_id) + b"\0" * is_flexible + bytes(answer.encode(version=version))
                frame = struct.pack(">i", len(data)) + data
                client.sendall(self.changed(frame) if key == ListOffsetsRequest.API_KEY else frame)

    def _answer(self, key: int) -> ApiVersionsResponse | MetadataResponse | ListOffsetsResponse | None:
        if key == ApiVersionsRequest.API_KEY:
            api = ApiVersionsResponse.ApiVersion
            return ApiVersionsResponse(
                api_keys=[
                    api(api_key=each, min_version=0, max_version=max_version) for each, max_version in VERSIONS.items()
                ]
            )
        if key == MetadataRequest.API_KEY:
            broker = MetadataResponse.MetadataResponseBroker
            return MetadataResponse(brokers=[broker(node_id=NODE, host=HOST, port=self.port, rack=None)], topics=[])
        self.received += 1
        if self.cuts:
            self.cuts -= 1
            return None
        return ListOffsetsResponse(throttle_time_ms=self.throttle_ms, topics=self.topics)


@pytest.fixture
def broker() -> Iterator[ScriptedBroker]:
    scripted = ScriptedBroker()
    yield scripted
    scripted.close()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between requests, which take no time; other threads of this process sleep as they did."""
    slept: list[float] = []
    this_thread, sleep = threading.get_ident(), time.sleep

    def noted(seconds: float) -> None:
        (slept.append if threading.get_ident() == this_thread else sleep)(seconds)

    monkeypatch.setattr(connection_module.time, "sleep", noted)
    return slept


def ask(broker: ScriptedBroker) -> None:
    with Connection(f"{HOST}:{broker.port}", CommandConfig(timeout_ms=5_000)) as connection:
        connection.ask(NODE, ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=[], max_version=7), _topics)


def _topics(answer: ListOffsetsResponse) -> list[object]:
    return list(answer.topics)


def test_the_next_request_waits_as_long_as_a_broker_throttles(broker, pauses):
    ask(broker)
    broker.throttle_ms = THROTTLE_MS
    assert THROTTLE_MS / 1000 not in pauses
    ask(broker)
    assert pauses.count(THROTTLE_MS / 1000) == 1


def test_a_request_whose_connection_was_cut_is_sent_again_after_growing_pauses(broker, pauses):
    broker.cuts = TRIES - 1
    ask(broker)
    assert broker.received == TRIES
    growing = [pause for pause in pauses if pause]
    assert growing == sorted(set(growing))


def test_a_broker_that_cuts_every_connection_is_given_up(broker, pauses):
    broker.cuts = 1 << 30
    with pytest.raises(ClusterError, match="the cluster does not answer"):
        ask(broker)
    assert broker.received == TRIES


@pytest.mark.parametrize("throttle_ms", [5_001, (1 << 31) - 1])
def test_a_broker_that_throttles_for_longer_than_a_request_may_take_is_named(broker, pauses, throttle_ms):
    broker.throttle_ms = throttle_ms
    with pytest.raises(ClusterError, match=r"broker 1 answers ListOffsets and wants to be left alone for [\d,]+ s; a"):
        ask(broker)
    assert sum(pauses) == 0


def test_a_null_where_no_broker_has_one_is_one_line_with_broker_and_api(broker):
    broker.topics = None
    with pytest.raises(ClusterError, match="broker 1 answers ListOffsets with what Kafka's protocol does not allow"):
        ask(broker)


WAITS = pytest.mark.slow
"""For the rest of the answer, until the time-out."""


@pytest.mark.parametrize(
    "changed",
    [
        lambda frame: frame[:4] + struct.pack(">i", 1 << 20) + frame[8:],
        lambda frame: struct.pack(">i", -1) + frame[4:],
        pytest.param(lambda frame: struct.pack(">i", 0) + frame[4:], marks=WAITS),
        lambda frame: struct.pack(">i", (1 << 31) - 1) + frame[4:],
        pytest.param(lambda frame: frame[:8] + b"\xff" * (len(frame) - 8), marks=WAITS),
        lambda frame: frame[:8] + b"\0" * (len(frame) - 8),
        lambda frame: frame * 3,
    ],
    ids=["another request", "negative length", "no length", "2 GiB", "all ones", "all zeros", "three times"],
)
def test_bytes_that_are_no_answer_end_in_one_line(broker, pauses, changed):
    broker.changed = changed
    with suppress(ClusterError):  # some are answers all the same
        ask(broker)
    assert sum(pauses) < 10
