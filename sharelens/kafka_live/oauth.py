"""Access tokens for SASL OAUTHBEARER by OAuth client credentials (RFC 6749 section 4.4), as Kafka's clients get them.

Rules: org.apache.kafka.common.security.oauthbearer.ClientCredentialsJwtRetriever (KIP-768, KIP-1139). Secrets stand in
no message and in no repr.
"""

import base64
import json
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from typing import Any, NoReturn

from kafka.net.sasl.oauth import AbstractTokenProvider

from sharelens.kafka_live.errors import ClusterError

MOST_BYTES = 1 << 20
LONGEST_CODE = 80
USED_PART = 0.8
"""The part of a token's lifetime after which a new connection takes another one (sasl.login.refresh.window.factor)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCredentials:
    """Where tokens come from and for whom. `truststore`: PEM certificates that are trusted beside the system's CAs.

    `encodes`: name and secret are URL-encoded in the header (sasl.oauthbearer.header.urlencode).
    """

    url: str
    client_id: str = field(repr=False)
    client_secret: str = field(repr=False)
    scope: str | None = None
    extensions: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    encodes: bool = False
    timeout_ms: int
    truststore: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """An access token; `lifetime_s`: from its answer on, 0: unknown."""

    text: str = field(repr=False)
    lifetime_s: float


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]
    """Gives the library tokens, each as long as it is valid."""

    def __init__(self, credentials: ClientCredentials) -> None:
        super().__init__()
        self._credentials = credentials
        self._token: Token | None = None
        self._renew_s = 0.0

    def token(self) -> str:
        """A valid token. Raises ClusterError."""
        if self._token is None or time.monotonic() >= self._renew_s:
            self._token = fetch_token(self._credentials)
            self._renew_s = time.monotonic() + USED_PART * self._token.lifetime_s
        return self._token.text

    def extensions(self) -> dict[str, str]:
        """The SASL extensions of the login module."""
        return dict(self._credentials.extensions)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirection would send the secret elsewhere."""

    def redirect_request(self, *arguments: Any) -> None:
        return None


def fetch_token(credentials: ClientCredentials) -> Token:
    """A new token of the endpoint.

    Raises:
        ClusterError: the endpoint does not answer, refuses, or answers without a token.
    """
    parts = [credentials.client_id, credentials.client_secret]
    if credentials.encodes:
        parts = [urllib.parse.quote_plus(part) for part in parts]
    form = {"grant_type": "client_credentials"} | ({"scope": credentials.scope} if credentials.scope else {})
    request = urllib.request.Request(  # noqa: S310 - http or https, which oauth_config has checked
        credentials.url,
        data=urllib.parse.urlencode(form).encode(),
        headers={
            "Authorization": f"Basic {base64.b64encode(':'.join(parts).encode()).decode()}",
            "Accept": "application/json",
            "Content-Type": "application/x-www-form-urlencoded",
        },
    )
    context = ssl.create_default_context()
    if credentials.truststore is not None:
        context.load_verify_locations(credentials.truststore)
    opener = urllib.request.build_opener(_NoRedirect(), urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(request, timeout=credentials.timeout_ms / 1000) as answer:
            data = answer.read(MOST_BYTES)
    except urllib.error.HTTPError as error:
        with error:
            _refuse(credentials, f"refuses the client ({error.code}{_code_of(error.read(MOST_BYTES))})")
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        _refuse(credentials, f"does not answer ({getattr(reason, 'strerror', None) or type(reason).__name__})")
    return _token_of(credentials, data)


def _token_of(credentials: ClientCredentials, data: bytes) -> Token:
    answer = _json(data)
    text, lifetime_s = answer.get("access_token"), answer.get("expires_in")
    if not isinstance(text, str) or not text or not text.isascii() or not text.isprintable():
        _refuse(credentials, "answers without an access_token")
    return Token(text=text, lifetime_s=max(0.0, lifetime_s) if isinstance(lifetime_s, int | float) else 0.0)


def _code_of(body: bytes) -> str:
    """The error code of a refusal (RFC 6749 section 5.2), as printable text."""
    code = _json(body).get("error")
    return f", {code[:LONGEST_CODE]}" if isinstance(code, str) and code.isprintable() else ""


def _json(data: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return answer if isinstance(answer, dict) else {}


def _refuse(credentials: ClientCredentials, problem: str) -> NoReturn:
    url = urllib.parse.urlsplit(credentials.url)
    port = "" if url.port is None else f":{url.port}"
    raise ClusterError(
        f"--command-config: the token endpoint {url.scheme}://{url.hostname}{port}{url.path} {problem}; correct "
        "sasl.oauthbearer.token.endpoint.url, or the client's id and secret"
    )
