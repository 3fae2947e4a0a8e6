"""Requests to an application without a server."""

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx
from starlette.types import ASGIApp

ORIGIN = "http://localhost:8932"


class Client:
    """Asks an application, keeps its cookies and follows no redirect."""

    def __init__(self, app: ASGIApp) -> None:
        self._app, self.cookies = app, httpx.Cookies()

    def get(self, path: str, method: str = "GET", **options: Any) -> httpx.Response:
        """The response to a request."""

        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(app=self._app)
            async with httpx.AsyncClient(transport=transport, base_url=ORIGIN, cookies=self.cookies) as client:
                response = await client.request(method, path, **options)
                self.cookies.update(client.cookies)
                return response

        return asyncio.run(ask())


def with_cookie(name: str, text: str) -> Mapping[str, bytes]:
    """A header with a cookie of any letters."""
    return {"cookie": f"{name}={text}".encode()}
