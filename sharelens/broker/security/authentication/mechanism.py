"""SASL mechanisms are pure step functions: (state, token of the client) -> (next state, answer)."""

from dataclasses import dataclass
from typing import Any, Final, Protocol

DIFFERENT_AUTHORIZATION_ID: Final = (
    "Authentication failed: Client requested an authorization id that is different from username"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge:
    """The exchange goes on: a token for the client."""

    token: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The client is `user`. `expires_at_ms`: when the credential ends, null when it does not."""

    user: str
    token: bytes = b""
    expires_at_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """The exchange failed. `message`: text for the client; null: the general text of the mechanism."""

    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """The exchange failed, and the connection ends without an answer."""


Answer = Challenge | Accepted | Rejected | Unanswered


class Mechanism(Protocol):
    """A mechanism on a listener, with what it needs to check credentials."""

    @property
    def name(self) -> str:
        """The name in SaslHandshake."""

    def step(self, state: Any, token: bytes) -> tuple[Any, Answer]:
        """The next state and the answer to a token; `state` is None at first. Total: any bytes have an answer."""
