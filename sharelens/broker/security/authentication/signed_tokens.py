"""Signed JSON web tokens, checked with the keys of a JWKS document (Kafka's BrokerJwtValidator)."""

import json
import logging
import threading
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import jwt

from sharelens.broker.errors import ConfigError
from sharelens.broker.ports import Timers
from sharelens.broker.security.authentication.oauthbearer import InvalidTokenError, Token

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures with a public key only: with another algorithm, who can check a token could also make one."""
DOCUMENT_BYTES_MAX: Final = 1 << 20
READ_TIMEOUT_S: Final = 10.0
SCHEMES: Final = ("https", "http", "file")
_PRIVATE_PARTS: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth"})

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey:
    """A public key. `algorithms`: those that a token may name with it."""

    public: Any
    algorithms: tuple[str, ...]


class JwksKeys:
    """Keys by their id, read at first and then in a thread, at an interval and when a token names an unknown key."""

    def __init__(self, url: str, timers: Timers, *, refresh_ms: int, backoff_ms: int, backoff_max_ms: int) -> None:
        """Read the keys. Raises ConfigError when there are none."""
        self._url = url
        self._timers = timers
        self._refresh_ms = refresh_ms
        self._backoff_ms, self._backoff_max_ms = backoff_ms, backoff_max_ms
        self._failures = 0
        self._not_before_ms = timers.now_ms() + backoff_ms
        self._reader: threading.Thread | None = None
        self._keys = read_keys(url)
        self._read_later()

    def key(self, key_id: str | None) -> SigningKey | None:
        """The key of an id, or the only key for a token without an id; None when there is none."""
        if key_id is None:
            return next(iter(self._keys.values())) if len(self._keys) == 1 else None
        key = self._keys.get(key_id)
        if key is None and self._timers.now_ms() >= self._not_before_ms:
            self._read_in_thread()
        return key

    def _read_later(self) -> None:
        def read_again() -> None:
            self._read_in_thread()
            self._read_later()

        self._timers.after_ms(self._refresh_ms, read_again)

    def _read_in_thread(self) -> None:
        if self._reader is None or not self._reader.is_alive():
            self._reader = threading.Thread(target=self._read, name="jwks", daemon=True)
            self._reader.start()

    def _read(self) -> None:
        try:
            self._keys = read_keys(self._url)
            self._failures = 0
        except ConfigError as error:
            _log.warning("%s; tokens are checked with the keys read before", error)
            self._failures += 1
        wait_ms = min(self._backoff_max_ms, self._backoff_ms * 2 ** min(self._failures, 20))
        self._not_before_ms = self._timers.now_ms() + wait_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedValidator:
    """Checks signature and claims. `audiences` empty, `issuer` empty: any."""

    key_of: Callable[[str | None], SigningKey | None]
    audiences: tuple[str, ...] = ()
    issuer: str = ""
    skew_s: int = 30
    user_claim: str = "sub"

    def validate(self, text: str) -> Token:
        """The token. Raises InvalidTokenError."""
        try:
            header = jwt.get_unverified_header(text)
            key = self.key_of(header.get("kid"))
            if key is None:
                raise InvalidTokenError("no key has the id of the token")
            claims = jwt.decode(
                text,
                key.public,
                algorithms=key.algorithms,
                audience=self.audiences or None,
                issuer=self.issuer or None,
                leeway=self.skew_s,
                options={"require": ["exp", "iat"], "verify_aud": bool(self.audiences), "verify_sub": False},
            )
            user, expires_s = claims.get(self.user_claim), float(claims["exp"])
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError) as error:
            raise InvalidTokenError(f"the token is refused: {error}") from error
        if not isinstance(user, str) or not user.strip():
            raise InvalidTokenError(f"the token has no {self.user_claim}")
        return Token(user=user, expires_at_ms=round(expires_s * 1000))


def read_keys(url: str) -> Mapping[str, SigningKey]:
    """The public keys of a JWKS document for signatures, by id.

    Raises:
        ConfigError: the document can't be read, or has no such key.
    """
    if urllib.parse.urlsplit(url).scheme not in SCHEMES:
        raise ConfigError(f"sasl.oauthbearer.jwks.endpoint.url={url[:200]} is no {', '.join(SCHEMES)} URL")
    try:
        with urllib.request.urlopen(url, timeout=READ_TIMEOUT_S) as answer:  # noqa: S310 - the scheme is checked above
            raw = answer.read(DOCUMENT_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise ConfigError(f"sasl.oauthbearer.jwks.endpoint.url={url[:200]} can't be read: {reason}") from None
    if len(raw) > DOCUMENT_BYTES_MAX:
        raise ConfigError(f"sasl.oauthbearer.jwks.endpoint.url={url[:200]} has more than {DOCUMENT_BYTES_MAX} bytes")
    try:
        entries = json.loads(raw)["keys"]
        keys = {str(entry.get("kid", "")): key for entry in entries if (key := _key(entry)) is not None}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ConfigError(f"sasl.oauthbearer.jwks.endpoint.url={url[:200]} is no JWKS document") from None
    if not keys:
        raise ConfigError(f"sasl.oauthbearer.jwks.endpoint.url={url[:200]} has no public key for signatures")
    return keys


def _key(entry: Mapping[str, Any]) -> SigningKey | None:
    """A key of a document; null for one of another use or kind, which the document may have beside others."""
    if entry.get("kty") not in ("RSA", "EC", "OKP") or entry.get("use", "sig") != "sig":
        return None
    try:
        public = jwt.PyJWK({name: value for name, value in entry.items() if name not in _PRIVATE_PARTS}).key
    except jwt.PyJWTError:
        return None
    algorithm = entry.get("alg")
    return SigningKey(public=public, algorithms=tuple(name for name in ALGORITHMS if algorithm in (None, name)))
