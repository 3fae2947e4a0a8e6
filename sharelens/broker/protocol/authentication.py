"""The interface between a connection and what authenticates its client before requests reach their handlers."""

from dataclasses import dataclass
from typing import Protocol

from sharelens.broker.protocol.tls import TlsChannel
from state_model.codec.writers import Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a frame leads to: pieces to send, at once or after a delay, and whether the connection is closed then."""

    pieces: tuple[Bytes, ...] = ()
    closes: bool = False
    delay_s: float = 0.0


class Authenticator(Protocol):
    """Authenticates the client of one connection."""

    @property
    def principal(self) -> str:
        """Who the client is, as TYPE:NAME; ANONYMOUS until it has authenticated."""

    @property
    def is_complete(self) -> bool:
        """Whether the client has authenticated; it may be about to do so again."""

    @property
    def frame_bytes_max(self) -> int:
        """The largest frame before the client has authenticated."""

    def receive(self, frame: bytes) -> Reply | None:
        """What a frame leads to; None when it is a request for the handlers.

        Raises:
            FrameError: the bytes are no request; the connection must be closed.
        """


class ConnectionSecurity(Protocol):
    """Protects the connections of one listener."""

    def channel(self) -> TlsChannel | None:
        """The TLS of a new connection; None on a listener without TLS."""

    def authenticator(self) -> Authenticator | None:
        """Authenticates the client of a new connection; None on a listener without SASL."""
