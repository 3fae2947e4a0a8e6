"""A light broker behind TLS and SASL for tests, and what clients of each kind need to reach its listeners."""

import socket
import ssl
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kio.index import load_response_schema

from sharelens.kafka_formats.messages.reader import read
from sharelens.workloads.wire import encode_request
from tests.broker import running
from tests.broker.running import RunningBroker
from tests.broker.security.certificates import HOST, Authority, authority
from tests.broker_parts.broker_messages import plain

MODULE = "org.apache.kafka.common.security"
PASSWORD, SCRAM_PASSWORD = "alice-secret", 'ca"r=ol, secret'
LISTENERS = {
    "PLAIN": "PLAINTEXT",
    "NAMED": "SASL_PLAINTEXT",
    "SHORT": "SASL_PLAINTEXT",
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "ASKING": "SSL",
    "BOTH": "SASL_SSL",
}
MECHANISMS = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"
TIMEOUT_S = 120


@dataclass(slots=True)
class SecuredBroker:
    """A broker, the addresses of its listeners by name, and the folder with the PEM files."""

    broker: RunningBroker
    folder: Path
    ca: Authority

    @property
    def addresses(self) -> Mapping[str, str]:
        """HOST:PORT by the name of the listener."""
        return dict(zip(LISTENERS, self.broker.ready_line.split()[1].split(","), strict=True))

    def address(self, listener: str) -> tuple[str, int]:
        """Host and port of a listener."""
        host, _, port = self.addresses[listener].rpartition(":")
        return host, int(port)


def write_configuration(folder: Path, **extra_keys: object) -> Path:
    """The server.properties of a broker with all listeners; `extra_keys`: further keys with `_` for `.`."""
    jaas = f'{MODULE}.plain.PlainLoginModule required user_alice="{PASSWORD}" user_bob="bob-secret";'
    lines: dict[str, object] = {
        "listeners": ",".join(f"{name}://{HOST}:0" for name in LISTENERS),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in LISTENERS.items()),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": folder / "server.pem",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": folder / "ca.pem",
        "ssl.principal.mapping.rules": "RULE:^CN=([^,]+)\\\\.ops\\\\.test$/$1/L,DEFAULT",
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.asking.ssl.client.auth": "requested",
        "sasl.enabled.mechanisms": MECHANISMS,
        "listener.name.short.connections.max.reauth.ms": 2_000,
        "group.initial.rebalance.delay.ms": 0,
        "offsets.topic.num.partitions": 2,
        **{f"listener.name.{name}.plain.sasl.jaas.config": jaas for name in ("named", "short", "both")},
        **{name.replace("_", "."): value for name, value in extra_keys.items()},
    }
    path = folder / "server.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    return path


@contextmanager
def secured_broker(folder: Path, **extra_keys: object) -> Iterator[SecuredBroker]:
    """A broker with the users alice (PLAIN) and carol (SCRAM), whose certificate is for the loopback address."""
    ca = authority(folder / "ca.pem")
    ca.issue(folder / "server.pem", HOST)
    config = write_configuration(folder, **extra_keys)
    users = folder / "users"
    quoted = SCRAM_PASSWORD.replace('"', '\\"')
    mechanisms = ("SCRAM-SHA-256", "SCRAM-SHA-512")
    users.write_text("".join(f'{name}=[name=carol,password="{quoted}"]\n' for name in mechanisms))
    options = ("--config", str(config), "--add-scram-file", str(users))
    secured = SecuredBroker(running.start(folder / "log", *options, listen=None), folder, ca)
    try:
        yield secured
    finally:
        secured.broker.kill()


class RawClient:
    """Requests over a connection of its own; `tls` encrypts it first."""

    def __init__(self, address: tuple[str, int], tls: ssl.SSLContext | None = None) -> None:
        self.socket = socket.create_connection(address, TIMEOUT_S)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname=HOST)

    def __enter__(self) -> "RawClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, key: int, version: int, **fields: object) -> Any:
        """The fields of the answer. Raises EOFError when the broker closes the connection instead."""
        frame = encode_request(key, version, fields)
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)
        raw = self.receive()
        schema = load_response_schema(key, version)
        _, at = read(schema.__header_schema__, raw)
        return plain(read(schema, raw, at)[0])

    def receive(self) -> bytes:
        """One frame. Raises EOFError."""
        (size_bytes,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size_bytes)

    def rest(self) -> bytes:
        """All bytes until the broker closes."""
        rest = b""
        try:
            while chunk := self.socket.recv(1 << 16):
                rest += chunk
        except ConnectionError:
            pass
        return rest

    def _exactly(self, size_bytes: int) -> bytes:
        raw = b""
        while len(raw) < size_bytes:
            try:
                chunk = self.socket.recv(size_bytes - len(raw))
            except ConnectionError:
                chunk = b""
            if not chunk:
                raise EOFError(f"closed after {len(raw)} bytes")
            raw += chunk
        return raw


def trusting(folder: Path, certificate_file: str | None = None, ca: str = "ca.pem") -> ssl.SSLContext:
    """A client's context that trusts a CA, with a certificate of its own if it is named."""
    context = ssl.create_default_context(cafile=folder / ca)
    if certificate_file is not None:
        context.load_cert_chain(folder / certificate_file)
    return context
