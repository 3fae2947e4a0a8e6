"""One page over HTTP: what is answered, what is refused, and whose connection is cut."""

import asyncio
from collections.abc import Callable

import pytest

from sharelens.broker import text_endpoint
from sharelens.broker.text_endpoint import PageError, TextEndpoint

HOST = "127.0.0.1"


async def words() -> bytes:
    return b"words 1\n"


def served(work: Callable, page: text_endpoint.Page = words):
    async def run():
        endpoint = TextEndpoint(page, "text/plain")
        port = await endpoint.open(HOST, 0)
        try:
            return await work(endpoint, port)
        finally:
            endpoint.close()

    return asyncio.run(run())


def exchanged(*requests: bytes, page: text_endpoint.Page = words) -> list[bytes]:
    """The answers to requests, each on a connection of its own."""

    async def exchange(port: int, request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(HOST, port)
        writer.write(request)
        answer = await reader.read()
        writer.close()
        return answer

    async def exchange_all(endpoint: TextEndpoint, port: int) -> list[bytes]:
        return [await exchange(port, request) for request in requests]

    return served(exchange_all, page)


def test_the_page_is_made_for_each_request():
    pages = iter([b"one\n", b"two\n"])

    async def page() -> bytes:
        return next(pages)

    first, second = exchanged(*[b"GET /metrics HTTP/1.1\r\n\r\n"] * 2, page=page)
    assert first.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n")
    assert (first[-4:], second[-4:]) == (b"one\n", b"two\n")


def test_a_page_that_can_not_be_made_says_why():
    async def page() -> bytes:
        raise PageError("the lake is gone")

    (answer,) = exchanged(b"GET / HTTP/1.1\r\n\r\n", page=page)
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert answer.endswith(b"\r\n\r\nthe lake is gone\n")


def test_other_requests_are_refused():
    answers = exchanged(
        b"GET /other HTTP/1.1\r\n\r\n",
        b"POST /metrics HTTP/1.1\r\n\r\n",
        b"garbage\r\n\r\n",
        b"\xff\xfe GET\r\n\r\n",
        b"HEAD /metrics HTTP/1.0\r\n\r\n",
    )
    assert [answer.split(b" ")[1] for answer in answers] == [b"404", b"405", b"400", b"400", b"200"]
    assert answers[-1].endswith(b"\r\n\r\n")


def test_a_request_without_end_is_cut_off():
    assert exchanged(b"x" * (2 * text_endpoint.REQUEST_BYTES_MAX)) == [b""]


@pytest.mark.slow
def test_a_silent_client_is_left(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(text_endpoint, "REQUEST_TIMEOUT_S", 0.1)

    async def work(endpoint: TextEndpoint, port: int) -> bytes:
        reader, writer = await asyncio.open_connection(HOST, port)
        answer = await reader.read()
        writer.close()
        return answer

    assert served(work) == b""


def test_clients_beyond_the_limit_are_turned_away(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(text_endpoint, "CLIENTS_MAX", 1)

    async def work(endpoint: TextEndpoint, port: int) -> bytes:
        _, first = await asyncio.open_connection(HOST, port)
        reader, second = await asyncio.open_connection(HOST, port)
        answer = await reader.read()
        for writer in (first, second):
            writer.close()
        return answer

    assert served(work) == b""
