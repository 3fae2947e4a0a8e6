"""Unsecured JSON web tokens, for tests (OAuthBearerUnsecuredJws, OAuthBearerUnsecuredValidatorCallbackHandler)."""

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sharelens.broker.errors import ConfigError
from sharelens.broker.security.authentication.oauthbearer import InvalidTokenError, Token

OPTION: Final = "unsecuredValidator"
_PART = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsecuredValidator:
    """Checks the claims of tokens without a signature. `options`: of the login module."""

    options: Mapping[str, str]
    now_ms: Callable[[], int]

    def __post_init__(self) -> None:
        skew = self.options.get(f"{OPTION}AllowableClockSkewMs", "0")
        if not re.fullmatch(r"[0-9]{1,15}", skew):
            raise ConfigError(f"{OPTION}AllowableClockSkewMs takes a number of milliseconds from 0")

    def validate(self, text: str) -> Token:
        """The token. Raises InvalidTokenError."""
        header, claims = _decoded(text)
        if header.get("alg") != "none":
            raise InvalidTokenError("the token is signed with an algorithm, or names none")
        now_ms, skew_ms = self.now_ms(), int(self.options.get(f"{OPTION}AllowableClockSkewMs", "0"))
        user = claims.get(self.options.get(f"{OPTION}PrincipalClaimName", "sub"))
        if not isinstance(user, str) or not user.strip():
            raise InvalidTokenError("the token names no user")
        expires_at_ms = _milliseconds(claims, "exp")
        if expires_at_ms is None or expires_at_ms <= now_ms - skew_ms:
            raise InvalidTokenError("the token has expired, or has no end")
        issued_at_ms = _milliseconds(claims, "iat")
        if issued_at_ms is not None and (issued_at_ms > now_ms + skew_ms or expires_at_ms <= issued_at_ms):
            raise InvalidTokenError("the token is issued later than now, or than its end")
        required = self.options.get(f"{OPTION}RequiredScope", "").split()
        if missing := set(required) - scopes(claims.get(self.options.get(f"{OPTION}ScopeClaimName", "scope"))):
            raise InvalidTokenError(f"the token lacks scopes: {sorted(missing)}", scope=" ".join(required))
        return Token(user=user, expires_at_ms=expires_at_ms)


def scopes(claim: Any) -> set[str]:
    """The scopes of a claim, which is a text with blanks or a list of texts."""
    if isinstance(claim, str):
        return set(claim.split())
    return {part for part in claim if isinstance(part, str)} if isinstance(claim, list) else set()


def _decoded(text: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    parts = text.split(".")
    if len(parts) != 3 or parts[2] or not all(_PART.fullmatch(part) for part in parts[:2]):
        raise InvalidTokenError("the token is no unsecured JWS: header.claims.")
    try:
        header, claims = (json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))) for part in parts[:2])
    except (binascii.Error, ValueError, RecursionError) as error:
        raise InvalidTokenError("the token is no JSON in base64") from error
    if not isinstance(header, dict) or not isinstance(claims, dict):
        raise InvalidTokenError("the token has no claims")
    return header, claims


def _milliseconds(claims: Mapping[str, Any], name: str) -> int | None:
    """A time of a claim; null when there is none. Raises InvalidTokenError."""
    value = claims.get(name)
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < 1e15:
        raise InvalidTokenError(f"the token's {name} is no time")
    return round(value * 1000)
