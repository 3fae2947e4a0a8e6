"""SASL OAUTHBEARER (RFC 7628), the server's half, as Kafka's OAuthBearerSaslServer."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from sharelens.broker.errors import BrokerError
from sharelens.broker.security.authentication.mechanism import Accepted, Answer, Challenge, Rejected, Unanswered

OAUTHBEARER: Final = "OAUTHBEARER"
_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_INITIAL = re.compile(rf"n,(?:a=(?P<id>{_NAME}))?,\x01(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01")
_AUTHORIZATION = re.compile(r"(?P<scheme>[A-Za-z0-9_.-]+) +(?P<token>[-_~+/.A-Za-z0-9]+=*)")
_ACKNOWLEDGEMENT: Final = b"\x01"


class InvalidTokenError(BrokerError):
    """Raised when a token proves nothing. `scope`: what it would need, null when scopes are not the reason."""

    def __init__(self, message: str, scope: str | None = None) -> None:
        super().__init__(message)
        self.scope = scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """What a valid token says."""

    user: str
    expires_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A token was refused; the client has to acknowledge `document` before the exchange ends."""

    document: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthBearer:
    """`validate` gives a valid token or raises InvalidTokenError."""

    validate: Callable[[str], Token]
    name: Literal["OAUTHBEARER"] = "OAUTHBEARER"

    def step(self, state: Refused | None, token: bytes) -> tuple[Refused | None, Answer]:
        """The first token decides; a refused client sends a second one, which changes nothing."""
        if state is not None:
            return None, Rejected(message=state.document if token == _ACKNOWLEDGEMENT else None)
        match = _INITIAL.fullmatch(token.decode("latin-1"))
        pairs = match["pairs"].split("\1")[:-1] if match is not None else []
        values = dict(pair.split("=", 1) for pair in pairs)
        authorization = _AUTHORIZATION.fullmatch(values.get("auth", ""))
        if match is None or authorization is None:
            return None, Rejected()
        if authorization["scheme"].lower() != "bearer":
            return None, Unanswered()
        try:
            valid = self.validate(authorization["token"])
        except InvalidTokenError as error:
            refused = Refused(document=_document(error.scope))
            return refused, Challenge(token=refused.document.encode())
        authorization_id = match["id"]
        if authorization_id is not None and authorization_id != valid.user:
            return None, Rejected(
                message=f"Authentication failed: Client requested an authorization id ({authorization_id}) that is "
                f"different from the token's principal name ({valid.user})"
            )
        return None, Accepted(user=valid.user, expires_at_ms=valid.expires_at_ms)


def _document(scope: str | None) -> str:
    """Why a token was refused, as JSON (RFC 7628, 3.2.2)."""
    fields = {"status": "invalid_token"} if scope is None else {"status": "insufficient_scope", "scope": scope}
    return json.dumps(fields, separators=(",", ":"))
