"""The endpoint: it answers until it is told to end, and says why when there is nothing to answer."""

import os
import signal
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from sharelens.metrics.reading import Page
from sharelens.metrics.serving import ServeError, serve, serving
from sharelens.source.request import Source
from tests.logs.state_logs import snapshot, write_log_directory


def scraped(page: Page) -> tuple[int, str]:
    """Status and body of one scrape; the server is ended by SIGTERM after it."""
    answers: list[tuple[int, str]] = []

    def ready(host: str, port: int) -> None:
        def scrape() -> None:
            try:
                with urllib.request.urlopen(f"http://{host}:{port}/metrics", timeout=10) as answer:
                    answers.append((answer.status, answer.read().decode()))
            except urllib.error.HTTPError as refused:
                with refused:
                    answers.append((refused.code, refused.read().decode()))
            finally:
                os.kill(os.getpid(), signal.SIGTERM)

        threading.Thread(target=scrape).start()

    serve(page.text, "text/plain", "127.0.0.1", 0, ready)
    (only_answer,) = answers
    return only_answer


@pytest.mark.slow
def test_a_scrape_gets_the_page(tmp_path: Path):
    logs = write_log_directory(tmp_path / "logs", [snapshot()])
    page = Page(Source(log_dirs=(str(logs),)), 100, lambda export: b"page", refresh_s=0)
    assert scraped(page) == (200, "page")


def test_a_lake_that_went_away_is_told(tmp_path: Path):
    page = Page(Source(lake=str(tmp_path / "gone")), 100, lambda export: b"", refresh_s=0)
    status, body = scraped(page)
    assert status == 503
    assert "is not a directory" in body


def test_an_address_that_is_not_ours_is_told(tmp_path: Path):
    page = Page(Source(lake=str(tmp_path)), 100, lambda export: b"", refresh_s=0)
    with pytest.raises(ServeError, match=r"can't listen on 192\.0\.2\.1:1"):
        serve(page.text, "text/plain", "192.0.2.1", 1, lambda host, port: None)


def get(port: int) -> tuple[int, bytes]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return answer.status, answer.read()


def test_figures_are_served_beside_other_work_and_no_longer_behind_it():
    numbers = iter(range(10))
    with serving(lambda: f"page {next(numbers)}".encode(), "text/plain", "127.0.0.1", 0) as port:
        assert [get(port), get(port)] == [(200, b"page 0"), (200, b"page 1")]
    with pytest.raises(urllib.error.URLError):
        get(port)
    assert "metrics" not in {thread.name for thread in threading.enumerate()}


def test_an_address_that_can_not_be_listened_on_ends_the_work_before_it_begins():
    with pytest.raises(ServeError, match=r"can't listen on 192\.0\.2\.1:1"), serving(bytes, "", "192.0.2.1", 1):
        pytest.fail("it began")
