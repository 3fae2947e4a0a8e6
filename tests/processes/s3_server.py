"""An S3 server on loopback for tests: moto behind a counter of requests that can also answer wrongly.

`python -m tests.processes.s3_server` prints its port and ends with its standard input. It keeps objects in memory and
believes any credentials. PUT /-/fault takes a Fault as JSON (null: none), GET /-/requests lists `METHOD path` of all
requests since the last listing.
"""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
CONTROL = "/-/"
CONDITIONS = ("HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH")
WAITING_STATUSES, LONG_S = ("429", "503"), 1 << 31
"""Answers with Retry-After, and its seconds: nobody waits so long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A wrong answer to some of the requests whose `METHOD path` contains `to`, after the first `after` of them.

    `answer`: a status with an S3 error code, such as "503 SlowDown", which asks for a wait of weeks; `is_done`: the
    request is carried out before that answer; `delay_s`: seconds to wait; `cut`: only half of the body is sent;
    `is_unconditional`: If-Match and If-None-Match are ignored; `every`: each such request of so many; `times`: how
    often at most; `hidden`: listings leave out objects with names that end so.
    """

    to: str = ""
    answer: str | None = None
    is_done: bool = False
    delay_s: float = 0.0
    cut: bool = False
    is_unconditional: bool = False
    every: int = 1
    after: int = 0
    times: int = 1 << 30
    hidden: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Server:
    """A running server. `endpoint`: its address."""

    endpoint: str

    def new_bucket(self) -> str:
        """The name of a new, empty bucket."""
        name = f"bucket-{uuid.uuid4().hex[:12]}"
        self._send("PUT", f"/{name}")
        return name

    def requests(self) -> list[str]:
        """`METHOD path` of each request since the last call, in order."""
        return [str(line) for line in json.loads(self._send("GET", f"{CONTROL}requests"))]

    def answer(self, fault: Fault | None) -> None:
        """From now on the server has this fault; None: no fault."""
        self._send("PUT", f"{CONTROL}fault", json.dumps(None if fault is None else asdict(fault)).encode())

    def environment(self) -> dict[str, str]:
        """The variables of a process that uses the server."""
        return {
            "AWS_ACCESS_KEY_ID": "AKIATESTTESTTESTTEST",
            "AWS_SECRET_ACCESS_KEY": "not-to-be-shown-anywhere",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.endpoint,
        }

    def _send(self, method: str, path: str, body: bytes | None = None) -> bytes:
        request = urllib.request.Request(self.endpoint + path, data=body, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return bytes(answer.read())


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Starts a server for the block."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "tests.processes.s3_server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield S3Server(endpoint=f"http://127.0.0.1:{int(process.stdout.readline())}")
    finally:
        process.stdin.close()
        process.wait(30)
        process.stdout.close()


class AtomicPuts:
    """An application whose conditional puts are done one at a time: moto looks, then writes, in two steps."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._exclusive = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] != "PUT" or not any(name in environ for name in CONDITIONS):
            return self._application(environ, start_response)
        body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))  # outside the lock: a client may be slow
        with self._exclusive:
            return [b"".join(self._application({**environ, "wsgi.input": io.BytesIO(body)}, start_response))]


class _Middleware:
    """Counts the requests to an application, and answers some of them wrongly."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._requests: list[str] = []
        self._fault = Fault()
        self._matches = 0
        self._lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path, method = environ["PATH_INFO"], environ["REQUEST_METHOD"]
        if path.startswith(CONTROL):
            return self._control(environ, start_response)
        line = f"{method} {path}" + (f"?{query}" if (query := environ.get("QUERY_STRING")) else "")
        fault = self._fault_of(line)
        if fault is None:
            return self._application(environ, start_response)
        if fault.is_unconditional:
            environ = {name: value for name, value in environ.items() if name not in CONDITIONS}
        time.sleep(fault.delay_s)
        if fault.answer is not None:
            status, code = fault.answer.split()
            if fault.is_done:
                b"".join(self._application(environ, lambda *_: None))
            asked_to_wait = [("Retry-After", str(LONG_S))] if status in WAITING_STATUSES else []
            start_response(f"{status} {code}", [("Content-Type", "application/xml"), *asked_to_wait])
            return [f"<Error><Code>{code}</Code><Message>as the test wants it</Message></Error>".encode()]
        if fault.hidden:
            return self._without(fault.hidden, environ, start_response)
        body = b"".join(self._application(environ, start_response))
        return [body[: len(body) // 2] if fault.cut else body]

    def _without(self, name: str, environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        """The answer to a listing, which lags behind: an object is not in it yet."""
        head: list[Any] = []
        body = b"".join(self._application(environ, lambda status, headers, *_: head.extend([status, headers])))
        objects = re.compile(rb"<Contents>(?:(?!</Contents>).)*?</Contents>", re.DOTALL)
        end = f"{name}</Key>".encode()
        body = objects.sub(lambda entry: b"" if end in entry[0] else entry[0], body)
        start_response(head[0], [(key, value) for key, value in head[1] if key.lower() != "content-length"])
        return [body]

    def _fault_of(self, line: str) -> Fault | None:
        with self._lock:
            self._requests.append(line)
            fault = self._fault
            if fault == Fault() or fault.to not in line:
                return None
            self._matches += 1
            number = self._matches - fault.after
            return fault if number > 0 and number % fault.every == 0 and number // fault.every <= fault.times else None

    def _control(self, environ: Mapping[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        answer = b""
        with self._lock:
            if environ["PATH_INFO"].endswith("requests"):
                answer, self._requests = json.dumps(self._requests).encode(), []
            else:
                fault = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
                self._fault, self._matches = Fault() if fault is None else Fault(**fault), 0
        start_response("200 OK", [("Content-Length", str(len(answer)))])
        return [answer]


def serve() -> None:
    """Serves until standard input ends."""
    import logging

    from moto.server import create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").disabled = True
    application = _Middleware(AtomicPuts(create_backend_app("s3")))
    server = make_server("127.0.0.1", 0, application, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    with contextlib.suppress(KeyboardInterrupt):
        sys.stdin.read()
    os._exit(0)  # requests that still wait for an answer must not keep it alive


if __name__ == "__main__":
    serve()
