"""Pages over small logs without a server; the processes that answer are real."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sharelens.pages.address import Session
from sharelens.pages.site import Site
from sharelens.pages.workers import Workers
from tests.requests_of_pages import Client


@pytest.fixture(scope="package")
def workers() -> Iterator[Workers]:
    with Workers(timeout_s=60, most_bytes=4 << 30) as processes:
        yield processes


@pytest.fixture(scope="package")
def drawers() -> Iterator[Workers]:
    with Workers(timeout_s=60, most_bytes=4 << 30, processes=1) as processes:
        yield processes


@pytest.fixture(scope="package")
def site_of(workers: Workers, drawers: Workers) -> Callable[[Path], Client]:
    def client(log_directory: Path) -> Client:
        session = Session({"--log-dir": [str(log_directory)]})
        return Client(Site(workers=workers, drawers=drawers, session=session, source=session.place))

    return client
