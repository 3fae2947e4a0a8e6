"""A connection to a scripted broker that throttles its clients and cuts connections."""

import socket
import struct
import threading
from collections.abc import Iterator

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
    """Node 1. `throttle_ms` stands in answers to ListOffsets; the next `cuts` of them are cut connections instead."""

    def __init__(self) -> None:
        self.throttle_ms, self.cuts, self.received = 0, 0, 0
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
                client.sendall(struct.pack(">i", len(data)) + data)

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
        return ListOffsetsResponse(throttle_time_ms=self.throttle_ms, topics=[])


@pytest.fixture
def broker() -> Iterator[ScriptedBroker]:
    scripted = ScriptedBroker()
    yield scripted
    scripted.close()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between requests, which take no time."""
    slept: list[float] = []
    monkeypatch.setattr(connection_module.time, "sleep", slept.append)
    return slept


def ask(broker: ScriptedBroker) -> None:
    with Connection(f"{HOST}:{broker.port}", CommandConfig(timeout_ms=5_000)) as connection:
        connection.ask(NODE, ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=[], max_version=7))


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
