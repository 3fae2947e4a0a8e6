"""Who may read pages: whoever has the token, over an address of this machine; and what a page may load."""

import hmac
import re
import secrets
import socket
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from pathlib import Path

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sharelens.broker.config.listeners import is_loopback
from state_model.errors import UsageError

LEAST_TOKEN = 16
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
REFUSED = "open the link that `sharelens explore` printed: it has the token"
ENTER = (
    '<!doctype html><html lang="en"><link rel="icon" href="data:,"><title>sharelens</title>'
    '<meta http-equiv="refresh" content="0;url=/"><a href="/">Enter</a>'
)
"""A step of its own: a browser that follows a redirect from another site sends no strict cookie."""
HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:@/\s]+)(:\d{1,5})?")


def token_of(file: str | None) -> str:
    """The token of a file; without one a new random token.

    Raises:
        UsageError: the file can't be read, or its text is too short or has letters that no cookie may have.
    """
    if file is None:
        return secrets.token_urlsafe(32)
    try:
        token = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--token-file: {file}: {getattr(error, 'strerror', None) or 'no UTF-8'}") from error
    if len(token) < LEAST_TOKEN or re.fullmatch(r"[A-Za-z0-9_.~-]+", token) is None:
        raise UsageError(f"--token-file: {file}: give at least {LEAST_TOKEN} letters, digits, `-`, `_`, `.` or `~`")
    return token


@dataclass(frozen=True, slots=True)
class Access:
    """The token, the hosts whose names a request may have beside this machine's loopback, and the cookie's name."""

    token: str
    cookie: str = "sharelens"
    hosts: frozenset[str] = field(default_factory=frozenset)

    def allows_host(self, host: str) -> bool:
        """Whether a Host header names this machine."""
        match = HOST.fullmatch(host)
        if match is None:
            return False
        name = match[1].strip("[]").lower()
        return is_loopback(name) or name in self.hosts

    def is_token(self, text: str | None) -> bool:
        """Whether a text is the token; takes as long whatever the text is."""
        return text is not None and hmac.compare_digest(text.encode(), self.token.encode())


def remote_hosts(host: str) -> frozenset[str]:
    """The names by which other machines reach an address that listens."""
    return frozenset({host.lower(), socket.gethostname().lower(), socket.getfqdn().lower()})


class Guard:
    """Lets requests with the token through, as a cookie or once in the address; adds headers to all responses."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request, or passes it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, text in HEADERS.items():
                    headers[name] = text
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        refusal = self._refusal(scope)
        await (self._app if refusal is None else refusal)(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        """The response to a request that isn't let through; None: it is."""
        headers, query = Headers(scope=scope), QueryParams(scope["query_string"])
        if not self._access.allows_host(headers.get("host", "")):
            return PlainTextResponse("this address is not served here: use localhost or 127.0.0.1\n", 421)
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("pages are read only\n", 405, {"Allow": "GET, HEAD"})
        if self._access.is_token(query.get("token")):
            response = HTMLResponse(ENTER)
            response.set_cookie(self._access.cookie, self._access.token, httponly=True, samesite="strict")
            return response
        if not self._access.is_token(_cookie(headers.get("cookie", ""), self._access.cookie)):
            return PlainTextResponse(f"{REFUSED}\n", 403)
        return None


def _cookie(header: str, name: str) -> str | None:
    try:
        cookies = SimpleCookie(header)
    except CookieError:
        return None
    return cookies[name].value if name in cookies else None
