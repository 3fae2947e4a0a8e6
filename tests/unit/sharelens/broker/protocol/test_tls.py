"""TLS between memory buffers: whatever clients send, and in whatever pieces."""

import ssl
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.broker.errors import FrameError
from sharelens.broker.protocol.registry import ANONYMOUS
from sharelens.broker.protocol.tls import INTERNAL_ERROR_ALERT, TlsChannel, TlsError
from tests.broker.security.certificates import HOST, authority
from tests.depths import examples


@pytest.fixture(scope="module")
def contexts(tmp_path_factory: pytest.TempPathFactory):
    """A server's context, and a client's that trusts it."""
    folder = tmp_path_factory.mktemp("tls")
    authority(folder / "ca.pem").issue(folder / "server.pem", HOST)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "server.pem")
    return server, ssl.create_default_context(cafile=folder / "ca.pem")


class Client:
    """The other side, whose bytes come in pieces of the given sizes."""

    def __init__(self, context, channel, sizes):
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=HOST)
        self._channel, self._sizes = channel, sizes
        self._count = 0

    def exchange(self):
        """What the server reads of the bytes that are pending on both sides."""
        plaintext = b""
        while sent := self._outgoing.read(self._sizes[self._count % len(self._sizes)]):
            self._count += 1
            plaintext += self._channel.receive(sent)
            self._incoming.write(self._channel.pending())
        self._incoming.write(self._channel.pending())
        return plaintext

    def connect(self):
        while True:
            try:
                self.tls.do_handshake()
                return self.exchange()
            except ssl.SSLWantReadError:
                self.exchange()

    def read(self, size):
        data = b""
        while len(data) < size:
            data += self.tls.read(size)
        return data


@pytest.mark.slow
@given(sizes=st.lists(st.integers(1, 400), min_size=1, max_size=5), sent=st.binary(max_size=70_000))
@examples("table")
def test_bytes_pass_whole_in_whatever_pieces_they_come(contexts, sizes, sent):
    server, trusting = contexts
    channel = TlsChannel(server, lambda _: "User:x")
    client = Client(trusting, channel, sizes)
    assert channel.principal == ANONYMOUS
    assert client.connect() == b""
    assert channel.is_open
    assert channel.principal == "User:x"
    if sent:
        client.tls.write(sent)
        received = client.exchange()
        while len(received) < len(sent):
            client.tls.write(sent[len(received) :])
            received += client.exchange()
        assert received == sent
        channel.encrypt(sent)
        client.exchange()
        assert client.read(len(sent)) == sent


@given(st.binary(min_size=1, max_size=200), st.booleans())
def test_garbage_closes_the_connection_and_opens_none(contexts, garbage, is_handshake):
    channel = TlsChannel(contexts[0], lambda _: "User:x")
    data = b"\x16\x03\x01" + garbage if is_handshake else garbage
    try:
        assert channel.receive(data) == b""
    except FrameError:
        if data[0] != 0x16:
            assert channel.pending() == INTERNAL_ERROR_ALERT
    assert not channel.is_open
    assert channel.principal == ANONYMOUS


@given(position=st.integers(0, 400), flipped=st.integers(1, 255))
@examples("table")
def test_a_damaged_record_is_noticed(contexts, position, flipped):
    channel = TlsChannel(contexts[0], lambda _: "User:x")
    client = Client(contexts[1], channel, [1 << 16])
    client.connect()
    client.tls.write(bytes(400))
    raw = bytearray(client._outgoing.read())
    raw[min(position, len(raw) - 1)] ^= flipped
    with suppress(TlsError):
        assert channel.receive(bytes(raw)) != bytes(400)


def test_an_end_without_a_handshake_and_one_after_it(contexts):
    channel = TlsChannel(contexts[0], lambda _: "User:x")
    channel.close()
    assert channel.pending() == b""
    client = Client(contexts[1], channel, [1 << 16])
    client.connect()
    channel.close()
    client.exchange()
    assert client.tls.read(10) == b""
    with pytest.raises(TlsError):
        channel.encrypt(b"too late")
