"""Peers that are no Kafka clients: the broker answers or closes, and stays up within its memory."""

import json
import random
import resource
import socket
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

FRAMES = [
    bytes.fromhex(json.loads(line)["req"])
    for line in (Path(__file__).parents[1] / "unit/sharelens/broker/protocol/frames.jsonl").read_text().splitlines()
]
TIMEOUT_S = 120
MEBIBYTE = 1 << 20


@pytest.fixture
def broker(start_broker):
    return start_broker(auto_create_topics_enable="false")


def connect(broker):
    return socket.create_connection(broker.address, TIMEOUT_S)


def framed(frame):
    return len(frame).to_bytes(4, "big") + frame


def is_closed(peer):
    """Whether the broker closes, perhaps after an answer."""
    peer.settimeout(TIMEOUT_S)
    try:
        while peer.recv(1 << 16):
            pass
    except ConnectionError:
        pass
    return True


def still_serves(broker):
    assert broker.process.poll() is None
    metadata = AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=TIMEOUT_S)
    return set(metadata.brokers) == {1}


@pytest.mark.parametrize("seed", range(3))
def test_damaged_requests_do_not_bring_it_down(broker, seed):
    rng = random.Random(seed)
    for _ in range(300):
        damaged = bytearray(rng.choice(FRAMES))
        for _ in range(rng.choice((1, 2, 4, 16))):
            at = rng.randrange(len(damaged))
            patch = rng.choice((b"\xff", b"\x00", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07", rng.randbytes(3)))
            damaged[at : at + len(patch)] = patch
        with connect(broker) as peer:
            peer.sendall(framed(bytes(damaged)))
            peer.settimeout(0.002)
            try:
                peer.recv(1 << 16)
            except OSError:
                continue
    assert still_serves(broker)
    assert broker.peak_memory_bytes() < 200 * MEBIBYTE


def test_garbage_closes_the_connection(shared_broker):
    rng = random.Random(1)
    for size in (8, 100, 10_000):
        with connect(shared_broker) as peer:
            peer.sendall(framed(b"\x7f" + rng.randbytes(size)))
            assert is_closed(peer)
    with connect(shared_broker) as peer:
        peer.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert is_closed(peer)
    assert still_serves(shared_broker)


@pytest.mark.parametrize("size", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x06\x40\x00\x01"])
def test_frames_of_impossible_size_close_the_connection(shared_broker, size):
    with connect(shared_broker) as peer:
        peer.sendall(size)
        assert is_closed(peer)
    assert still_serves(shared_broker)


def test_an_array_that_claims_billions_of_elements_costs_nothing(broker):
    head = bytes.fromhex("00030001") + bytes(4) + b"\xff\xff"
    for _ in range(20):
        with connect(broker) as peer:
            peer.sendall(framed(head + b"\x7f\xff\xff\xff"))
            assert is_closed(peer)
    assert still_serves(broker)
    assert broker.peak_memory_bytes() < 100 * MEBIBYTE


def test_half_frames_of_many_peers_stay_within_the_limit(start_broker):
    broker = start_broker(queued_max_request_bytes=64 * MEBIBYTE)
    piece = bytes(MEBIBYTE)
    peers = [connect(broker) for _ in range(20)]
    try:
        for peer in peers:
            peer.settimeout(TIMEOUT_S)
            try:
                peer.sendall((90 * MEBIBYTE).to_bytes(4, "big"))
                for _ in range(20):
                    peer.sendall(piece)
            except ConnectionError:
                continue
        assert still_serves(broker)
        # What is held, and what a buffer that grows takes besides.
        assert broker.peak_memory_bytes() < 260 * MEBIBYTE
    finally:
        for peer in peers:
            peer.close()


def test_thousands_of_idle_connections_are_fine(broker):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = min(3000, hard - 200)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    before = broker.memory_bytes()
    peers = []
    try:
        for _ in range(count):
            peers.append(connect(broker))
        assert still_serves(broker)
        frame = framed(bytes.fromhex("00120000") + (5).to_bytes(4, "big") + b"\xff\xff")
        for peer in (peers[0], peers[count // 2], peers[-1]):
            peer.sendall(frame)
            assert peer.recv(8)[4:8] == (5).to_bytes(4, "big")
        assert broker.memory_bytes() - before < count * 20_000
    finally:
        for peer in peers:
            peer.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert still_serves(broker)


def test_a_peer_that_asks_much_and_reads_nothing_does_not_fill_the_memory(start_broker):
    broker = start_broker(queued_max_request_bytes=32 * MEBIBYTE)
    frame = framed(bytes.fromhex("0012000300000001ffff00") + b"\x02a\x02b\x00")
    with connect(broker) as peer:
        peer.settimeout(1)
        sent = 0
        try:
            while sent < 64 * MEBIBYTE:
                sent += peer.send(frame * 10_000)
        except TimeoutError:
            pass
        assert still_serves(broker)
        assert broker.peak_memory_bytes() < 150 * MEBIBYTE
    assert still_serves(broker)
