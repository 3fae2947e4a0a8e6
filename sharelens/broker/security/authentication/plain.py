"""SASL PLAIN (RFC 4616) with the users of a JAAS value, as Kafka's PlainSaslServer and PlainServerCallbackHandler."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sharelens.broker.security.authentication.mechanism import DIFFERENT_AUTHORIZATION_ID, Accepted, Answer, Rejected

PLAIN: Final = "PLAIN"
TOKENS: Final = 3
_FAILED: Final = "Authentication failed: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """Users with their passwords."""

    passwords: Mapping[str, str] = field(repr=False)
    name: str = PLAIN

    def step(self, state: None, token: bytes) -> tuple[None, Answer]:
        """One token decides: `[authorization id] NUL user NUL password`."""
        parts = token.decode(errors="replace").split("\0", TOKENS)
        if len(parts) != TOKENS:
            return None, Rejected(message=f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        authorization_id, user, password = parts
        if not user:
            return None, Rejected(message=f"{_FAILED}username not specified")
        if not password:
            return None, Rejected(message=f"{_FAILED}password not specified")
        # An unknown user costs the same comparison, which fails: no password is empty.
        if not hmac.compare_digest(self.passwords.get(user, "").encode(), password.encode()):
            return None, Rejected(message=f"{_FAILED}Invalid username or password")
        if authorization_id not in ("", user):
            return None, Rejected(message=DIFFERENT_AUTHORIZATION_ID)
        return None, Accepted(user=user)
