"""The S3 server of the tests: what the tests of leases and commits take for granted."""

import io
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from sharelens.lake.lake import Lake
from sharelens.lake.object_storage import ObjectStorage
from tests.processes.s3_server import AtomicPuts

WRITERS = 4


@pytest.mark.parametrize("is_first", [True, False], ids=["If-None-Match", "If-Match"])
def test_of_conditional_puts_at_once_the_server_accepts_one(bucket: str, is_first: bool) -> None:
    storage = Lake(bucket).storage
    assert isinstance(storage, ObjectStorage)

    def put(path: str, writer: int, tag: str | None) -> bool:
        return storage.replace(path, b"%d" % writer, tag) is not None

    with ThreadPoolExecutor(WRITERS) as writers:
        for turn in range(20):
            path = f"object-{turn}"
            tag = None if is_first else storage.replace(path, b"before", None)
            assert sum(writers.map(put, [path] * WRITERS, range(WRITERS), [tag] * WRITERS)) == 1


@pytest.mark.parametrize("condition", ["HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH"])
def test_an_application_that_looks_and_then_writes_gets_conditional_puts_one_at_a_time(condition: str) -> None:
    written: list[bytes] = []

    def application(environ: dict[str, Any], _: Callable[..., Any]) -> Iterable[bytes]:
        is_free = not written
        time.sleep(0.02)
        if is_free:
            written.append(environ["wsgi.input"].read())
        return [b"accepted" if is_free else b"refused"]

    def put(writer: int) -> bytes:
        body = b"%d" % writer
        environ = {"REQUEST_METHOD": "PUT", condition: "x", "CONTENT_LENGTH": "1", "wsgi.input": io.BytesIO(body)}
        return b"".join(server(environ, print))

    server = AtomicPuts(application)
    with ThreadPoolExecutor(WRITERS) as writers:
        answers = list(writers.map(put, range(WRITERS)))
    assert sorted(answers) == [b"accepted"] + [b"refused"] * (WRITERS - 1)
    assert len(written) == 1
