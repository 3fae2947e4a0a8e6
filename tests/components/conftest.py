"""The servers that tests of this folder use, started once, each test with a bucket of its own; and a JVM."""

from collections.abc import Iterator

import pytest

from tests.broker.java import JavaMachine, end_java_machine, java_machine
from tests.datasets import dataset
from tests.processes.in_process import make_lake
from tests.processes.s3_server import S3Server, s3_server


@pytest.fixture(scope="session")
def _server() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture
def s3(_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """An S3 server without faults, which the environment of this process names."""
    for name, value in _server.environment().items():
        monkeypatch.setenv(name, value)
    _server.answer(None)
    yield _server
    _server.answer(None)


@pytest.fixture(scope="session")
def _lake_of_basic(_server: S3Server) -> str:
    lake = f"s3://{_server.new_bucket()}/lake"
    with pytest.MonkeyPatch.context() as patch:
        for name, value in _server.environment().items():
            patch.setenv(name, value)
        make_lake(lake, dataset("basic") / "logs")
    return lake


@pytest.fixture
def lake_of_basic(s3: S3Server, _lake_of_basic: str) -> str:
    """The lake of the data set `basic` in a bucket, made once: read it only."""
    return _lake_of_basic


@pytest.fixture
def bucket(s3: S3Server) -> str:
    """The URI of a folder in a new bucket."""
    return f"s3://{s3.new_bucket()}/forensics"


@pytest.fixture(scope="module")
def machine() -> Iterator[JavaMachine]:
    """The JVM with Kafka's classes, for the tests of a module."""
    yield java_machine()
    end_java_machine()
