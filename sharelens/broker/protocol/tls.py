"""TLS of one connection between memory buffers: the connection keeps its limits, whether it is encrypted or not."""

import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from sharelens.broker.errors import FrameError
from sharelens.broker.protocol.registry import ANONYMOUS
from state_model.codec.writers import Bytes

HANDSHAKE_RECORD: Final = 0x16
"""The first byte of every TLS client (ContentType.handshake)."""
INTERNAL_ERROR_ALERT: Final = bytes.fromhex("15030300020250")
"""What Kafka answers to a client without TLS: a fatal alert internal_error."""
_READ_BYTES = 1 << 16


class TlsError(FrameError):
    """Raised when a client breaks TLS, or has no certificate that is accepted; the connection is closed."""


class TlsChannel:
    """Decrypts what a client sends and encrypts the answers.

    principal_of: the principal of the client's certificate (DER, null when it shows none). It may raise FrameError.
    """

    __slots__ = (
        "_has_input",
        "_incoming",
        "_outgoing",
        "_plain_alert",
        "_principal_of",
        "_tls",
        "is_open",
        "principal",
    )

    def __init__(self, context: ssl.SSLContext, principal_of: Callable[[bytes | None], str]) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._principal_of = principal_of
        self._has_input = False
        self._plain_alert = b""
        self.is_open = False
        self.principal = ANONYMOUS

    def receive(self, data: bytes) -> bytes:
        """The plaintext of bytes from the client; empty during the handshake.

        Raises:
            FrameError: the client is to be closed, after what `pending` returns was sent.
        """
        is_first, self._has_input = not self._has_input, True
        if is_first and data[:1] != bytes([HANDSHAKE_RECORD]):
            self._plain_alert = INTERNAL_ERROR_ALERT
            raise TlsError("the client does not speak TLS")
        self._incoming.write(data)
        try:
            return self._read() if self.is_open or self._is_handshake_done() else b""
        except ssl.SSLError as error:
            raise TlsError(f"TLS: {error.reason or error}") from error

    def encrypt(self, piece: Bytes) -> None:
        """Add bytes for the client to what is pending. Raises TlsError."""
        with memoryview(piece) as view:
            at = 0
            try:
                while at < len(view):
                    at += self._tls.write(view[at:])
            except ssl.SSLError as error:
                raise TlsError(f"TLS: {error.reason or error}") from error

    def pending(self) -> bytes:
        """The bytes to send to the client now."""
        return self._plain_alert or self._outgoing.read()

    def close(self) -> None:
        """Add the end of the encrypted stream to what is pending."""
        if self.is_open:
            with suppress(ssl.SSLError):  # the client's own end is not waited for
                self._tls.unwrap()

    def _is_handshake_done(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        self.is_open = True
        self.principal = self._principal_of(self._tls.getpeercert(binary_form=True))
        return True

    def _read(self) -> bytes:
        plaintext = bytearray()
        try:
            while chunk := self._tls.read(_READ_BYTES):
                plaintext += chunk
        except (ssl.SSLWantReadError, ssl.SSLZeroReturnError):
            pass
        return bytes(plaintext)
